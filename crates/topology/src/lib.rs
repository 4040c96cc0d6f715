//! ClusterClass as functions.
//!
//! Nothing here reads or writes an API server. Admission ([`class`], [`cluster`]) and the controller in `clusterapi`
//! use the same functions, so a topology that admission accepts is also reconciled.
//!
//! - [`template`]: Go templates
//! - [`variables`]: definitions, defaults and validation of values, and values by path
//! - [`builtin`]: the variables of every class
//! - [`patches`]: changes of templates by JSON patches
//! - [`class`]: validation of a ClusterClass beyond the schema
//! - [`cluster`]: defaults and validation of the topology of a Cluster against its class
//! - [`upgrade`]: the order of an upgrade
//! - [`desired`]: the objects of a Cluster with a topology
//! - [`names`]: names of the objects, and the labels and annotations of topologies
//!
//! ```
//! use serde_json::json;
//! use topology::template::{Template, Value};
//!
//! let template = Template::parse("{{ .cluster.name | upper }}-{{ .random }}")?;
//! let data = Value::from(&json!({"cluster": {"name": "demo"}, "random": "x1"}));
//! assert_eq!(template.render(&data)?, "DEMO-x1");
//! # Ok::<(), topology::template::TemplateError>(())
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
