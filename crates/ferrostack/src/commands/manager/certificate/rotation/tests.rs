use secrecy::ExposeSecret as _;

use super::super::Pair;
use super::*;
use crate::pki;

/// An authority by this name, and what it has issued for `a` and `127.0.0.1`.
fn issued(name: &str, days: i64) -> (String, Pair) {
    let names = vec!["a".to_owned(), "127.0.0.1".to_owned()];
    let (authority, identity) = pki::self_issued_for(name, names, days).unwrap();
    (authority, identity.into())
}

fn names() -> Vec<String> {
    vec!["a".to_owned()]
}

fn copied(pair: &Pair) -> Pair {
    Pair {
        certificate: pair.certificate.clone(),
        key: pair.key.expose_secret().to_owned().into(),
    }
}

fn after(days: i64) -> Timestamp {
    let now = Timestamp::now().as_second();
    Timestamp::from_second(now + days * 86_400).unwrap()
}

#[test]
fn a_certificate_is_replaced_ninety_days_before_its_end_by_steps_that_wait_for_api_servers() {
    let (authority, served) = issued("one", 365);
    let mut stored = Stored {
        authorities: authority.clone(),
        served,
        next: None,
    };
    for days in [0, 100, 270] {
        assert_eq!(step(&stored, &names(), true, after(days)), None, "{days}");
    }
    let prepared = step(&stored, &names(), true, after(280));
    let Some(Step::Prepare {
        names: all,
        authorities,
    }) = prepared
    else {
        panic!("{prepared:?}");
    };
    // With the names that it had.
    assert_eq!(all, ["a", "127.0.0.1"]);
    assert_eq!(authorities.trim(), authority.trim());

    let (another, next) = issued("two", 700);
    stored.authorities = format!("{authority}{another}");
    stored.next = Some(copied(&next));
    assert_eq!(step(&stored, &names(), false, after(280)), None);
    assert_eq!(
        step(&stored, &names(), true, after(280)),
        Some(Step::Switch)
    );
    // Nobody can accept the old one any more.
    assert_eq!(
        step(&stored, &names(), false, after(400)),
        Some(Step::Switch)
    );

    (stored.served, stored.next) = (next, None);
    assert_eq!(step(&stored, &names(), true, after(300)), None);
    let forgotten = step(&stored, &names(), true, after(370));
    let Some(Step::Forget { authorities }) = forgotten else {
        panic!("{forgotten:?}");
    };
    assert_eq!(authorities.trim(), another.trim());
    stored.authorities = authorities;
    assert_eq!(step(&stored, &names(), true, after(370)), None);
}

#[test]
fn what_somebody_has_broken_is_issued_again_and_nothing_that_is_accepted_goes() {
    let (authority, served) = issued("one", 365);
    let (_, stranger) = issued("two", 365);
    let is_prepared = |stored: &Stored, names: &[String]| {
        let step = step(stored, names, true, after(0));
        matches!(&step, Some(Step::Prepare { authorities, .. }) if authorities.trim() == authority.trim())
    };
    let with = |served: Pair, next: Option<Pair>| Stored {
        authorities: authority.clone(),
        served,
        next,
    };
    // The next one of an authority that API servers do not get.
    assert!(is_prepared(
        &with(copied(&served), Some(copied(&stranger))),
        &names()
    ));
    assert!(is_prepared(&with(copied(&stranger), None), &names()));
    let garbage = || Pair {
        certificate: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----".to_owned(),
        key: String::new().into(),
    };
    assert!(is_prepared(&with(garbage(), None), &names()));
    assert!(is_prepared(
        &with(copied(&served), Some(garbage())),
        &names()
    ));
    // A manager that is reached by another name.
    let other = vec!["b".to_owned()];
    assert!(is_prepared(&with(copied(&served), None), &other));
    assert!(!is_prepared(&with(served, None), &names()));
}
