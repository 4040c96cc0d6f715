mod convergence;

use api::conditions::{Reason, Status, Verdict};
use api::core::v1beta2::{MachineSpec, MachineStatus, NodeReference};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use api::k8s_openapi::jiff::Timestamp;

use super::*;

fn machine_aged(name: &str, created: i64) -> Machine {
    let mut machine = Machine::new(name, MachineSpec::default());
    machine.metadata.uid = Some(format!("uid-{name}"));
    machine.metadata.creation_timestamp = Some(Time(Timestamp::from_second(created).unwrap()));
    let mut status = MachineStatus {
        node_ref: Some(NodeReference {
            name: name.to_owned(),
        }),
        ..Default::default()
    };
    let healthy = Verdict::new(Type::NodeHealthy, true, Reason::NodeHealthy);
    conditions::set(&mut status.conditions, healthy, None, Timestamp::UNIX_EPOCH);
    machine.status = Some(status);
    machine
}

fn arcs(machines: &[Machine]) -> Vec<Arc<Machine>> {
    machines.iter().cloned().map(Arc::new).collect()
}

fn down(names: &[&str]) -> Scale {
    Scale::Down(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn missing_machines_are_made_and_surplus_ones_deleted() {
    let three = arcs(&[
        machine_aged("a", 1),
        machine_aged("b", 2),
        machine_aged("c", 3),
    ]);
    assert_eq!(plan(3, DeletionOrder::Random, &three), Scale::Keep);
    assert_eq!(plan(5, DeletionOrder::Random, &three), Scale::Up(2));
    assert_eq!(plan(2, DeletionOrder::Newest, &three), down(&["c"]));
    assert_eq!(plan(1, DeletionOrder::Oldest, &three), down(&["a", "b"]));
    assert_eq!(
        plan(-1, DeletionOrder::Oldest, &three),
        down(&["a", "b", "c"])
    );
}

#[test]
fn a_deleted_machine_is_replaced_once_it_is_gone() {
    let mut going = machine_aged("a", 1);
    going.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let machines = arcs(&[going, machine_aged("b", 2)]);
    assert_eq!(plan(2, DeletionOrder::Random, &machines), Scale::Keep);
    assert_eq!(plan(2, DeletionOrder::Random, &machines[1..]), Scale::Up(1));
    assert_eq!(plan(1, DeletionOrder::Random, &machines), Scale::Keep);
    assert_eq!(plan(0, DeletionOrder::Random, &machines), down(&["b"]));
}

#[test]
fn marked_machines_go_first_then_unhealthy_ones() {
    let mut marked = machine_aged("marked", 5);
    let mark = BTreeMap::from([(DELETE_MACHINE_ANNOTATION.to_owned(), String::new())]);
    marked.metadata.annotations = Some(mark);
    let mut sick = machine_aged("sick", 6);
    let verdict = Verdict::new(Type::NodeHealthy, Status::False, Reason::NodeNotHealthy);
    let list = &mut sick.status.as_mut().unwrap().conditions;
    conditions::set(list, verdict, None, Timestamp::UNIX_EPOCH);
    let machines = arcs(&[machine_aged("a", 1), sick, machine_aged("b", 2), marked]);
    assert_eq!(plan(3, DeletionOrder::Oldest, &machines), down(&["marked"]));
    assert_eq!(
        plan(1, DeletionOrder::Oldest, &machines),
        down(&["marked", "sick", "a"])
    );
}

#[test]
fn a_machine_gets_the_labels_that_its_set_selects() {
    let mut set = MachineSet::new("demo-md-0-x2b4c", Default::default());
    set.spec.cluster_name = "demo".to_owned();
    set.spec.selector.match_labels = Some(BTreeMap::from([(
        "machine-template-hash".to_owned(),
        "x2b4c".to_owned(),
    )]));
    let reference = ContractReference::new("infrastructure.cluster.x-k8s.io", "Fake", "n");
    let machine_of_set = machine(&set, "n", None, reference);
    assert!(crate::selector::matches(
        &set.spec.selector,
        machine_of_set.labels()
    ));
    assert_eq!(machine_of_set.labels()[CLUSTER_NAME_LABEL], "demo");
    assert_eq!(machine_of_set.labels()[SET_NAME_LABEL], "demo-md-0-x2b4c");
    assert!(owners::controller_of(&machine_of_set.metadata).is_some());
}
