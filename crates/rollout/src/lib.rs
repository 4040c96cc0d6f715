//! Controller of OpenStack objects: executes in a cluster the plans of the crate `deployer`.
//!
//! ```text
//!   view       objects in the namespaces of clouds, from watches
//!   reconcile  fetch, plan (deployer: pure), apply, status
//!   rendered   desired objects, kept until their inputs change
//!   releases   work on a cloud within its release, or in the phases of an upgrade
//!   record     the release and the phases in the status (pure)
//!   operations  backups, restores and rotations: which one is next, and its status
//!   schedules  operations that are made at times of the day
//!   apply      creates, changes and deletes objects; nothing that is not the cloud's
//!   accounts   what services have in RabbitMQ and Keystone, by their APIs
//!   drain      servers of compute nodes that are cordoned or gone, by the APIs of Nova and Neutron
//!   reach      HTTP to a Pod, by a port that the API server forwards
//!   remove     the end of a cloud: first the steps that no other needs
//!   status     conditions and steps of an OpenStack object (pure)
//! ```
//!
//! The controller reads from watches alone: at rest, the look at accounts every five minutes sends the only requests.
//! Passwords and keys are generated once, stored in Secrets, and never printed.

mod accounts;
mod apply;
mod described;
mod drain;
mod operations;
mod problem;
mod reach;
mod reconcile;
mod record;
mod releases;
mod remove;
mod rendered;
mod run;
mod schedules;
mod status;
mod view;

pub use self::accounts::compared;
pub use self::rendered::Rendered;
pub use self::run::{Options, run};
pub use self::schedules::Clock;
