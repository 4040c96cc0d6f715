//! Stash: fields without equivalent in the other version, preserved in an annotation of the converted object.
//!
//! An entry has the value of one field, and a hash of the field after a conversion there and back. The value is
//! restored only if the field still has the hash: then no client has changed the field in the other version. List
//! elements are identified by merge key, or by the hash of the whole element in a list without keys, so entries survive
//! insertions and removals. (Upstream preserves a copy of the whole object and restores all of it, thereby reverting
//! such changes.)

use serde_json::{Map, Value, json};

mod former;
mod hash;
mod lists;
mod lost;
mod path;
mod schema;

use hash::hash;
pub(crate) use lists::Lists;
pub(crate) use lost::warnings;
use path::{Finder, Path, Step};
#[cfg(test)]
pub(crate) use schema::admits;

/// Annotation with the stash.
pub(crate) const ANNOTATION: &str = "cluster.x-k8s.io/ferrostack-conversion";

/// Fields with dependencies: the entry of the first is stale after a change of one of the others.
const TOGETHER: &[(&str, &[&str])] = &[
    // Name of a flavor beside its id.
    ("flavor", &["flavorID"]),
    (
        "observedGeneration",
        &["status", "reason", "message", "lastTransitionTime"],
    ),
    // Likewise for an image.
    ("image", &["imageUUID"]),
    // Networks became ports.
    ("networks", &["ports"]),
    ("dnsNameservers", &["nodeCidr"]),
];

/// Objects with one entry for all fields, since the fields have a meaning only together.
const UNITS: &[&str] = &[
    "network",
    "subnet",
    "router",
    "filter",
    "identityRef",
    "profile",
    "rootVolume",
    "serverMetadata",
];

/// Fields of one version without equivalent in the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stash {
    /// Entries by path in the object. `h`: hash of the field after conversion there and back (absent: no field). `d`:
    /// value (absent: no field). `p`, for a lost field: number of remaining steps of the path.
    entries: Map<String, Value>,
    /// Entries in the format of an earlier release.
    former: Option<former::Entries>,
}

impl Stash {
    /// Adds the lost fields of a spec. `back` is the result of a conversion there and back.
    pub(crate) fn add_spec(&mut self, before: &Value, back: &Value, lists: &Lists) {
        let mut found = Vec::new();
        differences(
            before,
            Ok(back),
            &Path::from_name("spec"),
            lists,
            &mut found,
        );
        self.add(found);
    }

    /// Adds the lost fields of a status. Status is computed for each version, except the observed generation of a
    /// condition, absent in v1beta1.
    pub(crate) fn add_status(&mut self, before: &Value, back: &Value, lists: &Lists) {
        let mut found = Vec::new();
        differences(
            before,
            Ok(back),
            &Path::from_name("status"),
            lists,
            &mut found,
        );
        found.retain(|(path, _)| path.is("/status/conditions/*/observedGeneration"));
        self.add(found);
    }

    fn add(&mut self, found: Vec<(Path, Value)>) {
        let found = found.into_iter().map(|(path, entry)| (path.text, entry));
        self.entries.extend(found);
    }

    /// Restores every field without a change in the other version, if admitted by the schema of its own version.
    pub(crate) fn restore(&self, object: &mut Value, lists: &Lists) {
        if let Some(former) = &self.former {
            former.restore(object, lists);
        }
        let converted = object.clone();
        let mut finder = Finder::new(&converted, lists);
        for (text, entry) in &self.entries {
            let Some(steps) = finder.find(text).filter(|it| of_content(it)) else {
                continue;
            };
            let now = match steps.split_last() {
                Some((Step::Member(name), parents)) => seen(
                    path::get(&converted, parents).and_then(Value::as_object),
                    name,
                ),
                _ => path::get(&converted, &steps).map(hash),
            };
            if now.as_deref() != entry.get("h").and_then(Value::as_str)
                || !is_left(&converted, &steps, entry)
            {
                continue;
            }
            match entry.get("d") {
                Some(value) if lists.admits(object, &steps, value) => {
                    path::insert(object, &steps, value.clone());
                }
                Some(_) => {}
                None => path::remove(object, &steps),
            }
        }
    }
}

/// True if the parent objects of a field still exist.
fn is_left(object: &Value, steps: &[Step], entry: &Value) -> bool {
    let left = entry.get("p").and_then(Value::as_u64);
    let left = left.and_then(|left| usize::try_from(left).ok());
    let Some(left) = left.and_then(|left| steps.get(..left)) else {
        return true;
    };
    path::get(object, left).is_some()
}

/// True for a path with possible entries: a stash never changes metadata or kind.
fn of_content(steps: &[Step]) -> bool {
    let name = |at: usize| match steps.get(at) {
        Some(Step::Member(name)) => name.as_str(),
        _ => "",
    };
    match name(0) {
        "spec" => true,
        "status" => name(1) == "conditions" && name(3) == "observedGeneration" && steps.len() == 4,
        _ => false,
    }
}

/// Removes the [`Stash`] of `version` from the annotations of an object; a stash of another version is dropped.
pub(crate) fn take(object: &mut Value, version: &str) -> Stash {
    let mut stash = Stash::default();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata else {
        return stash;
    };
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
        return stash;
    };
    let kept = [ANNOTATION, former::ANNOTATION].map(|name| annotations.remove(name));
    if annotations.is_empty() && kept.iter().any(Option::is_some) {
        metadata.remove("annotations");
    }
    for (kept, of_infra) in kept.into_iter().zip([false, true]) {
        // An unreadable stash is ignored.
        let parsed = kept.as_ref().and_then(Value::as_str);
        let parsed = parsed.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let Some(mut parsed) = parsed.filter(|kept| kept["version"] == version) else {
            continue;
        };
        if let Some(Value::Object(entries)) = parsed.get_mut("lost").map(Value::take) {
            stash.entries = entries;
        } else if let Some(Value::Object(fields)) = parsed.get_mut("fields").map(Value::take) {
            stash.former = Some(former::Entries { fields, of_infra });
        }
    }
    stash
}

/// Adds the [`Stash`] of an object converted from `version` to its annotations.
pub(crate) fn put(object: &mut Value, version: &str, stash: &Stash) {
    let Some(object) = object.as_object_mut().filter(|_| !stash.entries.is_empty()) else {
        return;
    };
    let text = json!({"version": version, "lost": stash.entries}).to_string();
    super::fields::nested(object, &["metadata", "annotations"])
        .insert(ANNOTATION.to_owned(), json!(text));
}

/// Collects lost fields. `back`: the remaining value, or the number of remaining steps of the path.
fn differences(
    before: &Value,
    back: Result<&Value, usize>,
    path: &Path,
    lists: &Lists,
    into: &mut Vec<(Path, Value)>,
) {
    if back == Ok(before) {
        return;
    }
    match (before, back) {
        (Value::Object(old), Err(_) | Ok(Value::Object(_)))
            if !old.is_empty() && !path.is_unit() =>
        {
            let new = back.map(|back| back.as_object());
            members(old, new, path, lists, into);
        }
        (Value::Array(old), Ok(Value::Array(new))) if lists.pair(path, old, new) => {
            let keys = lists.keys(path);
            let selectors = if old == new {
                Vec::new()
            } else {
                path::by_hash(new)
            };
            for (at, (old_item, new_item)) in old.iter().zip(new).enumerate() {
                let key = keys.and_then(|keys| path::key_of(new_item, keys));
                let Some(selector) = key.as_ref().or_else(|| selectors.get(at)) else {
                    continue;
                };
                let path = path.element(selector);
                differences(old_item, Ok(new_item), &path, lists, into);
            }
        }
        (value, Ok(left)) => into.push((path.clone(), entry(Some(value), Some(hash(left))))),
        (value, Err(left)) => {
            let mut entry = entry(Some(value), None);
            // A spec always remains.
            if left > 1 {
                entry["p"] = json!(left);
            }
            into.push((path.clone(), entry));
        }
    }
}

fn members(
    old: &Map<String, Value>,
    new: Result<Option<&Map<String, Value>>, usize>,
    path: &Path,
    lists: &Lists,
    into: &mut Vec<(Path, Value)>,
) {
    let depth = path.depth();
    let fields = new.ok().flatten();
    for (name, value) in old {
        let path = path.member(name);
        let left = fields.and_then(|new| new.get(name));
        if left == Some(value) {
            continue;
        }
        if together(name).is_empty() {
            let left = left.ok_or(new.err().unwrap_or(depth));
            differences(value, left, &path, lists, into);
        } else {
            into.push((path, entry(Some(value), seen(fields, name))));
        }
    }
    let added = fields.into_iter().flat_map(Map::keys);
    for name in added.filter(|name| !old.contains_key(*name)) {
        into.push((path.member(name), entry(None, seen(fields, name))));
    }
}

fn entry(value: Option<&Value>, left: Option<String>) -> Value {
    let mut entry = Map::new();
    entry.extend(left.map(|hash| ("h".to_owned(), json!(hash))));
    entry.extend(value.map(|value| ("d".to_owned(), value.clone())));
    Value::Object(entry)
}

/// Hash of a field and its dependencies; `None` if absent.
fn seen(fields: Option<&Map<String, Value>>, name: &str) -> Option<String> {
    let fields = fields?;
    let others = together(name);
    if others.is_empty() {
        return fields.get(name).map(hash);
    }
    let all = std::iter::once(&name).chain(others);
    let all: Vec<_> = all.map(|name| fields.get(*name)).collect();
    Some(hash(&json!(all)))
}

fn together(name: &str) -> &'static [&'static str] {
    let row = TOGETHER.iter().find(|(field, _)| *field == name);
    row.map_or(&[], |(_, others)| *others)
}

#[cfg(test)]
mod tests;
