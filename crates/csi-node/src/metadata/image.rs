//! What the readers of both kinds of images share.

use std::io;

use crate::probe::Blocks;

/// What is wrong with an image.
pub(super) fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// `length` bytes at an offset, if the device has them.
pub(super) fn bytes(blocks: &dyn Blocks, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let end = offset.checked_add(length as u64);
    if end.is_none_or(|end| end > blocks.size()) {
        return Err(damaged("it points past its end"));
    }
    let mut buffer = vec![0; length];
    blocks.read(offset, &mut buffer)?;
    Ok(buffer)
}
