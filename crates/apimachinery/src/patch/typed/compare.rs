//! Comparison of two values by their [`Type`].

use std::collections::BTreeMap;

use serde_json::Value;

use super::element_of;
use crate::patch::{
    atom::{Form, List, Map, Type},
    fields::{Element, Set},
};

/// Fields that differ. The three sets are disjoint.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: Set,
    pub(crate) modified: Set,
    pub(crate) removed: Set,
}

/// Compares two values of a [`Type`].
pub(crate) fn compare(old: &Value, new: &Value, of: Type<'_>) -> Comparison {
    let mut walker = Walker {
        path: Vec::new(),
        result: Comparison::default(),
    };
    walker.compare(Some(old), Some(new), of);
    walker.result
}

struct Walker {
    path: Vec<Element>,
    result: Comparison,
}

impl Walker {
    fn compare(&mut self, old: Option<&Value>, new: Option<&Value>, of: Type<'_>) {
        let atom = of.resolve();
        let (old_form, new_form) = (atom.deduce(old).form(), atom.deduce(new).form());
        let leaf = match (old, new) {
            (_, None) => self.walk(old, new, old_form),
            (None, _) => self.walk(old, new, new_form),
            _ if old_form.is_like(&new_form) => self.walk(old, new, new_form),
            // The value changed its form: the fields of both forms are compared.
            _ => {
                self.walk(old, new, old_form);
                self.walk(old, new, new_form)
            }
        };
        if !leaf {
            match (old, new) {
                (None, Some(_)) => self.result.added.insert(&self.path),
                (Some(_), None) => self.result.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Compares a value in a [`Form`]. Returns true if the value was compared as a leaf.
    fn walk(&mut self, old: Option<&Value>, new: Option<&Value>, form: Form<'_>) -> bool {
        match form {
            Form::Scalar(_) => {
                self.leaf(old, new);
                true
            }
            Form::List(list) => {
                let items =
                    |value: Option<&'_ Value>| value.and_then(Value::as_array).map(Vec::len);
                let empty = items(old).unwrap_or(0) == 0 && items(new).unwrap_or(0) == 0;
                if list.keys.is_none() || empty {
                    self.leaf(old, new);
                    return true;
                }
                self.items(old, new, &list);
                false
            }
            Form::Map(map) => {
                let is_empty = |value: Option<&Value>| {
                    value
                        .and_then(Value::as_object)
                        .is_none_or(|map| map.is_empty())
                };
                if map.atomic || (is_empty(old) && is_empty(new)) {
                    self.leaf(old, new);
                    return true;
                }
                self.fields(old, new, &map);
                false
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.result.added.insert(&self.path),
            (_, None) => self.result.removed.insert(&self.path),
            (Some(old), Some(new)) if !equal(old, new) => self.result.modified.insert(&self.path),
            _ => {}
        }
    }

    fn fields(&mut self, old: Option<&Value>, new: Option<&Value>, map: &Map<'_>) {
        let (old, new) = (
            old.and_then(Value::as_object),
            new.and_then(Value::as_object),
        );
        let mut names: Vec<&String> = old.into_iter().flatten().map(|(name, _)| name).collect();
        names.extend(new.into_iter().flatten().map(|(name, _)| name));
        names.sort_unstable();
        names.dedup();
        for name in names {
            let of = map.member(name).unwrap_or(Type::Deduced);
            self.path.push(Element::Field(name.clone()));
            self.compare(
                old.and_then(|old| old.get(name)),
                new.and_then(|new| new.get(name)),
                of,
            );
            self.path.pop();
        }
    }

    fn items(&mut self, old: Option<&Value>, new: Option<&Value>, list: &List<'_>) {
        type Found<'v> = (Vec<&'v Value>, Vec<&'v Value>);
        let mut found: BTreeMap<Element, Found<'_>> = BTreeMap::new();
        for item in old.and_then(Value::as_array).into_iter().flatten() {
            if let Ok(element) = element_of(item, list) {
                found.entry(element).or_default().0.push(item);
            }
        }
        for item in new.and_then(Value::as_array).into_iter().flatten() {
            if let Ok(element) = element_of(item, list) {
                found.entry(element).or_default().1.push(item);
            }
        }
        for (element, (old, new)) in found {
            self.path.push(element);
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.compare(old.first().copied(), new.first().copied(), list.item);
                }
                // Duplicate items are compared, and owned, as one.
                ([_, _, ..], [_, _, ..]) => {
                    let same =
                        old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| equal(a, b));
                    if !same {
                        self.result.modified.insert(&self.path);
                    }
                }
                ([_, _, ..], _) => {
                    if let [new] = new.as_slice() {
                        self.compare(None, Some(new), list.item);
                    }
                    self.result.removed.insert(&self.path);
                }
                (_, _) => {
                    if let [old] = old.as_slice() {
                        self.compare(Some(old), None, list.item);
                    }
                    self.result.added.insert(&self.path);
                }
            }
            self.path.pop();
        }
    }
}

/// Compares by value: 1 and 1.0 are equal.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}
