//! Operations on values by their [`Type`]: validation, field sets, merging, comparing and removing
//! (`structured-merge-diff/v6/typed`).
//!
//! Recursion everywhere is bounded by the depth of the values, which callers check against
//! [`crate::schema::MAX_DEPTH`].

mod compare;
mod merge;
mod reconcile;
mod remove;

use std::collections::BTreeSet;

use serde_json::Value;

pub(crate) use compare::{Comparison, compare};
pub(crate) use merge::merge;
pub(crate) use reconcile::{reconcile, with_named_fields};
pub(crate) use remove::remove;

use crate::schema::{go_plain, go_syntax};

use super::{
    atom::{Form, List, Scalar, Type},
    fields::{Element, Item, Set},
};

/// Type error with the path: `.spec.foo: field not declared in schema`.
pub(crate) type Misfit = String;

/// Validates a value against its [`Type`]. `duplicates` allows duplicate items in lists that are sets or maps.
pub(crate) fn validate(value: &Value, of: Type<'_>, duplicates: bool) -> Result<(), Misfit> {
    let mut errors = Vec::new();
    check(value, of, duplicates, "", &mut errors);
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(format!("errors:\n  {}", errors.join("\n  "))),
    }
}

/// Returns the [`Set`] of all leaves and of all items of associative lists.
pub(crate) fn field_set(value: &Value, of: Type<'_>) -> Set {
    let mut set = Set::default();
    collect(value, of, &mut set);
    set
}

/// Returns the path [`Element`] of a list item.
pub(crate) fn element_of(item: &Value, list: &List<'_>) -> Result<Element, String> {
    let Some(keys) = list.keys else {
        return Err("invalid indexing of non-associative list".to_owned());
    };
    if keys.is_empty() {
        return match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            Value::Null => Err(
                "associative list without keys has an element that's an explicit null".to_owned(),
            ),
            scalar => Ok(Element::Value(Item(scalar.clone()))),
        };
    }
    let Value::Object(fields) = item else {
        let what = if item.is_null() {
            "a null element"
        } else {
            "non-map elements"
        };
        return Err(format!("associative list with keys may not have {what}"));
    };
    let map = list.item.resolve().map;
    let mut found: Vec<(String, Item)> = Vec::with_capacity(keys.len());
    for key in keys {
        let default = || map.as_ref().and_then(|map| map.default_of(key));
        if let Some(value) = fields.get(key).or_else(default) {
            found.push((key.clone(), Item(value.clone())));
        }
    }
    if found.is_empty() {
        let quoted: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't \
             have default values for any key fields)",
            quoted.join(" ")
        ));
    }
    found.sort();
    Ok(Element::Key(found))
}

fn check(value: &Value, of: Type<'_>, duplicates: bool, path: &str, errors: &mut Vec<Misfit>) {
    let mut fail = |message: String| {
        errors.push(if path.is_empty() {
            message
        } else {
            format!("{path}: {message}")
        });
    };
    match of.resolve().deduce(Some(value)).form() {
        Form::Scalar(scalar) => {
            if let Some(message) = scalar_misfit(value, scalar) {
                fail(message);
            }
        }
        Form::List(list) => match value {
            Value::Null => {}
            Value::Array(items) => {
                let mut seen = BTreeSet::new();
                for (i, item) in items.iter().enumerate() {
                    let element = match list.keys {
                        None => Element::Index(i as i64),
                        Some(_) => match element_of(item, &list) {
                            Ok(element) => element,
                            Err(why) => {
                                let message = format!("element {i}: {why}");
                                errors.push(if path.is_empty() {
                                    message
                                } else {
                                    format!("{path}: {message}")
                                });
                                return;
                            }
                        },
                    };
                    let step = super::fields::path_text(std::slice::from_ref(&element));
                    if !seen.insert(element) && !duplicates {
                        errors.push(format!("{path}: duplicate entries for key {step}"));
                    }
                    check(
                        item,
                        list.item,
                        duplicates,
                        &format!("{path}{step}"),
                        errors,
                    );
                }
            }
            _ => fail(format!("expected list, got {}", printed(value))),
        },
        Form::Map(map) => match value {
            Value::Null => {}
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = format!("{path}.{name}");
                    match map.member(name) {
                        Some(of) => check(value, of, duplicates, &path, errors),
                        None => errors.push(format!("{path}: field not declared in schema")),
                    }
                }
            }
            _ => fail(format!("expected map, got {}", printed(value))),
        },
    }
}

fn scalar_misfit(value: &Value, scalar: Scalar) -> Option<String> {
    let fits = match value {
        Value::Null => true,
        Value::Number(_) => matches!(scalar, Scalar::Number | Scalar::Any),
        Value::String(_) => matches!(scalar, Scalar::Text | Scalar::Any),
        Value::Bool(_) => matches!(scalar, Scalar::Boolean | Scalar::Any),
        Value::Array(_) | Value::Object(_) => false,
    };
    if fits {
        return None;
    }
    let kind = match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        _ => "map[string]interface {}",
    };
    Some(match scalar {
        Scalar::Number => format!("expected numeric (int or float), got {kind}"),
        Scalar::Text => format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_syntax(value)
        ),
        Scalar::Boolean => format!("expected boolean, got {}", printed(value)),
        Scalar::Any => format!("expected any scalar, got {}", printed(value)),
    })
}

fn printed(value: &Value) -> String {
    format!("&{{{}}}", go_plain(value))
}

fn collect(value: &Value, of: Type<'_>, set: &mut Set) {
    match of.resolve().deduce(Some(value)).form() {
        // Scalars and atomic values are inserted by the caller.
        Form::Scalar(_) => {}
        Form::List(list) => {
            if list.keys.is_none() {
                return;
            }
            let Value::Array(items) = value else { return };
            let elements: Vec<Option<Element>> = items
                .iter()
                .map(|item| element_of(item, &list).ok())
                .collect();
            for (element, item) in elements.iter().zip(items) {
                let Some(element) = element else { continue };
                let times = elements
                    .iter()
                    .filter(|other| other.as_ref() == Some(element))
                    .count();
                // Fields of duplicate items have no manager.
                if times == 1 {
                    let mut children = Set::default();
                    collect(item, list.item, &mut children);
                    set.insert_children(element.clone(), children);
                }
                set.insert_member(element.clone());
            }
        }
        Form::Map(map) => {
            if map.atomic {
                return;
            }
            let Value::Object(fields) = value else { return };
            for (name, value) in fields {
                let (Some(of), declared) = (map.member(name), map.field(name).is_some()) else {
                    continue;
                };
                let element = Element::Field(name.clone());
                let mut children = Set::default();
                collect(value, of, &mut children);
                set.insert_children(element.clone(), children);
                let empty = value.is_null() || value.as_object().is_some_and(|map| map.is_empty());
                if is_whole(value, of) || empty || !declared {
                    set.insert_member(element);
                }
            }
        }
    }
}

/// True for a value with a single owner: a scalar, or an atomic list or map.
fn is_whole(value: &Value, of: Type<'_>) -> bool {
    match of.resolve().deduce(Some(value)).form() {
        Form::Scalar(_) => true,
        Form::List(list) => list.keys.is_none(),
        Form::Map(map) => map.atomic,
    }
}

#[cfg(test)]
mod tests;
