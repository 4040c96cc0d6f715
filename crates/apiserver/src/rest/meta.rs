//! Metadata of objects: fields set by clients, fields set by the server, and validation.

use apimachinery::kinds::{Resource, shape};
use apimachinery::names::{is_label_value, label, subdomain, unqualified};
use apimachinery::schema::{FieldError, go_json, go_quote};
use apimachinery::time::seconds;
use jiff::Timestamp;
use rand::Rng as _;
use serde_json::{Map, Value, json};

/// Fields of `ObjectMeta`.
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

/// Checks that the metadata of a custom object can be decoded into `ObjectMeta`. The error has the words of Go's
/// decoder.
pub(crate) fn readable(object: &Value) -> Result<(), String> {
    let (Some(metadata), Some(shape)) = (object.get("metadata"), shape::metadata()) else {
        return Ok(());
    };
    shape.read(&mut metadata.clone()).map(drop)
}

/// Removes fields unknown to `ObjectMeta` and returns their paths.
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
    // Go decodes the null of a key as the empty string.
    for field in ["annotations", "labels"] {
        let texts = metadata.get_mut(field).and_then(Value::as_object_mut);
        for text in texts.into_iter().flat_map(Map::values_mut) {
            if text.is_null() {
                *text = Value::from("");
            }
        }
    }
    // Null and empty values are omitted by Go's `omitempty`.
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

/// `metadata` as a map, created if missing.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match &mut object["metadata"] {
        Value::Object(metadata) => metadata,
        _ => unreachable!("metadata is an object"),
    }
}

/// Sets the server's fields of a new object.
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

/// Restores immutable fields from the stored object.
pub(crate) fn carry_over(object: &mut Value, old: &Value) {
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

/// Number of random letters at the end of a generated name.
const SUFFIX: usize = 5;

/// Generates a name from `generateName`, as kube-apiserver does.
pub(crate) fn generated(base: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    const MAX_BASE: usize = 58;
    let mut name: String = base.chars().take(MAX_BASE).collect();
    let mut random = rand::rng();
    name.extend((0..SUFFIX).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])));
    name
}

/// True if the name of an object was generated from `generateName`.
pub(crate) fn is_generated(object: &Value) -> bool {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (base, name) = (text("generateName"), text("name"));
    !base.is_empty() && name.len() == base.len() + SUFFIX && name.starts_with(base)
}

/// Validates the metadata of an object before it is stored.
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
    validate_finalizers(resource.is_custom(), metadata, old, &mut errors);
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
        // kube-apiserver names the dots if they are the only violation.
        if name.contains('.') && subdomain(name).is_none() {
            Some("must not contain dots")
        } else {
            label(name)
        }
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

fn validate_map(field: &str, map: &Value, errors: &mut Vec<FieldError>) {
    let path = format!("metadata.{field}");
    match map {
        Value::Null => {}
        Value::Object(map) => {
            for (key, value) in map {
                for problem in unqualified(key) {
                    let key = Value::from(key.as_str());
                    errors.push(FieldError::invalid(&*path, &key, problem));
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

/// Warning for each new finalizer of a custom object that is not qualified with a domain and a path
/// (`apiextensions-apiserver/pkg/registry/customresource/validator.go`).
pub(crate) fn plain_finalizers(new: &Value, live: Option<&Value>) -> Vec<String> {
    let names = |object: &Value| -> std::collections::BTreeSet<String> {
        let all = object["metadata"]["finalizers"].as_array();
        let all = all.into_iter().flatten().filter_map(Value::as_str);
        all.map(str::to_owned).collect()
    };
    let old = live.map(names).unwrap_or_default();
    let mut warnings = Vec::new();
    for name in names(new).difference(&old) {
        let standard = ["orphan", "foregroundDeletion", "kubernetes"].contains(&name.as_str());
        if name.contains('/') || standard {
            continue;
        }
        let path = if name.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        let quoted = go_quote(name);
        warnings.push(format!(
            "metadata.finalizers: {quoted}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts \
             with other finalizer writers"
        ));
    }
    warnings
}

fn validate_finalizers(
    custom: bool,
    metadata: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    let list = |metadata: &Value| -> Vec<String> {
        let all = metadata["finalizers"].as_array().into_iter().flatten();
        all.filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let now = list(metadata);
    for (index, finalizer) in now.iter().enumerate() {
        let value = Value::from(finalizer.as_str());
        for problem in unqualified(finalizer) {
            errors.push(FieldError::invalid("metadata.finalizers", &value, problem));
        }
        let standard = ["foregroundDeletion", "orphan", "kubernetes"];
        if !custom && !finalizer.contains('/') && !standard.contains(&finalizer.as_str()) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            let path = format!("metadata.finalizers[{index}]");
            errors.push(FieldError::invalid(path, &value, detail));
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
        // kube-apiserver reports the error twice, from the validation of metadata and of the kind.
        let error = FieldError::forbidden("metadata.finalizers", detail);
        errors.extend([error.clone(), error]);
    }
}

fn validate_owners(owners: &Value, errors: &mut Vec<FieldError>) {
    let mut controllers = Vec::new();
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
        if owner["controller"] == true {
            controllers.push(owner);
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let named = |owner: &Value| {
            let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
            format!("{}/{}", text("kind"), text("name"))
        };
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            named(first),
            named(second)
        );
        let printed = format!("{}: {detail}", owners_as_printed(owners));
        errors.push(FieldError::invalid_unprinted(path, printed));
    }
}

/// Owner references with fields in the order of the Go type, for messages.
fn owners_as_printed(owners: &Value) -> String {
    let fields = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let owner = |owner: &Value| {
        let given = fields
            .iter()
            .filter_map(|field| Some((field, owner.get(field)?)));
        let given = given.map(|(field, value)| format!("\"{field}\":{}", go_json(value)));
        format!("{{{}}}", given.collect::<Vec<_>>().join(","))
    };
    let owners = owners.as_array().into_iter().flatten().map(owner);
    format!("[{}]", owners.collect::<Vec<_>>().join(","))
}
