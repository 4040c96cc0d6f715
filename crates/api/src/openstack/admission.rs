//! Validation of OpenStack objects beyond schemas. Options of services are validated by the crate `deployer` with the
//! tables of the releases.

use serde_json::Value;

use super::GROUP;
use crate::change::{Change, FieldError};
use crate::core::admission::kind_within;

/// Maximum length of a cloud's name, a part of names of Pods and labels.
const LONGEST: usize = 40;

/// Errors of an object of this group.
pub(crate) fn validate(change: Change<'_>) -> Vec<FieldError> {
    if kind_within(GROUP, change.object) != Some("OpenStack") {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let name = change.object.pointer("/metadata/name");
    if change.old.is_none() && !name.and_then(Value::as_str).is_some_and(label) {
        let message =
            "has to be at most 40 lower case letters, digits and `-`, and to begin with a letter";
        errors.push(FieldError::new("metadata.name", message));
    }
    let networks = change.object.pointer("/spec/network/physical");
    let networks = networks.and_then(Value::as_array).into_iter().flatten();
    for (index, network) in networks.enumerate() {
        if network["vlans"].as_str().is_some_and(|it| !vlans(it)) {
            let path = format!("spec.network.physical[{index}].vlans");
            let message = "has to be two numbers from 1 to 4094, such as 100:199";
            errors.push(FieldError::new(path, message));
        }
    }
    let fake = &change.object["spec"]["compute"]["fake"];
    let zones = fake["zones"].as_array().map_or(0, Vec::len) as u64;
    if let Some(hypervisors) = fake["hypervisors"].as_u64().filter(|it| *it < zones) {
        let path = format!("spec.compute.fake.zones[{hypervisors}]");
        errors.push(FieldError::new(
            path,
            "there is no hypervisor for this zone",
        ));
    }
    for (index, zone) in fake["zones"].as_array().into_iter().flatten().enumerate() {
        if matches!(zone.as_str(), Some("nova" | "internal")) {
            let path = format!("spec.compute.fake.zones[{index}]");
            let message =
                "Nova has this zone itself, for hosts without one and for its own programs";
            errors.push(FieldError::new(path, message));
        }
    }
    errors
}

fn label(text: &str) -> bool {
    text.len() <= LONGEST
        && text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && !text.ends_with('-')
        && text
            .chars()
            .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-')
}

fn vlans(text: &str) -> bool {
    let id = |text: &str| text.parse().ok().filter(|id| (1..=4094_u16).contains(id));
    let range = text.split_once(':');
    range.is_some_and(
        |(first, last)| matches!((id(first), id(last)), (Some(first), Some(last)) if first <= last),
    )
}
