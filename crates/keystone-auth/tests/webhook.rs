//! The webhook as a whole, on a Keystone that each test has.
//!
//! ```text
//!   holes    known holes of the Go webhook
//!   outages  a Keystone that does everything wrong
//!   crowd    a thousand users at once
//!   secrets  no token is in a log, an answer or a metric
//!   log      a log that is kept
//! ```

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "webhook/crowd.rs"]
mod crowd;
#[path = "webhook/holes.rs"]
mod holes;
#[path = "webhook/log.rs"]
mod log;
#[path = "webhook/outages.rs"]
mod outages;
#[path = "webhook/secrets.rs"]
mod secrets;
