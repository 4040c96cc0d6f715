//! One call at a time for each volume.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// The volumes on which a call is at work.
#[derive(Clone, Default)]
pub(super) struct Locks(Arc<Mutex<HashSet<String>>>);

/// The lock of a volume, until it is dropped.
pub(super) struct Lock {
    volume: String,
    locks: Locks,
}

impl Locks {
    /// The lock, unless another call has it.
    pub(super) fn take(&self, volume: &str) -> Option<Lock> {
        let volume = volume.to_owned();
        let free = self.0.lock().insert(volume.clone());
        free.then(|| Lock {
            volume,
            locks: self.clone(),
        })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.locks.0.lock().remove(&self.volume);
    }
}
