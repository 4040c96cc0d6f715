//! Subset of SPDY/3.1 for kubelets and their clients: decodes frames, and encodes the few kinds that are sent.
//!
//! Source: SPDY Protocol Draft 3.1, and its use by `github.com/moby/spdystream`, the library of kubectl and
//! client-go: no flow control, no settings, no priorities.

mod headers;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use headers::{Deflater, Inflater};

pub(super) use headers::Headers;

/// Maximum length of a control frame; longer frames are an error. Control frames of clients have less than 200 bytes.
const LONGEST_CONTROL: usize = 64 << 10;
/// Maximum length of a piece of a payload.
pub(super) const PIECE: usize = 32 << 10;
const HEAD: usize = 8;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const SETTINGS: u16 = 4;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;
const WINDOW_UPDATE: u16 = 9;
const FIN: u8 = 1;

/// Decoded frame of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Opens a stream. `fin`: the peer will send no data.
    Syn {
        stream: u32,
        fin: bool,
        headers: Headers,
    },
    /// Data of a stream, possibly empty. `fin`: no data follows.
    Data {
        stream: u32,
        fin: bool,
        bytes: Bytes,
    },
    /// Closes both directions of a stream.
    Reset { stream: u32 },
    /// Answered with the same frame if the id is the peer's (odd).
    Ping { id: u32 },
    /// No more streams will be opened.
    GoAway,
    /// Ignored frame: replies, settings, windows, late headers.
    Other,
}

/// Reason why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("a control frame of SPDY version {0}")]
    Version(u16),
    #[error("a control frame of unknown type {0}")]
    Type(u16),
    #[error("a control frame of {0} bytes")]
    Length(usize),
    #[error("stream 0")]
    Zero,
    #[error("headers that cannot be read: {0}")]
    Headers(&'static str),
}

/// Reason of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    ProtocolError = 1,
    RefusedStream = 3,
    Cancel = 5,
}

/// Decoder of frames, with the state of header decompression, and the rest of an incomplete data frame.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    headers: Inflater,
    data: Option<Rest>,
}

/// Undecoded rest of a data frame.
#[derive(Clone, Copy, Debug)]
struct Rest {
    stream: u32,
    fin: bool,
    left: usize,
}

impl Decoder {
    /// Decodes the next [`Frame`] from the front of `buffer`. `None` if more bytes are needed.
    ///
    /// `buffer` never needs more than [`LONGEST_CONTROL`] bytes and a head for progress.
    pub(super) fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, Malformed> {
        if let Some(rest) = self.data.take() {
            return Ok(self.piece(rest, buffer));
        }
        let Some(head) = buffer.first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let flags = head[4];
        let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
        if first & 0x8000_0000 == 0 {
            buffer.advance(HEAD);
            let rest = Rest {
                stream: stream_id(first)?,
                fin: flags & FIN != 0,
                left: length,
            };
            return Ok(self.piece(rest, buffer));
        }
        if length > LONGEST_CONTROL {
            return Err(Malformed::Length(length));
        }
        if buffer.len() < HEAD + length {
            return Ok(None);
        }
        buffer.advance(HEAD);
        let body = buffer.split_to(length).freeze();
        let version = (first >> 16 & 0x7fff) as u16;
        if version != 3 {
            return Err(Malformed::Version(version));
        }
        self.control((first & 0xffff) as u16, flags, body).map(Some)
    }

    /// Available part of a data [`Frame`], at most [`PIECE`] bytes.
    fn piece(&mut self, mut rest: Rest, buffer: &mut BytesMut) -> Option<Frame> {
        let bytes = buffer
            .split_to(rest.left.min(PIECE).min(buffer.len()))
            .freeze();
        rest.left -= bytes.len();
        if rest.left > 0 {
            self.data = Some(rest);
            if bytes.is_empty() {
                return None;
            }
        }
        Some(Frame::Data {
            stream: rest.stream,
            fin: rest.fin && rest.left == 0,
            bytes,
        })
    }

    fn control(&mut self, kind: u16, flags: u8, mut body: Bytes) -> Result<Frame, Malformed> {
        let length = body.len();
        let mut word = || body.try_get_u32().map_err(|_| Malformed::Length(length));
        match kind {
            SYN_STREAM => {
                let stream = stream_id(word()?)?;
                word()?;
                // Priority and slot.
                body.try_get_u16().map_err(|_| Malformed::Length(length))?;
                Ok(Frame::Syn {
                    stream,
                    fin: flags & FIN != 0,
                    headers: self.headers.read(&body)?,
                })
            }
            SYN_REPLY | HEADERS => {
                stream_id(word()?)?;
                // All header blocks are one compressed stream, so the block must be decompressed, too.
                self.headers.read(&body)?;
                Ok(Frame::Other)
            }
            RST_STREAM => Ok(Frame::Reset {
                stream: stream_id(word()?)?,
            }),
            PING => Ok(Frame::Ping { id: word()? }),
            GOAWAY => Ok(Frame::GoAway),
            SETTINGS | WINDOW_UPDATE => Ok(Frame::Other),
            kind => Err(Malformed::Type(kind)),
        }
    }
}

/// Id of a stream, never 0.
fn stream_id(word: u32) -> Result<u32, Malformed> {
    match word & 0x7fff_ffff {
        0 => Err(Malformed::Zero),
        stream => Ok(stream),
    }
}

/// Encoder of frames with headers. Header blocks are compressed in the order of the frames.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    headers: Deflater,
}

impl Encoder {
    /// Accepts a stream of the peer.
    pub(super) fn reply(&mut self, stream: u32) -> Bytes {
        let block = self.headers.write(&Headers::default());
        let mut body = BytesMut::with_capacity(4 + block.len());
        body.put_u32(stream);
        body.put_slice(&block);
        control(SYN_REPLY, &body)
    }

    /// Opens a stream, as clients do.
    pub(super) fn syn(&mut self, stream: u32, fin: bool, headers: &Headers) -> Bytes {
        let mut body = BytesMut::new();
        body.put_u32(stream);
        body.put_u32(0);
        body.put_u16(0);
        body.put_slice(&self.headers.write(headers));
        let mut frame = BytesMut::from(control(SYN_STREAM, &body));
        frame[4] = u8::from(fin);
        frame.freeze()
    }
}

/// Data of a stream; at most 16 MiB.
pub(super) fn data(stream: u32, fin: bool, bytes: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD + bytes.len());
    frame.put_u32(stream);
    frame.put_u32(u32::from(fin) << 24 | bytes.len() as u32 & 0x00ff_ffff);
    frame.put_slice(bytes);
    frame.freeze()
}

/// Closes both directions of a stream.
pub(super) fn reset(stream: u32, status: Status) -> Bytes {
    pair(RST_STREAM, stream, status as u32)
}

/// Rejects streams after `last`. `error`: true if the peer sent malformed bytes.
pub(super) fn go_away(last: u32, error: bool) -> Bytes {
    pair(GOAWAY, last, u32::from(error))
}

/// Answer to a ping: the same frame.
pub(super) fn ping(id: u32) -> Bytes {
    control(PING, &id.to_be_bytes())
}

fn pair(kind: u16, first: u32, second: u32) -> Bytes {
    let mut body = BytesMut::with_capacity(8);
    body.put_u32(first);
    body.put_u32(second);
    control(kind, &body)
}

fn control(kind: u16, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD + body.len());
    frame.put_u16(0x8003);
    frame.put_u16(kind);
    frame.put_u32(body.len() as u32 & 0x00ff_ffff);
    frame.put_slice(body);
    frame.freeze()
}

#[cfg(test)]
mod tests;
