//! All four controllers (core, bootstrap, control plane, infrastructure) in one process, on a simulated cloud whose servers
//! boot as simulated Kubernetes nodes: the life of a cluster, and what must hold all the time.
//!
//! ```text
//!   world    management cluster, cloud and guests, and the controllers, which can be killed at each n-th write
//!   watcher  what must hold at every moment: etcd's quorum and members, the number of machines
//!   steps    the life of a cluster, step by step
//!   whole    the life without and with kills
//!   pairs    machines that fail in pairs, and are replaced
//! ```
//!
//! `FERROSTACK_LIFE_KILLS` is a list of other kills than those of CI, such as `api:1,api:7,cloud:1`: the controllers are
//! killed after every 1st and every 7th write to an API server, and after every write to OpenStack, each in a life of
//! its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

#[path = "life/pairs.rs"]
mod pairs;
#[path = "life/steps.rs"]
mod steps;
#[path = "life/watcher.rs"]
mod watcher;
#[path = "life/whole.rs"]
mod whole;
#[path = "life/world.rs"]
mod world;
