use api::k8s_openapi::jiff::Timestamp;

use super::*;

const REASONS: Reasons = Reasons {
    good: Reason::Ready,
    bad: Reason::NotReady,
    unknown: Reason::ReadyUnknown,
};

fn list(entries: &[(Type, Status, &str)]) -> Vec<Condition> {
    let mut list = Vec::new();
    for (type_, status, message) in entries {
        let verdict = Verdict::from_reported(*type_, *status, "Because").because(*message);
        conditions::set(&mut list, verdict, None, Timestamp::UNIX_EPOCH);
    }
    list
}

#[test]
fn a_summary_is_as_good_as_its_worst_part() {
    use Status::{False, True, Unknown};
    let parts = [
        Part::negative(Type::Deleting),
        Part::positive(Type::InfrastructureReady),
        Part::positive(Type::NodeHealthy),
        Part::positive(Type::HealthCheckSucceeded).optional(),
    ];
    type Case<'a> = (&'a [(Type, Status, &'a str)], Status, &'a str);
    let cases: [Case<'_>; 5] = [
        (
            &[
                (Type::InfrastructureReady, True, ""),
                (Type::NodeHealthy, True, ""),
            ],
            True,
            "",
        ),
        (
            &[
                (Type::InfrastructureReady, True, ""),
                (Type::NodeHealthy, Unknown, "no Node yet"),
            ],
            Unknown,
            "* NodeHealthy: No Node yet",
        ),
        (
            &[
                (Type::InfrastructureReady, False, "quota"),
                (Type::NodeHealthy, Unknown, "no Node yet"),
            ],
            False,
            "* InfrastructureReady: Quota\n* NodeHealthy: No Node yet",
        ),
        (
            &[(Type::InfrastructureReady, True, "")],
            Unknown,
            "* NodeHealthy: Not reported yet",
        ),
        (
            &[
                (Type::InfrastructureReady, True, ""),
                (Type::NodeHealthy, True, ""),
                (Type::Deleting, True, "going"),
            ],
            False,
            "* Deleting: Going",
        ),
    ];
    for (given, status, message) in cases {
        let verdict = summarize(Type::Ready, &list(given), &parts, REASONS);
        assert_eq!(
            (verdict.status, verdict.message.as_str()),
            (status, message)
        );
    }
}

#[test]
fn an_aggregate_groups_objects_by_what_is_wrong_with_them() {
    let good = list(&[(Type::Ready, Status::True, "")]);
    let slow = list(&[(Type::Ready, Status::Unknown, "booting")]);
    let objects = [
        ("a", &good[..]),
        ("b", &slow[..]),
        ("c", &slow[..]),
        ("d", &slow[..]),
        ("e", &slow[..]),
    ];
    let verdict = aggregate(
        Type::MachinesReady,
        Type::Ready,
        objects,
        "Machine",
        REASONS,
    );
    assert_eq!(verdict.status, Status::Unknown);
    assert_eq!(verdict.message, "* Machines b, c, d, ... (1 more): Booting");
}

#[test]
fn an_aggregate_has_three_messages_the_bad_ones_first_and_counts_the_others() {
    use Status::{False, True, Unknown};
    let of = |status: Status, message: &str| list(&[(Type::Ready, status, message)]);
    let lists = [
        of(False, "one"),
        of(False, "two"),
        of(False, "two"),
        of(Unknown, "slow"),
        of(Unknown, "slow"),
        of(Unknown, "lost"),
        of(True, ""),
    ];
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let objects = names.into_iter().zip(lists.iter().map(Vec::as_slice));
    let verdict = aggregate(
        Type::MachinesReady,
        Type::Ready,
        objects,
        "Machine",
        REASONS,
    );
    assert_eq!(verdict.status, False);
    assert_eq!(
        verdict.message,
        "* Machines b, c: Two\n* Machine a: One\n* Machines d, e: Slow\n* And 1 Machine with status unknown"
    );
}

#[test]
fn an_aggregate_of_changes_is_true_while_one_object_changes() {
    use Status::{False, True, Unknown};
    let reasons = Reasons {
        good: Reason::NotScalingUp,
        bad: Reason::ScalingUp,
        unknown: Reason::ScalingUpUnknown,
    };
    let member =
        |kind: &'static str, name: &'static str, condition: Option<(Status, &str)>| Member {
            kind,
            name,
            condition: condition.map(|(status, text)| (status, text.to_owned())),
        };
    let still = member("MachineDeployment", "a", Some((False, "")));
    let busy = member("MachineSet", "b", Some((True, "2 of 3")));
    let new = member("MachineDeployment", "c", None);
    let unknown = "* MachineDeployment c: Condition ScalingUp not yet reported";
    let both = format!("* MachineSet b: 2 of 3\n{unknown}");
    let cases = [
        (vec![], False, "NotScalingUp", ""),
        (vec![still.clone()], False, "NotScalingUp", ""),
        (
            vec![still.clone(), new.clone()],
            Unknown,
            "ScalingUpUnknown",
            unknown,
        ),
        (vec![still, new, busy], True, "ScalingUp", &both),
    ];
    for (members, status, reason, message) in cases {
        let verdict = aggregate_of_changes(Type::ScalingUp, members, reasons);
        assert_eq!(
            (
                verdict.status,
                verdict.reason.as_str(),
                verdict.message.as_str()
            ),
            (status, reason, message)
        );
    }
}
