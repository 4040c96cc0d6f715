//! ClusterClasses: their variables and patches are judged by the crate that evaluates them.

use serde_json::Value;

/// True if the object is a ClusterClass.
pub(crate) fn is_ours(object: &Value) -> bool {
    object["apiVersion"] == api::core::v1beta2::API_VERSION && object["kind"] == "ClusterClass"
}
