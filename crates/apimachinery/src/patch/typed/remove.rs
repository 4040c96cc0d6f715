//! Removal of fields and items from a value.

use serde_json::{Map as Fields, Value};

use super::element_of;
use crate::patch::{
    atom::{Form, Type},
    fields::{Element, Set},
};

/// Returns the value without the members of `set`. Emptied values are removed, too; at the top, the result is null.
pub(crate) fn remove(value: &Value, set: &Set, of: Type<'_>) -> Value {
    without(value, set, of).unwrap_or(Value::Null)
}

fn without(value: &Value, set: &Set, of: Type<'_>) -> Option<Value> {
    match of.resolve().deduce(Some(value)).form() {
        Form::Scalar(_) => Some(value.clone()),
        Form::List(list) => {
            let items = value.as_array().filter(|items| !items.is_empty())?;
            list.keys?;
            let mut rest = Vec::new();
            for item in items {
                let Ok(element) = element_of(item, &list) else {
                    rest.push(item.clone());
                    continue;
                };
                if set.has_member(&element) {
                    continue;
                }
                match set.below(&element).filter(|set| !set.is_empty()) {
                    Some(set) => rest.push(remove(item, set, list.item)),
                    None => rest.push(item.clone()),
                }
            }
            (!rest.is_empty()).then_some(Value::Array(rest))
        }
        Form::Map(map) => {
            let fields = value.as_object().filter(|fields| !fields.is_empty())?;
            if map.atomic {
                return None;
            }
            let mut rest = Fields::new();
            for (name, value) in fields {
                let element = Element::Field(name.clone());
                if set.has_member(&element) {
                    continue;
                }
                let of = map.member(name).unwrap_or(Type::Deduced);
                let value = match set.below(&element).filter(|set| !set.is_empty()) {
                    Some(set) => remove(value, set, of),
                    None => value.clone(),
                };
                rest.insert(name.clone(), value);
            }
            (!rest.is_empty()).then_some(Value::Object(rest))
        }
    }
}
