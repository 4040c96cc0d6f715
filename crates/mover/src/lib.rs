//! Moves clusters with all objects from one management cluster to another, or to files and back.
//!
//! A move is a transaction with a record, the `journal`, in the source:
//!
//! ```text
//!   moving       the source is paused, and copies are created in the target, paused and marked as copies
//!   committed    the target has everything: the source's objects are deleted, then the target's are resumed
//!   rolling back the copies are deleted, then the source's objects are resumed
//! ```
//!
//! Each step can be repeated: a move killed at any request continues at the same request.
//!
//! ```text
//!   kinds      kinds of each side, and the version in which objects are copied
//!   graph      objects that move or stay, and the order (pure)
//!   preflight  problems that prevent a move (pure)
//!   copies     objects as created in the target (pure)
//!   access     requests, repeated after transient errors
//!   journal    the record of the move
//!   pausing    pausing of the source, and confirmation by the controllers
//!   transfer   copies in the target
//!   removal    deletion without finalizers: nothing in the cloud is deleted
//!   directory  objects as files
//!   cluster    a side with its kinds
//!   work       options, progress and interruption
//!   run        the phases
//! ```

mod access;
mod cluster;
mod copies;
mod directory;
mod error;
mod graph;
mod journal;
mod kinds;
mod pausing;
mod preflight;
mod removal;
mod report;
mod run;
mod transfer;
mod work;

pub use crate::error::Error;
pub use crate::report::{Entry, Report};
pub use crate::run::{from_directory, preview, roll_back, to_cluster, to_directory};
pub use crate::work::{Options, Say};
