//! Uniqueness in lists that are sets or maps (`apiextensions-apiserver/pkg/apiserver/schema/listtype`).

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::{
    FieldError,
    node::{ListType, Node},
    path::Path,
    validate::MOST,
};

/// Appends a [`FieldError`] for every duplicate item in the object.
pub(super) fn validate(value: &Value, node: &Node, path: Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        _ if errors.len() >= MOST => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                match node.child(name) {
                    Some((child, true)) => validate(value, child, path.field(name), errors),
                    Some((child, false)) => validate(value, child, path.key(name), errors),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            match &node.list {
                Some(ListType::Set) => {
                    for i in repeated(items.iter().map(Value::to_string)) {
                        let path = path.index(i).bracketed();
                        errors.push(FieldError::duplicate(path, &items[i]));
                    }
                }
                Some(ListType::Map(keys)) => validate_map(items, keys, path, errors),
                _ => {}
            }
            if let Some(schema) = &node.items {
                for (i, item) in items.iter().enumerate() {
                    validate(item, schema, path.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn validate_map(items: &[Value], keys: &[String], path: Path<'_>, errors: &mut Vec<FieldError>) {
    let wrong = items
        .iter()
        .position(|item| !item.is_object() && !item.is_null());
    if let Some(i) = wrong {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(
            path.index(i).bracketed(),
            &items[i],
            detail,
        ));
        return;
    }
    let key = |item: &Value| {
        let fields: Map<String, Value> = keys
            .iter()
            .filter_map(|key| item.get(key).map(|value| (key.clone(), value.clone())))
            .collect();
        Value::Object(fields)
    };
    let all: Vec<Value> = items.iter().map(key).collect();
    for i in repeated(all.iter().map(Value::to_string)) {
        errors.push(FieldError::duplicate(path.index(i).bracketed(), &all[i]));
    }
}

/// True if an item is in the list a second time; 1 and 1.0 differ, as in Go.
pub(super) fn has_duplicates(items: &[Value]) -> bool {
    let mut seen = HashSet::new();
    !items.iter().all(|item| seen.insert(item.to_string()))
}

/// Returns the index of the second item of each group of equal items.
fn repeated(items: impl Iterator<Item = String>) -> Vec<usize> {
    let mut times = BTreeMap::new();
    let mut second = Vec::new();
    for (i, item) in items.enumerate() {
        let seen = times.entry(item).or_insert(0_u32);
        *seen += 1;
        if *seen == 2 && second.len() < MOST {
            second.push(i);
        }
    }
    second
}
