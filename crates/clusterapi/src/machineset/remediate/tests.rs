use api::core::v1beta2::{MachineSpec, MachineStatus};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use api::k8s_openapi::jiff::Timestamp;

use super::*;

fn machine(name: &str, created: i64, sick: bool, remediated: bool, deleting: bool) -> Arc<Machine> {
    let mut machine = Machine::new(name, MachineSpec::default());
    let at = |second| Some(Time(Timestamp::from_second(second).unwrap()));
    machine.metadata.creation_timestamp = at(created);
    machine.metadata.deletion_timestamp = deleting.then(|| at(9)).flatten();
    let mut status = MachineStatus::default();
    for (type_, holds) in [
        (Type::HealthCheckSucceeded, !sick),
        (Type::OwnerRemediated, remediated),
    ] {
        let verdict = Verdict::from_reported(type_, holds, "Because");
        conditions::set(&mut status.conditions, verdict, None, Timestamp::UNIX_EPOCH);
    }
    machine.status = Some(status);
    Arc::new(machine)
}

/// Names of replaced machines, and of staying ones with the reason.
fn fates(machines: &[Arc<Machine>], limit: Option<usize>, problems: &[&str]) -> Vec<String> {
    let limit = limit.map(|most| (most, most.to_string()));
    let problems: Vec<_> = problems.iter().map(|it| (*it).to_owned()).collect();
    let fates = decide(machines, true, limit.as_ref(), &problems).into_iter();
    let words = fates.map(|(machine, fate)| match fate {
        Fate::Replaced => machine.name_any(),
        Fate::Stays(reason, why) => format!("{}: {reason}: {}", machine.name_any(), why.join("; ")),
    });
    words.collect()
}

#[test]
fn the_newest_sick_machines_go_first_and_the_others_read_why_they_stay() {
    let machines = [
        machine("old", 1, true, false, false),
        machine("new", 3, true, false, false),
        machine("well", 4, false, false, false),
        machine("going", 2, true, true, true),
    ];
    assert_eq!(fates(&machines, None, &[]), ["new", "old"]);
    let waits = |name: &str, most: usize| {
        format!(
            "{name}: RemediationDeferred: Waiting for other machines: too many remediations are in \
             progress (spec.remediation.maxInFlight is {most})"
        )
    };
    assert_eq!(
        fates(&machines, Some(2), &[]),
        ["new".to_owned(), waits("old", 2)]
    );
    assert_eq!(
        fates(&machines, Some(1), &[]),
        [waits("new", 1), waits("old", 1)]
    );
    let outdated = decide(&machines, false, None, &[]);
    assert!(
        outdated
            .iter()
            .all(|(_, fate)| matches!(fate, Fate::Stays(Reason::CannotBeRemediated, _))),
        "{outdated:?}"
    );
}

#[test]
fn a_failed_preflight_check_is_the_reason_of_each_machine_that_stays() {
    let machines = [
        machine("sick", 1, true, false, false),
        machine("well", 2, false, false, false),
    ];
    let fates = fates(&machines, None, &["Version v2 is newer"]);
    assert_eq!(fates, ["sick: RemediationDeferred: Version v2 is newer"]);
}

#[test]
fn a_machine_that_was_marked_and_not_deleted_is_deleted() {
    let machines = [
        machine("marked", 1, true, true, false),
        machine("recovered", 2, false, true, false),
    ];
    assert_eq!(fates(&machines, Some(1), &[]), ["marked"]);
}
