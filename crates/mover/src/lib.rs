//! Moves clusters, with all of their objects, from one management cluster to another, or to files and back.
//!
//! A move is a transaction with a record, the [`journal`], in the source:
//!
//! ```text
//!   moving       the source is paused, and copies are created in the target, paused and marked as copies
//!   committed    the target has everything: the source's objects are deleted, then the target's are resumed
//!   rolling back the copies are deleted, then the source's objects are resumed
//! ```
//!
//! Each step can be repeated, so that a move that was killed at any request goes on where it was.
//!
//! ```text
//!   kinds      kinds of objects, and the version in which they are copied (pure)
//!   graph      which objects move, which stay, and in which order (pure)
//!   preflight  what stands in the way (pure)
//!   copies     an object as it is created in the target (pure)
//!   access     requests, repeated after transient errors
//!   journal    the record of the move
//!   pausing    pausing of the source, and the confirmation of its controllers
//!   transfer   copies in the target
//!   removal    deletion without finalizers, so that nothing in the cloud is deleted
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
