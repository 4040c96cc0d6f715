//! Fields with differences between an object and the desired one. Fields set by others alone are left to them.

use std::fmt;

use serde_json::{Map, Value as Json};

use super::{Change, FIELD_MANAGER};

/// Path of a field. Its text is made for a difference alone: a plan compares thousands of fields, and few differ.
enum Path<'a> {
    /// Object.
    Root,
    /// Field of a name.
    Field(&'a Path<'a>, &'a str),
    /// Item of a list with an order.
    Index(&'a Path<'a>, usize),
    /// Item of a list without an order, with its key.
    Key(&'a Path<'a>, &'a Json),
    /// Item of a list without an order, with the keys that the API server has recorded.
    Keys(&'a Path<'a>, &'a Map<String, Json>),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => formatter.write_str(name),
            Self::Field(above, name) => write!(formatter, "{above}.{name}"),
            Self::Index(above, index) => write!(formatter, "{above}[{index}]"),
            Self::Key(above, key) => write!(formatter, "{above}[{}]", text(key)),
            Self::Keys(above, keys) => {
                let keys: Vec<String> = keys.values().map(text).collect();
                write!(formatter, "{above}[{}]", keys.join(","))
            }
        }
    }
}

/// Different fields, in the order of their paths.
pub(super) fn changes(desired: &Json, there: &Json) -> Vec<Change> {
    let mut found = Vec::new();
    compare(desired, there, &Path::Root, &mut found);
    if let Some(owned) = owned(there) {
        removed(owned, desired, there, &Path::Root, &mut found);
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn compare(desired: &Json, there: &Json, path: &Path<'_>, found: &mut Vec<Change>) {
    match (desired, there) {
        (Json::Object(fields), Json::Object(others)) => {
            for (name, value) in fields {
                let path = Path::Field(path, name);
                match others.get(name) {
                    Some(other) => compare(value, other, &path, found),
                    // An empty value and an absent one are the same to the API server.
                    None if is_empty(value) => {}
                    None => found.push(change(&path, None, Some(value))),
                }
            }
        }
        (Json::Array(items), Json::Array(others)) if !items.is_empty() && keyed(items) => {
            for item in items {
                let Some((name, key)) = key(item) else {
                    continue;
                };
                let path = Path::Key(path, key);
                match others.iter().find(|other| other.get(name) == Some(key)) {
                    Some(other) => compare(item, other, &path, found),
                    None => found.push(change(&path, None, Some(item))),
                }
            }
        }
        (Json::Array(items), Json::Array(others)) if items.len() == others.len() => {
            for (index, (item, other)) in items.iter().zip(others).enumerate() {
                compare(item, other, &Path::Index(path, index), found);
            }
        }
        _ if desired == there => {}
        _ => found.push(change(path, Some(there), Some(desired))),
    }
}

/// Fields set by this field manager, as recorded by the API server.
fn owned(there: &Json) -> Option<&Json> {
    let managers = there.pointer("/metadata/managedFields")?.as_array()?;
    // The entry of the request that created an object also has every default: nothing follows from it.
    let ours = managers.iter().find(|it| {
        it["manager"] == FIELD_MANAGER && it["operation"] == "Apply" && it["subresource"].is_null()
    })?;
    ours.get("fieldsV1")
}

/// Undesired existing fields set by this field manager.
fn removed(owned: &Json, desired: &Json, there: &Json, path: &Path<'_>, found: &mut Vec<Change>) {
    let Some(owned) = owned.as_object() else {
        return;
    };
    for (name, below) in owned {
        let keys: Map<String, Json>;
        let (path, wanted, other) = if let Some(name) = name.strip_prefix("f:") {
            let path = Path::Field(path, name);
            (path, desired.get(name), there.get(name))
        } else if let Some(text) = name.strip_prefix("k:") {
            keys = match serde_json::from_str(text) {
                Ok(keys) => keys,
                Err(_) => continue,
            };
            let path = Path::Keys(path, &keys);
            (path, item(desired, &keys), item(there, &keys))
        } else {
            continue;
        };
        match (wanted, other) {
            (Some(wanted), Some(other)) => removed(below, wanted, other, &path, found),
            (None, Some(other)) => found.push(change(&path, Some(other), None)),
            (_, None) => {}
        }
    }
}

/// Item of a list with these keys.
fn item<'a>(list: &'a Json, keys: &Map<String, Json>) -> Option<&'a Json> {
    let has_keys = |item: &&Json| keys.iter().all(|(name, key)| item.get(name) == Some(key));
    list.as_array()?.iter().find(has_keys)
}

/// Key of the items of a list without an order.
fn key(item: &Json) -> Option<(&'static str, &Json)> {
    ["mountPath", "name"]
        .into_iter()
        .find_map(|name| Some((name, item.get(name)?)))
}

fn keyed(items: &[Json]) -> bool {
    items.iter().all(|item| key(item).is_some())
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::Bool(_) | Json::Number(_) => false,
    }
}

fn change(path: &Path<'_>, from: Option<&Json>, to: Option<&Json>) -> Change {
    Change {
        path: path.to_string(),
        from: from.cloned(),
        to: to.cloned(),
    }
}

fn text(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
