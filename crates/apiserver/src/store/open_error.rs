//! Errors of opening a store.

use std::path::PathBuf;

/// Error of opening an API server.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be opened, read or written.
    #[error("the database {path} cannot be used")]
    Database {
        /// The file.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// The file or its directory is not writable.
    #[error(
        "the database {path} cannot be written: this user must be able to write the file and its directory"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file system is full.
    #[error("there is no room for the database {path}: free some on its file system")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a database of an API server.
    #[error(
        "{path} is not a database of the API server; move it away, or choose another data directory"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer release wrote the file.
    #[error(
        "the database {path} has format {found}, and this release knows formats up to {known}; use the release that wrote it, or a newer one"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Format of the file.
        found: i64,
        /// Newest format known to this release.
        known: i64,
    },
    /// The file is damaged.
    #[error("the database {path} is damaged: {problem}; restore it from a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Violation found by the integrity check.
        problem: String,
    },
    /// Another process has the file open.
    #[error("the database {path} is in use by another process")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// An option is invalid.
    #[error("{option}: {problem}")]
    Option {
        /// Field of [`Options`](crate::Options).
        option: &'static str,
        /// Reason why the option is invalid.
        problem: String,
    },
}
