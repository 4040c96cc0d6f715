//! The Cinder CSI driver, and the Go one beside it, on equal simulated clouds.
//!
//! ```text
//!   side_by_side  one script played to both, and what differs
//!   script        the requests
//!   play          a group of requests on a cloud of its own
//!   ask           one request
//!   driver        a driver as a process, and its client
//!   world         a simulated cloud and its servers
//!   disks         what a hypervisor does
//!   storage_tests the storage tests of Kubernetes as a table
//!   alone         namespaces in which devices, mounts and addresses are this program's alone
//! ```

pub(crate) mod alone;
mod ask;
pub(crate) mod disks;
pub(crate) mod driver;
mod play;
mod script;
pub(crate) mod side_by_side;
pub(crate) mod storage_tests;
pub(crate) mod world;
