//! Rules for additions, promotions and removals of members, and for the leader: etcd's rules with
//! `--strict-reconfig-check`, its default.

use std::collections::BTreeSet;

use etcd::messages::{AlarmMember, AlarmType};
use etcd::{Code, Status};
use serde::{Deserialize, Serialize};

/// Machine of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberHost {
    /// Id of the machine, whose disk has the member's data.
    pub machine: String,
    /// Name of the member, equal to the name of the Node.
    pub name: String,
    /// Address of the machine; IPv6 in brackets.
    pub host: String,
}

impl MemberHost {
    pub(super) fn peer_url(&self) -> String {
        format!("https://{}:2380", self.host)
    }

    fn client_url(&self) -> String {
        format!("https://{}:{}", self.host, super::PORT)
    }
}

/// Member, for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name of the member; empty before the first start.
    pub name: String,
    /// Id of the machine.
    pub machine: String,
    /// True for a learner.
    pub learner: bool,
    /// True for the leader.
    pub leads: bool,
    /// True for a running member.
    pub up: bool,
}

/// Member in the form of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stored {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) peer_url: String,
    pub(super) client_url: String,
    pub(super) learner: bool,
    pub(super) machine: String,
}

impl Stored {
    /// True if the member has ever started: the first start sets the name.
    pub(super) fn is_started(&self) -> bool {
        !self.name.is_empty()
    }
}

/// State that raft replicates.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct State {
    cluster_id: u64,
    term: u64,
    leader: u64,
    members: Vec<Stored>,
    /// Active alarms: member id and type.
    alarms: BTreeSet<(u64, i32)>,
    /// Running members.
    #[serde(skip)]
    up: BTreeSet<u64>,
    /// Pairs of running members of which the first counts the second as disconnected.
    #[serde(skip)]
    apart: BTreeSet<(u64, u64)>,
}

impl State {
    pub(super) fn members(&self) -> impl Iterator<Item = &Stored> {
        self.members.iter()
    }

    pub(super) fn of(&self, machine: &str) -> Option<&Stored> {
        self.members.iter().find(|member| member.machine == machine)
    }

    /// Returns the leader; 0 without a quorum.
    pub(super) fn leader(&self) -> u64 {
        self.leader
    }

    pub(super) fn cluster_id(&self) -> u64 {
        self.cluster_id
    }

    pub(super) fn term(&self) -> u64 {
        self.term
    }

    /// Sets the running members, and elects a leader if there is none.
    pub(super) fn settle(&mut self, up: &[u64]) {
        self.up = up.iter().copied().collect();
        let voting = self.voters_up();
        if voting.len() < self.quorum() {
            self.leader = 0;
        } else if !voting.contains(&self.leader) {
            self.leader = voting.first().copied().unwrap_or_default();
            self.term += 1;
        }
    }

    /// Adds a voting member that has started.
    pub(super) fn found(&mut self, place: &MemberHost) {
        if self.cluster_id == 0 {
            self.cluster_id = number();
            self.term = 1;
        }
        self.members.push(Stored {
            id: number(),
            name: place.name.clone(),
            peer_url: place.peer_url(),
            client_url: place.client_url(),
            learner: false,
            machine: place.machine.clone(),
        });
    }

    /// True if the member `local` counts `remote` as connected.
    pub(super) fn connects(&self, local: u64, remote: u64) -> bool {
        self.up.contains(&remote) && !self.apart.contains(&(local, remote))
    }

    /// Sets whether `local` counts `remote` as disconnected although both run.
    pub(super) fn part(&mut self, local: u64, remote: u64, apart: bool) {
        if apart {
            self.apart.insert((local, remote));
        } else {
            self.apart.remove(&(local, remote));
        }
    }

    /// The connections of a member are new.
    pub(super) fn reconnect(&mut self, id: u64) {
        self.apart
            .retain(|(local, remote)| *local != id && *remote != id);
    }

    /// Returns the number of voting members that `asked` counts as connected, itself included.
    fn connected_to(&self, asked: u64) -> usize {
        let voters = self.voters().map(|member| member.id);
        voters
            .filter(|id| *id == asked || self.connects(asked, *id))
            .count()
    }

    /// Returns the ids of the running voting members.
    pub(super) fn endpoints(&self) -> Vec<u64> {
        self.voters_up()
    }

    /// Adds a member that has not started; `asked` is the member with the request. `place` is `None` for members added
    /// through the API, whose machine is unknown.
    pub(super) fn add(
        &mut self,
        peer_url: &str,
        learner: bool,
        asked: u64,
        place: Option<&MemberHost>,
    ) -> Result<u64, Status> {
        self.led()?;
        if self
            .members
            .iter()
            .any(|member| member.peer_url == peer_url)
        {
            return Err(refused("etcdserver: Peer URLs already exists"));
        }
        if learner && self.members.iter().any(|member| member.learner) {
            return Err(refused("etcdserver: too many learner members in cluster"));
        }
        let started = self.voters().filter(|member| member.is_started()).count();
        if !learner && started < self.voters().count().div_ceil(2).max(1) {
            return Err(not_enough());
        }
        if self.connected_to(asked) < self.voters().count() {
            return Err(unhealthy());
        }
        let id = number();
        self.members.push(Stored {
            id,
            name: String::new(),
            peer_url: peer_url.to_owned(),
            client_url: String::new(),
            learner,
            machine: place.map(|place| place.machine.clone()).unwrap_or_default(),
        });
        Ok(id)
    }

    /// True if a member that has not started is listed under the peer URL of a machine. That member then belongs to the
    /// machine.
    pub(super) fn claim(&mut self, place: &MemberHost) -> bool {
        let url = place.peer_url();
        let listed = self
            .members
            .iter_mut()
            .find(|member| member.peer_url == url && !member.is_started());
        if let Some(member) = listed {
            member.machine.clone_from(&place.machine);
            return true;
        }
        false
    }

    /// Starts the member of a machine: sets name and client URL.
    pub(super) fn start(&mut self, place: &MemberHost) {
        let ours = |member: &&mut Stored| member.machine == place.machine;
        if let Some(member) = self.members.iter_mut().find(ours) {
            member.name.clone_from(&place.name);
            member.client_url = place.client_url();
        }
    }

    /// Promotes a learner to a voting member.
    pub(super) fn promote(&mut self, id: u64) -> Result<(), Status> {
        self.led()?;
        let Some(member) = self.members.iter().find(|member| member.id == id) else {
            return Err(not_found());
        };
        if !member.learner {
            return Err(refused("etcdserver: can only promote a learner member"));
        }
        if !member.is_started() || !self.up.contains(&id) {
            let words =
                "etcdserver: can only promote a learner member which is in sync with leader";
            return Err(refused(words));
        }
        self.members
            .iter_mut()
            .filter(|member| member.id == id)
            .for_each(|member| member.learner = false);
        Ok(())
    }

    /// Removes a member; `asked` is the member with the request.
    pub(super) fn remove(&mut self, id: u64, asked: u64) -> Result<(), Status> {
        self.led()?;
        let Some(member) = self.members.iter().find(|member| member.id == id) else {
            return Err(not_found());
        };
        if !member.learner {
            let others = || self.voters().filter(|member| member.id != id);
            let started = others().filter(|member| member.is_started()).count();
            if started < others().count() / 2 + 1 {
                return Err(not_enough());
            }
            // A member that is down is not part of the active quorum.
            let works = id == asked || self.connects(asked, id);
            if works && self.connected_to(asked) <= others().count() / 2 + 1 {
                return Err(unhealthy());
            }
        }
        self.members.retain(|member| member.id != id);
        self.alarms.retain(|(member, _)| *member != id);
        Ok(())
    }

    /// Drops all members but one, which votes and leads from then on. Needs no quorum.
    pub(super) fn keep_only(&mut self, id: u64) {
        if self.members.len() == 1 && self.voters().count() == 1 {
            return;
        }
        self.members.retain(|member| member.id == id);
        self.members.iter_mut().for_each(|it| it.learner = false);
        self.alarms.retain(|(member, _)| *member == id);
        self.leader = id;
        self.term += 1;
    }

    /// Transfers leadership; `asked` is the member with the request.
    pub(super) fn move_leader(&mut self, asked: u64, target: u64) -> Result<(), Status> {
        self.led()?;
        if asked != self.leader {
            return Err(refused("etcdserver: not leader"));
        }
        if !self.voters().any(|member| member.id == target) {
            return Err(refused("etcdserver: bad leader transferee"));
        }
        if !self.up.contains(&target) {
            return Err(timed_out());
        }
        self.leader = target;
        self.term += 1;
        Ok(())
    }

    pub(super) fn alarms(&self) -> Vec<AlarmMember> {
        let alarms = self.alarms.iter();
        alarms
            .map(|(member_id, alarm)| AlarmMember {
                member_id: *member_id,
                alarm: *alarm,
            })
            .collect()
    }

    pub(super) fn raise(&mut self, member: u64, alarm: AlarmType, raised: bool) {
        let alarm = (member, alarm as i32);
        if raised {
            self.alarms.insert(alarm);
        } else {
            self.alarms.remove(&alarm);
        }
    }

    /// Checks for a leader, which changes and linearizable reads need.
    pub(super) fn led(&self) -> Result<(), Status> {
        match self.leader {
            0 => Err(timed_out()),
            _ => Ok(()),
        }
    }

    fn voters(&self) -> impl Iterator<Item = &Stored> {
        self.members.iter().filter(|member| !member.learner)
    }

    fn voters_up(&self) -> Vec<u64> {
        self.voters()
            .map(|member| member.id)
            .filter(|id| self.up.contains(id))
            .collect()
    }

    fn quorum(&self) -> usize {
        self.voters().count() / 2 + 1
    }
}

/// Returns a random id of a cluster or member: never 0.
fn number() -> u64 {
    rand::random::<u64>().max(1)
}

pub(super) fn timed_out() -> Status {
    Status::new(Code::Unavailable, "etcdserver: request timed out")
}

pub(super) fn not_found() -> Status {
    Status::new(Code::NotFound, "etcdserver: member not found")
}

fn unhealthy() -> Status {
    Status::new(Code::Unavailable, "etcdserver: unhealthy cluster")
}

fn not_enough() -> Status {
    refused("etcdserver: re-configuration failed due to not enough started members")
}

pub(super) fn refused(words: &str) -> Status {
    Status::new(Code::FailedPrecondition, words)
}
