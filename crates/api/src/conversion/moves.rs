//! Conversions as data: moves of fields from an older version to its successor.
//!
//! A table of [`Move`]s is applied from first to last on the way to the newer version, and from last to first on the
//! way back. Paths are field names in nested objects (`network.id`); `[]` is each object of a list
//! (`ports[].fixedIPs[]`). A `null` moves like a value, an absent field stays absent.

use std::collections::HashSet;

use serde_json::Value;

use super::fields::{Done, Fields, nested, take};

/// Move of a field, from the older version to the newer one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    /// New path, same value.
    Renamed(&'static str, &'static str),
    /// Field of the older version alone.
    Old(&'static str),
    /// Field of the newer version alone.
    New(&'static str),
    /// List without duplicates in the newer version.
    Set(&'static str),
    /// Text with absence in place of the empty text in the other version.
    Text(&'static str),
    /// New path, and a conversion of the value. Without a result the field is dropped.
    Formed {
        old: &'static str,
        new: &'static str,
        /// Rule, for the documentation.
        how: &'static str,
        up: fn(Value) -> Option<Value>,
        down: fn(Value) -> Option<Value>,
    },
    /// Fields converted together.
    Joint {
        old: &'static str,
        new: &'static str,
        /// Rule, for the documentation.
        how: &'static str,
        up: fn(&mut Fields),
        down: fn(&mut Fields),
    },
    /// Moves in an object, or in each object of a list, at the same path in both versions.
    Inside(&'static str, &'static [Move]),
}

/// Applies [`Move`]s towards the newer version.
pub(crate) fn up(fields: &mut Fields, moves: &[Move]) -> Done {
    moves.iter().try_for_each(|it| it.up(fields))
}

/// Applies [`Move`]s towards the older version.
pub(crate) fn down(fields: &mut Fields, moves: &[Move]) -> Done {
    moves.iter().rev().try_for_each(|it| it.down(fields))
}

impl Move {
    fn up(&self, fields: &mut Fields) -> Done {
        match *self {
            Self::Renamed(old, new) => shift(fields, old, new, Some),
            Self::Old(path) => drop(taken(fields, path)),
            Self::New(_) => {}
            Self::Set(path) => at(fields, path, unique),
            Self::Text(path) => without_empty(fields, path),
            Self::Formed { old, new, up, .. } => shift(fields, old, new, up),
            Self::Joint { up, .. } => up(fields),
            Self::Inside(path, moves) => return inside(fields, path, moves, up),
        }
        Ok(())
    }

    fn down(&self, fields: &mut Fields) -> Done {
        match *self {
            Self::Renamed(old, new) => shift(fields, new, old, Some),
            Self::New(path) => drop(taken(fields, path)),
            Self::Text(path) => without_empty(fields, path),
            Self::Old(_) | Self::Set(_) => {}
            Self::Formed { old, new, down, .. } => shift(fields, new, old, down),
            Self::Joint { down, .. } => down(fields),
            Self::Inside(path, moves) => return inside(fields, path, moves, down),
        }
        Ok(())
    }
}

/// Row in the documentation of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Path in the older version; empty without such a field.
    pub old: String,
    /// Path in the newer version; empty without such a field.
    pub new: String,
    /// Rule for the value; empty for a plain move.
    pub how: &'static str,
}

/// [`Row`]s of a table of objects at the path `prefix` in both versions.
pub(crate) fn rows(moves: &[Move], prefix: &str) -> Vec<Row> {
    let path = |name: &str| match (name, prefix) {
        ("", _) => String::new(),
        (_, "") => name.to_owned(),
        _ => format!("{prefix}.{name}"),
    };
    let row = |old: &str, new: &str, how: &'static str| Row {
        old: path(old),
        new: path(new),
        how,
    };
    let of = |it: &Move| match *it {
        Move::Renamed(old, new) => vec![row(old, new, "")],
        Move::Old(old) => vec![row(old, "", "")],
        Move::New(new) => vec![row("", new, "")],
        Move::Set(name) => vec![row(name, name, "no element twice")],
        Move::Text(name) => vec![row(name, name, "absent if empty")],
        Move::Formed { old, new, how, .. } | Move::Joint { old, new, how, .. } => {
            vec![row(old, new, how)]
        }
        Move::Inside(name, moves) => rows(moves, &path(name)),
    };
    moves.iter().flat_map(of).collect()
}

/// Moves the value of `from` to `to`, converted by `formed`.
fn shift(fields: &mut Fields, from: &str, to: &str, formed: fn(Value) -> Option<Value>) {
    let Some(value) = taken(fields, from) else {
        return;
    };
    let value = match value {
        Value::Null => Some(Value::Null),
        value => formed(value),
    };
    let path: Vec<&str> = to.split('.').collect();
    if let (Some(value), Some((last, parents))) = (value, path.split_last()) {
        nested(fields, parents).insert((*last).to_owned(), value);
    }
}

/// Removes the value at `path`, and parents that become empty.
pub(crate) fn taken(fields: &mut Fields, path: &str) -> Option<Value> {
    match path.contains('.') {
        true => take(fields, &path.split('.').collect::<Vec<_>>()),
        false => fields.remove(path),
    }
}

fn without_empty(fields: &mut Fields, path: &str) {
    if at_path(fields, path).is_some_and(|value| value == "") {
        taken(fields, path);
    }
}

fn at_path<'a>(fields: &'a Fields, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = fields.get(parts.next()?)?;
    parts.try_fold(first, |value, name| value.get(name))
}

fn at(fields: &mut Fields, path: &str, edit: fn(&mut Value)) {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|name| fields.get_mut(name));
    if let Some(value) = parts.fold(first, |value, name| value?.get_mut(name)) {
        edit(value);
    }
}

/// Removes duplicates from a list; the first of equal elements stays.
pub(crate) fn unique(value: &mut Value) {
    let Value::Array(items) = value else { return };
    // Lists from outside may be long: no quadratic comparison.
    let mut known = HashSet::new();
    items.retain(|item| known.insert(item.to_string()));
}

fn inside(
    fields: &mut Fields,
    path: &str,
    moves: &[Move],
    apply: fn(&mut Fields, &[Move]) -> Done,
) -> Done {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let deeper = |inner: &mut Fields| match rest {
        Some(rest) => inside(inner, rest, moves, apply),
        None => apply(inner, moves),
    };
    if let Some(name) = name.strip_suffix("[]") {
        let items = fields.get_mut(name).and_then(Value::as_array_mut);
        for (index, item) in items.into_iter().flatten().enumerate() {
            if let Some(inner) = item.as_object_mut() {
                deeper(inner).map_err(|problem| format!("{name}[{index}].{problem}"))?;
            }
        }
        return Ok(());
    }
    match fields.get_mut(name) {
        Some(Value::Object(inner)) => deeper(inner).map_err(|problem| format!("{name}.{problem}")),
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(format!("{name} is not an object")),
    }
}

#[cfg(test)]
mod tests;
