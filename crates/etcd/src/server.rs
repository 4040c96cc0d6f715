//! Serves the calls of a member.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::ready;
use grpc::{Answer, Context, Limits, Method, Status};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::messages::{
    AlarmRequest, AlarmResponse, MemberAddRequest, MemberAddResponse, MemberListRequest,
    MemberListResponse, MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest,
    MemberRemoveResponse, MoveLeaderRequest, MoveLeaderResponse, StatusRequest, StatusResponse,
};
use crate::peers;

/// A member. Called on the task of the connection; must not block.
#[allow(missing_docs)] // The names are those of etcd's API.
pub trait Service: Send + Sync + 'static {
    fn member_list(&self, request: MemberListRequest) -> Result<MemberListResponse, Status>;
    fn member_add(&self, request: MemberAddRequest) -> Result<MemberAddResponse, Status>;
    fn member_remove(&self, request: MemberRemoveRequest) -> Result<MemberRemoveResponse, Status>;
    fn member_promote(
        &self,
        request: MemberPromoteRequest,
    ) -> Result<MemberPromoteResponse, Status>;
    fn alarm(&self, request: AlarmRequest) -> Result<AlarmResponse, Status>;
    fn status(&self, request: StatusRequest) -> Result<StatusResponse, Status>;
    fn move_leader(&self, request: MoveLeaderRequest) -> Result<MoveLeaderResponse, Status>;
    /// Returns the id of this member, and the other members with true for each that counts as connected.
    fn peers(&self) -> (u64, Vec<(u64, bool)>);
}

/// Limits of a client: calls of members are small.
const LIMITS: Limits = Limits {
    message: 1 << 20,
    calls: 256,
};

/// Serves one connection, from the TLS handshake to its end.
pub async fn serve<S, M>(stream: S, tls: TlsAcceptor, member: Arc<M>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    M: Service,
{
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let member = Arc::new(Served(member));
    // A member keeps nothing of a connection that breaks.
    let _ = grpc::serve(stream, member, LIMITS, CancellationToken::new()).await;
}

/// A member as a gRPC service.
struct Served<M>(Arc<M>);

impl<M: Service> grpc::Service for Served<M> {
    fn call(&self, path: &str, _: Context, body: Bytes) -> Option<Answer<'_>> {
        fn with<'a, C: Method>(
            body: Bytes,
            call: impl FnOnce(C) -> Result<C::Response, Status>,
        ) -> Answer<'a>
        where
            C::Response: Send + 'a,
        {
            grpc::answer(body, |request: C| ready(call(request)).boxed())
        }
        let member = &self.0;
        Some(match path {
            MemberListRequest::PATH => with(body, |request| member.member_list(request)),
            MemberAddRequest::PATH => with(body, |request| member.member_add(request)),
            MemberRemoveRequest::PATH => with(body, |request| member.member_remove(request)),
            MemberPromoteRequest::PATH => with(body, |request| member.member_promote(request)),
            AlarmRequest::PATH => with(body, |request| member.alarm(request)),
            StatusRequest::PATH => with(body, |request| member.status(request)),
            MoveLeaderRequest::PATH => with(body, |request| member.move_leader(request)),
            _ => return None,
        })
    }

    fn page(&self, path: &str) -> Option<Bytes> {
        (path == peers::PATH).then(|| {
            let (local, all) = self.0.peers();
            peers::write(local, &all).into()
        })
    }
}
