//! ClusterClasses: the crate that evaluates variables and patches, [`topology`], also validates them.

use serde_json::Value;

/// True if the object is a ClusterClass.
pub(crate) fn is_ours(object: &Value) -> bool {
    object["apiVersion"] == api::core::v1beta2::API_VERSION && object["kind"] == "ClusterClass"
}
