use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::observed::{Observed, Standing};
use super::{Config, ElectionError, Lost};

fn lease(holder: Option<&str>, renewed: i64) -> LeaseSpec {
    LeaseSpec {
        holder_identity: holder.map(str::to_owned),
        renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
        lease_duration_seconds: Some(15),
        ..LeaseSpec::default()
    }
}

fn after(start: Instant, seconds: u64) -> Instant {
    start + Duration::from_secs(seconds)
}

/// A name; observations with their seconds; the expected holder.
type Case<'a> = (&'a str, &'a [(Option<LeaseSpec>, u64)], Standing);

#[test]
fn the_holder_of_a_lease_follows_from_its_observations() {
    let start = Instant::now();
    let table: [Case<'_>; 8] = [
        ("nothing read", &[], Standing::Unknown),
        ("absent", &[(None, 0)], Standing::Free),
        ("empty", &[(Some(LeaseSpec::default()), 0)], Standing::Free),
        (
            "given back",
            &[(Some(lease(Some(""), 1)), 0)],
            Standing::Free,
        ),
        (
            "ours, however old",
            &[(Some(lease(Some("me"), 1)), 0)],
            Standing::Ours,
        ),
        (
            "renewed",
            &[
                (Some(lease(Some("you"), 1)), 0),
                (Some(lease(Some("you"), 2)), 6),
            ],
            Standing::Taken,
        ),
        (
            "not renewed",
            &[
                (Some(lease(Some("you"), 1)), 0),
                (Some(lease(Some("you"), 1)), 19),
            ],
            Standing::Free,
        ),
        // The clock of the holder is an hour behind; it renews nevertheless.
        (
            "an old time, but seen to change",
            &[
                (Some(lease(Some("you"), -3600)), 0),
                (Some(lease(Some("you"), -3590)), 10),
            ],
            Standing::Taken,
        ),
    ];
    for (name, seen, expected) in table {
        let mut observed = Observed::default();
        for (spec, at) in seen {
            observed.see(spec.clone(), after(start, *at));
        }
        assert_eq!(
            observed.standing("me", after(start, 20)),
            expected,
            "{name}"
        );
    }
}

#[test]
fn the_age_counts_from_the_last_change_that_was_seen() {
    let start = Instant::now();
    let mut observed = Observed::default();
    assert_eq!(observed.age(start), Duration::MAX);
    observed.see(Some(lease(Some("me"), 1)), start);
    observed.see(Some(lease(Some("me"), 1)), after(start, 4));
    assert_eq!(observed.age(after(start, 9)).as_secs(), 9);
    observed.see(Some(lease(Some("me"), 2)), after(start, 9));
    assert_eq!(observed.age(after(start, 9)).as_secs(), 0);
}

#[test]
fn contradictory_durations_are_rejected() {
    let config = |lease, renew, retry| Config {
        namespace: "n".to_owned(),
        name: "l".to_owned(),
        identity: "i".to_owned(),
        lease_duration: Duration::from_millis(lease),
        renew_deadline: Duration::from_millis(renew),
        retry_period: Duration::from_millis(retry),
    };
    assert!(config(15_000, 10_000, 2_000).check().is_ok());
    for (lease, renew, retry) in [
        (10_000, 10_000, 2_000),
        (15_000, 2_000, 2_000),
        (15_000, 10_000, 0),
        (15_500, 10_000, 2_000),
    ] {
        let refused = config(lease, renew, retry).check();
        assert!(matches!(refused, Err(ElectionError::Times { .. })));
    }
    let message = config(15_500, 10_000, 2_000).check().unwrap_err();
    assert!(
        message
            .to_string()
            .ends_with("and has 15.5 s, 10 s and 2 s")
    );
    let lost = Lost::Expired {
        lease: "Lease n/l".to_owned(),
        deadline: Duration::from_secs(10),
    };
    assert_eq!(
        lost.to_string(),
        "the Lease n/l could not be renewed for 10 s"
    );
}
