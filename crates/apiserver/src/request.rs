//! The parts of a request: its path, its query, the form of the answer, and its body.

pub(crate) mod accept;
pub(crate) mod decode;
pub(crate) mod go_json;
pub(crate) mod path;
pub(crate) mod query;

use std::sync::Arc;

/// The version that `/version` answers on one connection, if it is not the one of [`Options`](crate::Options).
#[derive(Clone, Debug)]
pub(crate) struct ServedVersion(pub(crate) Arc<str>);
