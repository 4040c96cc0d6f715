//! The calls of one member.

use std::sync::Arc;

use etcd::Status;
use etcd::messages::{
    self, AlarmRequest, AlarmResponse, AlarmType, MemberAddRequest, MemberAddResponse,
    MemberListRequest, MemberListResponse, MemberPromoteRequest, MemberPromoteResponse,
    MemberRemoveRequest, MemberRemoveResponse, MoveLeaderRequest, MoveLeaderResponse,
    ResponseHeader, StatusRequest, StatusResponse,
};
use etcd::server::Service;

use super::rules::{self, State, Stored};
use super::{Etcd, VERSION};

/// Member of a machine.
pub(super) struct Member {
    etcd: Arc<Etcd>,
    machine: String,
}

impl Member {
    pub(super) fn new(etcd: Arc<Etcd>, machine: &str) -> Self {
        Self {
            etcd,
            machine: machine.to_owned(),
        }
    }

    /// Runs a read on behalf of this member.
    fn read<T>(
        &self,
        read: impl FnOnce(&State, &Stored) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let mut inner = self.etcd.inner.lock();
        let state = inner.settled();
        let this = state.of(&self.machine).ok_or_else(rules::not_found)?;
        read(state, this)
    }

    /// Runs a change on behalf of this member; learners reject changes.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut State, u64) -> Result<T, Status>,
    ) -> Result<T, Status> {
        self.etcd.change(|state| {
            let this = state.of(&self.machine).ok_or_else(rules::not_found)?;
            votes(this)?;
            let id = this.id;
            change(state, id)
        })
    }
}

impl Service for Member {
    fn member_list(&self, request: MemberListRequest) -> Result<MemberListResponse, Status> {
        self.read(|state, this| {
            votes(this)?;
            if request.linearizable {
                state.led()?;
            }
            Ok(MemberListResponse {
                header: header(state, this.id),
                members: members(state),
            })
        })
    }

    fn member_add(&self, request: MemberAddRequest) -> Result<MemberAddResponse, Status> {
        self.change(|state, this| {
            let url = request.peer_urls.first().cloned().unwrap_or_default();
            let id = state.add(&url, request.is_learner, this, None)?;
            let members = members(state);
            Ok(MemberAddResponse {
                header: header(state, this),
                member: members.iter().find(|member| member.id == id).cloned(),
                members,
            })
        })
    }

    fn member_remove(&self, request: MemberRemoveRequest) -> Result<MemberRemoveResponse, Status> {
        self.change(|state, this| {
            state.remove(request.id, this)?;
            Ok(MemberRemoveResponse {
                header: header(state, this),
                members: members(state),
            })
        })
    }

    fn member_promote(
        &self,
        request: MemberPromoteRequest,
    ) -> Result<MemberPromoteResponse, Status> {
        self.change(|state, this| {
            state.promote(request.id)?;
            Ok(MemberPromoteResponse {
                header: header(state, this),
                members: members(state),
            })
        })
    }

    fn alarm(&self, request: AlarmRequest) -> Result<AlarmResponse, Status> {
        self.change(|state, this| {
            state.led()?;
            let alarm = AlarmType::try_from(request.alarm).unwrap_or(AlarmType::None);
            if request.action != 0 {
                state.raise(request.member_id, alarm, request.action == 1);
            }
            Ok(AlarmResponse {
                header: header(state, this),
                alarms: state.alarms(),
            })
        })
    }

    fn status(&self, _: StatusRequest) -> Result<StatusResponse, Status> {
        self.read(|state, this| {
            let mut errors: Vec<String> = state
                .alarms()
                .iter()
                .filter_map(|alarm| {
                    let word = match AlarmType::try_from(alarm.alarm).ok()? {
                        AlarmType::Nospace => "NOSPACE",
                        AlarmType::Corrupt => "CORRUPT",
                        AlarmType::None => return None,
                    };
                    Some(format!("memberID:{} alarm:{word} ", alarm.member_id))
                })
                .collect();
            if state.leader() == 0 {
                errors.insert(0, "etcdserver: no leader".to_owned());
            }
            Ok(StatusResponse {
                header: header(state, this.id),
                version: VERSION.to_owned(),
                db_size: 20 << 20,
                leader: state.leader(),
                raft_index: 1,
                raft_term: state.term(),
                raft_applied_index: 1,
                errors,
                is_learner: this.learner,
            })
        })
    }

    fn move_leader(&self, request: MoveLeaderRequest) -> Result<MoveLeaderResponse, Status> {
        self.change(|state, this| {
            state.move_leader(this, request.target_id)?;
            Ok(MoveLeaderResponse {
                header: header(state, this),
            })
        })
    }

    fn peers(&self) -> (u64, Vec<(u64, bool)>) {
        let seen = self.read(|state, this| {
            let others = state.members().filter(|other| other.id != this.id);
            let peers = others.map(|other| (other.id, state.connects(this.id, other.id)));
            Ok((this.id, peers.collect()))
        });
        seen.unwrap_or_default()
    }
}

/// Learners support only the status call.
fn votes(member: &Stored) -> Result<(), Status> {
    if member.learner {
        return Err(rules::refused("etcdserver: rpc not supported for learner"));
    }
    Ok(())
}

fn header(state: &State, member: u64) -> Option<ResponseHeader> {
    Some(ResponseHeader {
        cluster_id: state.cluster_id(),
        member_id: member,
        revision: 1,
        raft_term: state.term(),
    })
}

fn members(state: &State) -> Vec<messages::Member> {
    let url = |url: &String| {
        vec![url.clone()]
            .into_iter()
            .filter(|url| !url.is_empty())
            .collect()
    };
    let members = state.members().map(|member| messages::Member {
        id: member.id,
        name: member.name.clone(),
        peer_urls: url(&member.peer_url),
        client_urls: url(&member.client_url),
        is_learner: member.learner,
    });
    members.collect()
}
