//! Cloud controller manager for OpenStack. A cluster can switch from the Go manager to this one, and back.
//!
//! ```text
//!   node         Nodes: initialised, refreshed, tainted and deleted depending on their servers
//!   service      Services of type LoadBalancer
//!   routes       routes to the pods of nodes on a router
//!   revision     changes at the revision of a read
//!   wake         changes in the cloud mapped to objects
//!   metrics      counts under the names of the Go manager
//!   run          starts the controllers
//! ```
//!
//! Every reconcile reads facts from the inventory of the cloud, plans (pure), applies the plan and writes status.
//! Workers do not wait for the cloud.

mod context;
mod metrics;
mod node;
mod options;
mod revision;
mod routes;
mod run;
mod service;
mod wake;

pub use options::{Controllers, Options, Routes, Settings};
pub use run::{Clouds, NAME, run, run_in};
pub use service::annotations::{ANNOTATIONS, Annotation};
