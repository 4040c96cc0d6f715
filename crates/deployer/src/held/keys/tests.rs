use super::*;
use crate::held::tests::{counter, swapped};

fn held() -> Credentials {
    Credentials::complete("cloud", &[], counter())
}

fn keys(held: &Credentials, secret: &str) -> Vec<String> {
    let names = [NEW, FORMER, PRIMARY];
    let keys = names.iter().filter_map(|it| held.key(secret, it));
    keys.map(|it| it.expose().to_owned()).collect()
}

#[test]
fn a_key_of_tokens_is_staged_then_primary_then_former_and_then_gone() {
    let mut held = held();
    let mut primary = keys(&held, FERNET)[1].clone();
    assert_eq!(held.revision(), None);
    for round in 0..3_u8 {
        let staged = swapped(&held, FERNET, &held.staged(FERNET, || 10 + round));
        let new = keys(&staged, FERNET)[0].clone();
        assert_eq!(staged.primary(FERNET).unwrap().expose(), primary);
        assert!(!keys(&held, FERNET).contains(&new));
        assert_eq!(staged.staged(FERNET, || 99), Swap::new());
        let promoted = swapped(&staged, FERNET, &staged.promoted(FERNET, || 20 + round));
        let found = keys(&promoted, FERNET);
        assert_eq!(found[1..], [primary.clone(), new.clone()]);
        assert_eq!(promoted.promoted(FERNET, || 99), Swap::new());
        assert_eq!(promoted.migrated(), Swap::new());
        let mut revisions = vec![held.revision(), staged.revision(), promoted.revision()];
        revisions.dedup();
        assert_eq!(revisions.len(), 3);
        primary = new;
        held = promoted;
    }
}

#[test]
fn a_key_of_credentials_goes_when_they_are_migrated() {
    let held = held();
    let former = keys(&held, CREDENTIAL)[1].clone();
    let staged = swapped(&held, CREDENTIAL, &held.staged(CREDENTIAL, || 10));
    let new = keys(&staged, CREDENTIAL)[0].clone();
    let promoted = swapped(&staged, CREDENTIAL, &staged.promoted(CREDENTIAL, || 20));
    assert!(promoted.is_migrating() && keys(&promoted, CREDENTIAL).contains(&former));
    // A rotation that did not end comes first.
    assert_eq!(promoted.staged(CREDENTIAL, || 30), Swap::new());
    let after = swapped(&promoted, CREDENTIAL, &promoted.migrated());
    assert!(!after.is_migrating() && !keys(&after, CREDENTIAL).contains(&former));
    assert_eq!(after.primary(CREDENTIAL).unwrap().expose(), new);
    assert_eq!(after.revision(), promoted.revision());
    assert_eq!(after.migrated(), Swap::new());
}
