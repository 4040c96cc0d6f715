mod convergence;

use api::addons::v1beta2::ResourceKind;
use api::conditions::Status;

use super::*;

fn reference(name: &str) -> ResourceRef {
    ResourceRef {
        kind: ResourceKind::ConfigMap,
        name: name.to_owned(),
    }
}

fn bound(applied: bool, hash: Option<&str>) -> Vec<ResourceBinding> {
    vec![ResourceBinding {
        kind: ResourceKind::ConfigMap,
        name: "a".to_owned(),
        hash: hash.map(str::to_owned),
        applied,
        last_applied_time: None,
    }]
}

#[test]
fn a_resource_is_due_until_it_is_applied_and_with_reconcile_when_it_changes() {
    use Strategy::{ApplyOnce, Reconcile};
    let cases = [
        (vec![], ApplyOnce, None, true),
        (bound(false, None), ApplyOnce, Some("x"), true),
        (bound(true, Some("x")), ApplyOnce, Some("y"), false),
        (bound(true, None), ApplyOnce, None, false),
        (vec![], Reconcile, Some("x"), true),
        (bound(false, Some("x")), Reconcile, Some("x"), true),
        (bound(true, Some("x")), Reconcile, Some("x"), false),
        (bound(true, Some("x")), Reconcile, Some("y"), true),
        (bound(true, Some("x")), Reconcile, None, true),
        (bound(true, None), Reconcile, Some("x"), true),
    ];
    for (bound, strategy, hash, expected) in cases {
        let due = is_due(&bound, &reference("a"), strategy, hash);
        assert_eq!(due, expected, "{bound:?} {strategy:?} {hash:?}");
    }
    let of_another = is_due(&bound(true, None), &reference("b"), ApplyOnce, None);
    assert!(of_another);
    let secret = ResourceRef {
        kind: ResourceKind::Secret,
        name: "a".to_owned(),
    };
    assert!(is_due(&bound(true, None), &secret, ApplyOnce, None));
}

fn failed(messages: &[&str], cause: Cause) -> Outcome {
    let problem = |message: &&str| Problem {
        message: (*message).to_owned(),
        cause,
    };
    Outcome::Failed(messages.iter().map(problem).collect())
}

#[test]
fn the_condition_names_the_clusters_and_what_is_wrong() {
    let named = |outcomes: Vec<(&str, Outcome)>| {
        let outcomes = outcomes.into_iter();
        let outcomes: Vec<_> = outcomes.map(|(name, o)| (name.to_owned(), o)).collect();
        let verdict = verdict(&outcomes);
        verdict.map(|v| (v.status, v.reason, v.message))
    };
    assert_eq!(named(vec![]), None);
    let all = named(vec![("a", Outcome::Applied), ("b", Outcome::Applied)]);
    assert_eq!(
        all,
        Some((Status::True, "Applied".to_owned(), String::new()))
    );
    let missing = || failed(&["ConfigMap x does not exist"], Cause::Source);
    let (status, reason, message) = named(vec![
        ("a", Outcome::Applied),
        ("b", missing()),
        ("c", missing()),
        ("d", Outcome::Waiting("Not yet".to_owned())),
    ])
    .unwrap();
    assert_eq!((status, reason.as_str()), (Status::False, "NotApplied"));
    let lines = [
        "* Clusters b, c: ConfigMap x does not exist",
        "* Cluster d: Not yet",
    ];
    assert_eq!(message, lines.join("\n"));
    let (_, reason, _) = named(vec![("a", failed(&["wrong"], Cause::SecretType))]).unwrap();
    assert_eq!(reason, "WrongSecretType");
    let many = failed(&["1", "2", "3", "4", "5", "6", "7"], Cause::Workload);
    let (_, _, message) = named(vec![("a", many)]).unwrap();
    assert!(message.starts_with("* Cluster a:\n  * 1\n"), "{message}");
    assert!(message.ends_with("  * 5\n  * ... (2 more)"), "{message}");
}

#[test]
fn only_what_no_watch_reports_is_retried() {
    let of = |outcome: Outcome| to_retry(&[("a".to_owned(), outcome)]);
    assert_eq!(of(Outcome::Applied), None);
    assert_eq!(of(Outcome::Waiting("x".to_owned())), None);
    assert_eq!(of(failed(&["x"], Cause::Source)), None);
    assert_eq!(of(failed(&["x"], Cause::SecretType)), None);
    let retried = of(failed(&["x"], Cause::Workload));
    assert_eq!(retried.as_deref(), Some("Cluster a: x"));
}
