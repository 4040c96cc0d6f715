//! Serves the calls of a member.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use crate::grpc::{self, Code, Status};
use crate::messages::{
    AlarmRequest, AlarmResponse, Call, MemberAddRequest, MemberAddResponse, MemberListRequest,
    MemberListResponse, MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest,
    MemberRemoveResponse, MoveLeaderRequest, MoveLeaderResponse, StatusRequest, StatusResponse,
};
use crate::peers;

/// A member. It is called on the task of the connection and must not block.
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
    /// The id of this member, and each other member with whether it counts as connected.
    fn peers(&self) -> (u64, Vec<(u64, bool)>);
}

/// Serves one connection, from the TLS handshake to its end.
pub async fn serve<S, M>(stream: S, tls: TlsAcceptor, member: Arc<M>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    M: Service,
{
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let member = Arc::clone(&member);
        tokio::spawn(async move {
            // The response fails only if the client has disconnected.
            let _ = answer(member.as_ref(), request, respond).await;
        });
    }
}

async fn answer<M: Service>(
    member: &M,
    request: Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let (parts, mut body) = request.into_parts();
    if parts.method == http::Method::GET && parts.uri.path() == peers::PATH {
        let (local, all) = member.peers();
        let mut body = respond.send_response(Response::new(()), false)?;
        return body.send_data(peers::write(local, &all).into(), true);
    }
    let answered = match grpc::collect(&mut body).await {
        Ok(body) => dispatch(member, parts.uri.path(), body),
        Err(unread) => Err(Status::new(Code::Internal, unread.to_string())),
    };
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/grpc"),
    );
    match answered {
        Ok(message) => {
            let mut body = respond.send_response(response, false)?;
            body.send_data(message, false)?;
            body.send_trailers(Status::trailers(Ok(())))
        }
        Err(status) => {
            let trailers: HeaderMap = Status::trailers(Err(&status));
            headers.extend(trailers);
            respond.send_response(response, true).map(drop)
        }
    }
}

fn dispatch<M: Service>(member: &M, path: &str, body: Bytes) -> Result<Bytes, Status> {
    fn with<C: Call>(
        body: Bytes,
        call: impl FnOnce(C) -> Result<C::Answer, Status>,
    ) -> Result<Bytes, Status> {
        let request = grpc::unframe(body).map_err(|why| Status::new(Code::Internal, why))?;
        Ok(grpc::frame(&call(request)?))
    }
    match path {
        MemberListRequest::PATH => with(body, |request| member.member_list(request)),
        MemberAddRequest::PATH => with(body, |request| member.member_add(request)),
        MemberRemoveRequest::PATH => with(body, |request| member.member_remove(request)),
        MemberPromoteRequest::PATH => with(body, |request| member.member_promote(request)),
        AlarmRequest::PATH => with(body, |request| member.alarm(request)),
        StatusRequest::PATH => with(body, |request| member.status(request)),
        MoveLeaderRequest::PATH => with(body, |request| member.move_leader(request)),
        other => {
            let (service, method) = other
                .trim_start_matches('/')
                .split_once('/')
                .unwrap_or((other, ""));
            let message = format!("unknown method {method} for service {service}");
            Err(Status::new(Code::Unimplemented, message))
        }
    }
}
