//! Running controllers.

use std::future::Future;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Controllers in a separate task, until killed or dropped.
pub struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// Starts the future of `run`, which gets a cancellation token.
    pub fn start<F>(run: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(run(shutdown.clone()));
        Self { shutdown, task }
    }

    /// Stops the controllers at any point, as `kill -9` would.
    pub async fn kill(mut self) {
        self.task.abort();
        self.shutdown.cancel();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.cancel();
        self.task.abort();
    }
}
