//! State of the clusters of a management API: objects, readiness, and causes. Read-only.
//!
//! ```text
//!   snapshot    objects of clusters at a point in time, of any provider, found by references
//!   observer    watches, as a sequence of snapshots
//!   readiness   unready objects, with the cause in a line
//!   tree        the objects of a cluster as a tree
//!   clusters    the clusters of namespaces, as a table
//!   why         the chain from an object to the root cause, with the next step
//!   sentence    a cause in one sentence
//!   asked       an object in the words of a user
//! ```
//!
//! [`snapshot`], [`clusters`] and [`observer`] read an API server; all else are functions of a [`Snapshot`].
//!
//! [`Snapshot`]: snapshot::Snapshot

pub mod asked;
pub mod clusters;
pub mod observer;
pub mod readiness;
pub mod sentence;
pub mod snapshot;
pub mod tree;
pub mod why;
