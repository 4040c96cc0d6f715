//! Node half of the Cinder CSI driver, without access to the cloud. Facts about the cloud come with the call, from the
//! metadata of the server, and from the disks of the machine.
//!
//! - [`node`]: calls of the CSI node service: parsed, locked, done
//! - [`registration`]: registration with the kubelet
//! - [`context`]: keys shared with the controller
//! - [`device`]: disk of a volume, by its serial
//! - [`probe`]: content of a disk
//! - [`format`](mod@format): decision to format (pure)
//! - [`filesystem`]: mkfs, check, growth, usage
//! - [`mount`]: state of a mount point, and the steps to the wanted state
//! - [`mountinfo`]: mounts of this process
//! - [`program`]: programs with a time limit
//! - [`metadata`]: id and zone of this server
//! - [`limits`]: number of volumes for this server (pure)

pub mod context;
pub mod device;
pub mod filesystem;
pub mod format;
pub mod limits;
pub mod metadata;
pub mod mount;
pub mod mountinfo;
pub mod node;
pub mod probe;
pub mod program;
pub mod registration;
