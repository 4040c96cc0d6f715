//! Sockets for HTTP, with a limit on the number of connections and on their waiting times.
//!
//! A client with half a request, or without one, has a connection for a short time only; and with too many
//! connections, the oldest one without a pending answer makes room. Idle clients cannot lock out others.

mod body;
mod slot;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use body::{Arriving, Late};
pub use slot::Slot;

use self::body::{AnswerBody, Answering};
use self::slot::{Places, Watched};
use crate::body::BoxError;

/// Limits of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections.
    pub connections: usize,
    /// Time until the first request, and until a started request has all headers.
    pub header: Duration,
    /// Time until the body of a request is complete.
    pub body: Duration,
    /// Maximum time of a connection without a request.
    pub idle: Duration,
    /// Maximum time in which a client takes no bytes.
    pub write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A process has 1024 files by default.
            connections: 800,
            header: Duration::from_secs(15),
            body: Duration::from_secs(30),
            // As kube-apiserver: a client closes idle connections first.
            idle: Duration::from_secs(120),
            write: Duration::from_secs(60),
        }
    }
}

/// Pause after a failed accept, usually caused by a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// Grace period of running requests at shutdown. Watches end at once; their clients resume them.
const DRAIN: Duration = Duration::from_millis(500);
/// Interval of HTTP/2 pings to a client, and the timeout of the answer.
const SILENCE: Duration = Duration::from_secs(60);
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// Connection between two sides: a socket, TLS on one, or a pipe.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// Accepts connections until `stop`, serves each in a task, and returns after all tasks have ended.
pub fn listen<F>(
    listener: TcpListener,
    limits: Limits,
    stop: CancellationToken,
    serve: impl Fn(TcpStream, SocketAddr, Slot) -> F + Send + Sync + 'static,
) -> BoxFuture<'static, ()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let serve = move |stream, peer, place| serve(stream, peer, place).boxed();
    accept(listener, limits, stop, Box::new(serve)).boxed()
}

type Serve = Box<dyn Fn(TcpStream, SocketAddr, Slot) -> BoxFuture<'static, ()> + Send + Sync>;

async fn accept(listener: TcpListener, limits: Limits, stop: CancellationToken, serve: Serve) {
    let (places, connections) = (Places::new(limits), TaskTracker::new());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(place) = places.admit() else {
                    tracing::debug!("a connection was refused: all are in use");
                    continue;
                };
                // Disables Nagle's algorithm, which delays small answers.
                let _ = stream.set_nodelay(true);
                connections.spawn(serve(stream, peer, place));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                // Mostly the process is out of file descriptors, so that retrying at once would spin.
                places.make_room();
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

/// Serves plain HTTP on `listener` until `stop`.
pub fn plain<F, B>(
    listener: TcpListener,
    limits: Limits,
    stop: CancellationToken,
    answer: impl Fn(SocketAddr, Request<Arriving>) -> F + Clone + Send + Sync + 'static,
) -> BoxFuture<'static, ()>
where
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let stopped = stop.clone();
    let serve = move |stream, peer, place: Slot| {
        let (answer, stopped) = (answer.clone(), stopped.clone());
        async move {
            let answer = move |request| answer(peer, request);
            connection(stream, &place, answer, stopped.cancelled()).await;
        }
    };
    listen(listener, limits, stop, serve)
}

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No further request will come: the client closed the connection, or it was upgraded.
    Served,
    /// This side closed the connection.
    Closed,
}

/// Serves the [`Request`]s of one connection until its end, until one of its [`Limits`], or until `stop`.
pub fn connection<'a, S, F, B>(
    stream: S,
    place: &'a Slot,
    answer: impl Fn(Request<Arriving>) -> F + Send + Sync + 'a,
    stop: impl Future<Output = ()> + Send + 'a,
) -> BoxFuture<'a, Ended>
where
    S: Duplex + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let answer = move |request| {
        let answer = answer(request).map_ok(|answer| answer.map(body::of_answer));
        answer.boxed()
    };
    served(Box::new(stream), place, Box::new(answer), stop.boxed()).boxed()
}

type Answer<'a> = Box<
    dyn Fn(Request<Arriving>) -> BoxFuture<'static, Result<Response<AnswerBody>, Infallible>>
        + Send
        + Sync
        + 'a,
>;

/// HTTP of a connection. hyper's part is large, so it is compiled once, here.
async fn served(
    stream: Box<dyn Duplex>,
    place: &Slot,
    answer: Answer<'_>,
    stop: BoxFuture<'_, ()>,
) -> Ended {
    let limit = place.limits().body;
    let service = service_fn(|request: Request<Incoming>| {
        let (asked, sending) = place.begin(&request);
        let answer = answer(request.map(|body| Arriving::new(body, limit, asked)));
        // Boxed, because hyper keeps room for the future as long as the body is sent, for hours with a watch.
        Box::pin(async move {
            let answer = answer.await?;
            Ok::<_, Infallible>(answer.map(|body| Answering::new(body, sending)))
        })
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(SILENCE)
        .keep_alive_timeout(SIGN_OF_LIFE);
    let stream = TokioIo::new(Watched::new(stream, place));
    let mut serving = pin!(builder.serve_connection_with_upgrades(stream, service));
    tokio::select! {
        result = &mut serving => {
            if let Err(error) = result {
                tracing::debug!(%error, "a connection failed");
            }
            place.keep();
            return Ended::Served;
        }
        () = place.expired() => {}
        () = stop => {}
    }
    serving.as_mut().graceful_shutdown();
    // Connections that are still open afterwards are dropped.
    let _ = tokio::time::timeout(DRAIN, serving).await;
    Ended::Closed
}

/// [`Slot`] without competing connections.
pub fn alone(limits: Limits) -> Slot {
    Slot::alone(limits)
}

#[cfg(test)]
mod tests;
