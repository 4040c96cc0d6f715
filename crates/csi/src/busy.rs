//! One call at a time about one volume or snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use grpc::{Code, Context, Status};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout_at;

use crate::deadline;

/// What calls are about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    keys: Mutex<HashSet<String>>,
    ended: Notify,
}

/// Held while a call, or a write of it, is in progress.
#[derive(Debug)]
pub(crate) struct Guard {
    busy: Busy,
    key: String,
}

impl Busy {
    /// Begins a call, after those about the same have ended: Kubernetes attaches a volume to several nodes at once, and
    /// takes an early ABORTED for an attachment that failed.
    ///
    /// # Errors
    /// ABORTED, if another one is in progress until a second before the caller's deadline.
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
