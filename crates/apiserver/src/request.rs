//! Parts of a request: path, query, form of the answer, and body.

pub(crate) mod accept;
pub(crate) mod decode;
pub(crate) mod go_json;
pub(crate) mod path;
pub(crate) mod query;

use std::sync::Arc;

/// Version in `/version` on one connection, if different from [`Options`](crate::Options).
#[derive(Clone, Debug)]
pub(crate) struct ServedVersion(pub(crate) Arc<str>);
