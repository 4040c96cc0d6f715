//! Correlation of new values with old ones, for transition rules and ratcheting (`apiserver/pkg/cel/common`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::node::{ListType, Node};

/// Old items of a list map by key.
pub(super) struct OldItems<'a> {
    keys: &'a [String],
    items: BTreeMap<String, Option<&'a Value>>,
}

impl<'a> OldItems<'a> {
    /// Indexes the old items; `None` unless the list is a map.
    pub(super) fn new(node: &'a Node, old: Option<&'a Value>) -> Option<Self> {
        let (Some(ListType::Map(keys)), Some(Value::Array(old))) = (&node.list, old) else {
            return None;
        };
        let mut items = BTreeMap::new();
        for item in old {
            // Items with a duplicate key are not correlated.
            if let Some(key) = key(keys, item) {
                items
                    .entry(key)
                    .and_modify(|slot| *slot = None)
                    .or_insert(Some(item));
            }
        }
        Some(Self { keys, items })
    }

    pub(super) fn get(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&key(self.keys, item)?).copied().flatten()
    }
}

fn key(keys: &[String], item: &Value) -> Option<String> {
    let item = item.as_object()?;
    let mut text = String::new();
    for key in keys {
        text.push_str(&item.get(key)?.to_string());
        text.push('\n');
    }
    Some(text)
}

/// True if a value is unchanged; list maps are compared without regard to order. Below unknown fields everything counts
/// as changed, as in the reference.
pub(super) fn unchanged(node: &Node, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new
                    .iter()
                    .all(|(name, new)| match (old.get(name), node.child(name)) {
                        (Some(old), Some((child, _))) => unchanged(child, new, old),
                        _ => false,
                    })
        }
        (Value::Array(new_items), Value::Array(old_items)) => {
            if new_items.len() != old_items.len() {
                return false;
            }
            match (OldItems::new(node, Some(old)), node.items.as_deref()) {
                (Some(old), Some(schema)) => new_items
                    .iter()
                    .all(|new| old.get(new).is_some_and(|old| unchanged(schema, new, old))),
                _ => new == old,
            }
        }
        _ => new == old,
    }
}
