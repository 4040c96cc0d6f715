//! Bodies of requests, and of responses: whole or streamed.

use std::convert::Infallible;

use bytes::Bytes;
use futures::Stream;
use futures::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;

/// Body of a response of the API server. Never fails: a stream that cannot continue ends.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Body of a request from any source. One type, so that its readers are compiled once, in this crate.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, Unreadable>;

/// Error of reading the body of a request.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(#[source] BoxError);

/// Any error.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// [`Body`] of a request.
pub(crate) fn of_request<B>(body: B) -> RequestBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(|error| Unreadable(error.into()))
        .boxed_unsync()
}

/// A whole [`Body`].
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// [`Body`] in pieces.
pub(crate) fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(pieces.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
}

/// [`Body`] with a function applied to each piece.
pub(crate) fn mapped(body: Body, change: fn(&Bytes) -> Bytes) -> Body {
    body.map_frame(move |frame| frame.map_data(|bytes| change(&bytes)))
        .boxed_unsync()
}
