//! Client of the methods of one server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::response::Parts;
use http::{HeaderMap, Request, StatusCode, header};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

use crate::frame::{self, Unread};
use crate::service::Method;
use crate::status::Status;
use crate::timeout;

/// Failure of a call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server returned an error status.
    #[error(transparent)]
    Status(#[from] Status),
    /// The server did not respond in time.
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// The connection was lost.
    #[error("the connection broke: {0}")]
    Broken(#[from] h2::Error),
    /// The peer is not a gRPC server.
    #[error("the server does not speak gRPC: {0}")]
    Foreign(String),
}

/// Connection to a server. Clones share the connection, which closes with the last clone.
#[derive(Clone, Debug)]
pub struct Client {
    requests: h2::client::SendRequest<Bytes>,
    origin: Arc<str>,
    limit: Duration,
    /// Maximum size of a response, in bytes.
    largest: usize,
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
    /// Sets up HTTP/2 on `stream`, which is connected to the server `origin`, for example `https://etcd`. `limit`
    /// applies to the setup and to each later call, `largest` to the bytes of a response.
    ///
    /// # Errors
    /// The server does not speak HTTP/2, or a timeout.
    pub async fn connect<S>(
        stream: S,
        origin: &str,
        limit: Duration,
        largest: usize,
    ) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let handshake = h2::client::Builder::new().handshake::<_, Bytes>(stream);
        let done = tokio::time::timeout(limit, handshake).await;
        let (requests, connection) = done.map_err(|_| Error::Timeout(limit))??;
        let running: BoxFuture<'static, ()> = Box::pin(async move {
            // Pending calls fail with the same error.
            let _ = connection.await;
        });
        let running = tokio::spawn(running);
        Ok(Self {
            requests,
            origin: origin.into(),
            limit,
            largest,
            _connection: Arc::new(EndsWithClient(running.abort_handle())),
        })
    }

    /// Calls a method.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn call<M: Method>(&self, request: &M) -> Result<M::Response, Error> {
        let answer = self.exchange(M::PATH, frame::frame(request)).await?;
        frame::decode(answer).map_err(|why| Error::Foreign(why.to_string()))
    }

    /// Returns the body of the page at `path`, by a plain GET.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn page(&self, path: &str) -> Result<Bytes, Error> {
        let request = Request::get(format!("{}{path}", self.origin)).body(());
        let request = request.map_err(|source| Error::Foreign(source.to_string()))?;
        let fetched = async {
            let mut requests = self.requests.clone().ready().await?;
            let (answer, _) = requests.send_request(request, true)?;
            let (parts, mut body) = answer.await?.into_parts();
            self.read(&parts, &mut body).await
        };
        let fetched = tokio::time::timeout(self.limit, fetched).await;
        fetched.map_err(|_| Error::Timeout(self.limit))?
    }

    fn exchange(&self, path: &str, frame: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let (timeout, time) = timeout::write(self.limit);
        let request = Request::post(format!("{}{path}", self.origin))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .header(timeout, time)
            .body(());
        Box::pin(async move {
            let request = request.map_err(|source| Error::Foreign(source.to_string()))?;
            let answer = tokio::time::timeout(self.limit, self.send(request, frame)).await;
            answer.map_err(|_| Error::Timeout(self.limit))?
        })
    }

    async fn send(&self, request: Request<()>, frame: Bytes) -> Result<Bytes, Error> {
        let mut requests = self.requests.clone().ready().await?;
        let (answer, mut body) = requests.send_request(request, false)?;
        body.send_data(frame, true)?;
        let (parts, mut body) = answer.await?.into_parts();
        // A failure may be in the headers of a response without body (gRPC: Trailers-Only).
        outcome(&parts.headers).unwrap_or(Ok(()))?;
        let message = self.read(&parts, &mut body).await?;
        let trailers = body.trailers().await?.unwrap_or_default();
        let missing = || Err(Error::Foreign("the answer has no gRPC status".to_owned()));
        outcome(&trailers).unwrap_or_else(missing)?;
        Ok(message)
    }

    /// Reads the body of a response whose HTTP status is 200.
    async fn read(&self, parts: &Parts, body: &mut h2::RecvStream) -> Result<Bytes, Error> {
        if parts.status != StatusCode::OK {
            return Err(Error::Foreign(format!("HTTP status {}", parts.status)));
        }
        let read = frame::collect(body, self.largest, |_| true).await;
        read.map_err(|unread| match unread {
            Unread::Broken(source) => Error::Broken(source),
            Unread::TooLarge(_) | Unread::NoRoom => Error::Foreign(unread.to_string()),
        })
    }
}

fn outcome(headers: &HeaderMap) -> Option<Result<(), Error>> {
    Some(Status::read(headers)?.map_err(Error::Status))
}
