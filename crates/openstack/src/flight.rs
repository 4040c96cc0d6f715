//! Single flight: of concurrent tasks that need the same result, one does the work and the others wait.

use tokio::time::Instant;

use crate::error::{Error, Result};

/// Serialises work that several tasks may request at the same time.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    gate: tokio::sync::Mutex<()>,
    failed: parking_lot::Mutex<Option<(Instant, Error)>>,
}

impl Flight {
    /// Returns the result of `ready`, or else of `work`. A task that waited while another one failed returns the same
    /// failure. If the working task is dropped, the next one takes over.
    pub(crate) async fn run<T>(
        &self,
        ready: impl Fn() -> Option<T>,
        work: impl AsyncFnOnce() -> Result<T>,
    ) -> Result<T> {
        if let Some(value) = ready() {
            return Ok(value);
        }
        let asked = Instant::now();
        let _gate = self.gate.lock().await;
        if let Some(value) = ready() {
            return Ok(value);
        }
        if let Some((at, error)) = &*self.failed.lock()
            && *at >= asked
        {
            return Err(error.clone());
        }
        let result = work().await;
        *self.failed.lock() = result
            .as_ref()
            .err()
            .map(|error| (Instant::now(), error.clone()));
        result
    }
}
