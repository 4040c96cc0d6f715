//! OpenStack on Kubernetes: objects of a cloud, and the plan to deploy them, from one file of parameters.
//!
//! All functions are pure. [`Parameters`] is the file; a [`Release`] is data (option tables, versions, images); a
//! service is a function from both to its configuration, with the origin of the value of each option, and to a
//! definition: databases, accounts, catalogue, tasks, workloads. [`check()`] checks the options of the user by the
//! release's table before anything is rendered.
//!
//! ```text
//!   Parameters ─► Cloud ┐
//!                  Held ┴► desired ─► Graph of steps with objects ┐
//!                             objects of the namespace (observed) ┴► plan ─► Plan ─► progress: actions to do now
//! ```
//!
//! Accounts in other programs are planned apart, from the responses of these programs: [`Broker`] and [`BrokerSeen`],
//! [`Identity`] and [`IdentitySeen`] give an [`AccountPlan`].
//!
//! [`Credentials`] has the values that are made once and kept: the uid of the cloud, passwords, keys.

mod accounts;
mod certificate;
mod check;
mod cloud;
mod config;
mod desired;
pub mod drain;
mod finding;
mod given;
mod held;
mod image;
mod object;
pub mod operation;
mod options;
mod parameters;
mod plan;
mod project;
mod release;
mod service;
pub mod upgrade;

pub use self::accounts::broker::{Broker, BrokerSeen};
pub use self::accounts::identity::{Identity, IdentitySeen};
pub use self::accounts::{AccountPlan, AccountWrite, Accounts, Written};
pub use self::check::{check, checked};
pub use self::cloud::Cloud;
pub use self::config::{Config, Setting, Source, Value};
pub use self::desired::{CONFIGURES, Graph, STEP, Step, desired, ended, fall_back};
pub use self::finding::{Finding, Severity};
pub use self::held::halves::{Swap, Swaps};
pub use self::held::{Credentials, PART_OF, UID};
pub use self::object::{Object, ObjectKind, Password, Reference};
pub use self::options::{Found, Kind, OptionEntry, Table};
pub use self::parameters::{
    Api, Backups, Compute, DashboardParameters, Driver, Exposure, Fake, Hypervisors, Mode, Nodes,
    Octavia, Parameters, ParametersError, Resources, Rotation, Schedule, ServiceParameters,
    Storage, Tls,
};
pub use self::plan::{
    Action, Cause, Change, FIELD_MANAGER, Plan, PlannedStep, Progress, Reason, Reported, Restart,
    Situation, State, Verb, Why, digest, plan, progress, removal, why,
};
pub use self::project::Service;
pub use self::release::Release;
pub use self::service::configure;
pub use self::service::edge::ports as edge_ports;
