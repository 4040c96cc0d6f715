//! Limits of answers. Whoever writes a clouds.yaml names the servers that answer.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;

use super::TransportError;

/// How much of an answer is taken, after decompression, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the beginning of the request until the end of the answer.
    pub time: Duration,
    /// The bytes of a body. A larger one is an error.
    pub body: usize,
    /// The bytes of the body of an error, a status of 400 or more. A larger one is left out.
    pub fault: usize,
}

impl Limits {
    /// The body of one object, of the answer to a write, or of a login, whose catalog is the largest of these.
    pub const OBJECT: usize = 8 << 20;
    /// One page of a list: 1000 servers are about 4 MB.
    pub const PAGE: usize = 32 << 20;
    /// The body of an error: services answer with a sentence.
    pub const FAULT: usize = 16 << 10;

    /// The limits of one object, within `time`.
    #[must_use]
    pub fn object(time: Duration) -> Self {
        Self {
            time,
            body: Self::OBJECT,
            fault: Self::FAULT,
        }
    }

    /// The limits of one page of a list, within `time`.
    #[must_use]
    pub fn page(time: Duration) -> Self {
        Self {
            body: Self::PAGE,
            ..Self::object(time)
        }
    }

    /// A body to collect for an answer with this status, whose announced length is `length`.
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

/// A body of which the pieces arrive.
pub(super) struct Body {
    is_fault: bool,
    limit: usize,
    bytes: BytesMut,
}

/// True if more of a body is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    Wanted,
    Unwanted,
}

impl Body {
    /// Adds a piece.
    ///
    /// # Errors
    /// The body is larger than its limit, and no error's.
    pub(super) fn add(&mut self, piece: &[u8]) -> Result<More, TransportError> {
        if self.bytes.len() + piece.len() <= self.limit {
            self.bytes.extend_from_slice(piece);
            return Ok(More::Wanted);
        }
        self.excess()?;
        self.bytes = BytesMut::new();
        Ok(More::Unwanted)
    }

    /// The body, empty if it was an error's and too large.
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
