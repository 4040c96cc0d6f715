//! Server as a service inside the process.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt as _, future};
use http::header::UPGRADE;
use http::{Request, Response};
use http_body_util::BodyStream;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::auth::rules;
use crate::body::{self, Body, BoxError, RequestBody};
use crate::core::Core;
use crate::error::ApiError;
use crate::follow::{self, Followed};
use crate::http::handle_target;
use crate::pods::Tunnels;
use crate::request::path;
use crate::request::query::Query;
use crate::response::failure;
use crate::user::UserInfo;

/// Buffer of a connection in memory, in each direction, in bytes.
const BUFFER: usize = 64 << 10;

/// Server as a tower service inside the process, for a member of `system:masters` unless [`Self::as_user`] sets
/// another user.
#[derive(Clone)]
pub struct InProcess {
    core: Arc<Core>,
    user: Option<Arc<UserInfo>>,
}

impl InProcess {
    pub(crate) fn from_core(core: &Arc<Core>) -> Self {
        let core = Arc::clone(core);
        Self { core, user: None }
    }

    /// Same service for another user. Requests are authorized as over a socket.
    #[must_use]
    pub fn as_user(&self, user: UserInfo) -> Self {
        Self {
            core: Arc::clone(&self.core),
            user: Some(Arc::new(user)),
        }
    }

    /// Objects of a kind, in one namespace or in all, and their changes until the server is closed; `None` if the
    /// kind is not served.
    pub fn follow(
        &self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
    ) -> Option<BoxStream<'static, Followed>> {
        let resource = self.core.store.registry().find(group, plural)?;
        let collection = Arc::clone(&resource.collection);
        let prefix = namespace.map_or_else(String::new, |namespace| format!("{namespace}/"));
        Some(follow::follow(Arc::clone(&self.core), collection, prefix).boxed())
    }
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (core, user) = (Arc::clone(&self.core), self.user.clone());
        answered(core, user, request.map(body::of_request))
    }
}

/// Answer to a [`Request`]. Boxed here, so that no other crate compiles the code of the server.
fn answered(
    core: Arc<Core>,
    user: Option<Arc<UserInfo>>,
    request: Request<RequestBody>,
) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
    if !request.headers().contains_key(UPGRADE) {
        return Box::pin(async move { Ok(answer(core, user, request).await) });
    }
    Box::pin(async move {
        let answer = connected(core, user, request).await;
        Ok(answer.unwrap_or_else(|error| {
            failure(&ApiError::new(500, "", format!("upgrading: {error}")))
        }))
    })
}

/// Answers a [`Request`] of a user, by default of an administrator.
async fn answer(
    core: Arc<Core>,
    user: Option<Arc<UserInfo>>,
    request: Request<RequestBody>,
) -> Response<Body> {
    let target = path::target(request.uri().path());
    let Some(user) = user else {
        return handle_target(core, UserInfo::admin(), target, request).await;
    };
    let query = Query::parse(request.uri().query());
    match rules::authorize(&core, &user, &target, request.method(), &query).await {
        Ok(()) => handle_target(core, (*user).clone(), target, request).await,
        Err(error) => failure(&error),
    }
}

/// Answers a [`Request`] for an upgrade: upgrades need a connection, so this request gets one in memory.
async fn connected(
    core: Arc<Core>,
    user: Option<Arc<UserInfo>>,
    request: Request<RequestBody>,
) -> hyper::Result<Response<Body>> {
    let (here, there) = tokio::io::duplex(BUFFER);
    tokio::spawn(async move {
        let tunnels = Tunnels::default();
        let _with_this = tunnels.end_with();
        let (inside, ended) = (tunnels.clone(), core.shutdown.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            let (core, user) = (Arc::clone(&core), user.clone());
            request.extensions_mut().insert(inside.clone());
            let request = request.map(body::of_request);
            async move { Ok::<_, Infallible>(answer(core, user, request).await) }
        });
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(there), service)
            .with_upgrades();
        if serving.await.is_ok() {
            tokio::select! {
                () = tunnels.ended() => {}
                () = ended.cancelled() => {}
            }
        }
    });
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(here)).await?;
    // The task ends with the connection. The answer, or the upgraded connection, keeps it open.
    tokio::spawn(connection.with_upgrades());
    let answer = sender.send_request(request).await?;
    Ok(answer.map(|body| {
        let pieces = BodyStream::new(body)
            .filter_map(|frame| future::ready(frame.ok().and_then(|frame| frame.into_data().ok())));
        body::stream(pieces)
    }))
}
