//! Limits on the answers of API servers. The API server of a workload cluster belongs to a tenant, and a kubeconfig may
//! name any address.

mod entries;

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream, StreamExt as _};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::time::Sleep;
use tower::{BoxError, Service};

use self::entries::Entries;

/// Limits of answers, in bytes and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time until an answer begins.
    pub answer: Duration,
    /// Time until an answer ends, unless the answer is a stream (a watch, a followed log).
    pub whole: Duration,
    /// Bytes of a list.
    pub list: usize,
    /// Bytes of any other answer, and of a line of a watch, which has one object.
    pub object: usize,
    /// Objects in arrays, in any answer and in a line of a watch: each takes up to a kilobyte of memory, however short
    /// its text is.
    pub entries: usize,
    /// Bytes of the body of an error.
    pub error: usize,
}

impl Limits {
    /// Limits for workload clusters, which belong to tenants.
    ///
    /// List: a page has at most 500 Nodes, 8 MB with 50 images each. Object: etcd takes 1.5 MiB for one by default, and
    /// a larger limit is set by hand.
    pub const WORKLOAD: Self = Self {
        answer: Duration::from_secs(10),
        whole: Duration::from_secs(60),
        list: 64 << 20,
        object: 8 << 20,
        entries: 250_000,
        error: 64 << 10,
    };

    /// Limits for the cluster that the program works for. The operator of that cluster is trusted: these limits only
    /// guard against accidents.
    pub const TRUSTED: Self = Self {
        // An API server ends requests after 60 s, and calls webhooks of 30 s meanwhile.
        answer: Duration::from_secs(90),
        whole: Duration::from_secs(300),
        list: 1 << 30,
        object: 64 << 20,
        entries: usize::MAX,
        error: 1 << 20,
    };
}

/// Error for an answer over a limit. The text names the server and the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

impl Refused {
    pub(super) fn silent(server: &str, limit: Duration) -> Self {
        Self(format!(
            "{server} did not answer within {} s",
            limit.as_secs()
        ))
    }

    fn slow(server: &str, limit: Duration) -> Self {
        Self(format!(
            "the answer of {server} did not end within {} s",
            limit.as_secs()
        ))
    }

    fn excess(server: &str, excess: Excess) -> Self {
        Self(match excess {
            Excess::Whole(limit) => {
                format!("the answer of {server} is larger than {}", size(limit))
            }
            Excess::Line(limit) => {
                format!(
                    "a watch of {server} has a line of more than {}",
                    size(limit)
                )
            }
            Excess::Entries(limit) => {
                format!("the answer of {server} has more than {limit} objects in lists")
            }
        })
    }
}

/// Limit that an answer exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excess {
    Whole(usize),
    Line(usize),
    Entries(usize),
}

fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    }
}

/// Unit of the count.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// Bytes received until now: of the whole answer, or of the current line.
    bytes: usize,
    entries: Entries,
    /// Maximum of bytes; `None` for text without end, such as a log that is followed.
    limit: Option<usize>,
    most_entries: usize,
    by_line: bool,
}

impl Bound {
    /// Returns the bound of the answer to a request, and the time within which the answer has to end.
    fn new(request: &Request<kube::client::Body>, limits: &Limits) -> (Self, Option<Duration>) {
        let uri = request.uri();
        let query = || uri.query().unwrap_or_default().split('&');
        let watches = query().any(|pair| pair == "watch=true" || pair == "watch=1");
        let follows = query().any(|pair| pair == "follow=true");
        let limit = match is_list(request.method(), uri) && !watches {
            true => limits.list,
            false => limits.object,
        };
        let bound = Self {
            bytes: 0,
            entries: Entries::default(),
            limit: (!follows).then_some(limit),
            most_entries: if follows { usize::MAX } else { limits.entries },
            by_line: watches,
        };
        (bound, (!watches && !follows).then_some(limits.whole))
    }

    /// Counts a piece. Fails when a limit is exceeded.
    fn take(&mut self, piece: &[u8]) -> Result<(), Excess> {
        let (mut first, mut last) = (None, None);
        if self.by_line {
            first = piece.iter().position(|byte| *byte == b'\n');
            last = piece.iter().rposition(|byte| *byte == b'\n');
        }
        // A piece is far smaller than a line may be: of the lines in it only the first can be too long.
        let bytes = self.bytes.saturating_add(first.unwrap_or(piece.len()));
        self.bytes = last.map_or(bytes, |last| piece.len() - last - 1);
        if let Some(limit) = self.limit.filter(|limit| bytes > *limit) {
            return Err(match self.by_line {
                true => Excess::Line(limit),
                false => Excess::Whole(limit),
            });
        }
        let most = self.most_entries;
        // Without a limit, the scan for entries is not needed.
        let is_over = most < usize::MAX && self.entries.read(piece, self.by_line) > most;
        if is_over {
            Err(Excess::Entries(most))
        } else {
            Ok(())
        }
    }
}

/// True if a request reads or deletes a collection: `/api/v1/nodes`, `/apis/GROUP/VERSION/namespaces/NAMESPACE/KIND`.
fn is_list(method: &Method, uri: &Uri) -> bool {
    let mut parts = uri.path().trim_matches('/').split('/');
    let prefix = match parts.next() {
        Some("api") => 1,
        Some("apis") => 2,
        _ => return false,
    };
    let rest: Vec<&str> = parts.skip(prefix).collect();
    let is_collection = matches!(rest.as_slice(), [_] | ["namespaces", _, _]);
    is_collection && (*method == Method::GET || *method == Method::DELETE)
}

/// Body that ends with an error once a limit on size or time is exceeded.
struct Bounded<S> {
    pieces: S,
    bound: Bound,
    server: Arc<str>,
    end: Option<(Pin<Box<Sleep>>, Duration)>,
    refused: bool,
}

impl<S, E> Stream for Bounded<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: Into<BoxError>,
{
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.refused {
            return Poll::Ready(None);
        }
        if let Some((end, limit)) = &mut this.end
            && end.as_mut().poll(context).is_ready()
        {
            this.refused = true;
            return Poll::Ready(Some(Err(Refused::slow(&this.server, *limit).into())));
        }
        let piece = match ready!(this.pieces.poll_next_unpin(context)) {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        let Err(excess) = this.bound.take(&piece) else {
            return Poll::Ready(Some(Ok(piece)));
        };
        this.refused = true;
        Poll::Ready(Some(Err(Refused::excess(&this.server, excess).into())))
    }
}

/// Returns a layer that limits the answers of a client's requests.
pub(super) fn layer<S>(
    server: Arc<str>,
    limits: Limits,
) -> impl tower::Layer<S, Service = Answers<S>> + Clone {
    tower::layer::layer_fn(move |inner| Answers {
        inner,
        server: Arc::clone(&server),
        limits,
    })
}

/// Client service with limited answers.
#[derive(Clone)]
pub(super) struct Answers<S> {
    inner: S,
    server: Arc<str>,
    limits: Limits,
}

impl<S, B> Service<Request<kube::client::Body>> for Answers<S>
where
    S: Service<Request<kube::client::Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let (bound, time) = Bound::new(&request, &self.limits);
        let (server, limits) = (Arc::clone(&self.server), self.limits);
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await.map_err(Into::into)?;
            taken(answer, server, bound, time, limits).await
        }
        .boxed()
    }
}

async fn taken<B>(
    answer: Response<B>,
    server: Arc<str>,
    bound: Bound,
    time: Option<Duration>,
    limits: Limits,
) -> Result<Response<Body>, BoxError>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let status = answer.status();
    if status.is_client_error() || status.is_server_error() {
        return Ok(refusal(answer.map(Body::new), &server, limits).await);
    }
    // An upgraded connection has no body.
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(answer.map(Body::new));
    }
    let announced = answer.headers().get(CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if let Some(limit) = bound.limit.filter(|_| !bound.by_line)
        && announced.is_some_and(|length| length > limit)
    {
        return Err(Refused::excess(&server, Excess::Whole(limit)).into());
    }
    Ok(answer.map(|body| {
        Body::from_stream(Bounded {
            pieces: Body::new(body).into_data_stream(),
            bound,
            server,
            end: time.map(|time| (Box::pin(tokio::time::sleep(time)), time)),
            refused: false,
        })
    }))
}

/// Returns an error as a Status of Kubernetes. Any other body is dropped: a kubeconfig may name any address, and the
/// pages there are not for everybody who can read conditions.
async fn refusal(answer: Response<Body>, server: &str, limits: Limits) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    let read = axum::body::to_bytes(body, limits.error);
    let read = tokio::time::timeout(limits.answer, read).await;
    let read = read
        .ok()
        .and_then(Result::ok)
        .filter(|text| is_status(text));
    let text = match read {
        Some(text) => text,
        None => Bytes::from(status_of(head.status, server).to_string()),
    };
    head.headers.insert(CONTENT_LENGTH, text.len().into());
    let media = HeaderValue::from_static("application/json");
    head.headers.insert(CONTENT_TYPE, media);
    Response::from_parts(head, Body::from(text))
}

fn is_status(text: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow, rename = "apiVersion")]
        version: Cow<'a, str>,
    }
    serde_json::from_slice::<Head<'_>>(text)
        .is_ok_and(|head| head.kind == "Status" && head.version == "v1")
}

fn status_of(code: StatusCode, server: &str) -> Value {
    let reason = match code.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 => "Conflict",
        410 => "Expired",
        413 => "RequestEntityTooLarge",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": format!("{server} answers {code}, without a Status of Kubernetes"),
        "reason": reason,
        "code": code.as_u16(),
    })
}

#[cfg(test)]
mod tests;
