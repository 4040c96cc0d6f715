//! Property: from any state of the machines, a control plane acts or says truly why not, and becomes whole when the faults
//! have ended.
//!
//! The model is the cloud, kubeadm and etcd as the plan, the remediation and the removal of members see them: a server
//! works, is silent until the faults end, is dead, never gets ready, or never exists; etcd refuses each new member
//! while one is disconnected or a learner.

use std::collections::BTreeSet;

use api::controlplane::v1beta2::Remediation;
use api::k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;

use super::super::membership::{Membership, Standing};
use super::super::plan::{self, Etcd, Facts, MachineFacts, Step};
use super::super::quorum::Members;
use super::super::remediation::{self, Candidate, Decision};
use crate::summary::FIRST_NODE;

/// Number of steps of an unhealthy machine before a health check marks it.
const PATIENCE: u32 = 4;
/// More steps than any rollout of the model needs.
const STEPS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    /// Being created.
    Coming,
    Works,
    /// Does not answer until the faults end.
    Silent,
    /// Does not answer any more.
    Dead,
    /// Runs, and kubeadm fails on it.
    Broken,
    /// Cannot be created from this template.
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Machine {
    id: u32,
    created: i64,
    outdated: bool,
    marked: bool,
    server: Server,
    node: bool,
    /// True for a learner, false for a voting member; `None` without a member.
    member: Option<bool>,
    /// Start of the deletion, and true if drained.
    deleting: Option<(i64, bool)>,
    ill_for: u32,
}

impl Machine {
    fn name(&self) -> String {
        format!("m{}", self.id)
    }

    fn is_healthy(&self) -> bool {
        self.node && self.server == Server::Works
    }

    fn standing(&self) -> Option<Standing> {
        let learner = self.member?;
        let healthy = self.server == Server::Works;
        Some(Standing { learner, healthy })
    }
}

#[derive(Clone, Debug)]
struct Model {
    replicas: usize,
    surge: usize,
    external: bool,
    /// True if a MachineHealthCheck marks machines.
    checked: bool,
    initialized: bool,
    machines: Vec<Machine>,
    /// Members without a machine.
    strays: Vec<Standing>,
    clock: i64,
    next: u32,
}

impl Model {
    fn members(&self) -> Vec<Standing> {
        let ours = self.machines.iter().filter_map(Machine::standing);
        ours.chain(self.strays.iter().copied()).collect()
    }

    fn counted(&self) -> Members {
        let members = self.members();
        let voters = || members.iter().filter(|member| !member.learner);
        Members {
            voters: voters().count(),
            unhealthy: voters().filter(|member| !member.healthy).count(),
            learners: members.len() - voters().count(),
        }
    }

    /// True if an API server answers.
    fn is_reachable(&self) -> bool {
        let answers = self.machines.iter().any(Machine::is_healthy);
        answers && self.initialized && (self.external || self.counted().has_quorum())
    }

    fn etcd(&self) -> Etcd {
        match (self.external, self.is_reachable()) {
            (true, _) => Etcd::External,
            (false, true) => Etcd::Known(self.counted()),
            (false, false) => Etcd::Unknown("no member answers".to_owned()),
        }
    }

    fn membership(&self, machine: &Machine) -> Membership {
        let is_known = !self.external && self.is_reachable();
        let nowhere = matches!(machine.server, Server::Coming | Server::Never);
        match machine.standing().filter(|_| is_known) {
            Some(standing) => Membership::Member(standing),
            None if is_known && nowhere && !self.strays.is_empty() => {
                Membership::Unclear(self.strays.clone())
            }
            None => Membership::Outside,
        }
    }

    /// True if the machine is drained, and etcd cannot do without its member.
    fn is_held(&self, machine: &Machine) -> bool {
        let drained = machine.deleting.is_some_and(|(_, drained)| drained);
        let others = self.machines.iter().any(|it| it.deleting.is_none());
        let known = matches!(self.etcd(), Etcd::Known(_));
        drained && others && known && !self.membership(machine).may_go(self.counted())
    }

    fn facts(&self) -> Facts {
        let facts = |machine: &Machine| MachineFacts {
            name: machine.name(),
            created: Timestamp::from_second(machine.created).unwrap(),
            deleting: machine.deleting.is_some(),
            marked: machine.marked,
            outdated: if machine.outdated {
                vec!["spec.version".to_owned()]
            } else {
                Vec::new()
            },
            node: machine.node.then(|| machine.name()),
            server: !matches!(machine.server, Server::Coming | Server::Never),
            problems: if machine.node && machine.server != Server::Works {
                vec![
                    "EtcdMemberHealthy".to_owned(),
                    "APIServerPodHealthy".to_owned(),
                ]
            } else {
                Vec::new()
            },
            membership: self.membership(machine),
            held: self.is_held(machine),
            ..MachineFacts::default()
        };
        let mut machines: Vec<_> = self.machines.iter().map(facts).collect();
        machines.sort_by_key(|machine| (machine.created, machine.name.clone()));
        Facts {
            replicas: self.replicas,
            surge: self.surge,
            infrastructure: true,
            certificates: true,
            initialized: self.initialized,
            reachable: self.is_reachable(),
            machines,
            etcd: self.etcd(),
            ..Facts::default()
        }
    }

    fn is_whole(&self) -> bool {
        let good = |machine: &Machine| {
            machine.is_healthy()
                && !machine.outdated
                && machine.deleting.is_none()
                && (self.external || machine.member == Some(false))
        };
        self.machines.len() == self.replicas
            && self.machines.iter().all(good)
            && self.strays.is_empty()
            && self.initialized
    }

    /// One moment of cloud, kubeadm, etcd, kubelets and the controller of Machines.
    fn goes_on(&mut self) {
        self.clock += 1;
        let mut initializes = !self.initialized;
        let connected = self.members().iter().all(|it| it.healthy && !it.learner);
        let mut accepts = connected && self.is_reachable();
        for machine in &mut self.machines {
            if let Some((_, drained)) = &mut machine.deleting {
                *drained = true;
                continue;
            }
            match machine.server {
                Server::Coming => machine.server = Server::Works,
                Server::Works if machine.member == Some(true) => machine.member = Some(false),
                Server::Works if machine.node => {}
                Server::Works if self.external || machine.member.is_some() => {
                    machine.node = true;
                    self.initialized = true;
                }
                Server::Works if initializes => {
                    machine.member = Some(false);
                    initializes = false;
                }
                Server::Works if accepts => {
                    machine.member = Some(true);
                    accepts = false;
                }
                _ => {}
            }
            let ill = !machine.is_healthy();
            machine.ill_for = if ill { machine.ill_for + 1 } else { 0 };
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        let marked = |machine: &&Machine| machine.deleting.is_none() && machine.ill_for > PATIENCE;
        let machines = self.machines.iter().filter(|_| self.checked).filter(marked);
        let candidate = |machine: &Machine| Candidate {
            name: machine.name(),
            created: Timestamp::from_second(machine.created).unwrap(),
            asked: false,
        };
        machines.map(candidate).collect()
    }

    /// The hook of one drained machine is removed after its member, as `members::release` does.
    fn releases(&mut self) -> bool {
        let others = self.machines.iter().any(|it| it.deleting.is_none());
        let (counted, etcd) = (self.counted(), self.etcd());
        let mut drained: Vec<_> = self.machines.iter().collect();
        drained.retain(|it| it.deleting.is_some_and(|(_, drained)| drained));
        drained.sort_by_key(|it| it.deleting);
        let can_go = |machine: &&&Machine| match (&etcd, machine.standing()) {
            _ if !others => true,
            (Etcd::External, _) | (Etcd::Known(_), None) => true,
            (Etcd::Known(_), Some(standing)) => standing.may_go(counted),
            (Etcd::Unknown(_), _) => false,
        };
        let released = drained.iter().find(can_go).map(|machine| machine.id);
        self.machines.retain(|machine| Some(machine.id) != released);
        released.is_some()
    }

    /// A member without a machine is removed, as `members::collect` does.
    fn collects(&mut self) -> bool {
        let nowhere = |it: &Machine| matches!(it.server, Server::Coming | Server::Never);
        if self.machines.iter().any(nowhere) || !matches!(self.etcd(), Etcd::Known(_)) {
            return false;
        }
        let counted = self.counted();
        let found = self.strays.iter().position(|it| it.may_go(counted));
        found.map(|at| self.strays.remove(at)).is_some()
    }

    fn delete(&mut self, name: &str) {
        let clock = self.clock;
        let machine = self.machines.iter_mut().find(|it| it.name() == name);
        machine.unwrap().deleting = Some((clock, false));
    }

    /// One reconcile: whether anything was done, and the reasons why not.
    fn reconciles(&mut self) -> (bool, Vec<String>) {
        let facts = self.facts();
        let candidates = self.candidates();
        let mut done = self.releases();
        done |= self.collects();
        let settings = Remediation::default();
        let now = Timestamp::from_second(self.clock).unwrap();
        match remediation::decide(&candidates, &facts, &settings, None, now) {
            Decision::Replace { machine, .. } => {
                self.delete(&machine);
                return (true, Vec::new());
            }
            Decision::Blocked(all) => {
                assert_true(&facts, &all, &candidates);
                return (done, all.into_iter().map(|(_, why)| why).collect());
            }
            Decision::Nothing => {}
        }
        match plan::decide(&facts) {
            Step::Nothing => (done, Vec::new()),
            Step::Wait(why) => {
                let all: Vec<_> = why.iter().map(|it| (String::new(), it.clone())).collect();
                assert_true(&facts, &all, &candidates);
                (done, why)
            }
            Step::Create { init, .. } => {
                assert_eq!(
                    init, !self.initialized,
                    "kubeadm init founds another cluster"
                );
                self.machines.push(Machine {
                    id: self.next,
                    created: self.clock,
                    outdated: false,
                    marked: false,
                    server: Server::Coming,
                    node: false,
                    member: None,
                    deleting: None,
                    ill_for: 0,
                });
                self.next += 1;
                (true, Vec::new())
            }
            Step::Delete { machine } => {
                self.delete(&machine);
                (true, Vec::new())
            }
        }
    }

    /// The faults end: silent servers answer. Without a health check, dead ones do, too, and a person corrects the
    /// template of machines that never get ready. The person also deletes machines that may or may not have been a
    /// part of the control plane, as the condition asks.
    fn recovers(&mut self) {
        let checked = self.checked;
        let fails = |machine: &Machine| matches!(machine.server, Server::Broken | Server::Never);
        let corrected = !checked && self.machines.iter().any(fails);
        for machine in &mut self.machines {
            if machine.server == Server::Silent || (machine.server == Server::Dead && !checked) {
                machine.server = Server::Works;
            }
            machine.outdated |= corrected;
            let unclear = self.external || !self.initialized;
            if corrected && unclear && machine.server == Server::Broken {
                machine.deleting.get_or_insert((self.clock, false));
            }
        }
    }

    /// True if conditions of machines and of etcd report a problem by themselves.
    fn shows_a_problem(&self) -> bool {
        let ill = self.machines.iter().any(|it| !it.is_healthy());
        ill || self.counted().learners > 0 || !self.strays.is_empty()
    }

    fn still(&self) -> (Vec<Machine>, Vec<Standing>, bool) {
        let mut machines = self.machines.clone();
        machines
            .iter_mut()
            .for_each(|it| it.ill_for = it.ill_for.min(PATIENCE + 1));
        (machines, self.strays.clone(), self.initialized)
    }

    /// True if the control plane is beyond repair by the controller: without a quorum that can return a person has to
    /// decide, as after the deletion of every machine of the control plane by a person.
    fn needs_a_person(&self) -> bool {
        let mut after = self.clone();
        after.recovers();
        let part = |it: &Machine| it.deleting.is_none() && it.server == Server::Works && it.node;
        self.initialized && !(after.is_reachable() && after.machines.iter().any(part))
    }
}

/// Fails unless each reason, about a machine that is to be replaced or about the next step, holds.
fn assert_true(facts: &Facts, reasons: &[(String, String)], candidates: &[Candidate]) {
    let of = |name: &str| facts.machines.iter().find(|machine| machine.name == name);
    let between = |text: &str, head: &str, tail: &str| {
        let rest = text.strip_prefix(head)?;
        let (name, _) = rest.split_once(tail)?;
        of(name).cloned()
    };
    let etcd = |holds: &dyn Fn(Members) -> bool| match &facts.etcd {
        Etcd::Known(members) => holds(*members),
        Etcd::External | Etcd::Unknown(_) => false,
    };
    for (candidate, why) in reasons {
        let candidate = of(candidate);
        let text = why.as_str();
        let holds = if let Some(it) = between(text, "Machine ", " is being deleted") {
            it.deleting && !it.held
        } else if let Some(it) = between(text, "The deletion of Machine ", " waits: etcd would") {
            it.deleting && it.held
        } else if let Some(it) = between(text, "Machine ", " has no Node yet") {
            it.node.is_none()
        } else if let Some(it) = between(text, "Machine ", " is not healthy: ") {
            !it.problems.is_empty()
        } else if let Some(it) = between(text, "Machine ", " is being provisioned") {
            it.node.is_none() && candidates.iter().all(|ill| ill.name != it.name)
        } else if let Some(it) = between(text, "The first machine, ", ", has a former spec") {
            !facts.initialized && !it.outdated.is_empty()
        } else if let Some(at) = text.strip_prefix("etcd would lose its quorum without Machine ") {
            of(at).is_some_and(|it| etcd(&|members| !it.membership.may_go(members)))
        } else {
            match text {
                "etcd would lose its quorum without it" => {
                    let it = candidate.unwrap();
                    etcd(&|members| !it.membership.may_go(members))
                }
                "etcd would lose its quorum if the new member failed" => {
                    etcd(&|members| !members.can_add())
                }
                "The workload cluster cannot be reached"
                | "the workload cluster cannot be reached, so etcd is unknown" => !facts.reachable,
                "The last control plane machine is never deleted" => {
                    facts.machines.iter().filter(|it| !it.deleting).count() <= 1
                }
                "it is the only control plane machine: nothing would be left" => {
                    facts.machines.len() == 1
                }
                "all other machines are being deleted: nothing would be left" => {
                    facts.machines.iter().filter(|it| !it.deleting).count() == 1
                }
                FIRST_NODE | "other machines are being initialized" => !facts.initialized,
                _ if text.contains("none of its machines is left") => facts.machines.is_empty(),
                _ => panic!("nothing is known about the reason `{text}`"),
            }
        };
        assert!(holds, "`{why}` is not true of {facts:#?}");
    }
}

fn server() -> impl Strategy<Value = Server> {
    prop_oneof![
        5 => Just(Server::Works),
        1 => Just(Server::Coming),
        1 => Just(Server::Silent),
        2 => Just(Server::Dead),
        1 => Just(Server::Broken),
        1 => Just(Server::Never),
    ]
}

fn machine() -> impl Strategy<Value = Machine> {
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.2));
    let member = prop_oneof![3 => Just(Some(false)), 1 => Just(Some(true)), 1 => Just(None)];
    let deleting = prop_oneof![4 => Just(None), 1 => (0..50_i64, any::<bool>()).prop_map(Some)];
    (server(), flags, member, deleting, 0..100_i64).prop_map(
        |(server, (node, outdated, marked), member, deleting, created)| {
            let runs = !matches!(server, Server::Coming | Server::Never);
            let joins = !matches!(server, Server::Coming | Server::Never | Server::Broken);
            let member = member.filter(|learner| if *learner { runs } else { joins });
            Machine {
                id: 0,
                created,
                outdated,
                marked,
                server,
                // The kubelet registers its Node after the member was promoted.
                node: node && member == Some(false),
                member,
                deleting,
                ill_for: 0,
            }
        },
    )
}

/// Control plane in any state with a working quorum after the faults, or before its initialization.
fn model() -> impl Strategy<Value = Model> {
    let spec = (prop::sample::select(vec![1_usize, 3, 5]), 0..=1_usize);
    let rarely = || prop::bool::weighted(0.2);
    let flags = (rarely(), any::<bool>(), rarely());
    let strays = prop::collection::vec(any::<bool>(), 0..2);
    let machines = prop::collection::vec(machine(), 1..7);
    let all = (spec, flags, machines, strays).prop_map(
        |((replicas, surge), (external, checked, first), mut machines, strays)| {
            // Without surge, validation asks for three replicas.
            let surge = if replicas < 3 { 1 } else { surge };
            let mut learners = 0;
            if first {
                machines.truncate(1);
                (machines[0].node, machines[0].member) = (false, None);
            }
            for (id, machine) in (0..).zip(&mut machines) {
                machine.id = id;
                if external {
                    machine.node |= machine.member == Some(false);
                    machine.member = None;
                }
                // etcd has one learner at a time.
                if machine.member == Some(true) {
                    learners += 1;
                    machine.member = Some(true).filter(|_| learners == 1);
                }
            }
            let stray = |learner: &bool| Standing {
                learner: *learner && learners == 0,
                healthy: false,
            };
            let strays = strays.iter().filter(|_| !external && !first);
            let strays: Vec<_> = strays.map(stray).collect();
            Model {
                replicas,
                surge,
                external,
                checked,
                initialized: !first,
                next: 100,
                machines,
                strays,
                clock: 100,
            }
        },
    );
    all.prop_filter("a person has to decide", |model| !model.needs_a_person())
}

fn names(reasons: &[String]) -> BTreeSet<&str> {
    reasons.iter().map(String::as_str).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_control_plane_acts_or_says_why_and_becomes_whole_after_the_faults(
        start in model(),
        faulty in 0..12_usize,
    ) {
        let mut model = start;
        for _ in 0..faulty {
            model.goes_on();
            let (done, reasons) = model.reconciles();
            let says_why = !reasons.is_empty() || model.shows_a_problem();
            prop_assert!(done || model.is_whole() || says_why, "{model:#?}");
        }
        prop_assume!(!model.needs_a_person());
        model.recovers();
        let (mut at_rest, mut last) = (0, Vec::new());
        for _ in 0..STEPS {
            let before = model.still();
            model.goes_on();
            last = model.reconciles().1;
            at_rest = if model.still() == before { at_rest + 1 } else { 0 };
            if model.is_whole() || at_rest > 2 {
                break;
            }
        }
        prop_assert!(model.is_whole(), "{:?}\n{model:#?}", names(&last));
    }
}
