//! Sockets that are served for a while after a manager was told to stop.
//!
//! An API server is led to a manager by a Service, and learns late that its Pod is being deleted: the Pod is told to stop in
//! the same moment. Webhooks fail closed, so that whatever is asked in between would be refused.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Probes, metrics and webhooks of a manager, until they are no longer asked for.
pub(super) struct Outlasting {
    stop: CancellationToken,
    late: JoinHandle<()>,
    webhooks: Option<JoinHandle<()>>,
}

impl Outlasting {
    /// They go on for `delay` after `shutdown`.
    pub(super) fn begin(shutdown: &CancellationToken, delay: Duration) -> Self {
        let asked = shutdown.clone();
        let late = tokio::spawn(async move {
            asked.cancelled().await;
            tokio::time::sleep(delay).await;
        });
        Self {
            stop: CancellationToken::new(),
            late,
            webhooks: None,
        }
    }

    /// The end of all of them.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// The task that ends once reviews under way have been answered.
    pub(super) fn waits_for(&mut self, webhooks: JoinHandle<()>) {
        self.webhooks = Some(webhooks);
    }

    /// Ends them after `shutdown` and its delay. What is under way is answered.
    pub(super) async fn end(mut self) {
        // A task that was aborted is one that has ended.
        let _ = (&mut self.late).await;
        self.stop.cancel();
        if let Some(webhooks) = self.webhooks.take() {
            let _ = webhooks.await;
        }
    }
}

impl Drop for Outlasting {
    fn drop(&mut self) {
        self.late.abort();
        self.stop.cancel();
    }
}
