//! Message framing: a flag for no compression, the length in four bytes, the message.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;

/// Length of the flag and the length field, in bytes.
const PREFIX: usize = 5;

/// Frames a message.
pub(crate) fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(length + PREFIX);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // A BytesMut grows, so encoding into it does not fail.
    let _ = message.encode(&mut out);
    out.freeze()
}

/// Reason why a body is not one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the body has no message")]
    Empty,
    #[error("the message is compressed, which this program does not accept")]
    Compressed,
    #[error("the message is not as long as its frame says")]
    Length,
    #[error("the message cannot be decoded")]
    Undecodable,
}

/// Returns the bytes of the message in a body with exactly one frame.
pub(crate) fn unframe(mut body: Bytes) -> Result<Bytes, Malformed> {
    if body.remaining() < PREFIX {
        return Err(Malformed::Empty);
    }
    if body.get_u8() != 0 {
        return Err(Malformed::Compressed);
    }
    let length = usize::try_from(body.get_u32()).unwrap_or(usize::MAX);
    match body.remaining() == length {
        true => Ok(body),
        false => Err(Malformed::Length),
    }
}

/// Decodes the message in a body with exactly one frame.
pub(crate) fn decode<M: Message + Default>(body: Bytes) -> Result<M, Malformed> {
    M::decode(unframe(body)?).map_err(|_| Malformed::Undecodable)
}

/// Reads a whole body with a message of at most `limit` bytes. `has_room` is called with the size of each part; the
/// read fails once it returns false.
pub(crate) async fn collect(
    stream: &mut h2::RecvStream,
    limit: usize,
    mut has_room: impl FnMut(usize) -> bool,
) -> Result<Bytes, Unread> {
    let mut body = BytesMut::new();
    while let Some(chunk) = stream.data().await {
        let chunk = chunk?;
        stream.flow_control().release_capacity(chunk.len())?;
        if body.len() + chunk.len() > limit.saturating_add(PREFIX) {
            return Err(Unread::TooLarge(limit));
        }
        if !has_room(chunk.len()) {
            return Err(Unread::NoRoom);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Reason why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    #[error(transparent)]
    Broken(#[from] h2::Error),
    #[error("the message is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the calls of this connection have too large messages together")]
    NoRoom,
}
