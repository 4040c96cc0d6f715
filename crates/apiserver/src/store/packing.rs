//! Packing of objects: once there are many, objects outside of the history are deflated.
//!
//! A small server packs nothing. A large one uses its memory for objects in use, and needs some 10 µs more to read
//! the others.

use std::cell::RefCell;
use std::sync::{Arc, Weak, mpsc};

use bytes::Bytes;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::Shared;
use super::state::Cold;

/// Total size of all objects in bytes below which nothing is packed.
pub(crate) const PACK_ABOVE: usize = 64 << 20;
/// Minimum length in bytes; packing shorter objects gains nothing.
const SHORTEST: usize = 256;
/// Number of objects replaced under one lock.
const AT_ONCE: usize = 64;

/// Bytes, deflated or not.
#[derive(Debug)]
pub(super) enum Packable {
    Plain(Bytes),
    /// Deflated bytes, and their original length.
    Packed(Box<[u8]>, usize),
}

impl From<Bytes> for Packable {
    fn from(bytes: Bytes) -> Self {
        Self::Plain(bytes)
    }
}

impl Packable {
    pub(super) fn bytes(&self) -> Bytes {
        match self {
            Self::Plain(bytes) => bytes.clone(),
            Self::Packed(deflated, length) => inflate(deflated, *length).into(),
        }
    }

    pub(super) fn length(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Packed(_, length) => *length,
        }
    }

    /// Same bytes, deflated if shorter.
    pub(super) fn packed(&self) -> Self {
        match self {
            Self::Plain(bytes) => match deflate(bytes) {
                Some(deflated) => Self::Packed(deflated, bytes.len()),
                None => Self::Plain(bytes.clone()),
            },
            Self::Packed(deflated, length) => Self::Packed(deflated.clone(), *length),
        }
    }
}

/// Starts the packing thread. The thread ends with the sender.
pub(super) fn start(shared: &Arc<Shared>) -> Option<mpsc::Sender<Vec<Cold>>> {
    let (queue, cold) = mpsc::channel::<Vec<Cold>>();
    let shared = Arc::downgrade(shared);
    let thread = std::thread::Builder::new().name("apiserver-packer".to_owned());
    let spawned = thread.spawn(move || {
        for batch in cold {
            for part in batch.chunks(AT_ONCE) {
                pack(&shared, part);
            }
        }
    });
    match spawned {
        Ok(_) => Some(queue),
        Err(error) => {
            tracing::warn!(%error, "objects are not packed");
            None
        }
    }
}

fn pack(shared: &Weak<Shared>, part: &[Cold]) {
    let packed: Vec<_> = part
        .iter()
        .map(|cold| Arc::new(cold.object.packed()))
        .collect();
    let Some(shared) = shared.upgrade() else {
        return;
    };
    let mut state = shared.state.write();
    for (cold, packed) in part.iter().zip(packed) {
        state.replace(cold, packed);
    }
}

thread_local! {
    // Both have tables of tens of kilobytes, which are allocated once per thread.
    static DEFLATE: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), false));
    static INFLATE: RefCell<Decompress> = RefCell::new(Decompress::new(false));
}

/// Deflated bytes; `None` if not shorter by an eighth.
fn deflate(bytes: &[u8]) -> Option<Box<[u8]>> {
    if bytes.len() < SHORTEST {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() / 8 * 7);
    let status = DEFLATE.with_borrow_mut(|deflate| {
        deflate.reset();
        deflate.compress_vec(bytes, &mut out, FlushCompress::Finish)
    });
    matches!(status, Ok(Status::StreamEnd)).then(|| out.into_boxed_slice())
}

fn inflate(deflated: &[u8], length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length);
    INFLATE.with_borrow_mut(|inflate| {
        inflate.reset(false);
        // The bytes were deflated by this process, so inflating does not fail.
        let _ = inflate.decompress_vec(deflated, &mut out, FlushDecompress::Finish);
    });
    out
}

#[cfg(test)]
mod tests;
