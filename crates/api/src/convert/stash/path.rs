//! Paths of fields in an object: a JSON pointer whose list elements are selected by merge key or hash.

use serde_json::{Map, Value, json};

use super::hash::hash;
use super::lists::Lists;

/// The path of a field.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// The path as written in the stash: `/spec/ports/#3f9a51c0d2e4 0 1/trunk`.
    pub(super) text: String,
    /// The path with `*` for every element: `/spec/ports/*/trunk`.
    pub(super) pattern: String,
}

impl Path {
    /// The path of a top-level field.
    pub(super) fn of(name: &str) -> Self {
        let text = format!("/{name}");
        Self {
            pattern: text.clone(),
            text,
        }
    }

    /// The path of a member of the object at this path.
    pub(super) fn member(&self, name: &str) -> Self {
        Self {
            text: format!("{}/{}", self.text, escape(name)),
            pattern: format!("{}/{name}", self.pattern),
        }
    }

    /// The path of an element of the list at this path.
    pub(super) fn element(&self, selector: &str) -> Self {
        Self {
            text: format!("{}/{}", self.text, escape(selector)),
            pattern: format!("{}/*", self.pattern),
        }
    }

    /// Whether the path matches `pattern`.
    pub(super) fn is(&self, pattern: &str) -> bool {
        self.pattern == pattern
    }
}

/// A step of a path in an object.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A member of an object.
    Member(String),
    /// An element of a list.
    Element(usize),
}

/// The selector of an element by its merge key: the values as JSON. `None` if a key is absent.
pub(super) fn key_of(item: &Value, keys: &[String]) -> Option<String> {
    let values: Option<Vec<_>> = keys.iter().map(|key| item.get(key)).collect();
    Some(json!(values?).to_string())
}

/// The selector of the element `at` by its hash, with its index among equal elements and their number.
pub(super) fn by_hash(items: &[Value], at: usize) -> String {
    let same = |item: &&Value| items.get(at) == Some(*item);
    let before = items.iter().take(at).filter(same).count();
    let all = items.iter().filter(same).count();
    let hash = items.get(at).map(hash).unwrap_or_default();
    format!("#{hash} {before} {all}")
}

/// The steps to the field at `text`, which may be absent. `None` if an element on the path does not exist.
pub(super) fn find(text: &str, object: &Value, lists: &Lists) -> Option<Vec<Step>> {
    let mut path = Path {
        text: String::new(),
        pattern: String::new(),
    };
    let mut at = Some(object);
    let mut steps = Vec::new();
    for part in text.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if let Some(Value::Array(items)) = at {
            let keys = lists.keys(&path);
            let index = items.iter().enumerate().position(|(index, item)| {
                let key = keys.and_then(|keys| key_of(item, keys));
                key.unwrap_or_else(|| by_hash(items, index)) == part
            })?;
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

/// The value at `steps`.
pub(super) fn get<'a>(object: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    steps.iter().try_fold(object, |at, step| match step {
        Step::Member(name) => at.get(name),
        Step::Element(index) => at.get(*index),
    })
}

/// Sets the value at `steps`; creates parent objects, but not elements.
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
