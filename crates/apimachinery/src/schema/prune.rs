//! Pruning of unknown fields (`apiextensions-apiserver/pkg/apiserver/schema/pruning`).

use serde_json::Value;

use super::{
    MAX_REPORTED,
    node::{Additional, Node},
    path::Path,
};

const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes an object by its root [`Node`] and returns the sorted paths of the removed fields.
pub(super) fn prune(object: &mut Value, root: &Node) -> Vec<String> {
    let mut unknown = Vec::new();
    walk(object, Some(root), true, Path::Root, &mut unknown);
    unknown.sort();
    unknown
}

/// Prunes a value that is not the root of an object.
pub(super) fn prune_value(value: &mut Value, node: &Node) {
    walk(value, Some(node), false, Path::Root, &mut Vec::new());
}

/// Records a removed field up to [`MAX_REPORTED`]: each path may be as long as the object.
fn record(unknown: &mut Vec<String>, path: Path<'_>) {
    if unknown.len() < MAX_REPORTED {
        unknown.push(path.dotted());
    }
}

/// Walks an object. `node` is `None` below `additionalProperties: true`, where objects keep no fields.
fn walk(
    value: &mut Value,
    node: Option<&Node>,
    root: bool,
    path: Path<'_>,
    unknown: &mut Vec<String>,
) {
    if let Some(node) = node.filter(|node| node.preserve) {
        return keep(value, node, root, path, unknown);
    }
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let Some(node) = node else {
                record(unknown, path.field(name));
                return false;
            };
            if (root || node.embedded) && META.contains(&name.as_str()) {
                if !root {
                    without_nulls(name, value);
                }
                return true;
            }
            let path_of_child = path.field(name);
            match (node.properties.get(name), &node.additional) {
                (Some(property), _) => walk(value, Some(property), false, path_of_child, unknown),
                (None, Some(Additional::Schema(schema))) => {
                    walk(value, Some(schema), false, path_of_child, unknown);
                }
                (None, Some(Additional::Any(_))) => {
                    walk(value, None, false, path_of_child, unknown)
                }
                (None, None) => {
                    record(unknown, path_of_child);
                    return false;
                }
            }
            true
        }),
        Value::Array(items) => {
            let schema = node.and_then(|node| node.items.as_deref());
            for (i, item) in items.iter_mut().enumerate() {
                walk(item, schema, false, path.index(i), unknown);
            }
        }
        _ => {}
    }
}

/// Below `x-kubernetes-preserve-unknown-fields`, only declared fields are pruned.
fn keep(value: &mut Value, node: &Node, root: bool, path: Path<'_>, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if (root || node.embedded) && META.contains(&name.as_str()) {
                    if !root {
                        without_nulls(name, value);
                    }
                    continue;
                }
                let path = path.field(name);
                match (node.properties.get(name), &node.additional) {
                    (Some(property), _) => walk(value, Some(property), false, path, unknown),
                    (None, Some(Additional::Schema(schema))) => {
                        walk(value, Some(schema), false, path, unknown);
                    }
                    (None, Some(Additional::Any(_))) => walk(value, None, false, path, unknown),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                if let Some(schema) = &node.items {
                    keep(item, schema, false, path.index(i), unknown);
                }
            }
        }
        _ => {}
    }
}

/// Removes the nulls of the metadata of an embedded object, which kube-apiserver decodes as `ObjectMeta`.
fn without_nulls(name: &str, value: &mut Value) {
    if name == "metadata"
        && let Value::Object(fields) = value
    {
        fields.retain(|_, value| !value.is_null());
    }
}
