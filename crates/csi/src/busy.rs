//! One call at a time about one volume or snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use grpc::{Code, Status};
use parking_lot::Mutex;

/// What calls are about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy(Arc<Mutex<HashSet<String>>>);

/// Held while a call, or a write of it, is in progress.
#[derive(Debug)]
pub(crate) struct Guard {
    busy: Busy,
    key: String,
}

impl Busy {
    /// Begins a call.
    ///
    /// # Errors
    /// ABORTED, if another one is in progress.
    pub(crate) fn begin(&self, key: String) -> Result<Arc<Guard>, Status> {
        if !self.0.lock().insert(key.clone()) {
            return Err(Status::new(
                Code::Aborted,
                format!("{key}: another call is in progress; the next one goes on"),
            ));
        }
        let busy = self.clone();
        Ok(Arc::new(Guard { busy, key }))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.busy.0.lock().remove(&self.key);
    }
}
