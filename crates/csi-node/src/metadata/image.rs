//! Bounded reads, shared by the readers of ISO 9660 and FAT.

use std::io;

use crate::probe::Blocks;

/// Error for a damaged image.
pub(super) fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// Reads `length` bytes at an offset.
///
/// # Errors
/// The range ends behind the end of the device, or the device cannot be read.
pub(super) fn bytes(blocks: &dyn Blocks, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let end = offset.checked_add(length as u64);
    if end.is_none_or(|end| end > blocks.size()) {
        return Err(damaged("it points past its end"));
    }
    let mut buffer = vec![0; length];
    blocks.read(offset, &mut buffer)?;
    Ok(buffer)
}
