//! Moves between two embedded API servers, each with all controllers, on one simulated cloud with guests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "mover/world.rs"]
mod world;

#[path = "mover/faults.rs"]
mod faults;
#[path = "mover/files.rs"]
mod files;
#[path = "mover/pivot.rs"]
mod pivot;
#[path = "mover/pools.rs"]
mod pools;

#[path = "mover/refused.rs"]
mod refused;
