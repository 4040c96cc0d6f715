//! The driver against the simulated cloud, in process and on paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alpha;
mod attachments;
mod capacity;
mod doubles;
mod faults;
mod groups;
mod hints;
mod lists;
mod model;
mod modify;
mod owner;
mod page;
mod requests;
mod routes;
mod snapshots;
mod volumes;
mod world;
