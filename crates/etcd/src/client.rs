//! Client of one member.

use std::collections::BTreeSet;
use std::time::Duration;

use grpc::{Method, Status};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::messages::{
    AlarmMember, AlarmRequest, Member, MemberAddRequest, MemberListRequest, MemberPromoteRequest,
    MemberRemoveRequest, MoveLeaderRequest, StatusRequest, StatusResponse,
};
use crate::peers;
use crate::tls::Tls;

/// Failure of a call to a member.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The member returned an error status.
    #[error(transparent)]
    Status(#[from] Status),
    /// The member did not respond in time.
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// The TLS handshake failed, mostly because one side rejected the certificate of the other.
    #[error("TLS: {0}")]
    Tls(std::io::Error),
    /// The connection was lost.
    #[error("the connection broke: {0}")]
    Broken(#[from] h2::Error),
    /// The peer is not an etcd member.
    #[error("the server is not an etcd: {0}")]
    Foreign(String),
}

impl From<grpc::Error> for Error {
    fn from(error: grpc::Error) -> Self {
        match error {
            grpc::Error::Status(status) => Self::Status(status),
            grpc::Error::Timeout(limit) => Self::Timeout(limit),
            grpc::Error::Broken(source) => Self::Broken(source),
            grpc::Error::Foreign(problem) => Self::Foreign(problem),
        }
    }
}

impl Error {
    /// Returns the status, if the member returned one.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Error::Status(status) => Some(status),
            _ => None,
        }
    }
}

/// Maximum size of a response, in bytes. A list of members takes some hundred bytes for each.
const LARGEST: usize = 1 << 20;

/// Connection to one member. Clones share the connection, which closes with the last clone.
#[derive(Clone, Debug)]
pub struct Client(grpc::Client);

impl Client {
    /// Sets up TLS and HTTP/2 on `stream`, which is connected to a member. `limit` applies to each of the two, and to
    /// each later call.
    ///
    /// # Errors
    /// One side rejects the other, or a timeout.
    pub async fn connect<S>(stream: S, tls: &Tls, limit: Duration) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let secured = tokio::time::timeout(limit, tls.connect(stream)).await;
        let stream = secured.map_err(|_| Error::Timeout(limit))?;
        let stream = stream.map_err(Error::Tls)?;
        let connected = grpc::Client::connect(stream, "https://etcd", limit, LARGEST).await;
        Ok(Self(connected?))
    }

    /// Returns all members, by a linearizable read, which needs a quorum.
    ///
    /// # Errors
    /// See [`Error`]; also without a quorum.
    pub async fn members(&self) -> Result<Vec<Member>, Error> {
        let request = MemberListRequest { linearizable: true };
        Ok(self.call(&request).await?.members)
    }

    /// Returns all members known to this one, without a quorum. Recent changes may be missing.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn members_here(&self) -> Result<Vec<Member>, Error> {
        let request = MemberListRequest {
            linearizable: false,
        };
        Ok(self.call(&request).await?.members)
    }

    /// Returns the status of the member. Needs no quorum.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn status(&self) -> Result<StatusResponse, Error> {
        self.call(&StatusRequest {}).await
    }

    /// Returns the alarms of all members.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn alarms(&self) -> Result<Vec<AlarmMember>, Error> {
        Ok(self.call(&AlarmRequest::default()).await?.alarms)
    }

    /// Adds a member with `peer_url` as the URL for other members.
    ///
    /// # Errors
    /// See [`Error`]; also while a voting member is unreachable.
    pub async fn add(&self, peer_url: &str, learner: bool) -> Result<Member, Error> {
        let request = MemberAddRequest {
            peer_urls: vec![peer_url.to_owned()],
            is_learner: learner,
        };
        Ok(self.call(&request).await?.member.unwrap_or_default())
    }

    /// Promotes a learner to a voting member. Returns all members.
    ///
    /// # Errors
    /// See [`Error`]; also while the learner has not caught up.
    pub async fn promote(&self, id: u64) -> Result<Vec<Member>, Error> {
        Ok(self.call(&MemberPromoteRequest { id }).await?.members)
    }

    /// Removes a member. Returns the remaining members.
    ///
    /// # Errors
    /// See [`Error`]; also if the remaining members would have no quorum.
    pub async fn remove(&self, id: u64) -> Result<Vec<Member>, Error> {
        Ok(self.call(&MemberRemoveRequest { id }).await?.members)
    }

    /// Transfers leadership from this member, which must be the leader, to another.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn move_leader(&self, target_id: u64) -> Result<(), Error> {
        self.call(&MoveLeaderRequest { target_id }).await.map(drop)
    }

    /// Returns the ids of the other members that count as connected to this one. Needs no quorum.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn peers(&self) -> Result<BTreeSet<u64>, Error> {
        let metrics = self.0.page(peers::PATH).await?;
        Ok(peers::read(&String::from_utf8_lossy(&metrics)))
    }

    async fn call<M: Method>(&self, request: &M) -> Result<M::Response, Error> {
        Ok(self.0.call(request).await?)
    }
}
