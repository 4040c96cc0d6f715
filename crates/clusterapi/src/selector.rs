//! Label selectors of MachineSets and MachineDeployments.

use std::collections::BTreeMap;

use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use api::selector::{is_empty, selects};

/// Whether machines (or sets) with these labels belong to whoever has `selector`. An empty selector matches nothing
/// here, as with upstream: a set of machines that forgot its selector must not take over a namespace.
pub(crate) fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    !is_empty(selector) && selects(selector, labels)
}

#[cfg(test)]
mod tests;
