//! `metadata`: what clients may set, what the server sets, and which names are allowed.

use jiff::Timestamp;
use rand::Rng as _;
use serde_json::{Map, Value, json};

use crate::crd::seconds;
use crate::kinds::Resource;
use crate::schema::FieldError;

/// The fields of `ObjectMeta`.
const FIELDS: &[&str] = &[
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Drops what `ObjectMeta` does not have, and returns the paths of it.
pub(crate) fn prune(object: &mut Value) -> Vec<String> {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    let unknown: Vec<String> = metadata
        .keys()
        .filter(|key| !FIELDS.contains(&key.as_str()))
        .cloned()
        .collect();
    for field in &unknown {
        metadata.remove(field);
    }
    // Absent and null or empty are the same to Go's omitempty.
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
    unknown
        .into_iter()
        .map(|field| format!("metadata.{field}"))
        .collect()
}

/// `metadata` as a map; made when it is missing.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match &mut object["metadata"] {
        Value::Object(metadata) => metadata,
        // Just made an object; a match has to say something.
        _ => unreachable!("metadata is an object"),
    }
}

/// Sets what the server sets on a new object.
pub(crate) fn created(object: &mut Value, namespace: &str, generation: bool, now: Timestamp) {
    let metadata = of(object);
    for field in [
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "generation",
    ] {
        metadata.remove(field);
    }
    if namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".to_owned(), Value::from(namespace));
    }
    metadata.insert(
        "uid".to_owned(),
        Value::from(uuid::Uuid::new_v4().to_string()),
    );
    metadata.insert("creationTimestamp".to_owned(), Value::from(seconds(now)));
    if generation {
        metadata.insert("generation".to_owned(), Value::from(1));
    }
}

/// Takes over from the stored object what no update may change.
pub(crate) fn carried(object: &mut Value, old: &Value) {
    let metadata = of(object);
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "namespace",
        "name",
        "generateName",
        "selfLink",
        "resourceVersion",
    ] {
        match old["metadata"].get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
}

/// A name from `generateName`, as kube-apiserver makes it.
pub(crate) fn generated(base: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    const MAX_BASE: usize = 58;
    let mut name: String = base.chars().take(MAX_BASE).collect();
    let mut random = rand::rng();
    name.extend((0..5).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])));
    name
}

/// What is wrong with the metadata of an object about to be stored.
pub(crate) fn validate(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let metadata = &object["metadata"];
    let mut errors = Vec::new();
    if old.is_none() {
        validate_name(resource, metadata, &mut errors);
    }
    for field in ["labels", "annotations"] {
        validate_map(field, &metadata[field], &mut errors);
    }
    validate_finalizers(metadata, old, &mut errors);
    validate_owners(&metadata["ownerReferences"], &mut errors);
    errors
}

fn validate_name(resource: &Resource, metadata: &Value, errors: &mut Vec<FieldError>) {
    let name = metadata["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
        return;
    }
    let rbac = resource.group == "rbac.authorization.k8s.io";
    let problem = if rbac {
        path_segment(name)
    } else if matches!(
        (resource.group.as_str(), resource.plural.as_str()),
        ("", "namespaces" | "services")
    ) {
        label(name)
    } else {
        subdomain(name)
    };
    if let Some(problem) = problem {
        errors.push(FieldError::invalid(
            "metadata.name",
            &metadata["name"],
            problem,
        ));
    }
}

fn path_segment(name: &str) -> Option<&'static str> {
    if matches!(name, "." | "..") {
        return Some("may not be '.' or '..'");
    }
    name.contains(['/', '%'])
        .then_some("may not contain '/' or '%'")
}

/// RFC 1123 subdomain.
pub(crate) fn subdomain(name: &str) -> Option<&'static str> {
    if name.len() > 253 {
        return Some("must be no more than 253 characters");
    }
    let fits = name.split('.').all(is_label);
    (!fits).then_some("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")
}

/// RFC 1123 label.
fn label(name: &str) -> Option<&'static str> {
    if name.len() > 63 {
        return Some("must be no more than 63 characters");
    }
    (!is_label(name)).then_some("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")
}

fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let edge = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let bytes = text.as_bytes();
    bytes.iter().all(|&c| inner(c)) && edge(bytes.first()) && edge(bytes.last())
}

fn validate_map(field: &str, map: &Value, errors: &mut Vec<FieldError>) {
    let path = format!("metadata.{field}");
    match map {
        Value::Null => {}
        Value::Object(map) => {
            for (key, value) in map {
                if !is_qualified(key) {
                    let detail = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
                    errors.push(FieldError::invalid(
                        &*path,
                        &Value::from(key.as_str()),
                        detail,
                    ));
                }
                match value {
                    Value::String(text) if field == "labels" && !is_label_value(text) => {
                        let detail = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
                        errors.push(FieldError::invalid(&*path, value, detail));
                    }
                    Value::String(_) => {}
                    other => errors.push(FieldError::type_invalid(
                        format!("{path}.{key}"),
                        other,
                        "must be a string",
                    )),
                }
            }
        }
        other => errors.push(FieldError::type_invalid(
            &*path,
            other,
            "must be a map of strings",
        )),
    }
}

fn is_qualified(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    prefix.is_none_or(|prefix| subdomain(&prefix.to_lowercase()).is_none())
        && !name.is_empty()
        && is_label_value(name)
}

fn is_label_value(text: &str) -> bool {
    let edge = |c: Option<&u8>| c.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let inner = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    bytes.len() <= 63 && bytes.iter().all(inner) && edge(bytes.first()) && edge(bytes.last())
}

fn validate_finalizers(metadata: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let list = |metadata: &Value| -> Vec<String> {
        let all = metadata["finalizers"].as_array().into_iter().flatten();
        all.filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let now = list(metadata);
    for finalizer in &now {
        if !is_qualified(finalizer) {
            let detail = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
            errors.push(FieldError::invalid(
                "metadata.finalizers",
                &Value::from(finalizer.as_str()),
                detail,
            ));
        }
    }
    let Some(old) = old.filter(|old| !old["metadata"]["deletionTimestamp"].is_null()) else {
        return;
    };
    let before = list(&old["metadata"]);
    let added: Vec<String> = now
        .into_iter()
        .filter(|name| !before.contains(name))
        .collect();
    if !added.is_empty() {
        let names = added
            .iter()
            .map(|name| format!("{name:?}"))
            .collect::<Vec<_>>()
            .join(", ");
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{names}}}"
        );
        errors.push(FieldError::forbidden("metadata.finalizers", detail));
    }
}

fn validate_owners(owners: &Value, errors: &mut Vec<FieldError>) {
    let mut controllers = 0;
    let path = "metadata.ownerReferences";
    for owner in owners.as_array().into_iter().flatten() {
        for (field, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                let empty = Value::from("");
                errors.push(FieldError::invalid(
                    format!("{path}.{field}"),
                    &empty,
                    detail,
                ));
            }
        }
        controllers += usize::from(owner["controller"] == true);
    }
    if controllers > 1 {
        let detail = "Only one reference can have Controller set to true";
        errors.push(FieldError::invalid(
            "metadata.ownerReferences",
            owners,
            detail,
        ));
    }
}
