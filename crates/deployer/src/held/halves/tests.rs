use super::*;
use crate::held::tests::counter;

fn swapped(held: &Credentials, swap: &Swap) -> Credentials {
    crate::held::tests::swapped(held, ACCOUNTS, swap)
}

fn held() -> Credentials {
    Credentials::complete("cloud", &[], counter())
}

fn users(held: &Credentials, store: &str, service: &str) -> Vec<String> {
    let logins = held.logins(store, service).into_iter();
    logins.map(|it| it.user).collect()
}

const NOVA: &str = "database-nova";

#[test]
fn an_account_goes_over_to_its_other_half_and_back() {
    let mut held = held();
    let mut random = counter();
    // Other bytes than those of the passwords that are there.
    (0..9).for_each(|_| _ = random());
    for (first, second) in [("nova", "nova-b"), ("nova-b", "nova")] {
        let before = held.login("database", "nova");
        assert_eq!(before.user, first);
        assert_eq!(users(&held, "database", "nova"), [first]);
        let both = swapped(&held, &held.with_next(&[NOVA].into(), &mut random));
        assert_eq!(users(&both, "database", "nova"), [first, second]);
        assert_eq!(both.login("database", "nova"), before);
        assert_eq!(both.with_next(&[NOVA].into(), counter()), Swap::new());
        let used = swapped(&both, &both.used());
        assert_eq!(users(&used, "database", "nova"), [second, first]);
        assert_eq!(used.logins("database", "nova")[1], before);
        assert_eq!(used.used(), Swap::new());
        let dropped = swapped(&used, &used.without_former());
        assert_eq!(users(&dropped, "database", "nova"), [second]);
        assert_eq!(dropped.dropped(), [(NOVA, before)]);
        assert_eq!(dropped.without_former(), Swap::new());
        let after = swapped(&dropped, &dropped.forgotten());
        assert!(after.dropped().is_empty() && after.forgotten().is_empty());
        assert_eq!(users(&after, "database", "nova"), [second]);
        assert_ne!(after.password(NOVA), held.password(NOVA));
        held = after;
    }
    // Nothing is left but the passwords.
    let keys: Vec<String> = held.secret(ACCOUNTS).into_keys().collect();
    assert!(keys.iter().all(|it| !it.contains('.')), "{keys:?}");
}

#[test]
fn what_is_left_of_a_rotation_gets_another_password() {
    let held = held();
    let chosen: BTreeSet<&str> = [NOVA].into();
    assert!(!held.has_leftovers(&chosen));
    let both = swapped(&held, &held.with_next(&chosen, counter()));
    let used = swapped(&both, &both.used());
    let dropped = swapped(&used, &used.without_former());
    for left in [used, dropped] {
        assert!(left.has_leftovers(&chosen));
        let again = swapped(&left, &left.with_next(&chosen, || 9));
        assert!(!again.has_leftovers(&chosen) && again.dropped().is_empty());
        let logins = again.logins("database", "nova");
        assert_eq!(logins[0], left.login("database", "nova"));
        assert_eq!(logins[1].user, "nova");
        assert_ne!(logins[1].password, held.password(NOVA));
    }
}

#[test]
fn the_administrator_of_keystone_is_one_user() {
    let held = held();
    let before = held.password(ADMINISTRATOR);
    let both = swapped(&held, &held.with_next(&[ADMINISTRATOR].into(), counter()));
    assert_eq!(both.used(), Swap::new());
    let next = both.next_administrator().unwrap();
    let after = swapped(&both, &both.with_administrator());
    assert_eq!(after.password(ADMINISTRATOR), next);
    assert_eq!(after.next_administrator(), None);
    assert_eq!(after.with_administrator(), Swap::new());
    let login = Login {
        user: "admin".to_owned(),
        password: before,
    };
    assert_eq!(after.dropped(), [(ADMINISTRATOR, login)]);
}

#[test]
fn every_account_that_is_rotated_is_made_for_a_cloud() {
    let held = held();
    for account in ROTATED {
        assert!(!held.password(account).expose().is_empty(), "{account}");
        assert!(STORES.iter().any(|it| account.starts_with(it)), "{account}");
    }
    assert!(ROTATED.is_sorted());
}
