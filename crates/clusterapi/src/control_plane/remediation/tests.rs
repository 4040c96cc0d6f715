use api::controlplane::v1beta2::Remediation;
use api::k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::{Candidate, Decision, Record, decide, retries};
use crate::control_plane::membership::{Membership, Standing};
use crate::control_plane::plan::{Etcd, Facts, MachineFacts};
use crate::control_plane::quorum::Members;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn machine(name: &str) -> MachineFacts {
    MachineFacts {
        name: name.to_owned(),
        node: Some(name.to_owned()),
        membership: member(true),
        ..MachineFacts::default()
    }
}

fn member(healthy: bool) -> Membership {
    Membership::Member(Standing {
        learner: false,
        healthy,
    })
}

/// A machine that has a server at most.
fn never_joined(name: &str) -> MachineFacts {
    MachineFacts {
        node: None,
        membership: Membership::Outside,
        ..machine(name)
    }
}

fn facts(machines: Vec<MachineFacts>) -> Facts {
    let ill = |m: &&MachineFacts| m.problems.iter().any(|p| p.contains("Etcd"));
    let etcd = Members {
        voters: machines.iter().filter(|m| m.node.is_some()).count(),
        unhealthy: machines.iter().filter(ill).count(),
        learners: 0,
    };
    Facts {
        initialized: true,
        reachable: true,
        etcd: Etcd::Known(etcd),
        machines,
        ..Facts::default()
    }
}

fn ill(name: &str) -> Candidate {
    Candidate {
        name: name.to_owned(),
        created: now(),
        asked: false,
    }
}

fn decided(candidates: &[Candidate], facts: &Facts) -> Decision {
    decide(candidates, facts, &Remediation::default(), None, now())
}

fn replaced(decision: &Decision) -> Option<&str> {
    match decision {
        Decision::Replace { machine, .. } => Some(machine),
        _ => None,
    }
}

fn blocked(decision: &Decision, by: &str) -> bool {
    matches!(decision, Decision::Blocked(all) if all.iter().all(|(_, why)| why.contains(by)))
}

#[test]
fn the_last_machine_that_stays_is_not_replaced_while_etcd_holds_the_others() {
    let held = MachineFacts {
        deleting: true,
        held: true,
        ..machine("a")
    };
    let two = facts(vec![held, never_joined("b")]);
    assert!(blocked(
        &decided(&[ill("b")], &two),
        "nothing would be left"
    ));
}

#[test]
fn a_machine_goes_when_the_others_can_do_without_it() {
    let three = facts(vec![machine("a"), machine("b"), machine("c")]);
    assert_eq!(decided(&[], &three), Decision::Nothing);
    assert_eq!(replaced(&decided(&[ill("a")], &three)), Some("a"));
    let one = facts(vec![machine("a")]);
    assert!(blocked(
        &decided(&[ill("a")], &one),
        "only control plane machine"
    ));
    let mut going = three.clone();
    going.machines[1].deleting = true;
    assert!(blocked(&decided(&[ill("a")], &going), "being deleted"));
    let mut coming = three.clone();
    coming.machines[1].node = None;
    assert!(blocked(&decided(&[ill("a")], &coming), "being provisioned"));
    let mut cut_off = three.clone();
    cut_off.reachable = false;
    assert!(blocked(
        &decided(&[ill("a")], &cut_off),
        "cannot be reached"
    ));
    let mut weak = three;
    weak.etcd = Etcd::Known(Members {
        voters: 3,
        unhealthy: 1,
        learners: 0,
    });
    assert!(blocked(&decided(&[ill("a")], &weak), "quorum"));
}

#[test]
fn before_initialization_the_first_machine_may_be_made_anew() {
    let mut first = facts(vec![machine("a")]);
    first.initialized = false;
    assert_eq!(replaced(&decided(&[ill("a")], &first)), Some("a"));
}

#[test]
fn the_worst_goes_first() {
    let with = |name: &str, problem: &str| MachineFacts {
        problems: vec![problem.to_owned()],
        membership: member(!problem.contains("Etcd")),
        ..machine(name)
    };
    let all = facts(vec![
        with("pod", "APIServerPodHealthy"),
        with("etcd", "EtcdMemberHealthy"),
        machine("c"),
    ]);
    assert_eq!(
        replaced(&decided(&[ill("pod"), ill("etcd")], &all)),
        Some("etcd")
    );
    let asked = Candidate {
        asked: true,
        ..ill("c")
    };
    let five = facts(vec![
        machine("a"),
        machine("b"),
        machine("c"),
        machine("d"),
        machine("e"),
    ]);
    assert_eq!(replaced(&decided(&[ill("a"), asked], &five)), Some("c"));
}

#[test]
fn tries_are_counted_and_limited() {
    let record = |ago: i64, retry_count: i32| Record {
        machine: "a".to_owned(),
        timestamp: now().checked_sub(SignedDuration::from_secs(ago)).unwrap(),
        retry_count,
    };
    let settings = |max: Option<i32>, pause: i32| Remediation {
        max_retry: max,
        retry_period_seconds: Some(pause),
        min_healthy_period_seconds: Some(600),
    };
    for (settings, last, expected) in [
        (settings(None, 0), None, Ok(0)),
        (settings(None, 0), Some(record(10, 4)), Ok(5)),
        (settings(Some(3), 0), Some(record(10, 2)), Ok(3)),
        (settings(Some(3), 0), Some(record(10, 3)), Err(())),
        (settings(Some(3), 0), Some(record(601, 3)), Ok(0)),
        (settings(None, 60), Some(record(10, 0)), Err(())),
        (settings(None, 60), Some(record(60, 0)), Ok(1)),
    ] {
        let seen = retries(&settings, last.as_ref(), now()).map_err(drop);
        assert_eq!(seen, expected, "{settings:?} {last:?}");
    }
}

#[test]
fn a_machine_that_never_joined_goes_although_a_member_is_dead() {
    let dead = MachineFacts {
        problems: vec!["EtcdMemberHealthy".to_owned()],
        membership: member(false),
        ..machine("a")
    };
    let machines = vec![dead, machine("b"), machine("c"), never_joined("d")];
    let four = facts(machines);
    let both = [ill("a"), ill("d")];
    assert_eq!(replaced(&decided(&both, &four)), Some("d"));
    // Not before the end of its time.
    assert!(blocked(
        &decided(&both[..1], &four),
        "d is being provisioned"
    ));
    let mut after = four;
    after.machines.pop();
    assert_eq!(replaced(&decided(&both[..1], &after)), Some("a"));
}

#[test]
fn two_machines_that_never_joined_do_not_wait_for_each_other() {
    let four = facts(vec![machine("a"), never_joined("c"), never_joined("d")]);
    assert_eq!(replaced(&decided(&[ill("c"), ill("d")], &four)), Some("c"));
}

#[test]
fn the_next_machine_is_tried_if_the_most_urgent_one_cannot_go() {
    let dead = MachineFacts {
        problems: vec!["EtcdMemberHealthy".to_owned()],
        membership: member(false),
        ..machine("c")
    };
    let three = facts(vec![machine("a"), machine("b"), dead]);
    let asked = Candidate {
        asked: true,
        ..ill("a")
    };
    // etcd can do without the dead one, but not without another.
    assert_eq!(replaced(&decided(&[asked, ill("c")], &three)), Some("c"));
}

#[test]
fn a_deletion_that_waits_for_the_quorum_does_not_keep_the_one_that_would_free_it() {
    let dead = MachineFacts {
        problems: vec!["EtcdMemberHealthy".to_owned()],
        membership: member(false),
        ..machine("c")
    };
    let mut going = machine("a");
    going.deleting = true;
    let mut three = facts(vec![going, machine("b"), dead]);
    assert!(blocked(&decided(&[ill("c")], &three), "a is being deleted"));
    three.machines[0].held = true;
    assert_eq!(replaced(&decided(&[ill("c")], &three)), Some("c"));
}
