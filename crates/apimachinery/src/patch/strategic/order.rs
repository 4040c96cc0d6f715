//! Order of a merged list: the order in the patch, with the server's other items at their relative positions.

use serde_json::Value;

use super::failed;
use crate::{patch::PatchError, schema::go_plain};

/// Identity of items: by a key, or by value.
pub(super) struct Keyed(pub(super) Option<&'static str>);

impl Keyed {
    pub(super) fn equal(&self, a: &Value, b: &Value) -> bool {
        match self.0 {
            None => a == b,
            Some(key) => a.get(key).is_some_and(|value| b.get(key) == Some(value)),
        }
    }

    /// Checks that an item has the key.
    pub(super) fn check(&self, item: &Value) -> Result<(), PatchError> {
        let Some(key) = self.0.filter(|key| item.get(*key).is_none()) else {
            return Ok(());
        };
        let item = go_plain(item);
        Err(failed(format!(
            "map: {item} does not contain declared merge key: {key}"
        )))
    }

    fn place(&self, list: &[Value], item: &Value) -> Option<usize> {
        list.iter().position(|other| self.equal(other, item))
    }
}

/// Sorts the items in the order of `wanted`, and places the others between them by their positions in `before`.
pub(super) fn arrange(
    items: Vec<Value>,
    wanted: &[Value],
    before: &[Value],
    keyed: &Keyed,
) -> Result<Vec<Value>, PatchError> {
    for item in items.iter().chain(wanted).chain(before) {
        keyed.check(item)?;
    }
    let (mut asked, mut others): (Vec<Value>, Vec<Value>) = items
        .into_iter()
        .partition(|item| keyed.place(wanted, item).is_some());
    asked.sort_by_key(|item| keyed.place(wanted, item));
    others.sort_by_key(|item| keyed.place(before, item).unwrap_or(usize::MAX));
    let mut result = Vec::with_capacity(asked.len() + others.len());
    let (mut asked, mut others) = (asked.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), asked.peek()) {
            (None, None) => return Ok(result),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(item)) => {
                let places = (keyed.place(before, other), keyed.place(before, item));
                matches!(places, (Some(other), Some(item)) if other < item)
            }
        };
        result.extend(if other_first {
            others.next()
        } else {
            asked.next()
        });
    }
}
