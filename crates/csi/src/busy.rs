//! Serialisation: one call at a time about a volume or snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use grpc::{Code, Context, Status};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout_at;

use crate::deadline;

/// Keys of calls in progress: ids and names of volumes and snapshots. Clones share the set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    keys: Mutex<HashSet<String>>,
    ended: Notify,
}

/// Key of a call, held until the call and its write have ended.
#[derive(Debug)]
pub(crate) struct Guard {
    busy: Busy,
    key: String,
}

impl Busy {
    /// Begins a call after the end of earlier calls with the same key. Such a call waits, because Kubernetes attaches a
    /// volume to several nodes at once and takes an early ABORTED for a failed attachment.
    ///
    /// # Errors
    /// ABORTED, if another call is in progress until a second before the caller's deadline.
    pub(crate) async fn begin(&self, key: String, context: Context) -> Result<Arc<Guard>, Status> {
        let deadline = deadline::of(context);
        loop {
            let ended = self.0.ended.notified();
            if self.0.keys.lock().insert(key.clone()) {
                let busy = self.clone();
                return Ok(Arc::new(Guard { busy, key }));
            }
            if timeout_at(deadline, ended).await.is_err() {
                return Err(Status::new(
                    Code::Aborted,
                    format!("{key}: another call is in progress; the next one goes on"),
                ));
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.busy.0.keys.lock().remove(&self.key);
        self.busy.0.ended.notify_waiters();
    }
}
