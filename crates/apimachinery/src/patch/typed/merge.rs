//! Merging of an applied configuration into an object.

use std::collections::BTreeMap;

use serde_json::{Map as Fields, Value};

use super::element_of;
use crate::patch::{
    atom::{Form, List, Map, Type},
    fields::Element,
};

/// Merges `over` into `base`: leaves of `over` win, nothing is removed. Fails if a list of `over` has duplicate items.
pub(crate) fn merge(base: &Value, over: &Value, of: Type<'_>) -> Result<Value, String> {
    Ok(join(Some(base), Some(over), of)?.unwrap_or(Value::Null))
}

fn join(base: Option<&Value>, over: Option<&Value>, of: Type<'_>) -> Result<Option<Value>, String> {
    let atom = of.resolve();
    let form = match over {
        None => atom.deduce(base).form(),
        Some(_) => atom.deduce(over).form(),
    };
    match form {
        Form::Scalar(_) => Ok(whole(base, over)),
        Form::List(list) => {
            let (base_items, over_items) = (items(base), items(over));
            let empty = base_items.is_empty() && over_items.is_empty();
            if list.keys.is_none() || empty {
                return Ok(whole(base, over));
            }
            let merged = join_items(base_items, over_items, &list)?;
            Ok((!merged.is_empty()).then_some(Value::Array(merged)))
        }
        Form::Map(map) => {
            let (base_fields, over_fields) = (fields(base), fields(over));
            let is_empty =
                |fields: Option<&Fields<String, Value>>| fields.is_none_or(Fields::is_empty);
            if map.atomic || (is_empty(base_fields) && is_empty(over_fields)) {
                return Ok(whole(base, over));
            }
            let merged = join_fields(base_fields, over_fields, &map)?;
            Ok((!merged.is_empty()).then_some(Value::Object(merged)))
        }
    }
}

fn whole(base: Option<&Value>, over: Option<&Value>) -> Option<Value> {
    over.or(base).cloned()
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn fields(value: Option<&Value>) -> Option<&Fields<String, Value>> {
    value.and_then(Value::as_object)
}

fn join_fields(
    base: Option<&Fields<String, Value>>,
    over: Option<&Fields<String, Value>>,
    map: &Map<'_>,
) -> Result<Fields<String, Value>, String> {
    let mut merged = Fields::new();
    for (name, base) in base.into_iter().flatten() {
        let of = map.member(name).unwrap_or(Type::Deduced);
        let over = over.and_then(|over| over.get(name));
        if let Some(value) = join(Some(base), over, of)? {
            merged.insert(name.clone(), value);
        }
    }
    for (name, over) in over.into_iter().flatten() {
        if base.is_some_and(|base| base.contains_key(name)) {
            continue;
        }
        let of = map.member(name).unwrap_or(Type::Deduced);
        if let Some(value) = join(None, Some(over), of)? {
            merged.insert(name.clone(), value);
        }
    }
    Ok(merged)
}

/// Joins the items of two lists: items of `over` in their order, items of `base` alone at their relative positions.
fn join_items(base: &[Value], over: &[Value], list: &List<'_>) -> Result<Vec<Value>, String> {
    let (base_order, base_items) = index(base, list, true)?;
    let (over_order, over_items) = index(over, list, false)?;
    let find = |items: &BTreeMap<Element, Option<usize>>, element: &Element, values: &[Value]| {
        items
            .get(element)
            .copied()
            .flatten()
            .and_then(|i| values.get(i).cloned())
    };
    let mut shared = over_order
        .iter()
        .filter(|element| base_items.contains_key(*element));
    let mut next_shared = shared.next();
    let mut done: BTreeMap<&Element, ()> = BTreeMap::new();
    let mut merged = Vec::with_capacity(base.len().max(over.len()));
    let mut push = |base: Option<Value>, over: Option<Value>| -> Result<(), String> {
        merged.extend(join(base.as_ref(), over.as_ref(), list.item)?);
        Ok(())
    };
    let (mut left, mut right) = (0, 0);
    while left < base_order.len() || right < over_order.len() {
        if let (Some(l), Some(r)) = (base_order.get(left), over_order.get(right)) {
            if l == r {
                done.insert(r, ());
                push(find(&base_items, l, base), find(&over_items, l, over))?;
                left += 1;
                right += 1;
                next_shared = shared.next();
                continue;
            }
            if over_items.contains_key(l) && next_shared.is_some_and(|next| next != l) {
                // In both lists: the item is pushed at its turn in `over`.
                left += 1;
                continue;
            }
        }
        if let Some(l) = base_order.get(left) {
            if !over_items.contains_key(l) {
                // By index, so that duplicate items are all kept.
                push(base.get(left).cloned(), None)?;
                left += 1;
                continue;
            }
            if done.contains_key(l) {
                left += 1;
            }
        }
        if let Some(r) = over_order.get(right) {
            done.insert(r, ());
            push(find(&base_items, r, base), find(&over_items, r, over))?;
            right += 1;
            if next_shared == Some(r) {
                next_shared = shared.next();
            }
        }
    }
    Ok(merged)
}

/// Elements in order, and the index of each; `None` for duplicates.
type Index = (Vec<Element>, BTreeMap<Element, Option<usize>>);

fn index(items: &[Value], list: &List<'_>, duplicates: bool) -> Result<Index, String> {
    let mut order = Vec::with_capacity(items.len());
    let mut places: BTreeMap<Element, Option<usize>> = BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        let element = element_of(item, list).map_err(|why| format!("element {i}: {why}"))?;
        match places.get_mut(&element) {
            None => {
                places.insert(element.clone(), Some(i));
            }
            Some(place) if duplicates => *place = None,
            Some(_) => {
                let key = crate::patch::fields::path_text(std::slice::from_ref(&element));
                return Err(format!("duplicate entries for key {key}"));
            }
        }
        order.push(element);
    }
    Ok((order, places))
}
