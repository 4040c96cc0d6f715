//! Validation of the group, with the rules of the upstream webhooks.

use std::net::IpAddr;

use serde_json::Value;

use super::GROUP;
use crate::change::{Change, FieldError};
use crate::core::admission::kind_within;

/// Errors of an object of this group.
pub(crate) fn validate(change: Change<'_>) -> Vec<FieldError> {
    match kind_within(GROUP, change.object) {
        Some("IPAddressClaim") => unchanged(change),
        Some("IPAddress") => {
            let mut errors = unchanged(change);
            errors.extend(address(change.object));
            errors
        }
        _ => Vec::new(),
    }
}

/// Rejects a changed claim: the provider of the pool acts only once.
fn unchanged(change: Change<'_>) -> Vec<FieldError> {
    let Some(old) = change.changed_from else {
        return Vec::new();
    };
    let changed = old["spec"] != change.object["spec"];
    let message = "cannot be changed: delete the object, and create another one";
    let error = changed.then(|| FieldError::new("spec", message));
    error.into_iter().collect()
}

fn address(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut parsed = |field: &str| -> Option<IpAddr> {
        let text = object["spec"].get(field)?.as_str()?;
        let found = text.parse().ok();
        if found.is_none() {
            let message = format!("{text} is not an address of IPv4 or IPv6");
            errors.push(FieldError::new(format!("spec.{field}"), message));
        }
        found
    };
    let (address, gateway) = (parsed("address"), parsed("gateway"));
    let Some(address) = address else {
        return errors;
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let prefix = object["spec"]["prefix"].as_i64().unwrap_or_default();
    if !(0..=most).contains(&prefix) {
        let message = format!("{prefix} is not from 0 to {most}, as {address} needs it");
        errors.push(FieldError::new("spec.prefix", message));
    }
    if let Some(gateway) = gateway.filter(|gateway| gateway.is_ipv4() != address.is_ipv4()) {
        let message = format!("{gateway} is not of the same family as {address}");
        errors.push(FieldError::new("spec.gateway", message));
    }
    errors
}

#[cfg(test)]
mod tests;
