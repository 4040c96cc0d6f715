//! Acknowledged writes survive, whatever happens to the process, the disk or the file.
//!
//! ```text
//!   kills     kill -9 at random moments under load, 200 times, over TLS
//!   disk      no room, no right to write
//!   damage    wrong bytes, cut files, older and newer formats
//!   backups   made while the server runs, and not
//!   ways_in   objects that are hard to read back, by every way in
//!   deletions nothing is added to containers being deleted
//!   history   concurrent clients against a sequential model
//!   many      the memory of servers in memory
//! ```

// Clippy takes only functions marked as tests for tests; all of this file's modules are.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout
)]

mod backups;
mod damage;
mod deletions;
mod disk;
mod history;
mod kills;
mod local;
mod many;
mod opened;
mod site;
mod ways_in;
