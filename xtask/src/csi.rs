//! Comparison of the Cinder CSI driver with the Go one, on equal simulated clouds.
//!
//! - [`side_by_side`]: one script played to both, and the differences
//! - [`script`]: the requests
//! - [`play`]: a group of requests on a new cloud
//! - [`ask`]: one request
//! - [`driver`]: driver as a process, and its client
//! - [`world`]: simulated cloud and its servers
//! - [`disks`]: role of a hypervisor
//! - [`storage_tests`]: storage tests of Kubernetes as a table
//! - [`alone`]: private namespaces for devices, mounts and addresses

pub(crate) mod alone;
mod ask;
pub(crate) mod disks;
pub(crate) mod driver;
mod play;
mod script;
pub(crate) mod side_by_side;
pub(crate) mod storage_tests;
pub(crate) mod world;
