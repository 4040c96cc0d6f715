//! Bodies of requests with a time limit, and bodies of answers with a notice at the end.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use tokio::time::Sleep;

use super::slot::{Asked, Sending};
use crate::body::BoxError;

/// Body of a request. Fails if not complete in time.
pub struct Arriving {
    body: Incoming,
    limit: Duration,
    /// Begins with the first look at the body.
    end: Option<Pin<Box<Sleep>>>,
    asked: Option<Asked>,
}

impl Arriving {
    pub(super) fn new(body: Incoming, limit: Duration, asked: Option<Asked>) -> Self {
        Self {
            body,
            limit,
            end: None,
            asked,
        }
    }
}

/// Error of reading a body.
#[derive(Debug, thiserror::Error)]
pub enum Late {
    /// The body is not complete in time.
    #[error("it was not there within {} s", .0.as_secs())]
    Late(Duration),
    /// The connection failed.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = Late;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Late>>> {
        let this = &mut *self;
        let frame = match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => return Poll::Ready(Some(Ok(frame))),
            Poll::Ready(Some(Err(error))) => Some(Err(error.into())),
            Poll::Ready(None) => None,
            Poll::Pending => {
                let limit = this.limit;
                let end = this
                    .end
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
                if end.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                Some(Err(Late::Late(limit)))
            }
        };
        this.asked = None;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Body of an answer, from any service.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// [`Body`] of an answer.
pub(super) fn of_answer<B>(body: B) -> AnswerBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Body of an answer, and a guard that lives until the end of the body.
pub(super) struct Answering {
    body: AnswerBody,
    _sending: Sending,
}

impl Answering {
    pub(super) fn new(body: AnswerBody, sending: Sending) -> Self {
        Self {
            body,
            _sending: sending,
        }
    }
}

impl Body for Answering {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
