//! The server as clients see it, in process and over TLS.

// Clippy takes only functions marked as tests for tests; all of this file's modules are.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used
)]

mod bad_input;
mod client;
mod collection;
mod crds;
mod durable;
mod guarded;
mod hooks;
mod kept;
mod kinds;
mod model;
mod network;
mod objects;
#[path = "../durability/opened.rs"]
mod opened;
mod past;
mod pods;
mod pods_dialled;
mod pods_evicted;
mod pods_forwarded;
mod pods_not_run;
mod support;
mod tables;
mod watches;
mod webhooks;
