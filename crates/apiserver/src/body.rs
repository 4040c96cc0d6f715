//! Bodies of responses: whole or streamed.

use std::convert::Infallible;

use bytes::Bytes;
use futures::Stream;
use futures::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;

/// The body of a response of the API server. It never fails: a stream that cannot continue ends.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A whole body.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// A body that is sent piece by piece.
pub(crate) fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(pieces.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
}

/// A body with a function applied to each piece.
pub(crate) fn mapped(body: Body, change: fn(&Bytes) -> Bytes) -> Body {
    body.map_frame(move |frame| frame.map_data(|bytes| change(&bytes)))
        .boxed_unsync()
}
