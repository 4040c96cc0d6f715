//! Pod ranges of a Node, and fields of a Node that are set once (`ValidateNode`, `ValidateNodeUpdate`).

use apimachinery::schema::FieldError;
use serde_json::Value;

/// Checks that several ranges are one for each family of addresses.
pub(super) fn ranges(node: &Value) -> Option<FieldError> {
    let listed = &node["spec"]["podCIDRs"];
    let ranges = listed.as_array()?;
    let of_v6 = |range: &&Value| range.as_str().is_some_and(|range| range.contains(':'));
    let dual = ranges.len() == 2 && ranges.iter().filter(of_v6).count() == 1;
    let why = "may specify no more than one CIDR for each IP family";
    (ranges.len() > 1 && !dual).then(|| FieldError::invalid("spec.podCIDRs", listed, why))
}

/// Changes of immutable fields: the ranges for pods, and the identity of the machine.
pub(super) fn unchangeable(new: &Value, live: &Value) -> Vec<FieldError> {
    let (before, after) = (&live["spec"], &new["spec"]);
    let given = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let (old, ranges) = (given(&before["podCIDRs"]), given(&after["podCIDRs"]));
    let mut errors = Vec::new();
    if !old.is_empty() {
        let changed = match old.len() == ranges.len() {
            true => old
                .iter()
                .zip(&ranges)
                .filter(|(old, new)| old != new)
                .count(),
            false => 1,
        };
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.extend((0..changed).map(|_| FieldError::forbidden("spec.podCIDRs", why)));
    }
    let machine = before["providerID"].as_str().unwrap_or_default();
    if !machine.is_empty() && after["providerID"] != before["providerID"] {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.providerID", why));
    }
    errors
}
