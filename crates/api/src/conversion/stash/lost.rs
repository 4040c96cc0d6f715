//! Warnings about fields without a place in the stored version.

use serde_json::Value;

use super::ANNOTATION;

/// Hub version: fields beyond older versions have an effect.
const HUB: &str = "v1beta2";
/// Fields without a counterpart of the same meaning in the other version. Includes the name of an image beside its id,
/// and name servers without a subnet.
const WITHOUT_EFFECT: &[&str] = &[
    "floatingIP",
    "subnet",
    "tenantId",
    "projectId",
    "profile",
    "image",
    "dnsNameservers",
    "allowAllInClusterTraffic",
    "cloudName",
    "identityRef",
    "deviceType",
    "sourceType",
];
/// Maximum number of fields in a warning.
const NAMED: usize = 10;

/// Warnings for the author of `object`; none if `old`, the stored object, has the same stash.
pub(crate) fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let text = |object: &'_ Value| {
        let text = object
            .get("metadata")?
            .get("annotations")?
            .get(ANNOTATION)?;
        text.as_str().map(str::to_owned)
    };
    let Some(written) = text(object).filter(|it| old.and_then(text).as_ref() != Some(it)) else {
        return Vec::new();
    };
    let Ok(stash) = serde_json::from_str::<Value>(&written) else {
        return Vec::new();
    };
    let version = stash["version"].as_str().unwrap_or_default();
    let (Some(entries), false) = (stash["lost"].as_object(), version == HUB) else {
        return Vec::new();
    };
    let name = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let whole = match name("/metadata/namespace") {
        Some(space) => format!("{space}/{}", name("/metadata/name").unwrap_or_default()),
        None => name("/metadata/name").unwrap_or_default().to_owned(),
    };
    let label = format!("{} {whole}", name("/kind").unwrap_or_default());
    let mut found = Vec::new();
    for (path, entry) in entries {
        let Some(value) = entry.get("d").filter(|value| !is_empty(value)) else {
            continue;
        };
        let field = readable(path);
        if field.rsplit('.').next() == Some("networks") {
            found.extend(ambiguous(&label, &field, value));
        } else if has_no_effect(path, entry) {
            found.push(format!(
                "{label}: {field} of {version} has no effect: {HUB} has no field for it. It is kept for those who read {version}"
            ));
        }
    }
    if found.len() > NAMED {
        let more = found.len() - NAMED;
        found.truncate(NAMED);
        found.push(format!(
            "{label}: {more} more fields of {version} are like these"
        ));
    }
    found
}

fn has_no_effect(path: &str, entry: &Value) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    // A field restored with a change has a hash, except a name beside an id.
    let is_beside = matches!(name, "image" | "dnsNameservers");
    WITHOUT_EFFECT.contains(&name) && (is_beside || entry.get("h").is_none())
}

/// Warning about network filters turned into port filters: a port is in only one network.
fn ambiguous(label: &str, field: &str, networks: &Value) -> Vec<String> {
    let networks = networks.as_array().into_iter().flatten().enumerate();
    let by_filter = networks.filter(|(_, network)| {
        let uuid = network.get("uuid").is_none_or(is_empty);
        uuid && network
            .get("filter")
            .is_some_and(|filter| !is_empty(filter))
    });
    let warning = |(index, _)| {
        format!(
            "{label}: {field}[{index}].filter is that of a port now, which is in one network: if the filter matches several, no server is created"
        )
    };
    by_filter.map(warning).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Readable path: `/spec/ports/#3f9a51c0d2e4 0 1/trunk` as `spec.ports[].trunk`.
fn readable(path: &str) -> String {
    let mut text = String::new();
    for part in path.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.starts_with(['#', '[']) {
            text.push_str("[]");
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(&part);
        }
    }
    text
}
