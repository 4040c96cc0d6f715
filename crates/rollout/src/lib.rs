//! The controller of OpenStack objects: it does in a cluster what the crate `deployer` plans.
//!
//! ```text
//!   view       what is in the namespaces of clouds, from watches
//!   reconcile  fetch, plan (deployer: pure), apply, status
//!   described  parameters of an object, or the reasons for their rejection (pure)
//!   rendered   what is desired, until it changes
//!   releases   work on a cloud within its release, or in the phases of an upgrade
//!   record     the release and these phases in the status (pure)
//!   apply      creates, changes and deletes objects; nothing that is not the cloud's
//!   accounts   what services have in RabbitMQ and Keystone, by their APIs
//!   reach      HTTP to a Pod, by a port that the API server forwards
//!   remove     the end of a cloud: first the steps that no other needs
//!   status     conditions and steps of an OpenStack object (pure)
//! ```
//!
//! It reads watches alone: at rest it sends no request but those of the look at accounts every five minutes. It makes passwords and keys once, in Secrets, and never prints
//! them.

mod accounts;
mod apply;
mod described;
mod problem;
mod reach;
mod reconcile;
mod record;
mod releases;
mod remove;
mod rendered;
mod run;
mod status;
mod view;

pub use self::accounts::compared;
pub use self::run::{Options, run};
pub use self::status::{
    ACCOUNTS_WRITTEN, CERTIFICATE_UNUSABLE, CONFIGURATION_VALID, PAUSED, READY, TASKS_SUCCEEDED,
};
