//! Limits of answers. Any user who writes a clouds.yaml names the servers that answer.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;

use super::TransportError;

/// Limits on the size of an answer, after decompression, and on its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time from the beginning of the request until the end of the answer.
    pub time: Duration,
    /// Bytes of a body. A larger body is an error.
    pub body: usize,
    /// Bytes of the body of an error, a status of 400 or more. A larger body is left out.
    pub fault: usize,
}

impl Limits {
    /// Bytes for the body of one object, of the answer to a write, or of a login. The catalog in a login is the largest
    /// of these.
    pub const OBJECT: usize = 8 << 20;
    /// Bytes for one page of a list: 1000 servers are about 4 MB.
    pub const PAGE: usize = 32 << 20;
    /// Bytes for the body of an error: services answer with a sentence.
    pub const FAULT: usize = 16 << 10;

    /// Returns the limits of one object, within `time`.
    #[must_use]
    pub fn object(time: Duration) -> Self {
        Self {
            time,
            body: Self::OBJECT,
            fault: Self::FAULT,
        }
    }

    /// Returns the limits of one page of a list, within `time`.
    #[must_use]
    pub fn page(time: Duration) -> Self {
        Self {
            body: Self::PAGE,
            ..Self::object(time)
        }
    }

    /// Creates the body of an answer with this status and the announced `length`.
    pub(super) fn body(
        &self,
        status: StatusCode,
        length: Option<u64>,
    ) -> Result<Body, TransportError> {
        let is_fault = status.is_client_error() || status.is_server_error();
        let limit = if is_fault { self.fault } else { self.body };
        let body = Body {
            is_fault,
            limit,
            bytes: BytesMut::new(),
        };
        match length {
            Some(length) if length > limit as u64 => body.excess().map(|()| body),
            _ => Ok(body),
        }
    }
}

/// Body under construction from its pieces.
pub(super) struct Body {
    is_fault: bool,
    limit: usize,
    bytes: BytesMut,
}

/// Outcome of [`Body::add`]: more pieces wanted or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    Wanted,
    Unwanted,
}

impl Body {
    /// Adds a piece.
    ///
    /// # Errors
    /// The body exceeds its limit, and is not the body of an error.
    pub(super) fn add(&mut self, piece: &[u8]) -> Result<More, TransportError> {
        if self.bytes.len() + piece.len() <= self.limit {
            self.bytes.extend_from_slice(piece);
            return Ok(More::Wanted);
        }
        self.excess()?;
        self.bytes = BytesMut::new();
        Ok(More::Unwanted)
    }

    /// Returns the body; empty for the body of an error that is too large.
    pub(super) fn end(self) -> Bytes {
        self.bytes.freeze()
    }

    fn excess(&self) -> Result<(), TransportError> {
        if self.is_fault {
            return Ok(());
        }
        Err(TransportError::too_large(self.limit))
    }
}
