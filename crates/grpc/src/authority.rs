//! Requests on Unix sockets with the path of the socket as host.
//!
//! A client in Go that dials `/csi/csi.sock` sends this path as `:authority`; the kubelet does so to the sockets on
//! which plugins register. Such a path is no authority (RFC 3986), and h2 refuses the request ([hyperium/h2#487]).
//! [`AnyAuthority`] is a stream that reads `localhost` in place of such a host: the headers of requests are decoded and
//! encoded again, and all other frames, and all data of the server, pass unchanged.
//!
//! [hyperium/h2#487]: https://github.com/hyperium/h2/pull/487

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::uri::Authority;
use loona_hpack::Decoder;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Length in bytes of the connection preface of a client (RFC 9113, section 3.4).
const PREFACE: usize = 24;
/// Length in bytes of the header of a frame.
const HEAD: usize = 9;
/// Largest payload of a frame before the server announces another limit.
const LARGEST_FRAME: usize = 1 << 14;
/// Limit of the headers of a request in bytes, both encoded and decoded.
const LARGEST_BLOCK: usize = 1 << 16;
/// Default size of the decoder's table.
const TABLE: usize = 4096;
/// Types and flags of frames (RFC 9113, sections 6.2 and 6.10).
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// Stream of a client with any `:authority`.
pub struct AnyAuthority<S> {
    stream: S,
    rewriting: Rewriting,
}

impl<S> AnyAuthority<S> {
    /// Wraps `stream`, which must be at its beginning.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            rewriting: Rewriting::default(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AnyAuthority<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.rewriting.take(out) || out.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            let mut bytes = [0; 4096];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.rewriting.put(read.filled())?;
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AnyAuthority<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// Bytes of a client on their way to the server.
pub(crate) struct Rewriting {
    /// Bytes of an incomplete frame header, or of an incomplete frame of headers.
    before: Vec<u8>,
    /// Bytes for the server.
    after: Vec<u8>,
    /// Number of bytes to pass unchanged.
    passing: usize,
    /// Headers of a request whose last frame has not arrived.
    block: Option<Block>,
    decoder: Decoder<'static>,
}

struct Block {
    stream: [u8; 4],
    ends_stream: bool,
    bytes: Vec<u8>,
}

impl Default for Rewriting {
    fn default() -> Self {
        let mut decoder = Decoder::new();
        decoder.set_max_allowed_table_size(TABLE);
        Self {
            before: Vec::new(),
            after: Vec::new(),
            passing: PREFACE,
            block: None,
            decoder,
        }
    }
}

impl Rewriting {
    /// Moves ready bytes to `out`; returns true if there were any.
    fn take(&mut self, out: &mut ReadBuf<'_>) -> bool {
        let count = out.remaining().min(self.after.len());
        out.put_slice(&self.after[..count]);
        self.after.drain(..count);
        count > 0
    }

    /// Accepts bytes of the client.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.before.extend_from_slice(bytes);
        loop {
            if self.passing > 0 && !self.before.is_empty() {
                let count = self.passing.min(self.before.len());
                self.after.extend(self.before.drain(..count));
                self.passing -= count;
                continue;
            }
            let Some(head) = self.before.first_chunk::<HEAD>().copied() else {
                return Ok(());
            };
            let [high, middle, low, kind, flags, ..] = head;
            let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            if kind != HEADERS && kind != CONTINUATION {
                self.passing = HEAD + length;
                continue;
            }
            if length > LARGEST_FRAME {
                return Err(wrong("a frame of headers is too large"));
            }
            if self.before.len() < HEAD + length {
                return Ok(());
            }
            let frame: Vec<u8> = self.before.drain(..HEAD + length).collect();
            let stream = [head[5], head[6], head[7], head[8]];
            self.headers(kind, flags, stream, &frame[HEAD..])?;
        }
    }

    fn headers(&mut self, kind: u8, flags: u8, stream: [u8; 4], payload: &[u8]) -> io::Result<()> {
        let (mut block, fragment) = match (kind, self.block.take()) {
            (HEADERS, None) => {
                let block = Block {
                    stream,
                    ends_stream: flags & END_STREAM != 0,
                    bytes: Vec::new(),
                };
                (block, fragment(flags, payload)?)
            }
            (CONTINUATION, Some(block)) if block.stream == stream => (block, payload),
            _ => return Err(wrong("a frame of headers is out of order")),
        };
        block.bytes.extend_from_slice(fragment);
        if block.bytes.len() > LARGEST_BLOCK {
            return Err(wrong("the headers of a request are too large"));
        }
        if flags & END_HEADERS == 0 {
            self.block = Some(block);
            return Ok(());
        }
        let encoded = self.encoded(&block.bytes)?;
        self.frames(&block, &encoded);
        Ok(())
    }

    /// Returns the headers, with `localhost` in place of an invalid host.
    fn encoded(&mut self, block: &[u8]) -> io::Result<Vec<u8>> {
        let (mut encoded, mut size) = (Vec::new(), 0);
        let decoded = self.decoder.decode_with_cb(block, |name, value| {
            size += name.len() + value.len() + 32;
            if size > LARGEST_BLOCK {
                return;
            }
            let is_host = *name == *b":authority" && Authority::try_from(&*value).is_err();
            let value = if is_host { b"localhost" } else { &*value };
            // A literal without indexing, so that the server needs no table.
            encoded.push(0);
            text(&mut encoded, &name);
            text(&mut encoded, value);
        });
        decoded.map_err(|error| wrong(&error.to_string()))?;
        if size > LARGEST_BLOCK {
            return Err(wrong("the headers of a request are too large"));
        }
        Ok(encoded)
    }

    fn frames(&mut self, block: &Block, encoded: &[u8]) {
        let mut rest = encoded;
        let (mut kind, mut flags) = (HEADERS, u8::from(block.ends_stream) * END_STREAM);
        loop {
            let (payload, more) = rest.split_at(rest.len().min(LARGEST_FRAME));
            if more.is_empty() {
                flags |= END_HEADERS;
            }
            let [.., high, middle, low] = payload.len().to_be_bytes();
            self.after.extend([high, middle, low, kind, flags]);
            self.after.extend(block.stream);
            self.after.extend(payload);
            if more.is_empty() {
                return;
            }
            (rest, kind, flags) = (more, CONTINUATION, 0);
        }
    }
}

/// Returns the payload of a frame of headers without padding and priority.
fn fragment(flags: u8, payload: &[u8]) -> io::Result<&[u8]> {
    let short = || wrong("a frame of headers is shorter than it says");
    let (mut rest, mut padding) = (payload, 0);
    if flags & PADDED != 0 {
        let (first, more) = rest.split_first().ok_or_else(short)?;
        (rest, padding) = (more, usize::from(*first));
    }
    if flags & PRIORITY != 0 {
        rest = rest.get(5..).ok_or_else(short)?;
    }
    let length = rest.len().checked_sub(padding).ok_or_else(short)?;
    Ok(&rest[..length])
}

/// Writes an uncompressed text with its length in front (RFC 7541, section 5).
fn text(out: &mut Vec<u8>, text: &[u8]) {
    const PREFIX: usize = 0x7f;
    let length = text.len();
    if length < PREFIX {
        out.push(length.to_le_bytes()[0]);
    } else {
        out.push(0x7f);
        let mut rest = length - PREFIX;
        while rest >= 0x80 {
            out.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        out.push(rest.to_le_bytes()[0]);
    }
    out.extend_from_slice(text);
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests;
