use api::core::v1beta2::Machine;
use serde_json::{Value, json};

use super::{Membership, Standing, of, strays};
use crate::control_plane::etcd::{Member, View};
use crate::control_plane::quorum::Members;

fn machine(name: &str, node: Option<&str>, address: Option<&str>) -> Machine {
    let addresses = address.map(|it| json!([{"type": "InternalIP", "address": it}]));
    let node = node.map(|name| json!({"name": name}));
    let reference = |kind: &str| json!({"apiGroup": "x", "kind": kind, "name": name});
    let object: Value = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": name, "uid": name},
        "spec": {"clusterName": "demo", "bootstrap": {}, "infrastructureRef": reference("FakeMachine")},
        "status": {"nodeRef": node, "addresses": addresses},
    });
    serde_json::from_value(object).unwrap()
}

fn member(id: u64, name: &str, host: &str) -> Member {
    Member {
        id,
        name: name.to_owned(),
        host: host.to_owned(),
        ..Member::default()
    }
}

const VOTER: Membership = Membership::Member(Standing {
    learner: false,
    healthy: true,
});

fn judged(machines: &[Machine], members: Vec<Member>) -> Vec<Membership> {
    let machines: Vec<_> = machines.iter().collect();
    of(&machines, &View::Known(members))
}

#[test]
fn a_machine_is_a_member_only_if_etcd_lists_it() {
    let machines = [
        machine("a", Some("a"), Some("10.6.0.1")),
        machine("no-server", None, None),
        machine("never-joined", None, Some("10.6.0.2")),
        machine("removed", Some("removed"), Some("10.6.0.3")),
    ];
    let judged = judged(&machines, vec![member(1, "a", "10.6.0.1")]);
    let outside = Membership::Outside;
    assert_eq!(judged, [VOTER, outside.clone(), outside.clone(), outside]);
}

#[test]
fn a_machine_that_joins_has_the_member_at_its_address() {
    let learner = Member {
        learner: true,
        problem: Some("the member 2 has never started".to_owned()),
        ..member(2, "", "10.6.0.2")
    };
    let machines = [
        machine("a", Some("a"), Some("10.6.0.1")),
        machine("announced", None, Some("10.6.0.2")),
        machine("started", None, Some("10.6.0.3")),
    ];
    let members = vec![
        member(1, "a", "10.6.0.1"),
        learner,
        member(3, "started", "10.6.0.3"),
    ];
    let announced = Membership::Member(Standing {
        learner: true,
        healthy: false,
    });
    assert_eq!(judged(&machines, members), [VOTER, announced, VOTER]);
}

#[test]
fn a_member_of_another_machine_is_not_taken_for_its_address() {
    // Two subnets may have the same addresses.
    let machines = [
        machine("a", Some("a"), Some("10.6.0.1")),
        machine("b", None, Some("10.6.0.1")),
    ];
    let judged = judged(&machines, vec![member(1, "a", "10.6.0.1")]);
    assert_eq!(judged, [VOTER, Membership::Outside]);
}

#[test]
fn a_machine_without_an_address_may_be_any_member_without_a_machine() {
    let machines = [machine("a", Some("a"), None), machine("b", None, None)];
    let members = vec![member(1, "a", "10.6.0.1"), member(2, "x", "10.6.0.2")];
    let refs: Vec<_> = machines.iter().collect();
    let free: Vec<_> = strays(&refs, &members).iter().map(|it| it.id).collect();
    assert_eq!(free, [2]);
    let judged = judged(&machines, members);
    let unclear = &judged[1];
    assert!(matches!(unclear, Membership::Unclear(strays) if strays.len() == 1));
    let count = |unhealthy| Members {
        voters: 2,
        unhealthy,
        learners: 0,
    };
    assert!(unclear.may_go(count(0)));
    assert!(!unclear.may_go(count(1)), "it may be the healthy one");
    assert!(Membership::Outside.may_go(count(1)));
}
