//! Locks by volume: one call at a time for each.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Volumes with a call at work.
#[derive(Clone, Default)]
pub(super) struct Locks(Arc<Mutex<HashSet<String>>>);

/// Lock of a volume, released on drop.
pub(super) struct Lock {
    volume: String,
    locks: Locks,
}

impl Locks {
    /// Takes the [`Lock`] of a volume; `None` while another call has it.
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
