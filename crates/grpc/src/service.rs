//! Methods and services.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryFutureExt as _;
use futures::future::{BoxFuture, ready};
use prost::Message;
use tokio::time::Instant;

use crate::frame::{self, Malformed};
use crate::status::{Code, Status};

/// Method, identified by the type of the request.
pub trait Method: Message + Default {
    /// Path, such as `/etcdserverpb.Cluster/MemberList`.
    const PATH: &'static str;
    /// Type of the response.
    type Response: Message + Default;
}

/// Metadata of a call, besides the request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    /// Deadline of the caller; `None` for a caller that waits for ever.
    pub deadline: Option<Instant>,
}

/// Response of a call, framed, or the error [`Status`].
pub type Answer<'a> = BoxFuture<'a, Result<Bytes, Status>>;

/// Server of the methods of one or more gRPC services.
pub trait Service: Send + Sync + 'static {
    /// Answers a call whose body is one frame. Returns `None` for an unknown path.
    ///
    /// The future is dropped when the caller cancels the call or the deadline passes.
    fn call(&self, path: &str, context: Context, body: Bytes) -> Option<Answer<'_>>;

    /// Returns the body of the answer to a plain GET, for servers with a page besides their methods.
    fn page(&self, _path: &str) -> Option<Bytes> {
        None
    }
}

/// Several services on one server.
#[derive(Clone, Default)]
pub struct Services(Vec<Arc<dyn Service>>);

impl Services {
    /// Adds a service. The first [`Service`] with a method serves the call.
    #[must_use]
    pub fn with(mut self, service: impl Service) -> Self {
        self.0.push(Arc::new(service));
        self
    }
}

impl Service for Services {
    fn call(&self, path: &str, context: Context, body: Bytes) -> Option<Answer<'_>> {
        let mut services = self.0.iter();
        services.find_map(|service| service.call(path, context, body.clone()))
    }

    fn page(&self, path: &str) -> Option<Bytes> {
        self.0.iter().find_map(|service| service.page(path))
    }
}

/// Decodes the request in `body`, calls `serve`, and frames the response.
pub fn answer<'a, M, F>(body: Bytes, serve: F) -> Answer<'a>
where
    M: Method,
    M::Response: 'a,
    F: FnOnce(M) -> BoxFuture<'a, Result<M::Response, Status>>,
{
    match frame::decode::<M>(body) {
        Ok(request) => {
            let framed = |response| frame::frame(&response);
            Box::pin(serve(request).map_ok(framed))
        }
        Err(why) => Box::pin(ready(Err(malformed(M::PATH, why)))),
    }
}

fn malformed(path: &str, why: Malformed) -> Status {
    let code = match why {
        Malformed::Compressed => Code::Unimplemented,
        _ => Code::Internal,
    };
    Status::new(code, format!("{path}: {why}"))
}

/// Returns the answer to a call of an unknown method.
#[must_use]
pub fn unimplemented(path: &str) -> Status {
    let (service, method) = path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or((path, ""));
    let message = format!(
        "unknown method {} for service {}",
        method.escape_debug(),
        service.escape_debug()
    );
    Status::new(Code::Unimplemented, message)
}
