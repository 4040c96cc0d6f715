//! OpenStack on Kubernetes: the configuration of its services, from one file of parameters.
//!
//! Everything here is pure. [`Parameters`] is the file; a [`Release`] is data (option tables, versions); a service is a
//! function from both to a [`Config`], in which each option states where its value comes from. [`check`] holds the options
//! of the user against the release's table before anything is rendered.

mod check;
mod config;
mod options;
mod parameters;
mod release;
mod service;

pub use self::check::{Finding, Severity, check};
pub use self::config::{Config, Setting, Source, Value};
pub use self::options::{Found, Kind, OptionEntry, Table};
pub use self::parameters::{Parameters, ParametersError, ServiceParameters};
pub use self::release::Release;
pub use self::service::{Service, configure};
