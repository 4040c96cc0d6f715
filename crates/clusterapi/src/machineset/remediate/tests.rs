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
        ("HealthCheckSucceeded", !sick),
        ("OwnerRemediated", remediated),
    ] {
        let verdict = Verdict::new(type_, holds, "Because");
        conditions::set(&mut status.conditions, verdict, None, Timestamp::UNIX_EPOCH);
    }
    machine.status = Some(status);
    Arc::new(machine)
}

#[test]
fn the_newest_sick_machines_go_first_and_not_too_many_at_a_time() {
    let machines = [
        machine("old", 1, true, false, false),
        machine("new", 3, true, false, false),
        machine("well", 4, false, false, false),
        machine("going", 2, true, true, true),
    ];
    let names = |limit| {
        chosen(&machines, limit)
            .iter()
            .map(|machine| machine.name_any())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(usize::MAX), ["new", "old"]);
    assert_eq!(names(2), ["new"]);
    assert!(names(1).is_empty());
}

#[test]
fn a_machine_that_was_marked_and_not_deleted_is_deleted() {
    let machines = [
        machine("marked", 1, true, true, false),
        machine("recovered", 2, false, true, false),
    ];
    let names: Vec<_> = chosen(&machines, 1)
        .iter()
        .map(|it| it.name_any())
        .collect();
    assert_eq!(names, ["marked"]);
}
