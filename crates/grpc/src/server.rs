//! Server of the connections of clients.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, poll_fn};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::frame::{self, Unread};
use crate::service::{Context, Service, unimplemented};
use crate::status::{Code, Status};
use crate::timeout;

type Respond = h2::server::SendResponse<Bytes>;

/// Limits on the requests of a client.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum size of a request's message, in bytes.
    pub message: usize,
    /// Maximum number of concurrent calls on one connection.
    pub calls: u32,
}

impl Default for Limits {
    /// Returns limits of 16 MiB and 256 calls.
    fn default() -> Self {
        Self {
            message: 16 << 20,
            calls: 256,
        }
    }
}

/// Time for a message to arrive, whatever the deadline of the call.
const BODY: Duration = Duration::from_secs(60);
/// Number of messages of maximum size that the concurrent calls of a connection can hold. Most messages are smaller
/// than a thousandth of the maximum.
const LARGEST: usize = 2;

/// Memory for the messages of a connection, in bytes.
#[derive(Clone)]
struct Room(Arc<Semaphore>);

impl Room {
    fn from_limits(limits: Limits) -> Self {
        // A message has a prefix.
        let bytes = limits.message.saturating_add(16).saturating_mul(LARGEST);
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).ok()?;
        Arc::clone(&self.0).try_acquire_many_owned(bytes).ok()
    }
}

/// Serves one connection until the client closes it, or until `stop` and the end of its calls.
///
/// # Errors
/// The connection breaks, or the client does not speak HTTP/2.
pub async fn serve<S>(
    stream: S,
    service: Arc<dyn Service>,
    limits: Limits,
    stop: CancellationToken,
) -> Result<(), h2::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(limits.calls);
    builder.max_header_list_size(64 << 10);
    let mut connection = builder.handshake(stream).await?;
    let room = Room::from_limits(limits);
    let mut stopping = false;
    loop {
        tokio::select! {
            accepted = connection.accept() => match accepted {
                Some(call) => {
                    let (request, respond) = call?;
                    let (service, room) = (Arc::clone(&service), room.clone());
                    // The response fails only if the client has disconnected.
                    let task: BoxFuture<'static, ()> = Box::pin(async move {
                        let _ = respond_to(service.as_ref(), (limits, room), request, respond).await;
                    });
                    tokio::spawn(task);
                }
                None => return Ok(()),
            },
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                connection.graceful_shutdown();
            }
        }
    }
}

async fn respond_to(
    service: &dyn Service,
    bounds: (Limits, Room),
    request: Request<h2::RecvStream>,
    mut respond: Respond,
) -> Result<(), h2::Error> {
    let (parts, mut body) = request.into_parts();
    let path = parts.uri.path();
    if parts.method == Method::GET {
        return send_page(service.page(path), respond);
    }
    if let Some(status) = refused(&parts) {
        let mut response = Response::new(());
        *response.status_mut() = status;
        return respond.send_response(response, true).map(drop);
    }
    let answered = tokio::select! {
        answered = answered(service, bounds, path, &parts.headers, &mut body) => answered,
        _ = reset(&mut respond) => return Ok(()),
    };
    send(answered, respond)
}

/// Returns the HTTP status for a request that is not a gRPC call.
fn refused(parts: &http::request::Parts) -> Option<StatusCode> {
    let content = parts.headers.get(header::CONTENT_TYPE);
    let content = content.and_then(|value| value.to_str().ok());
    if parts.method != Method::POST {
        return Some(StatusCode::METHOD_NOT_ALLOWED);
    }
    let known = content.is_some_and(|value| value.starts_with("application/grpc"));
    (!known).then_some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

async fn answered(
    service: &dyn Service,
    (limits, room): (Limits, Room),
    path: &str,
    headers: &HeaderMap,
    body: &mut h2::RecvStream,
) -> Result<Bytes, Status> {
    let time = timeout::read(headers).map_err(|why| Status::new(Code::Internal, why))?;
    let deadline = time.and_then(|time| Instant::now().checked_add(time));
    let work = async {
        // The memory is given back at the end of the call.
        let mut taken = Vec::new();
        let read = frame::collect(body, limits.message, |bytes| {
            room.take(bytes).map(|it| taken.push(it)).is_some()
        });
        let body = timeout_at(Instant::now() + BODY, read).await;
        let body = body.map_err(|_| {
            let message = format!("the message takes longer than {} s", BODY.as_secs());
            Status::new(Code::DeadlineExceeded, message)
        })?;
        let body = body.map_err(|unread| match unread {
            Unread::TooLarge(_) | Unread::NoRoom => {
                Status::new(Code::ResourceExhausted, unread.to_string())
            }
            Unread::Broken(source) => Status::new(Code::Canceled, source.to_string()),
        })?;
        let context = Context { deadline };
        let answer = service.call(path, context, body);
        answer.ok_or_else(|| unimplemented(path))?.await
    };
    let Some(deadline) = deadline else {
        return work.await;
    };
    let late = || {
        Status::new(
            Code::DeadlineExceeded,
            "the deadline of the call has passed",
        )
    };
    if deadline <= Instant::now() {
        return Err(late());
    }
    timeout_at(deadline, work).await.map_err(|_| late())?
}

/// Ends when the client cancels the call.
async fn reset(respond: &mut Respond) {
    poll_fn(|context| match respond.poll_reset(context) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending => Poll::Pending,
    })
    .await;
}

fn send(answered: Result<Bytes, Status>, mut respond: Respond) -> Result<(), h2::Error> {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    let content = http::HeaderValue::from_static("application/grpc");
    headers.insert(header::CONTENT_TYPE, content);
    match answered {
        Ok(message) => {
            let mut body = respond.send_response(response, false)?;
            body.send_data(message, false)?;
            body.send_trailers(Status::trailers(Ok(())))
        }
        Err(status) => {
            headers.extend(Status::trailers(Err(&status)));
            respond.send_response(response, true).map(drop)
        }
    }
}

fn send_page(page: Option<Bytes>, mut respond: Respond) -> Result<(), h2::Error> {
    let mut response = Response::new(());
    let Some(page) = page else {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        return respond.send_response(response, true).map(drop);
    };
    respond
        .send_response(response, false)?
        .send_data(page, true)
}
