//! The controller of OpenStack objects: it does in a cluster what the crate `deployer` plans.
//!
//! ```text
//!   view       what is in the namespaces of clouds, from watches
//!   reconcile  fetch, plan (deployer: pure), apply, status
//!   apply      creates, changes and deletes objects; nothing that is not the cloud's
//!   remove     the end of a cloud, in the reverse order of its steps
//!   status     conditions and steps of an OpenStack object (pure)
//! ```
//!
//! It reads watches alone: at rest it sends no request. It makes passwords and keys once, in Secrets, and never prints
//! them.

mod apply;
mod problem;
mod reconcile;
mod remove;
mod run;
mod status;
mod view;

pub use self::run::{Options, run};
pub use self::status::{ACCOUNTS_WRITTEN, CONFIGURATION_VALID, PAUSED, READY, TASKS_SUCCEEDED};
