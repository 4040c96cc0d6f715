//! For tests alone: a model of Octavia, changed by the [`Step`]s of a plan. Panics where Octavia would reject a step.
//!
//! A change of a load balancer is pending until [`Octavia::pass`].
//!
//! [`Step`]: load_balancing::Step

#![allow(clippy::panic, clippy::unwrap_used)]

mod octavia;

pub use octavia::Octavia;
