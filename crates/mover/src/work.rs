//! Options and progress of a move.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::journal::Journal;

/// Options of a move.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespace to move, with all of its Clusters.
    pub namespace: String,
    /// Timeout for the controllers of either side to confirm a pause.
    pub confirm_within: Duration,
    /// Cancelled when the user interrupts: before the commit, the move is then undone.
    pub stop: CancellationToken,
}

/// Prints a line of progress.
pub type Say<'a> = &'a (dyn Fn(&str) + Sync);

/// Process at work on a move.
pub(crate) struct Work<'a> {
    pub(crate) options: &'a Options,
    pub(crate) journal: &'a Journal,
    pub(crate) say: Say<'a>,
}

impl Work<'_> {
    /// Fails, before a write, when the user has interrupted, or another process has taken over.
    pub(crate) async fn guard(&self) -> Result<(), Error> {
        if self.options.stop.is_cancelled() {
            return Err(Error::Interrupted);
        }
        self.journal.check().await
    }
}
