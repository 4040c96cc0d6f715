//! Changes of an image: a JSON patch of the properties (`application/openstack-images-v2.1-json-patch`).

use serde_json::Value;

use super::{find_writable, view};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::zulu;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;

const KINDS: [&str; 2] = [
    "application/openstack-images-v2.1-json-patch",
    "application/openstack-images-v2.0-json-patch",
];
const READ_ONLY: [&str; 13] = [
    "id",
    "status",
    "created_at",
    "updated_at",
    "checksum",
    "size",
    "virtual_size",
    "schema",
    "self",
    "file",
    "os_hash_algo",
    "os_hash_value",
    "direct_url",
];
/// Properties of every image: can be changed, but not removed.
const BASE: [&str; 10] = [
    "name",
    "visibility",
    "disk_format",
    "container_format",
    "min_disk",
    "min_ram",
    "protected",
    "os_hidden",
    "tags",
    "owner",
];

/// PATCH /v2/images/{id}
pub(super) fn apply(call: &mut Call<'_>) -> Answer {
    let kind = call.headers.get("content-type");
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !KINDS.contains(&kind.split(';').next().unwrap_or_default().trim()) {
        return Err(Fault::new(
            415,
            "UnsupportedMediaType",
            format!("Unsupported Media Type: use one of {}", KINDS.join(", ")),
        ));
    }
    let image = find_writable(call)?;
    let operations: Value = serde_json::from_slice(&call.raw_body)
        .map_err(|_| Fault::bad("Malformed JSON in request body."))?;
    let Value::Array(operations) = operations else {
        return Err(Fault::bad(
            "Request body must be a JSON array of operation objects.",
        ));
    };
    let mut doc = (*image).clone();
    for operation in &operations {
        let Value::Object(operation) = operation else {
            return Err(Fault::bad("Operations must be JSON objects."));
        };
        one(&mut doc, operation)?;
    }
    let visibility = doc.text("visibility");
    if !matches!(visibility, "public" | "private" | "shared" | "community") {
        return Err(Fault::bad(format!(
            "Invalid image: '{visibility}' is not one of ['community', 'public', 'private', 'shared']"
        )));
    }
    if visibility == "public" && image.text("visibility") != "public" && !call.who.admin() {
        return Err(Fault::forbidden(
            "You are not authorized to complete publicize_image action.",
        ));
    }
    doc.set("updated_at", zulu(call.now()));
    call.state.put(Kind::Image, doc.clone());
    Ok(Reply::ok(Value::Object(view(&doc))))
}

fn one(doc: &mut Doc, operation: &Doc) -> Result<(), Fault> {
    let path = operation.text("path");
    let Some(name) = path.strip_prefix('/').filter(|name| !name.is_empty()) else {
        return Err(Fault::bad(format!(
            "Pointer `{path}` does not start with \"/\"."
        )));
    };
    // RFC 6901: ~1 is a slash, ~0 a tilde.
    let (name, nested) = (
        name.replace("~1", "/").replace("~0", "~"),
        name.contains('/'),
    );
    if READ_ONLY.contains(&name.as_str()) {
        return Err(Fault::forbidden(format!(
            "Attribute '{name}' is read-only."
        )));
    }
    if name.starts_with('_') || nested {
        return Err(Fault::forbidden(format!("Attribute '{name}' is reserved.")));
    }
    let value = || {
        let value = operation.get("value").cloned();
        value.ok_or_else(|| Fault::bad("Operation \"add\" requires a member named \"value\"."))
    };
    match operation.text("op") {
        "add" => typed(doc, &name, value()?),
        "replace" if doc.contains_key(&name) => typed(doc, &name, value()?),
        "remove" if BASE.contains(&name.as_str()) => Err(Fault::forbidden(format!(
            "Property {name} may not be removed."
        ))),
        "remove" if doc.remove(&name).is_some() => Ok(()),
        "replace" | "remove" => Err(Fault::conflict(format!("Property {name} does not exist."))),
        other => Err(Fault::bad(format!(
            "Operations must be one of \"add\", \"replace\", \"remove\", not \"{other}\"."
        ))),
    }
}

/// Checks the types of the image schema: custom properties are strings.
fn typed(doc: &mut Doc, name: &str, value: Value) -> Result<(), Fault> {
    let fits = match name {
        "tags" => value
            .as_array()
            .is_some_and(|tags| tags.iter().all(Value::is_string)),
        "min_disk" | "min_ram" => value.as_i64().is_some_and(|number| number >= 0),
        "protected" | "os_hidden" => value.is_boolean(),
        "name" | "disk_format" | "container_format" => value.is_string() || value.is_null(),
        _ => value.is_string(),
    };
    if !fits {
        return Err(Fault::bad(format!(
            "Invalid image: {value} is not of the type of '{name}'"
        )));
    }
    doc.set(name, value);
    Ok(())
}
