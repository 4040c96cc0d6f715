//! gRPC's framing of one message, and its status codes.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http::header::HeaderValue;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use prost::Message;

/// The largest message that is read. A list of members takes some hundred bytes for each.
pub(crate) const LARGEST: usize = 1 << 20;

/// The header or trailer with the code.
const STATUS: &str = "grpc-status";
/// The header or trailer with the words.
const MESSAGE: &str = "grpc-message";
/// What is escaped in the words.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// The status codes that etcd answers with; any other is kept as its number.
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
    /// Another one.
    Other(u32),
}

impl Code {
    /// As on the wire.
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

/// How a call that was answered has failed, in etcd's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// What kind of failure.
    pub code: Code,
    /// As `etcdserver: unhealthy cluster`.
    pub message: String,
}

impl Status {
    /// A failure.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// What headers or trailers say about the call; None if they do not.
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

    /// The trailers that end a call with this outcome.
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

/// A message as it is sent: not compressed, its length, itself.
pub(crate) fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(length + 5);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // A BytesMut grows, so that encoding into it does not fail.
    let _ = message.encode(&mut out);
    out.freeze()
}

/// The one message of a body.
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

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    #[error(transparent)]
    Broken(#[from] h2::Error),
    #[error("the body is larger than {LARGEST} bytes")]
    TooLarge,
}
