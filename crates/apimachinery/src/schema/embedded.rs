//! Embedded objects, `x-kubernetes-embedded-resource`
//! (`apiextensions-apiserver/pkg/apiserver/schema/objectmeta`).

use serde_json::{Map, Value};

use super::{FieldError, node::Node, path::Path};
use crate::names::subdomain_problems;

/// Appends the violations of the type and metadata of every embedded object.
pub(super) fn validate(value: &Value, node: &Node, path: Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if node.embedded {
                validate_object(fields, path, errors);
            }
            for (name, value) in fields {
                match node.child(name) {
                    Some((child, true)) => validate(value, child, path.field(name), errors),
                    Some((child, false)) => validate(value, child, path.key(name), errors),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &node.items {
                for (i, item) in items.iter().enumerate() {
                    validate(item, schema, path.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn validate_object(object: &Map<String, Value>, path: Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let path = path.field(name).bracketed();
        match object.get(name) {
            None => errors.push(FieldError::required(path, "")),
            Some(value @ Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(path, value, "must not be empty"));
            }
            Some(value @ Value::String(text)) => {
                if let Some(problem) = type_problem(name, text) {
                    errors.push(FieldError::invalid(path, value, problem));
                }
            }
            Some(value) => errors.push(FieldError::invalid(path, value, "must be a string")),
        }
    }
    match object.get("metadata") {
        None => {}
        Some(Value::Object(metadata)) => validate_metadata(metadata, path, errors),
        Some(value) => {
            let path = path.field("metadata").bracketed();
            errors.push(FieldError::invalid(path, value, "must be an object"));
        }
    }
}

fn type_problem(name: &str, text: &str) -> Option<String> {
    if name == "apiVersion" {
        let slashes = text.matches('/').count();
        return (slashes > 1).then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let lower = text.to_lowercase();
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let label = lower.len() <= 63
        && lower.starts_with(|c: char| c.is_ascii_lowercase())
        && lower.chars().all(inner)
        && !lower.ends_with('-');
    (!label).then(|| {
        "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower \
         case alphanumeric characters or '-', start with an alphabetic character, and end with an \
         alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
         '[a-z]([-a-z0-9]*[a-z0-9])?')"
            .to_owned()
    })
}

fn validate_metadata(metadata: &Map<String, Value>, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("metadata");
    for name in ["name", "generateName", "namespace"] {
        let Some(value) = metadata.get(name) else {
            continue;
        };
        let path = path.field(name).bracketed();
        let Value::String(text) = value else {
            errors.push(FieldError::invalid(path, value, "must be a string"));
            continue;
        };
        let problems = match name {
            _ if text.is_empty() => Vec::new(),
            "namespace" => subdomain_problems(text),
            _ => path_segment_problems(text),
        };
        for problem in problems {
            errors.push(FieldError::invalid(path.as_str(), value, problem));
        }
    }
}

fn path_segment_problems(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    let found = ["/", "%"]
        .into_iter()
        .filter(|illegal| name.contains(illegal));
    found
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}
