//! Cloud controller manager for OpenStack: a replacement for the Go one that a cluster can switch to and back.
//!
//! ```text
//!   cloud_conf   the configuration file
//!   node         Nodes: initialised, refreshed, tainted and deleted by what the cloud says of their servers
//!   service      Services of type LoadBalancer
//!   wake         from a change in the cloud to the objects concerned
//!   run          starting the controllers
//! ```
//!
//! Every reconcile fetches facts from the cloud's inventory, plans (pure), applies and writes status. Nothing waits for the
//! cloud in a worker.

pub mod cloud_conf;
mod context;
mod node;
mod options;
mod run;
mod service;
mod wake;

pub use options::{Controllers, Options, Settings};
pub use run::run;
pub use service::annotations::{ANNOTATIONS, Annotation};
