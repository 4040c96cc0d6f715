//! All machines of a cluster get their data, and exactly one of them runs `kubeadm init`, also when the controller is
//! cut off between any two requests.

use converging::System;
use proptest::prelude::*;

use super::{Facts, Plan, decide};

/// The bootstrap data in a Secret.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Data {
    Init,
    Join,
    /// Of a user.
    Foreign,
}

/// A Machine with its KubeadmConfig.
#[derive(Clone, Debug, PartialEq)]
struct Member {
    control_plane: bool,
    joins_only: bool,
    paused: bool,
    /// The Secret.
    secret: Option<Data>,
    /// True if the status of the config reports the Secret.
    reported: bool,
    /// True if the Machine refers to the Secret, so that its server boots with it.
    referred: bool,
    has_node: bool,
}

/// The configs of a cluster, and the ConfigMap that is the lock.
#[derive(Clone, Debug, PartialEq)]
struct Configs {
    infrastructure: bool,
    endpoint: bool,
    initialized: bool,
    /// Machine with the lock; the lock of a deleted machine has an unused number.
    lock: Option<usize>,
    members: Vec<Member>,
}

#[derive(Debug)]
enum Step {
    Lock(usize),
    Unlock,
    Secret(usize, Data),
    Report(usize),
}

impl Configs {
    fn plan_of(&self, at: usize) -> Plan {
        let member = &self.members[at];
        decide(&Facts {
            paused: member.paused,
            has_data: member.reported,
            machine_has_data: member.referred,
            has_node: member.has_node,
            control_plane: member.control_plane,
            infrastructure: self.infrastructure,
            initialized: self.initialized,
            endpoint: self.endpoint,
            joins_only: member.joins_only,
        })
    }

    /// The requests of one reconcile, as `kubeadm_config` sends them.
    fn requests(&self, at: usize) -> Vec<Step> {
        let write = |data| {
            let known = self.members[at].secret == Some(data);
            let secret = (!known).then_some(Step::Secret(at, data));
            secret.into_iter().chain([Step::Report(at)])
        };
        let is_held = self.lock.is_some() && self.initialized && self.members[at].control_plane;
        match self.plan_of(at) {
            Plan::Init => match self.lock {
                None => [Step::Lock(at)]
                    .into_iter()
                    .chain(write(Data::Init))
                    .collect(),
                Some(holder) if holder == at => write(Data::Init).collect(),
                Some(holder) if holder >= self.members.len() => vec![Step::Unlock],
                Some(_) => Vec::new(),
            },
            Plan::Join { .. } => write(Data::Join).collect(),
            Plan::Restore => vec![Step::Report(at)],
            Plan::Paused | Plan::Wait(_) | Plan::Done | Plan::Refresh if is_held => {
                vec![Step::Unlock]
            }
            Plan::Paused | Plan::Wait(_) | Plan::Done | Plan::Refresh => Vec::new(),
        }
    }
}

impl System for Configs {
    type Step = Step;
    type State = Self;

    /// The reconcile of the first config with something to do.
    fn plan(&self) -> Vec<Step> {
        let mut all = (0..self.members.len()).map(|at| self.requests(at));
        all.find(|requests| !requests.is_empty())
            .unwrap_or_default()
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Lock(at) => {
                assert!(self.lock.is_none() && !self.initialized, "409");
                self.lock = Some(at);
            }
            Step::Unlock => self.lock = None,
            Step::Secret(at, data) => {
                assert!(!self.members[at].referred, "a server boots with it");
                let mut others = self.members.iter();
                let is_second = others.any(|it| it.secret == Some(Data::Init));
                assert!(
                    data != Data::Init || !is_second && self.lock == Some(at),
                    "a second cluster"
                );
                self.members[at].secret = Some(data);
            }
            Step::Report(at) => {
                assert!(self.members[at].secret.is_some());
                self.members[at].reported = true;
            }
        }
    }

    /// The cluster gets its infrastructure and endpoint, Machines refer to data, and servers boot.
    fn pass(&mut self) -> bool {
        let before = self.clone();
        self.endpoint = self.infrastructure;
        self.infrastructure = true;
        for member in &mut self.members {
            let boots = member.referred && !member.has_node;
            match member.secret {
                Some(Data::Init) if boots => {
                    assert!(!self.initialized, "a second cluster");
                    (self.initialized, member.has_node) = (true, true);
                }
                Some(Data::Join | Data::Foreign) if boots => member.has_node = self.initialized,
                _ => {}
            }
            member.referred |= member.reported;
        }
        *self != before
    }

    fn state(&self) -> Self {
        self.clone()
    }
}

prop_compose! {
    /// New machine, or one with data from before a move or from a user.
    fn member()(control_plane in any::<bool>(), joins_only in any::<bool>(), paused in proptest::bool::weighted(0.1), data in 0..4u8) -> Member {
        let secret = match data { 0 => Some(Data::Foreign), 1 => Some(Data::Join), _ => None };
        Member {
            control_plane,
            joins_only: joins_only && control_plane,
            paused,
            secret,
            reported: false,
            referred: secret == Some(Data::Foreign),
            has_node: false,
        }
    }
}

/// Each machine has a Node where one can initialize the cluster, and nothing is left of the lock.
fn check_end(end: &Configs) {
    let inits = end
        .members
        .iter()
        .filter(|it| it.secret == Some(Data::Init));
    assert!(inits.count() <= 1);
    let is_free =
        |it: &&Member| it.control_plane && !it.joins_only && it.secret != Some(Data::Foreign);
    let begins = end.members.iter().filter(is_free).all(|it| !it.paused);
    let begins = begins && end.members.iter().any(|it| is_free(&it));
    for member in end.members.iter().filter(|it| !it.paused) {
        assert!(!begins || member.has_node, "{member:?}");
        assert!(!member.has_node || member.reported, "{member:?}");
    }
    let releases = end.members.iter().any(|it| it.control_plane);
    assert!(
        !(end.initialized && releases) || end.lock.is_none(),
        "{end:?}"
    );
}

proptest! {
    #[test]
    fn from_any_state_and_each_cut_all_machines_get_their_data_and_one_initializes_the_cluster(
        mut members in proptest::collection::vec(member(), 1..6),
        infrastructure in any::<bool>(),
        initialized in proptest::bool::weighted(0.2),
        stale in proptest::option::weighted(0.3, 0..9usize),
        later in proptest::collection::vec(member(), 0..3),
    ) {
        // A lock of a machine that is gone.
        let lock = stale.map(|number| 100 + number);
        members.iter_mut().for_each(|it| it.paused &= !initialized);
        let configs = Configs { infrastructure, endpoint: false, initialized, lock, members };
        let mut end = converging::check(&configs);
        check_end(&end);
        // Machines that come later join.
        end.members.extend(later);
        check_end(&converging::check(&end));
    }
}
