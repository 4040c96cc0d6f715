//! Errors that prevent or interrupt a move.

use std::path::PathBuf;

/// Error of a move.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Request that an API server rejected, or did not answer.
    #[error("the {side}: {action}: {}", operator::words::of_request(cause))]
    Request {
        /// `source` or `target`.
        side: &'static str,
        /// Failed action.
        action: String,
        /// Error of the client.
        cause: Box<kube::Error>,
    },
    /// Problems that prevent a move, found before any change or after the undo of all changes.
    #[error("{}", .0.join("\n"))]
    Refused(Vec<String>),
    /// An expected event did not happen in time.
    #[error("{0}")]
    Stuck(String),
    /// Another process works on the same move.
    #[error(
        "another `ferrostack move` has taken over this move of namespace {0}: this one does nothing more"
    )]
    TakenOver(String),
    /// The user has interrupted the move.
    #[error("interrupted")]
    Interrupted,
    /// File that cannot be read or written.
    #[error("{}: {problem}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Problem, for users.
        problem: String,
    },
    /// Error before the commit; every change was undone.
    #[error("{0}\nNothing has moved: what was begun is undone, and the source goes on as before.")]
    RolledBack(Box<Error>),
    /// Error before the commit; the undo failed too.
    #[error(
        "{first}\nWhat was begun is not undone: {second}\nBoth sides are paused. Run the same command again to go on, or with --roll-back to undo the move."
    )]
    HalfWay {
        /// Error of the move.
        first: Box<Error>,
        /// Error of the undo.
        second: Box<Error>,
    },
    /// Error after the commit.
    #[error("{0}\nAll copies are complete already. Run the same command again to finish the move.")]
    Incomplete(Box<Error>),
}

impl Error {
    /// Status code of the API server's answer, if any.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Error::Request { cause, .. } => match cause.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Turns the error of an absent object into `None`.
pub(crate) fn or_absent<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}
