//! The webhook and the exec plugin of Keystone, and the Go ones beside them, on one simulated cloud.
//!
//! ```text
//!   side_by_side  one script played to both, and what differs
//!   script        the requests
//!   play          a group of requests
//!   cluster       what is written to a cluster
//!   generated     policies and requests without end
//!   plugin        what the exec plugins print
//!   webhook       a webhook as a process, and its client
//!   world         the simulated cloud
//! ```

mod cluster;
mod generated;
mod play;
mod plugin;
mod script;
pub(crate) mod side_by_side;
pub(crate) mod webhook;
pub(crate) mod world;
