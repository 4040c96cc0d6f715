//! Single flight: of many who want the same thing, one does the work and all take the result.

use std::time::Instant;

use crate::error::{Error, Result};

/// A gate in front of work that several tasks may ask for at once.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    gate: tokio::sync::Mutex<()>,
    failed: parking_lot::Mutex<Option<(Instant, Error)>>,
}

impl Flight {
    /// What `ready` gives, else what `work` gives. Whoever waited while another failed gets that
    /// failure instead of trying as well. If the one at work is dropped, the next goes on.
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
