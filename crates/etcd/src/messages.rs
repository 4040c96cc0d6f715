//! Requests and responses, with the field numbers of etcd's `api/etcdserverpb/rpc.proto`. Unused fields are omitted:
//! both sides ignore unknown fields.

use grpc::Method;
use prost::{Enumeration, Message};

/// The header of every response.
#[derive(Clone, PartialEq, Message)]
pub struct ResponseHeader {
    /// The id of the cluster.
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    /// The id of the member that responded.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// The revision of the key-value store.
    #[prost(int64, tag = "3")]
    pub revision: i64,
    /// The raft term, which grows with every election.
    #[prost(uint64, tag = "4")]
    pub raft_term: u64,
}

/// A member of the cluster.
#[derive(Clone, PartialEq, Message)]
pub struct Member {
    /// Its id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name; empty before its first start.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The URLs for other members.
    #[prost(string, repeated, tag = "3")]
    pub peer_urls: Vec<String>,
    /// The URLs for clients; empty before its first start.
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    /// True if it is a learner, which does not vote.
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

/// Lists all members.
#[derive(Clone, PartialEq, Message)]
pub struct MemberListRequest {
    /// True if the list is confirmed by the quorum, rather than the local one of the member.
    #[prost(bool, tag = "1")]
    pub linearizable: bool,
}

/// All members.
#[derive(Clone, PartialEq, Message)]
pub struct MemberListResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// All members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// Adds a member.
#[derive(Clone, PartialEq, Message)]
pub struct MemberAddRequest {
    /// The URLs for other members.
    #[prost(string, repeated, tag = "1")]
    pub peer_urls: Vec<String>,
    /// True if it is added as a learner, which does not vote until it is promoted.
    #[prost(bool, tag = "2")]
    pub is_learner: bool,
}

/// The response to [`MemberAddRequest`].
#[derive(Clone, PartialEq, Message)]
pub struct MemberAddResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The new member.
    #[prost(message, optional, tag = "2")]
    pub member: Option<Member>,
    /// All members.
    #[prost(message, repeated, tag = "3")]
    pub members: Vec<Member>,
}

/// Removes a member.
#[derive(Clone, PartialEq, Message)]
pub struct MemberRemoveRequest {
    /// The id of the member.
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// The response to [`MemberRemoveRequest`].
#[derive(Clone, PartialEq, Message)]
pub struct MemberRemoveResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The remaining members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// Promotes a learner to a voting member.
#[derive(Clone, PartialEq, Message)]
pub struct MemberPromoteRequest {
    /// The id of the learner.
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// The response to [`MemberPromoteRequest`].
#[derive(Clone, PartialEq, Message)]
pub struct MemberPromoteResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// All members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// The type of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum AlarmType {
    /// Any type, in requests.
    None = 0,
    /// The database has reached its size limit: writes are rejected.
    Nospace = 1,
    /// The database is corrupt.
    Corrupt = 2,
}

/// Reads or changes alarms; the default reads all of them.
#[derive(Clone, PartialEq, Message)]
pub struct AlarmRequest {
    /// 0 reads, 1 raises, 2 clears.
    #[prost(int32, tag = "1")]
    pub action: i32,
    /// The id of the member; 0 for all members.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// The type of the alarm.
    #[prost(enumeration = "AlarmType", tag = "3")]
    pub alarm: i32,
}

/// An alarm of a member.
#[derive(Clone, PartialEq, Message)]
pub struct AlarmMember {
    /// The id of the member.
    #[prost(uint64, tag = "1")]
    pub member_id: u64,
    /// The type of the alarm.
    #[prost(enumeration = "AlarmType", tag = "2")]
    pub alarm: i32,
}

/// The alarms that are active.
#[derive(Clone, PartialEq, Message)]
pub struct AlarmResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The alarms that are active.
    #[prost(message, repeated, tag = "2")]
    pub alarms: Vec<AlarmMember>,
}

/// Requests the status of a member.
#[derive(Clone, PartialEq, Message)]
pub struct StatusRequest {}

/// The status of a member.
#[derive(Clone, PartialEq, Message)]
pub struct StatusResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Its version, as `3.6.4`.
    #[prost(string, tag = "2")]
    pub version: String,
    /// The size of its database in bytes.
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    /// The id of the leader; 0 without a known leader.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    /// The raft index that is committed, as known to the member.
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    /// The raft term.
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    /// The raft index that it has applied.
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    /// Its errors.
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    /// True if it is a learner, which does not vote.
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
}

/// Transfers leadership. Only the leader accepts it.
#[derive(Clone, PartialEq, Message)]
pub struct MoveLeaderRequest {
    /// The id of the new leader.
    #[prost(uint64, tag = "1")]
    pub target_id: u64,
}

/// The response to [`MoveLeaderRequest`].
#[derive(Clone, PartialEq, Message)]
pub struct MoveLeaderResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

macro_rules! calls {
    ($($request:ty => $path:literal, $answer:ty;)*) => {
        $(impl Method for $request {
            const PATH: &'static str = $path;
            type Response = $answer;
        })*
    };
}

calls! {
    MemberListRequest => "/etcdserverpb.Cluster/MemberList", MemberListResponse;
    MemberAddRequest => "/etcdserverpb.Cluster/MemberAdd", MemberAddResponse;
    MemberRemoveRequest => "/etcdserverpb.Cluster/MemberRemove", MemberRemoveResponse;
    MemberPromoteRequest => "/etcdserverpb.Cluster/MemberPromote", MemberPromoteResponse;
    AlarmRequest => "/etcdserverpb.Maintenance/Alarm", AlarmResponse;
    StatusRequest => "/etcdserverpb.Maintenance/Status", StatusResponse;
    MoveLeaderRequest => "/etcdserverpb.Maintenance/MoveLeader", MoveLeaderResponse;
}
