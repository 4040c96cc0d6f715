//! Requests and answers, with the field numbers of etcd's `api/etcdserverpb/rpc.proto`. Fields that nobody here reads
//! are left out: both sides skip what they do not know.

use prost::{Enumeration, Message};

/// What every answer begins with.
#[derive(Clone, PartialEq, Message)]
pub struct ResponseHeader {
    /// Which cluster answered.
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    /// Which member answered.
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
    /// Its number.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name; empty until it has started for the first time.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Where other members reach it.
    #[prost(string, repeated, tag = "3")]
    pub peer_urls: Vec<String>,
    /// Where clients reach it; empty until it has started for the first time.
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    /// Whether it does not vote yet.
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

/// Asks for all members.
#[derive(Clone, PartialEq, Message)]
pub struct MemberListRequest {
    /// Whether the answer must be that of the quorum, rather than what this member knows.
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
    /// Where the others will reach it.
    #[prost(string, repeated, tag = "1")]
    pub peer_urls: Vec<String>,
    /// Whether it does not vote until it is promoted.
    #[prost(bool, tag = "2")]
    pub is_learner: bool,
}

/// What a member was added as.
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
    /// Which one.
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// The members that are left.
#[derive(Clone, PartialEq, Message)]
pub struct MemberRemoveResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The members that are left.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// Gives a learner its vote.
#[derive(Clone, PartialEq, Message)]
pub struct MemberPromoteRequest {
    /// Which one.
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// The members after a promotion.
#[derive(Clone, PartialEq, Message)]
pub struct MemberPromoteResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// All members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// What an alarm is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum AlarmType {
    /// Any, in requests.
    None = 0,
    /// The database has reached its limit: writes are rejected.
    Nospace = 1,
    /// The database is damaged.
    Corrupt = 2,
}

/// Reads or changes alarms; with both fields unset, reads all of them.
#[derive(Clone, PartialEq, Message)]
pub struct AlarmRequest {
    /// 0 reads, 1 raises, 2 clears.
    #[prost(int32, tag = "1")]
    pub action: i32,
    /// Of which member; 0 for all.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// Which alarm.
    #[prost(enumeration = "AlarmType", tag = "3")]
    pub alarm: i32,
}

/// An alarm of a member.
#[derive(Clone, PartialEq, Message)]
pub struct AlarmMember {
    /// Of which member.
    #[prost(uint64, tag = "1")]
    pub member_id: u64,
    /// Which alarm.
    #[prost(enumeration = "AlarmType", tag = "2")]
    pub alarm: i32,
}

/// The alarms that are raised.
#[derive(Clone, PartialEq, Message)]
pub struct AlarmResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The alarms that are raised.
    #[prost(message, repeated, tag = "2")]
    pub alarms: Vec<AlarmMember>,
}

/// Asks a member about itself.
#[derive(Clone, PartialEq, Message)]
pub struct StatusRequest {}

/// What a member says about itself.
#[derive(Clone, PartialEq, Message)]
pub struct StatusResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Its version, as `3.6.4`.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Bytes of its database.
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    /// The member that it follows; 0 while it knows of no leader.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    /// What has been committed, as far as it knows.
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    /// The raft term.
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    /// What it has applied.
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    /// What is wrong with it.
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    /// Whether it does not vote yet.
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
}

/// Hands leadership over. Only the leader accepts it.
#[derive(Clone, PartialEq, Message)]
pub struct MoveLeaderRequest {
    /// To which member.
    #[prost(uint64, tag = "1")]
    pub target_id: u64,
}

/// Leadership has been handed over.
#[derive(Clone, PartialEq, Message)]
pub struct MoveLeaderResponse {
    /// See [`ResponseHeader`].
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

/// A call: the path that names it, and the answer that it has.
pub trait Call: Message + Default {
    /// As `/etcdserverpb.Cluster/MemberList`.
    const PATH: &'static str;
    /// The answer.
    type Answer: Message + Default;
}

macro_rules! calls {
    ($($request:ty => $path:literal, $answer:ty;)*) => {
        $(impl Call for $request {
            const PATH: &'static str = $path;
            type Answer = $answer;
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
