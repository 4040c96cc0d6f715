use api::k8s_openapi::jiff::Timestamp;

use super::*;

const REASONS: Reasons = Reasons {
    good: "Ready",
    bad: "NotReady",
    unknown: "ReadyUnknown",
};

fn list(entries: &[(&'static str, Status, &str)]) -> Vec<Condition> {
    let mut list = Vec::new();
    for (type_, status, message) in entries {
        let verdict = Verdict::new(type_, *status, "Because").because(*message);
        conditions::set(&mut list, verdict, None, Timestamp::UNIX_EPOCH);
    }
    list
}

#[test]
fn a_summary_is_as_good_as_its_worst_part() {
    use Status::{False, True, Unknown};
    let parts = [
        Part::negative("Deleting"),
        Part::positive("InfrastructureReady"),
        Part::positive("NodeHealthy"),
        Part::positive("HealthCheckSucceeded").optional(),
    ];
    type Case<'a> = (&'a [(&'static str, Status, &'a str)], Status, &'a str);
    let cases: [Case<'_>; 5] = [
        (
            &[("InfrastructureReady", True, ""), ("NodeHealthy", True, "")],
            True,
            "",
        ),
        (
            &[
                ("InfrastructureReady", True, ""),
                ("NodeHealthy", Unknown, "no Node yet"),
            ],
            Unknown,
            "* NodeHealthy: No Node yet",
        ),
        (
            &[
                ("InfrastructureReady", False, "quota"),
                ("NodeHealthy", Unknown, "no Node yet"),
            ],
            False,
            "* InfrastructureReady: Quota\n* NodeHealthy: No Node yet",
        ),
        (
            &[("InfrastructureReady", True, "")],
            Unknown,
            "* NodeHealthy: Not reported yet",
        ),
        (
            &[
                ("InfrastructureReady", True, ""),
                ("NodeHealthy", True, ""),
                ("Deleting", True, "going"),
            ],
            False,
            "* Deleting: Going",
        ),
    ];
    for (given, status, message) in cases {
        let verdict = summarize("Ready", &list(given), &parts, REASONS);
        assert_eq!(
            (verdict.status, verdict.message.as_str()),
            (status, message)
        );
    }
}

#[test]
fn an_aggregate_groups_objects_by_what_is_wrong_with_them() {
    let good = list(&[("Ready", Status::True, "")]);
    let slow = list(&[("Ready", Status::Unknown, "booting")]);
    let objects = [
        ("a", &good[..]),
        ("b", &slow[..]),
        ("c", &slow[..]),
        ("d", &slow[..]),
        ("e", &slow[..]),
    ];
    let verdict = aggregate("MachinesReady", "Ready", objects, "Machines", REASONS);
    assert_eq!(verdict.status, Status::Unknown);
    assert_eq!(verdict.message, "* Machines b, c, d, ... (1 more): Booting");
}
