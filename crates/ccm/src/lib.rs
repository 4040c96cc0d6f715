//! Cloud controller manager for OpenStack.
//!
//! ```text
//!   cloud_conf   the configuration file
//! ```

pub mod cloud_conf;
