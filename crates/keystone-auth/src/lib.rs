//! Keystone for Kubernetes: who a token is, and what its user may do.
//!
//! ```text
//!   webhook    reviews in, answers out
//!     review     TokenReview and SubjectAccessReview
//!     tokens     the identities of tokens, kept for a while
//!       keystone   what Keystone says of a token
//!     user       from an identity to a user of Kubernetes
//!     policy     lists of permissions, compiled, and decisions by them
//!       document   JSON with the place of each value
//!   sync       the configuration of what follows a login
//!   reload     files that are read again
//!   subject    who asks for what
//!   exec_info  what kubectl says to an exec plugin
//! ```

mod document;
pub mod exec_info;
pub mod keystone;
mod metrics;
pub mod policy;
pub mod reload;
pub mod review;
pub mod subject;
pub mod sync;
pub mod tokens;
pub mod user;
pub mod webhook;

pub use document::Place;
pub use metrics::Metrics;
