//! Functions of a Kubernetes API server over its objects, without I/O and without a clock.
//!
//! ```text
//!   openapi       crd      table       documents; definitions become kinds; rows of `kubectl get`
//!      │           └──┬──────┘
//!      │            kinds              built-in kinds, and kinds of definitions
//!      └────┬─────────┤
//!         patch       │                the four kinds of patch, and the managers of fields
//!           └────┬────┘
//!             schema     selector      pruning, defaults, validation; label and field selectors
//!                └────┬─────┘
//!                  names, time, value
//! ```
//!
//! Modules: [`openapi`], [`crd`], [`table`](mod@table), [`kinds`], [`patch`], [`schema`], [`selector`], [`names`],
//! [`time`], [`value`].

pub mod crd;
pub mod kinds;
pub mod names;
pub mod openapi;
pub mod patch;
pub mod schema;
pub mod selector;
pub mod table;
mod table_path;
pub mod time;
pub mod value;
