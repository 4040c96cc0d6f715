//! What is asked by creating an object that is never stored: reviews, tokens, evictions.

use serde_json::Value;

use crate::error::ApiError;
use crate::rest::{Answer, Call};

/// The answer to the create of a kind that is not stored; none for a kind that is.
pub(crate) async fn virtual_create(call: &Call, object: &Value) -> Result<Option<Answer>, ApiError> {
    let _ = (call, object);
    Ok(None)
}

/// The answer to a POST to a subresource.
pub(crate) async fn subresource(call: &Call, subresource: &str) -> Result<Answer, ApiError> {
    let _ = (call, subresource);
    Err(ApiError::unknown_resource())
}

/// A free address of the service network, 10.96.0.0/12.
pub(crate) fn service_address(call: &Call) -> String {
    let state = call.core.store.read();
    let taken: std::collections::HashSet<String> = state
        .range("/services", "", None)
        .filter_map(|object| object.value()["spec"]["clusterIP"].as_str().map(str::to_owned))
        .collect();
    let first = if call.namespace == "default" && taken.is_empty() { 1 } else { 10 };
    let address = |n: u32| std::net::Ipv4Addr::from(0x0a60_0000 + n).to_string();
    (first..0x000f_ffff).map(address).find(|address| !taken.contains(address)).unwrap_or_default()
}
