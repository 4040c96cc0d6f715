use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};

use super::{needs_extension, random, split};

#[test]
fn a_token_is_extended_when_a_sixth_of_its_life_has_passed() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    for (left, expected) in [
        (900, false),
        (751, false),
        (750, false),
        (749, true),
        (0, true),
        (-5, true),
    ] {
        let end = now.checked_add(SignedDuration::from_secs(left)).unwrap();
        assert_eq!(needs_extension(Some(end), now), expected, "{left}");
    }
    assert!(!needs_extension(None, now));
}

#[test]
fn tokens_have_the_form_that_kubernetes_wants() {
    let (id, secret) = (random(6), random(16));
    let legal = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    assert!(id.len() == 6 && secret.len() == 16 && legal(&id) && legal(&secret));
    assert_ne!(random(16), secret);
    let (left, right) = split(&SecretString::from(format!("{id}.{secret}"))).unwrap();
    assert_eq!((left, right.expose_secret()), (id, secret.as_str()));
    assert!(split(&SecretString::from("none")).is_none());
}
