//! The node service on real disks: loop devices, in a mount namespace of each test.

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "loop/machine.rs"]
mod machine;

#[path = "loop/growth.rs"]
mod growth;
#[path = "loop/life.rs"]
mod life;
#[path = "loop/model.rs"]
mod model;
#[path = "loop/safety.rs"]
mod safety;
#[path = "loop/states.rs"]
mod states;
