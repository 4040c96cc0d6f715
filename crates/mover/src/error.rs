//! Why a move cannot begin or go on.

use std::path::PathBuf;

/// An error of a move.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request that an API server rejected, or did not answer.
    #[error("the {side}: {action}: {}", operator::words::of_request(cause))]
    Request {
        /// `source` or `target`.
        side: &'static str,
        /// Action that failed.
        action: String,
        /// The error.
        cause: Box<kube::Error>,
    },
    /// Problems that prevent a move, before anything was changed or after all of it was undone.
    #[error("{}", .0.join("\n"))]
    Refused(Vec<String>),
    /// Something that did not happen in time.
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
    /// A file that cannot be read or written.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// An error before the commit, after which everything was undone.
    #[error("{0}\nNothing has moved: what was begun is undone, and the source goes on as before.")]
    RolledBack(Box<Error>),
    /// An error before the commit that could not be undone.
    #[error(
        "{first}\nWhat was begun is not undone: {second}\nBoth sides are paused. Run the same command again to go on, or with --roll-back to undo the move."
    )]
    HalfWay {
        /// The error of the move.
        first: Box<Error>,
        /// The error of undoing it.
        second: Box<Error>,
    },
    /// An error after the commit.
    #[error("{0}\nAll copies are complete already. Run the same command again to finish the move.")]
    Incomplete(Box<Error>),
}

impl Error {
    /// The status code of the API server's answer, if there was one.
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

/// `None` instead of the error that something does not exist.
pub(crate) fn or_absent<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}
