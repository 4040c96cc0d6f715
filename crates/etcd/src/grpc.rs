//! Framing and status codes of gRPC, for unary calls.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http::header::HeaderValue;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use prost::Message;

/// The limit of a message, in bytes. A list of members takes some hundred bytes for each.
pub(crate) const LARGEST: usize = 1 << 20;

/// The header or trailer with the status code.
const STATUS: &str = "grpc-status";
/// The header or trailer with the status message.
const MESSAGE: &str = "grpc-message";
/// The characters that are percent-encoded in a status message.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// The status codes that etcd returns; others are [`Code::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 0
    Ok,
    /// 4
    DeadlineExceeded,
    /// 5
    NotFound,
    /// 9
    FailedPrecondition,
    /// 12
    Unimplemented,
    /// 13
    Internal,
    /// 14
    Unavailable,
    /// Any other code.
    Other(u32),
}

impl Code {
    /// The number of the code on the wire.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Code::Ok => 0,
            Code::DeadlineExceeded => 4,
            Code::NotFound => 5,
            Code::FailedPrecondition => 9,
            Code::Unimplemented => 12,
            Code::Internal => 13,
            Code::Unavailable => 14,
            Code::Other(number) => number,
        }
    }
}

impl From<u32> for Code {
    fn from(number: u32) -> Self {
        match number {
            0 => Code::Ok,
            4 => Code::DeadlineExceeded,
            5 => Code::NotFound,
            9 => Code::FailedPrecondition,
            12 => Code::Unimplemented,
            13 => Code::Internal,
            14 => Code::Unavailable,
            other => Code::Other(other),
        }
    }
}

/// The error status of a call, with etcd's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// The code of the error.
    pub code: Code,
    /// The message, such as `etcdserver: unhealthy cluster`.
    pub message: String,
}

impl Status {
    /// An error status.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The outcome in headers or trailers; `None` if they have no status.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Result<(), Self>> {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        let code = Code::from(text(STATUS)?.parse::<u32>().unwrap_or(2));
        if code == Code::Ok {
            return Some(Ok(()));
        }
        let words = percent_decode_str(text(MESSAGE).unwrap_or_default());
        let mut message = words.decode_utf8_lossy().into_owned();
        if message.is_empty() {
            message = format!("gRPC status {}", code.number());
        }
        Some(Err(Self { code, message }))
    }

    /// The trailers of a call with this outcome.
    pub(crate) fn trailers(outcome: Result<(), &Self>) -> HeaderMap {
        let mut trailers = HeaderMap::new();
        let code = outcome.map_or_else(|status| status.code, |()| Code::Ok);
        trailers.insert(STATUS, code.number().into());
        if let Err(status) = outcome {
            let words = utf8_percent_encode(&status.message, ESCAPED).to_string();
            if let Ok(words) = HeaderValue::from_str(&words) {
                trailers.insert(MESSAGE, words);
            }
        }
        trailers
    }
}

/// The frame of a message: the flag for no compression, the length, the message.
pub(crate) fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(length + 5);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // A BytesMut grows, so encoding into it does not fail.
    let _ = message.encode(&mut out);
    out.freeze()
}

/// The message of a body with exactly one frame.
pub(crate) fn unframe<M: Message + Default>(mut body: Bytes) -> Result<M, &'static str> {
    if body.remaining() < 5 {
        return Err("the body has no message");
    }
    if body.get_u8() != 0 {
        return Err("the message is compressed");
    }
    let length = usize::try_from(body.get_u32()).unwrap_or(usize::MAX);
    if body.remaining() != length {
        return Err("the message is not as long as it claims");
    }
    M::decode(body).map_err(|_| "the message cannot be decoded")
}

/// Reads a whole body.
pub(crate) async fn collect(stream: &mut h2::RecvStream) -> Result<Bytes, Unread> {
    let mut body = BytesMut::new();
    while let Some(chunk) = stream.data().await {
        let chunk = chunk?;
        stream.flow_control().release_capacity(chunk.len())?;
        if body.len() + chunk.len() > LARGEST {
            return Err(Unread::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    #[error(transparent)]
    Broken(#[from] h2::Error),
    #[error("the body is larger than {LARGEST} bytes")]
    TooLarge,
}
