//! The node half of the Cinder CSI driver. It knows no cloud: what it needs of one comes with the call, from the
//! metadata of its server, and from the disks of the machine.
//!
//! ```text
//!   node          the calls: parsed, locked, done
//!   registration  the kubelet learns of the driver
//!   context       what controller and node agree on
//!
//!   device        the disk of a volume, by its serial
//!   probe         what a disk contains
//!   format        whether it is formatted (pure)
//!   filesystem    made, checked, grown, measured
//!   mount         what is mounted at a path, what is done about it
//!   mountinfo     what is mounted
//!   program       programs, with a time limit
//!   metadata      which server this is, and in which zone
//!   limits        how many volumes it takes (pure)
//! ```

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
