//! Strategic merge patch, for built-in kinds (`apimachinery/pkg/util/strategicpatch`).
//!
//! Recursion is bounded by the depth of the patch, which is checked first.

mod order;

use serde_json::{Map, Value};

use super::PatchError;
use crate::{
    openapi::builtin::{self, Shape},
    schema::{MAX_DEPTH, go_plain, too_deep},
};
use order::{Keyed, arrange};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// See [the module](mod@super::strategic).
pub(super) fn strategic(
    doc: &Value,
    patch: &Value,
    gvk: (&str, &str, &str),
) -> Result<Value, PatchError> {
    if too_deep(doc) || too_deep(patch) {
        return Err(malformed(format!(
            "patches must not be nested deeper than {MAX_DEPTH}"
        )));
    }
    let (Value::Object(doc), Value::Object(patch)) = (doc, patch) else {
        return Err(malformed(
            "a strategic merge patch and its object must be objects",
        ));
    };
    let (group, version, kind) = gvk;
    let of = builtin::shape(&builtin::name(group, version, kind));
    Ok(Value::Object(merge_map(doc.clone(), patch.clone(), of)?))
}

type Fields = Map<String, Value>;
type Of = Option<&'static Shape>;

fn merge_map(mut original: Fields, mut patch: Fields, of: Of) -> Result<Fields, PatchError> {
    match patch
        .get(DIRECTIVE)
        .map(|directive| directive.as_str().unwrap_or_default())
    {
        None => {}
        Some("replace") => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some("delete") => return Ok(Fields::new()),
        Some(_) => return Err(unknown_directive(&patch)),
    }
    retain_keys(&mut original, &mut patch)?;
    let ordered: Vec<String> = patch
        .keys()
        .filter(|key| key.starts_with(SET_ORDER))
        .cloned()
        .collect();
    for key in ordered {
        let order = patch.remove(&key);
        merge_in_order(
            &mut original,
            &mut patch,
            &key[SET_ORDER.len()..],
            order,
            of,
        )?;
    }
    // Deletions from lists come last. In the reference, a map iteration makes their order random.
    let (deletions, fields): (Vec<_>, Vec<_>) = patch
        .into_iter()
        .partition(|(key, _)| key.starts_with(DELETE_FROM));
    for (key, value) in fields.into_iter().chain(deletions) {
        let (name, deletes) = match key.strip_prefix(DELETE_FROM) {
            Some(name) => (name.to_owned(), true),
            None => (key, false),
        };
        if value.is_null() {
            original.remove(&name);
            continue;
        }
        let same_kind = |old: &Value| std::mem::discriminant(old) == std::mem::discriminant(&value);
        let old = original.remove(&name);
        let Some(old) = old.as_ref().filter(|old| same_kind(old)).cloned() else {
            if deletes {
                original.extend(old.map(|old| (name, old)));
            } else if let Some(value) = without_directives(without_nulls(value)) {
                original.insert(name, value);
            }
            continue;
        };
        let field = Field::new(of, &name);
        let merged = match (old, value) {
            (Value::Object(old), Value::Object(new)) => {
                Some(Value::Object(merge_map(old, new, field.shape)?))
            }
            (Value::Array(old), Value::Array(new)) if field.merge || deletes => {
                Some(Value::Array(merge_list(old, new, &field, deletes)?))
            }
            (Value::Array(_), new) => Some(new),
            (_, new) => without_directives(new),
        };
        original.extend(merged.map(|merged| (name, merged)));
    }
    Ok(original)
}

/// Merge rules of a field.
struct Field {
    shape: Of,
    merge: bool,
    key: Option<&'static str>,
}

impl Field {
    fn new(object: Of, name: &str) -> Self {
        let unknown = Self {
            shape: None,
            merge: false,
            key: None,
        };
        let Some(Shape::Object(object)) = object.map(resolved) else {
            return unknown;
        };
        match object.fields.get(name) {
            Some(field) => Self {
                shape: Some(resolved(&field.shape)),
                merge: field.merge,
                key: field.merge_key.as_deref(),
            },
            None => Self {
                shape: object.values.as_ref().map(resolved),
                ..unknown
            },
        }
    }

    fn item(&self) -> Of {
        match self.shape {
            Some(Shape::List(list)) => Some(resolved(&list.items)),
            _ => None,
        }
    }
}

fn resolved(shape: &'static Shape) -> &'static Shape {
    match shape {
        Shape::Reference(name) => builtin::shape(name).unwrap_or(&Shape::Untyped),
        shape => shape,
    }
}

/// `$retainKeys`: removes all other fields of the object.
fn retain_keys(original: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let wrong = || malformed("invalid patch format of retainKeys");
    let Value::Array(keys) = keys else {
        return Err(wrong());
    };
    let kept = |name: &str| keys.iter().any(|key| key == name);
    let directive = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER);
    if patch
        .iter()
        .any(|(name, value)| !value.is_null() && !directive(name) && !kept(name))
    {
        return Err(wrong());
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// `$setElementOrder/<name>`: merges the list and sorts it in this order.
fn merge_in_order(
    original: &mut Fields,
    patch: &mut Fields,
    name: &str,
    order: Option<Value>,
    of: Of,
) -> Result<(), PatchError> {
    let list = |value: Option<Value>| match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(failed(format!(
            "expected a list, but received {}",
            go_plain(&other)
        ))),
    };
    let Some(order) = list(order)? else {
        return Ok(());
    };
    let (old, new) = (
        list(original.get(name).cloned())?,
        list(patch.remove(name))?,
    );
    let field = Field::new(of, name);
    let keyed = Keyed(field.key);
    if let Some(new) = &new {
        check_order(new, &order, &keyed)?;
    }
    let merged = match (old.clone(), new) {
        (None, None) => return Ok(()),
        (Some(old), None) => old,
        (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
        (Some(old), Some(new)) if field.merge => merge_list(old, new, &field, false)?,
        (Some(_), Some(new)) => new,
    };
    let sorted = arrange(merged, &order, old.as_deref().unwrap_or_default(), &keyed)?;
    original.insert(name.to_owned(), Value::Array(sorted));
    Ok(())
}

/// Checks that the items of a patch follow the order in the patch.
fn check_order(items: &[Value], order: &[Value], keyed: &Keyed) -> Result<(), PatchError> {
    if items.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter();
    for item in items.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        if !wanted.any(|wanted| keyed.equal(wanted, item)) {
            return Err(failed(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                go_plain(&Value::from(items.to_vec())),
                go_plain(&Value::from(order.to_vec()))
            )));
        }
    }
    Ok(())
}

fn merge_list(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    field: &Field,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    let Some(first) = original.first().or(patch.first()) else {
        return Ok(original);
    };
    let maps = first.is_object();
    if original
        .iter()
        .chain(&patch)
        .any(|item| item.is_object() != maps || item.is_array())
    {
        return Err(failed(
            "lists of lists and lists of mixed items cannot be merged".to_owned(),
        ));
    }
    let keyed = Keyed(field.key.filter(|_| maps));
    if !maps {
        if deletes {
            original.retain(|item| !patch.contains(item));
            return Ok(original);
        }
        let mut merged: Vec<Value> = Vec::with_capacity(original.len() + patch.len());
        for item in original.iter().chain(&patch) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return arrange(merged, &patch, &original, &keyed);
    }
    if field.key.is_none() {
        return Err(failed("cannot merge lists without merge key".to_owned()));
    }
    let mut rest = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        match item
            .get(DIRECTIVE)
            .map(|directive| directive.as_str().unwrap_or_default())
        {
            None => rest.push(item),
            Some("replace") => replace = true,
            Some("delete") => {
                keyed.check(&item)?;
                original.retain(|old| !keyed.equal(old, &item));
            }
            Some("merge") => {
                return Err(failed(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            Some(_) => {
                return Err(unknown_directive(
                    item.as_object().unwrap_or(&Fields::new()),
                ));
            }
        }
    }
    if replace {
        return Ok(rest);
    }
    let mut merged = original.clone();
    for item in &rest {
        keyed.check(item)?;
        let found = merged.iter_mut().find(|old| keyed.equal(old, item));
        match (found, item) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                *old = merge_map(std::mem::take(old), new.clone(), field.item())?;
            }
            _ => merged.push(item.clone()),
        }
    }
    arrange(merged, &rest, &original, &keyed)
}

/// Returns the value without parts that carry a directive; `None` if the value itself carries one.
fn without_directives(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => return None,
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter_map(|(name, value)| Some((name, without_directives(value)?)))
                .collect(),
        ),
        Value::Array(items) => items.into_iter().filter_map(without_directives).collect(),
        scalar => scalar,
    })
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

fn unknown_directive(patch: &Fields) -> PatchError {
    let directive = patch.get(DIRECTIVE).cloned().unwrap_or_default();
    let patch = go_plain(&Value::Object(patch.clone()));
    failed(format!(
        "unknown patch type: {} in map: {patch}",
        go_plain(&directive)
    ))
}

fn malformed(message: impl Into<String>) -> PatchError {
    PatchError::Malformed {
        message: message.into(),
    }
}

fn failed(message: String) -> PatchError {
    PatchError::Untyped { message }
}

#[cfg(test)]
mod tests;
