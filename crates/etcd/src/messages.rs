//! Requests and responses, with the field numbers of etcd's `api/etcdserverpb/rpc.proto`. Unused fields are omitted:
//! both sides ignore unknown fields.

use grpc::Method;
use prost::{Enumeration, Message};

/// Header of every response.
#[derive(Clone, PartialEq, Message)]
pub struct ResponseHeader {
    /// Id of the cluster.
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    /// Id of the member that responded.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// Revision of the key-value store.
    #[prost(int64, tag = "3")]
    pub revision: i64,
    /// Raft term, which grows with every election.
    #[prost(uint64, tag = "4")]
    pub raft_term: u64,
}

/// Member of the cluster.
#[derive(Clone, PartialEq, Message)]
pub struct Member {
    /// Id of the member.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Name of the member; empty before the first start.
    #[prost(string, tag = "2")]
    pub name: String,
    /// URLs for other members.
    #[prost(string, repeated, tag = "3")]
    pub peer_urls: Vec<String>,
    /// URLs for clients; empty before the first start.
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    /// True for a learner, which does not vote.
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

/// Lists all members.
#[derive(Clone, PartialEq, Message)]
pub struct MemberListRequest {
    /// True for a list confirmed by the quorum, false for the local list of the member.
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
    /// URLs for other members.
    #[prost(string, repeated, tag = "1")]
    pub peer_urls: Vec<String>,
    /// True to add a learner, which does not vote until promoted.
    #[prost(bool, tag = "2")]
    pub is_learner: bool,
}

/// Response to [`MemberAddRequest`].
#[derive(Clone, PartialEq, Message)]
pub struct MemberAddResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// New member.
    #[prost(message, optional, tag = "2")]
    pub member: Option<Member>,
    /// All members.
    #[prost(message, repeated, tag = "3")]
    pub members: Vec<Member>,
}

/// Removes a member.
#[derive(Clone, PartialEq, Message)]
pub struct MemberRemoveRequest {
    /// Id of the member.
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// Response to [`MemberRemoveRequest`].
#[derive(Clone, PartialEq, Message)]
pub struct MemberRemoveResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Remaining members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// Promotes a learner to a voting member.
#[derive(Clone, PartialEq, Message)]
pub struct MemberPromoteRequest {
    /// Id of the learner.
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// Response to [`MemberPromoteRequest`].
#[derive(Clone, PartialEq, Message)]
pub struct MemberPromoteResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// All members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// Type of an alarm.
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

/// Reads or changes alarms; the default reads all alarms.
#[derive(Clone, PartialEq, Message)]
pub struct AlarmRequest {
    /// 0 reads, 1 raises, 2 clears.
    #[prost(int32, tag = "1")]
    pub action: i32,
    /// Id of the member; 0 for all members.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// Type of the alarm, an [`AlarmType`].
    #[prost(enumeration = "AlarmType", tag = "3")]
    pub alarm: i32,
}

/// Alarm of a member.
#[derive(Clone, PartialEq, Message)]
pub struct AlarmMember {
    /// Id of the member.
    #[prost(uint64, tag = "1")]
    pub member_id: u64,
    /// Type of the alarm, an [`AlarmType`].
    #[prost(enumeration = "AlarmType", tag = "2")]
    pub alarm: i32,
}

/// Active alarms.
#[derive(Clone, PartialEq, Message)]
pub struct AlarmResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Active alarms.
    #[prost(message, repeated, tag = "2")]
    pub alarms: Vec<AlarmMember>,
}

/// Requests the status of a member.
#[derive(Clone, PartialEq, Message)]
pub struct StatusRequest {}

/// Status of a member.
#[derive(Clone, PartialEq, Message)]
pub struct StatusResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Version of etcd, such as `3.6.4`.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Size of the database in bytes.
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    /// Id of the leader; 0 without a known leader.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    /// Committed raft index, as known to the member.
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    /// Raft term.
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    /// Raft index that the member has applied.
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    /// Errors of the member.
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    /// True for a learner, which does not vote.
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
}

/// Transfers leadership. Only the leader accepts the request.
#[derive(Clone, PartialEq, Message)]
pub struct MoveLeaderRequest {
    /// Id of the new leader.
    #[prost(uint64, tag = "1")]
    pub target_id: u64,
}

/// Response to [`MoveLeaderRequest`].
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
