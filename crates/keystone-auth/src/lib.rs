//! Keystone for Kubernetes: who a token is, and what its user may do.
//!
//! ```text
//!   policy     lists of permissions, compiled, and decisions by them
//!   subject    who asks for what
//!   document   JSON with the place of each value
//! ```

mod document;
pub mod policy;
pub mod subject;

pub use document::Place;
