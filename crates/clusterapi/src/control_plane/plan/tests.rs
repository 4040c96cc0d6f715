mod convergence;

use api::k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;

use super::{Etcd, Facts, MachineFacts, Step, decide};
use crate::control_plane::membership::{Membership, Standing};
use crate::control_plane::quorum::Members;

fn member(healthy: bool) -> Membership {
    Membership::Member(Standing {
        learner: false,
        healthy,
    })
}

fn machine(name: &str, age: i64) -> MachineFacts {
    MachineFacts {
        name: name.to_owned(),
        created: Timestamp::from_second(1_000_000 - age).unwrap(),
        node: Some(name.to_owned()),
        membership: member(true),
        ..MachineFacts::default()
    }
}

fn outdated(name: &str, age: i64) -> MachineFacts {
    MachineFacts {
        outdated: vec!["version".to_owned()],
        ..machine(name, age)
    }
}

fn facts(replicas: usize, machines: Vec<MachineFacts>) -> Facts {
    let count = machines.len();
    let unhealthy = machines.iter().filter(|m| !m.problems.is_empty()).count();
    Facts {
        replicas,
        surge: 1,
        infrastructure: true,
        certificates: true,
        initialized: count > 0,
        reachable: count > 0,
        etcd: Etcd::Known(Members {
            voters: count,
            unhealthy,
            learners: 0,
        }),
        machines,
        ..Facts::default()
    }
}

fn create(init: bool) -> Step {
    Step::Create {
        failure_domain: None,
        init,
    }
}

fn delete(name: &str) -> Step {
    Step::Delete {
        machine: name.to_owned(),
    }
}

fn blocked(step: &Step, why: &str) -> bool {
    matches!(step, Step::Wait(problems) if problems.iter().any(|problem| problem.contains(why)))
}

#[test]
fn the_first_machine_waits_for_infrastructure_and_certificates_only() {
    let mut first = facts(3, Vec::new());
    assert_eq!(decide(&first), create(true));
    first.certificates = false;
    assert!(blocked(&decide(&first), "certificates"));
    first.infrastructure = false;
    assert!(blocked(&decide(&first), "infrastructure"));
}

#[test]
fn a_control_plane_that_was_initialized_and_lost_all_machines_is_not_initialized_again() {
    let mut lost = facts(3, Vec::new());
    lost.initialized = true;
    assert!(blocked(&decide(&lost), "none of its machines is left"));
    lost.reachable = true;
    assert!(blocked(&decide(&lost), "kubeadm init"));
}

#[test]
fn a_first_machine_without_a_server_follows_a_corrected_template() {
    let typo = MachineFacts {
        node: None,
        membership: Membership::Outside,
        ..outdated("a", 9)
    };
    let mut first = facts(3, vec![typo]);
    (first.initialized, first.reachable) = (false, false);
    assert_eq!(decide(&first), delete("a"));
    // Its server may be initializing the cluster, or have done so before a move.
    first.machines[0].server = true;
    assert!(blocked(&decide(&first), "delete it if it cannot join"));
    first.machines[0].server = false;
    first.machines[0].outdated.clear();
    assert!(blocked(&decide(&first), "Waiting for the first"));
    first.machines[0] = MachineFacts {
        deleting: true,
        ..first.machines[0].clone()
    };
    assert!(blocked(&decide(&first), "Waiting for the first"));
}

#[test]
fn machines_of_a_former_template_that_never_joined_do_not_keep_each_other() {
    let stuck = |name: &str| MachineFacts {
        node: None,
        server: true,
        membership: Membership::Outside,
        ..outdated(name, 1)
    };
    let mut three = facts(3, vec![machine("a", 9), stuck("b"), stuck("c")]);
    three.etcd = Etcd::Known(Members {
        voters: 1,
        unhealthy: 0,
        learners: 0,
    });
    assert_eq!(decide(&three), delete("b"));
    // One at a time, and never the last one.
    three.machines[1].deleting = true;
    assert!(blocked(&decide(&three), "Machine b is being deleted"));
    three.machines[0].deleting = true;
    three.machines.remove(1);
    assert!(blocked(&decide(&three), "never deleted"));
    // Nodes are found a while after a move, and an external etcd has no list of machines.
    let mut external = facts(3, vec![machine("a", 9), stuck("b"), stuck("c")]);
    external.etcd = Etcd::External;
    assert!(blocked(&decide(&external), "has no Node yet"));
}

#[test]
fn machines_come_one_at_a_time() {
    let one = facts(3, vec![machine("a", 9)]);
    assert_eq!(decide(&one), create(false));
    let mut starting = one.clone();
    starting.machines[0].node = None;
    assert!(blocked(&decide(&starting), "has no Node yet"));
    let mut ill = one.clone();
    ill.machines[0].problems = vec!["EtcdPodHealthy".to_owned()];
    assert!(blocked(&decide(&ill), "EtcdPodHealthy"));
    let mut young = one.clone();
    young.initialized = false;
    assert!(blocked(&decide(&young), "first control plane node"));
    let mut cut_off = one;
    cut_off.reachable = false;
    assert!(blocked(&decide(&cut_off), "cannot be reached"));
    let all = facts(3, vec![machine("a", 9), machine("b", 8), machine("c", 7)]);
    assert_eq!(decide(&all), Step::Nothing);
}

#[test]
fn a_rollout_with_surge_adds_before_it_removes() {
    let old = vec![outdated("a", 9), outdated("b", 8), outdated("c", 7)];
    assert_eq!(decide(&facts(3, old.clone())), create(false));
    let mut more = old;
    more.push(machine("d", 1));
    assert_eq!(decide(&facts(3, more)), delete("a"));
    let last = vec![
        outdated("c", 7),
        machine("d", 3),
        machine("e", 2),
        machine("f", 1),
    ];
    assert_eq!(decide(&facts(3, last)), delete("c"));
}

#[test]
fn a_rollout_without_surge_removes_before_it_adds() {
    let mut three = facts(3, vec![outdated("a", 9), outdated("b", 8), machine("c", 7)]);
    three.surge = 0;
    assert_eq!(decide(&three), delete("a"));
    three.machines.remove(0);
    three.etcd = Etcd::Known(Members {
        voters: 2,
        unhealthy: 0,
        learners: 0,
    });
    assert_eq!(decide(&three), create(false));
}

#[test]
fn who_goes_first_follows_marks_health_and_age() {
    let marked = |m: MachineFacts| MachineFacts { marked: true, ..m };
    let ill = |m: MachineFacts| MachineFacts {
        problems: vec!["X".to_owned()],
        ..m
    };
    let at = |m: MachineFacts, place: &str| MachineFacts {
        failure_domain: Some(place.to_owned()),
        ..m
    };
    for (machines, expected) in [
        (vec![machine("a", 9), machine("b", 8)], "a"),
        (vec![machine("a", 9), marked(machine("b", 8))], "b"),
        (
            vec![
                outdated("a", 9),
                marked(machine("b", 8)),
                marked(outdated("c", 1)),
            ],
            "c",
        ),
        (
            vec![outdated("a", 9), ill(outdated("b", 8)), machine("c", 7)],
            "b",
        ),
        (
            vec![
                at(machine("a", 9), "x"),
                at(machine("b", 8), "y"),
                at(machine("c", 7), "y"),
            ],
            "b",
        ),
    ] {
        let given = facts(1, machines.clone());
        let seen = super::victim(&given).map(|machine| machine.name.as_str());
        assert_eq!(seen, Some(expected), "{machines:?}");
    }
}

#[test]
fn an_ill_machine_may_go_but_not_two_healthy_too_many() {
    let ill = MachineFacts {
        problems: vec!["EtcdMemberHealthy".to_owned()],
        membership: member(false),
        ..outdated("a", 9)
    };
    let four = facts(
        3,
        vec![
            ill.clone(),
            machine("b", 8),
            machine("c", 7),
            machine("d", 6),
        ],
    );
    assert_eq!(decide(&four), delete("a"));
    let other = MachineFacts {
        problems: vec!["EtcdMemberHealthy".to_owned()],
        ..machine("b", 8)
    };
    let two = facts(1, vec![outdated("a", 9), other]);
    assert!(blocked(&decide(&two), "Machine b is not healthy"));
}

#[test]
fn a_machine_that_never_became_a_member_is_not_counted_as_one() {
    let never = MachineFacts {
        node: None,
        membership: Membership::Outside,
        problems: vec!["EtcdMemberHealthy".to_owned()],
        ..outdated("b", 1)
    };
    // The only member of etcd is that of `a`.
    let mut one = facts(1, vec![outdated("a", 9), never]);
    one.etcd = Etcd::Known(Members {
        voters: 1,
        unhealthy: 0,
        learners: 0,
    });
    assert_eq!(decide(&one), delete("b"));
    one.machines[1].membership = Membership::Unclear(vec![Standing {
        learner: false,
        healthy: true,
    }]);
    assert!(blocked(
        &decide(&one),
        "would lose its quorum without Machine b"
    ));
}

#[test]
fn nothing_is_created_or_deleted_while_a_machine_cannot_be_judged() {
    let mut more = facts(1, vec![machine("a", 9), machine("b", 8)]);
    assert_eq!(decide(&more), delete("a"));
    let why = "It is not known whether Machine a is up to date: no";
    more.unjudged = vec![why.to_owned()];
    assert!(blocked(&decide(&more), why));
}

#[test]
fn the_last_machine_is_never_deleted() {
    let mut one = facts(1, vec![outdated("a", 9)]);
    one.surge = 0;
    assert!(blocked(&decide(&one), "never deleted"));
}

#[test]
fn new_machines_go_where_the_fewest_are() {
    let at = |name: &str, place: &str| MachineFacts {
        failure_domain: Some(place.to_owned()),
        ..machine(name, 1)
    };
    let domains = ["y", "x", "z"].map(str::to_owned).to_vec();
    let mut given = facts(5, vec![at("a", "x"), at("b", "z")]);
    given.failure_domains = domains.clone();
    let place = |step| match step {
        Step::Create { failure_domain, .. } => failure_domain,
        other => panic!("{other:?}"),
    };
    assert_eq!(place(decide(&given)).as_deref(), Some("y"));
    let mut none = facts(5, Vec::new());
    none.failure_domains = domains;
    assert_eq!(place(decide(&none)).as_deref(), Some("x"));
}

/// Performs the plan with machines that are healthy at once, until there is no further step.
fn play(mut state: Facts) -> Result<(usize, usize), String> {
    let (mut most, mut least) = (state.machines.len(), usize::MAX);
    for turn in 0..200 {
        let count = state.machines.len();
        state.etcd = Etcd::Known(Members {
            voters: count,
            unhealthy: 0,
            learners: 0,
        });
        state.initialized = count > 0;
        state.reachable = count > 0;
        match decide(&state) {
            Step::Nothing => return Ok((most, least)),
            Step::Wait(why) => return Err(format!("stuck: {why:?}")),
            Step::Create { .. } => state.machines.push(machine(&format!("new{turn}"), -turn)),
            Step::Delete { machine } => state.machines.retain(|known| known.name != machine),
        }
        most = most.max(state.machines.len());
        least = least.min(state.machines.len());
    }
    Err("never done".to_owned())
}

proptest! {
    #[test]
    fn every_plan_ends_where_it_should(
        replicas in prop_oneof![Just(1usize), Just(3), Just(5)],
        old in 0..6usize,
        new in 0..6usize,
        surge in 0..2usize,
    ) {
        prop_assume!(surge == 1 || replicas >= 3);
        prop_assume!(old + new > 0);
        let machines: Vec<_> = (0..old).map(|n| outdated(&format!("old{n}"), 50 + n as i64))
            .chain((0..new).map(|n| machine(&format!("cur{n}"), n as i64))).collect();
        let start = machines.len();
        let state = Facts { surge, ..facts(replicas, machines) };
        let (most, least) = play(state).map_err(TestCaseError::fail)?;
        prop_assert!(most <= start.max(replicas + surge), "{most}");
        if start >= replicas && least != usize::MAX {
            prop_assert!(least + 1 >= replicas.min(start), "{least}");
        }
    }
}

#[test]
fn nothing_is_created_while_a_machine_is_to_be_adopted() {
    for replicas in [1, 3] {
        let facts = Facts {
            replicas,
            infrastructure: true,
            certificates: true,
            orphans: vec!["Waiting for Machine m to be adopted".to_owned()],
            ..Facts::default()
        };
        assert_eq!(decide(&facts), Step::Wait(facts.orphans.clone()));
    }
}
