//! Defaulting and the removal of nulls (`apiextensions-apiserver/pkg/apiserver/schema/defaulting`).

use serde_json::Value;

use super::node::{Additional, Node};

/// Removes nulls of fields that are neither nullable nor have a default.
pub(super) fn prune_nulls(value: &mut Value, node: Option<&Node>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let schema = node
                .and_then(|node| node.child(name))
                .map(|(schema, _)| schema);
            if value.is_null() && schema.is_some_and(|s| !s.nullable && s.default.is_none()) {
                return false;
            }
            prune_nulls(value, schema);
            true
        }),
        Value::Array(items) => {
            let schema = node.and_then(|node| node.items.as_deref());
            for item in items {
                prune_nulls(item, schema);
            }
        }
        _ => {}
    }
}

/// Fills in defaults; a null of a field that is not nullable counts as absent.
pub(super) fn fill(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &node.properties {
                let Some(default) = &property.default else {
                    continue;
                };
                let absent = match fields.get(name) {
                    None => true,
                    Some(value) => value.is_null() && !property.nullable,
                };
                if absent {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(property) = node.properties.get(name) {
                    fill(value, property);
                } else if let Some(Additional::Schema(schema)) = &node.additional {
                    default_item(value, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &node.items {
                for item in items {
                    default_item(item, schema);
                }
            }
        }
        _ => {}
    }
}

fn default_item(item: &mut Value, schema: &Node) {
    if item.is_null() && !schema.nullable {
        *item = schema.default.clone().unwrap_or(Value::Null);
    }
    fill(item, schema);
}
