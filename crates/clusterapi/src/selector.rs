//! Label selectors of MachineSets and MachineDeployments.

use std::collections::BTreeMap;

use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use api::selector::{is_empty, selects};

/// True if `selector` matches the labels. An empty selector matches nothing, as upstream: a MachineSet without a
/// selector must not adopt all machines of a namespace.
pub(crate) fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    !is_empty(selector) && selects(selector, labels)
}

#[cfg(test)]
mod tests;
