//! Client of one member.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Request, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

use crate::grpc::{self, Status, Unread};
use crate::messages::{
    AlarmMember, AlarmRequest, Call, Member, MemberAddRequest, MemberListRequest,
    MemberPromoteRequest, MemberRemoveRequest, MoveLeaderRequest, StatusRequest, StatusResponse,
};
use crate::peers;
use crate::tls::Tls;

/// Why a call of a member failed.
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

impl Error {
    /// The status, if the member returned one.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Error::Status(status) => Some(status),
            _ => None,
        }
    }
}

/// A connection to one member. Clones share it; it closes with the last one.
#[derive(Clone, Debug)]
pub struct Client {
    requests: h2::client::SendRequest<Bytes>,
    limit: Duration,
    _connection: Arc<EndsWithClient>,
}

#[derive(Debug)]
struct EndsWithClient(AbortHandle);

impl Drop for EndsWithClient {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Client {
    /// Sets up TLS and HTTP/2 on `stream`, which is connected to a member. `limit` applies to this and to each later
    /// call.
    ///
    /// # Errors
    /// If one side rejects the other, or on a timeout.
    pub async fn connect<S>(stream: S, tls: &Tls, limit: Duration) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let handshakes = async {
            let stream = tls.connect(stream).await.map_err(Error::Tls)?;
            let builder = h2::client::Builder::new();
            Ok::<_, Error>(builder.handshake::<_, Bytes>(stream).await?)
        };
        let done = tokio::time::timeout(limit, handshakes).await;
        let (requests, connection) = done.map_err(|_| Error::Timeout(limit))??;
        let running = tokio::spawn(async move {
            // Pending calls fail with the same error.
            let _ = connection.await;
        });
        let connection = Arc::new(EndsWithClient(running.abort_handle()));
        Ok(Self {
            requests,
            limit,
            _connection: connection,
        })
    }

    /// All members. A linearizable read, which needs a quorum.
    ///
    /// # Errors
    /// See [`Error`]; also without a quorum.
    pub async fn members(&self) -> Result<Vec<Member>, Error> {
        let request = MemberListRequest { linearizable: true };
        Ok(self.call(&request).await?.members)
    }

    /// All members as far as this one knows: there may have been changes that it has not received. It needs no quorum.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn members_here(&self) -> Result<Vec<Member>, Error> {
        let request = MemberListRequest {
            linearizable: false,
        };
        Ok(self.call(&request).await?.members)
    }

    /// The status of the member. It needs no quorum.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn status(&self) -> Result<StatusResponse, Error> {
        self.call(&StatusRequest {}).await
    }

    /// The alarms of all members.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn alarms(&self) -> Result<Vec<AlarmMember>, Error> {
        Ok(self.call(&AlarmRequest::default()).await?.alarms)
    }

    /// Adds a member that other members will reach at `peer_url`.
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

    /// The ids of the other members to which this one counts as connected. It needs no quorum.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn peers(&self) -> Result<BTreeSet<u64>, Error> {
        let answer = tokio::time::timeout(self.limit, self.metrics()).await;
        let metrics = answer.map_err(|_| Error::Timeout(self.limit))??;
        Ok(peers::read(&String::from_utf8_lossy(&metrics)))
    }

    async fn metrics(&self) -> Result<Bytes, Error> {
        let request = Request::get(format!("https://etcd{}", peers::PATH)).body(());
        let request = request.map_err(|source| Error::Foreign(source.to_string()))?;
        let mut requests = self.requests.clone().ready().await?;
        let (answer, _) = requests.send_request(request, true)?;
        let (parts, mut body) = answer.await?.into_parts();
        read(&parts, &mut body).await
    }

    async fn call<C: Call>(&self, call: &C) -> Result<C::Answer, Error> {
        let answer = tokio::time::timeout(self.limit, self.send(call)).await;
        answer.map_err(|_| Error::Timeout(self.limit))?
    }

    async fn send<C: Call>(&self, call: &C) -> Result<C::Answer, Error> {
        let foreign = |problem: &str| Error::Foreign(problem.to_owned());
        let request = Request::post(format!("https://etcd{}", C::PATH))
            .header(http::header::CONTENT_TYPE, "application/grpc")
            .header(http::header::TE, "trailers")
            .header("grpc-timeout", format!("{}m", self.limit.as_millis()))
            .body(())
            .map_err(|source| Error::Foreign(source.to_string()))?;
        let mut requests = self.requests.clone().ready().await?;
        let (answer, mut body) = requests.send_request(request, false)?;
        body.send_data(grpc::frame(call), true)?;
        let (parts, mut body) = answer.await?.into_parts();
        // A failure may be in the headers of a response without body (gRPC: Trailers-Only).
        outcome(&parts.headers).unwrap_or(Ok(()))?;
        let message = read(&parts, &mut body).await?;
        let trailers = body.trailers().await?.unwrap_or_default();
        outcome(&trailers).unwrap_or_else(|| Err(foreign("the answer has no gRPC status")))?;
        grpc::unframe(message).map_err(foreign)
    }
}

/// Reads the body of a response whose HTTP status is 200.
async fn read(parts: &Parts, body: &mut h2::RecvStream) -> Result<Bytes, Error> {
    if parts.status != StatusCode::OK {
        return Err(Error::Foreign(format!("HTTP status {}", parts.status)));
    }
    let read = grpc::collect(body).await;
    read.map_err(|unread| match unread {
        Unread::Broken(source) => Error::Broken(source),
        Unread::TooLarge => Error::Foreign(unread.to_string()),
    })
}

fn outcome(headers: &HeaderMap) -> Option<Result<(), Error>> {
    Some(Status::read(headers)?.map_err(Error::Status))
}
