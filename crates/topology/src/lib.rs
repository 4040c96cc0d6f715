//! ClusterClass as functions.
//!
//! Nothing here reads or writes an API server: admission ([`class`], [`cluster`]) and the controller in `clusterapi` use
//! the same functions, so that what is accepted is what is done.
//!
//! ```text
//!   template    Go templates
//!   variables   definitions, defaults and validation of values, and values by path
//!   builtin     the variables that every class has
//!   patches     changes of templates by JSON patches
//!   class       validation of a ClusterClass beyond its schema
//!   cluster     defaults and validation of the topology of a Cluster against its class
//!   upgrade     the order of an upgrade
//!   desired     the objects of a Cluster that has a topology
//!   names       their names, and the labels and annotations of topologies
//! ```

pub mod builtin;
pub mod class;
pub mod cluster;
pub mod desired;
pub mod names;
pub mod patches;
pub mod template;
pub mod upgrade;
pub mod variables;
