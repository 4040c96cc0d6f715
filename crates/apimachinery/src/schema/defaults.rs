//! Defaulting and the removal of nulls (`apiextensions-apiserver/pkg/apiserver/schema/defaulting`).

use serde_json::Value;

use super::budget::{Budget, weight};
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

/// Fills in defaults until the [`Budget`] is spent; a null of a field that is not nullable counts as absent.
pub(super) fn fill(value: &mut Value, node: &Node, budget: &mut Budget) {
    match value {
        _ if budget.is_spent() => {}
        Value::Object(fields) => {
            // Only properties with a default: a schema may have more properties than an object has objects.
            for name in &node.defaulted {
                let Some((property, default)) = node
                    .properties
                    .get(name)
                    .and_then(|property| Some((property, property.default.as_ref()?)))
                else {
                    continue;
                };
                let absent = match fields.get(name) {
                    None => true,
                    Some(value) => value.is_null() && !property.nullable,
                };
                if absent {
                    if !budget.take(weight(name, default)) {
                        return;
                    }
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(property) = node.properties.get(name) {
                    fill(value, property, budget);
                } else if let Some(Additional::Schema(schema)) = &node.additional {
                    default_item(value, schema, budget);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &node.items {
                for item in items {
                    default_item(item, schema, budget);
                }
            }
        }
        _ => {}
    }
}

fn default_item(item: &mut Value, schema: &Node, budget: &mut Budget) {
    if item.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
        && budget.take(weight("", default))
    {
        *item = default.clone();
    }
    fill(item, schema, budget);
}
