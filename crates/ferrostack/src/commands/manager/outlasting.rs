//! Sockets served for a while after a manager was told to stop.
//!
//! An API server reaches a manager through a Service, and learns late of the deletion of the Pod, which is told to stop
//! in the same moment. Webhooks fail closed, so requests in between would be refused.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Probes, metrics and webhooks of a manager, until no client uses them.
pub(super) struct Outlasting {
    stop: CancellationToken,
    late: JoinHandle<()>,
    webhooks: Option<JoinHandle<()>>,
}

impl Outlasting {
    /// Starts with an end `delay` after `shutdown`.
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

    /// Token cancelled at the end.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Adds the task that ends once reviews under way have been answered.
    pub(super) fn waits_for(&mut self, webhooks: JoinHandle<()>) {
        self.webhooks = Some(webhooks);
    }

    /// Ends the sockets after `shutdown` and its delay. Running requests are answered.
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
