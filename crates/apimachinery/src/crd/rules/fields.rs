//! Subresources, printer columns and selectable fields of a definition.

use serde_json::{Value, json};

use super::super::{items, text};
use crate::schema::FieldError;

pub(super) fn subresources(given: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let scale = &given["scale"];
    if !scale.is_object() {
        return;
    }
    for (field, prefixes, place, required) in [
        ("specReplicasPath", &[".spec."][..], ".spec", true),
        ("statusReplicasPath", &[".status."][..], ".status", true),
        (
            "labelSelectorPath",
            &[".spec.", ".status."][..],
            "either .spec or .status",
            false,
        ),
    ] {
        let path = format!("{path}.scale.{field}");
        let value = text(scale, field).unwrap_or_default();
        if value.is_empty() {
            if required {
                errors.push(FieldError::required(path, ""));
            }
        } else if !value.starts_with('.') {
            errors.push(not_simple(path, value));
        } else if !prefixes.iter().any(|prefix| value.starts_with(prefix)) {
            let detail = format!("should be a json path under {place}");
            errors.push(FieldError::invalid(path, &json!(value), detail));
        }
    }
}

pub(super) fn columns(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 9] = [
        "binary",
        "byte",
        "date",
        "date-time",
        "double",
        "float",
        "int32",
        "int64",
        "password",
    ];
    for (index, column) in items(&version["additionalPrinterColumns"])
        .iter()
        .enumerate()
    {
        let at = |field: &str| format!("{path}[{index}].{field}");
        let given = |field: &str| text(column, field).unwrap_or_default();
        if given("name").is_empty() {
            errors.push(FieldError::required(at("name"), ""));
        }
        let one_of = format!("must be one of {}", TYPES.join(","));
        if given("type").is_empty() {
            errors.push(FieldError::required(at("type"), one_of));
        } else if !TYPES.contains(&given("type")) {
            errors.push(FieldError::invalid(at("type"), &column["type"], one_of));
        }
        let format = given("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(at("format"), &column["format"], detail));
        }
        let json_path = given("jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(at("JSONPath"), ""));
        } else if !json_path.starts_with('.') {
            errors.push(not_simple(at("JSONPath"), json_path));
        }
    }
}

pub(super) fn selectable(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const MOST: usize = 8;
    let mut seen: Vec<&str> = Vec::new();
    for (index, field) in items(&version["selectableFields"]).iter().enumerate() {
        let at = format!("{path}[{index}].jsonPath");
        let given = text(field, "jsonPath").unwrap_or_default();
        if given.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let rejected = |detail: &str| FieldError::invalid(at.as_str(), &json!(given), detail);
        let Some(found) = property(&version["schema"]["openAPIV3Schema"], given) else {
            errors.push(rejected(
                "is an invalid path: does not refer to a valid field",
            ));
            continue;
        };
        if given.starts_with(".metadata") {
            errors.push(rejected("must not point to fields in metadata"));
        }
        if !matches!(
            found["type"].as_str(),
            Some("string" | "boolean" | "integer")
        ) {
            errors.push(rejected(
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
            ));
        }
        if seen.contains(&given) {
            errors.push(FieldError::duplicate(at, &json!(given)));
        } else {
            seen.push(given);
        }
    }
    if seen.len() > MOST {
        let (found, most) = (i64::try_from(seen.len()).unwrap_or(i64::MAX), 8);
        errors.push(FieldError::too_many(path, found, most));
    }
}

/// Returns the schema of a field such as `.spec.size`. Metadata needs no declaration.
fn property<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    const NAMED: &[&str] = &["name", "namespace", "generateName"];
    if let Some(name) = path.strip_prefix(".metadata.")
        && NAMED.contains(&name)
    {
        static TEXT: std::sync::LazyLock<Value> =
            std::sync::LazyLock::new(|| json!({"type": "string"}));
        return Some(&TEXT);
    }
    let rest = path.strip_prefix('.')?;
    rest.split('.')
        .try_fold(schema, |schema, name| schema["properties"].get(name))
}

fn not_simple(path: String, given: &str) -> FieldError {
    FieldError::invalid(
        path,
        &json!(given),
        "must be a simple json path starting with .",
    )
}
