//! Keystone for Kubernetes: authentication of tokens, and authorization of their users.
//!
//! ```text
//!   webhook    reviews in, answers out
//!     review     TokenReview and SubjectAccessReview
//!     tokens     the identities of tokens, cached for a while
//!       keystone   Keystone's verdict on a token
//!     user       from an identity to a user of Kubernetes
//!     policy     lists of permissions, compiled, and decisions by them
//!       document   JSON with the place of each value
//!   sync       the configuration of the steps after a login
//!   reload     files that are read again
//!   subject    users and their requests
//!   exec_info  information from kubectl for an exec plugin
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

pub use document::Location;
pub use metrics::Metrics;
