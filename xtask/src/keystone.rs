//! Comparison of the Keystone webhook and the exec plugin with the Go ones, on one simulated cloud.
//!
//! - [`side_by_side`]: one script played to both, and the differences
//! - [`script`]: the requests
//! - [`play`]: a group of requests
//! - [`cluster`]: writes to a cluster
//! - [`generated`]: any number of policies and requests
//! - [`plugin`]: output of the exec plugins
//! - [`webhook`]: webhook as a process, and its client
//! - [`world`]: simulated cloud

mod cluster;
mod generated;
mod play;
mod plugin;
mod script;
pub(crate) mod side_by_side;
pub(crate) mod webhook;
pub(crate) mod world;
