//! Paths of fields: JSON pointers with list elements selected by merge key or hash.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::UNITS;
use super::hash::hash;
use super::lists::Lists;

/// Path of a field.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// Path as written in the stash: `/spec/ports/#3f9a51c0d2e4 0 1/trunk`.
    pub(super) text: String,
    /// Path with `*` for every element: `/spec/ports/*/trunk`.
    pub(super) pattern: String,
}

impl Path {
    /// Path of a top-level field.
    pub(super) fn from_name(name: &str) -> Self {
        let text = format!("/{name}");
        Self {
            pattern: text.clone(),
            text,
        }
    }

    /// Path of a member of the object at this path.
    pub(super) fn member(&self, name: &str) -> Self {
        Self {
            text: format!("{}/{}", self.text, escape(name)),
            pattern: format!("{}/{name}", self.pattern),
        }
    }

    /// Path of an element of the list at this path.
    pub(super) fn element(&self, selector: &str) -> Self {
        Self {
            text: format!("{}/{}", self.text, escape(selector)),
            pattern: format!("{}/*", self.pattern),
        }
    }

    /// Number of steps.
    pub(super) fn depth(&self) -> usize {
        self.text.matches('/').count()
    }

    /// True if the object at this path is one of the [`UNITS`], with one entry for all fields.
    pub(super) fn is_unit(&self) -> bool {
        let name = self.pattern.rsplit('/').next();
        name.is_some_and(|name| UNITS.contains(&name))
    }

    /// True if the path matches `pattern`.
    pub(super) fn is(&self, pattern: &str) -> bool {
        self.pattern == pattern
    }
}

/// Step of a path in an object.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Member of an object.
    Member(String),
    /// Element of a list.
    Element(usize),
}

/// Selector of an element by merge key: the values as JSON. `None` if a key is absent.
pub(super) fn key_of(item: &Value, keys: &[String]) -> Option<String> {
    let values: Option<Vec<_>> = keys.iter().map(|key| item.get(key)).collect();
    Some(json!(values?).to_string())
}

/// Selectors of all elements by hash, each with its index among equal elements, and the number of equal ones.
pub(super) fn by_hash(items: &[Value]) -> Vec<String> {
    let hashes: Vec<String> = items.iter().map(hash).collect();
    let mut all: HashMap<&str, (usize, usize)> = HashMap::new();
    for hash in &hashes {
        all.entry(hash).or_default().1 += 1;
    }
    let selector = |hash: &String| {
        let (before, count) = all.get_mut(hash.as_str())?;
        *before += 1;
        Some(format!("#{hash} {} {count}", *before - 1))
    };
    hashes.iter().filter_map(selector).collect()
}

/// Finder of fields in an object by their [`Path`]s. The elements of each list are indexed once.
pub(super) struct Finder<'a> {
    object: &'a Value,
    lists: &'a Lists,
    /// Indices of elements by selector, for each path of a list.
    known: HashMap<String, HashMap<String, usize>>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(object: &'a Value, lists: &'a Lists) -> Self {
        Self {
            object,
            lists,
            known: HashMap::new(),
        }
    }

    /// [`Step`]s to the field at `text`; the field itself may be absent. `None` without one of the elements on the
    /// path.
    pub(super) fn find(&mut self, text: &str) -> Option<Vec<Step>> {
        let mut path = Path {
            text: String::new(),
            pattern: String::new(),
        };
        let mut at = Some(self.object);
        let mut steps = Vec::new();
        for part in text.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            if let Some(Value::Array(items)) = at {
                let keys = self.lists.keys(&path);
                let places = self.known.entry(path.text.clone());
                let places = places.or_insert_with(|| selectors(items, keys));
                let index = *places.get(&part)?;
                path = path.element(&part);
                at = items.get(index);
                steps.push(Step::Element(index));
            } else {
                path = path.member(&part);
                at = at.and_then(|value| value.get(&part));
                steps.push(Step::Member(part));
            }
        }
        Some(steps)
    }
}

/// First element of each selector: the merge key, or the hash in a list without keys.
fn selectors(items: &[Value], keys: Option<&[String]>) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for (index, by_hash) in by_hash(items).into_iter().enumerate() {
        let key = keys.and_then(|keys| key_of(items.get(index)?, keys));
        places.entry(key.unwrap_or(by_hash)).or_insert(index);
    }
    places
}

/// Value at `steps`.
pub(super) fn get<'a>(object: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    steps.iter().try_fold(object, |at, step| match step {
        Step::Member(name) => at.get(name),
        Step::Element(index) => at.get(*index),
    })
}

/// Sets the value at `steps`; creates parent objects, but no elements.
pub(super) fn insert(object: &mut Value, steps: &[Step], value: Value) {
    let mut at = object;
    for step in steps {
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
        let next = match (at, step) {
            (Value::Object(fields), Step::Member(name)) => {
                Some(fields.entry(name.as_str()).or_insert(Value::Null))
            }
            (Value::Array(items), Step::Element(index)) => items.get_mut(*index),
            _ => None,
        };
        let Some(next) = next else {
            return;
        };
        at = next;
    }
    *at = value;
}

/// Removes the member at `steps`.
pub(super) fn remove(object: &mut Value, steps: &[Step]) {
    let Some((Step::Member(name), parents)) = steps.split_last() else {
        return;
    };
    let parent = parents.iter().try_fold(object, |at, step| match step {
        Step::Member(name) => at.get_mut(name),
        Step::Element(index) => at.get_mut(*index),
    });
    if let Some(Value::Object(fields)) = parent {
        fields.remove(name);
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
