//! A control plane comes to have its replicas with the current template from any state, one machine at a time and with the
//! quorum of etcd, also when the controller is cut off after any step.

use converging::System;
use proptest::sample::select;

use super::*;

/// How far a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Fresh,
    Server,
    Learner,
    Joined,
}

#[derive(Clone, Debug, PartialEq)]
struct Replica {
    name: String,
    age: i64,
    outdated: bool,
    marked: bool,
    deleting: bool,
    domain: Option<String>,
    phase: Phase,
    /// True if the server never joins, because its template is wrong.
    stuck: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Plane {
    replicas: usize,
    surge: usize,
    external: bool,
    prepared: bool,
    initialized: bool,
    machines: Vec<Replica>,
    next: i64,
    /// The most machines that may be there.
    most: usize,
}

impl Plane {
    fn joined(&self) -> usize {
        self.machines
            .iter()
            .filter(|it| it.phase == Phase::Joined)
            .count()
    }

    fn learners(&self) -> usize {
        self.machines
            .iter()
            .filter(|it| it.phase == Phase::Learner)
            .count()
    }

    fn members(&self) -> Members {
        Members {
            voters: self.joined(),
            unhealthy: 0,
            learners: self.learners(),
        }
    }

    fn membership(&self, machine: &Replica) -> Membership {
        let standing = |learner| {
            Membership::Member(Standing {
                learner,
                healthy: true,
            })
        };
        match machine.phase {
            _ if self.external => Membership::Outside,
            Phase::Fresh | Phase::Server => Membership::Outside,
            Phase::Learner => standing(true),
            Phase::Joined => standing(false),
        }
    }

    /// True if etcd can do without the member of a machine.
    fn may_go(&self, machine: &Replica) -> bool {
        self.external || self.membership(machine).may_go(self.members())
    }

    fn facts(&self) -> Facts {
        let machine = |it: &Replica| MachineFacts {
            name: it.name.clone(),
            created: Timestamp::from_second(1_000_000 + it.age).unwrap(),
            deleting: it.deleting,
            marked: it.marked,
            failure_domain: it.domain.clone(),
            outdated: it
                .outdated
                .then(|| "version".to_owned())
                .into_iter()
                .collect(),
            server: it.phase > Phase::Fresh,
            node: (it.phase == Phase::Joined).then(|| it.name.clone()),
            problems: Vec::new(),
            membership: self.membership(it),
            held: it.deleting && !self.may_go(it),
        };
        Facts {
            replicas: self.replicas,
            surge: self.surge,
            infrastructure: self.prepared,
            certificates: self.prepared,
            initialized: self.initialized,
            reachable: self.joined() > 0,
            machines: self.machines.iter().map(machine).collect(),
            failure_domains: ["x", "y", "z"].map(str::to_owned).to_vec(),
            etcd: match self.external {
                true => Etcd::External,
                false => Etcd::Known(self.members()),
            },
            ..Facts::default()
        }
    }
}

impl System for Plane {
    type Step = Step;
    type State = Vec<(String, Option<String>, bool, bool)>;

    fn plan(&self) -> Vec<Step> {
        match decide(&self.facts()) {
            Step::Nothing | Step::Wait(_) => Vec::new(),
            step => vec![step],
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Create {
                failure_domain,
                init,
            } => {
                assert_eq!(init, self.machines.is_empty() && !self.initialized);
                let mut machines = self.machines.iter();
                assert!(
                    machines.all(|it| it.phase == Phase::Joined && !it.deleting),
                    "two at a time"
                );
                self.next += 1;
                self.machines.push(Replica {
                    name: format!("new-{}", self.next),
                    age: self.next,
                    outdated: false,
                    marked: false,
                    deleting: false,
                    domain: failure_domain,
                    phase: Phase::Fresh,
                    stuck: false,
                });
                assert!(self.machines.len() <= self.most, "too many");
            }
            Step::Delete { machine } => {
                let staying = self.machines.iter().filter(|it| !it.deleting).count();
                let mut machines = self.machines.iter_mut();
                let known = machines.find(|it| it.name == machine).unwrap();
                assert!(!known.deleting, "deleted twice");
                assert!(staying > 1 || known.phase == Phase::Fresh, "the last one");
                known.deleting = true;
            }
            Step::Nothing | Step::Wait(_) => panic!("no request"),
        }
    }

    /// Machines boot, join one after the other, and go when etcd can do without them.
    fn pass(&mut self) -> bool {
        let before = self.clone();
        self.prepared = true;
        let going = self
            .machines
            .iter()
            .position(|it| it.deleting && self.may_go(it));
        if let Some(at) = going {
            self.machines.remove(at);
        }
        let (mut learners, initialized) = (self.learners(), self.initialized);
        for machine in self
            .machines
            .iter_mut()
            .filter(|it| !it.deleting && !it.stuck)
        {
            machine.phase = match machine.phase {
                Phase::Fresh => Phase::Server,
                Phase::Server if !initialized => {
                    self.initialized = true;
                    Phase::Joined
                }
                Phase::Server if learners == 0 => {
                    learners += 1;
                    Phase::Learner
                }
                Phase::Server => Phase::Server,
                Phase::Learner | Phase::Joined => Phase::Joined,
            };
        }
        *self != before
    }

    fn state(&self) -> Self::State {
        let machines = self.machines.iter();
        let machine = |it: &Replica| {
            let joined = it.phase == Phase::Joined;
            (it.name.clone(), it.domain.clone(), it.outdated, joined)
        };
        let mut all: Vec<_> = machines.map(machine).collect();
        all.sort();
        all
    }
}

prop_compose! {
    fn replica()(
        age in -50..0_i64,
        (outdated, marked, stuck) in (any::<bool>(), proptest::bool::weighted(0.2), proptest::bool::weighted(0.3)),
        deleting in proptest::bool::weighted(0.2),
        domain in select(vec![None, Some("x"), Some("y"), Some("gone")]),
        phase in select(vec![Phase::Fresh, Phase::Server, Phase::Joined, Phase::Joined, Phase::Joined]),
    ) -> Replica {
        let stuck = stuck && outdated && phase == Phase::Server;
        Replica { name: String::new(), age, outdated, marked, deleting, domain: domain.map(str::to_owned), phase, stuck }
    }
}

prop_compose! {
    /// Control plane in any state from which it can go on without a person.
    fn plane()(
        mut machines in proptest::collection::vec(replica(), 0..6),
        replicas in select(vec![1_usize, 3, 5]),
        surge in 0..2_usize,
        external in any::<bool>(),
        prepared in any::<bool>(),
    ) -> Plane {
        for (at, machine) in machines.iter_mut().enumerate() {
            machine.name = format!("old-{at}");
            // With an external etcd, the machine that never joined is unknown.
            machine.stuck &= !external;
        }
        let initialized = machines.iter().any(|it| it.phase == Phase::Joined);
        if initialized {
            // One member stays.
            let kept = machines.iter_mut().find(|it| it.phase == Phase::Joined);
            kept.into_iter().for_each(|it| it.deleting = false);
        } else {
            machines.truncate(1);
            machines.iter_mut().for_each(|it| it.stuck = false);
        }
        let surge = if replicas < 3 { 1 } else { surge };
        let most = machines.len().max(replicas + surge);
        Plane { replicas, surge, external, prepared, initialized, machines, next: 0, most }
    }
}

fn check_end(end: &Plane) {
    assert_eq!(decide(&end.facts()), Step::Nothing, "{end:#?}");
    assert_eq!(end.machines.len(), end.replicas);
    for machine in &end.machines {
        let is_done = machine.phase == Phase::Joined && !machine.outdated && !machine.deleting;
        assert!(is_done, "{machine:?}");
    }
}

proptest! {
    #[test]
    fn from_any_state_and_each_cut_a_control_plane_comes_to_have_its_replicas(plane in plane(), replicas in select(vec![1_usize, 3, 5])) {
        let mut end = converging::check(&plane);
        check_end(&end);
        // Another number, and another template.
        end.replicas = replicas;
        end.surge = if replicas < 3 { 1 } else { end.surge };
        end.most = end.machines.len().max(replicas + end.surge);
        end.machines.iter_mut().for_each(|it| it.outdated = true);
        check_end(&converging::check(&end));
    }
}
