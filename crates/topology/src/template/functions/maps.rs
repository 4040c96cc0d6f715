//! Maps.

use std::collections::BTreeMap;

use super::{Named, Value, exactly, first_of, last_of, string, wrong};

pub(super) const ALL: &[Named] = &[
    ("dict", |values| {
        let mut fields = BTreeMap::new();
        let mut values = values.into_iter();
        while let Some(name) = values.next() {
            let value = values.next().unwrap_or_else(|| Value::Text(String::new()));
            fields.insert(name.go_text(), value);
        }
        Ok(Value::Map(fields))
    }),
    ("get", |values| {
        let [fields, name] = exactly(values)?;
        let found = map(fields)?.remove(&string(name)?);
        Ok(found.unwrap_or_else(|| Value::Text(String::new())))
    }),
    ("hasKey", |values| {
        let [fields, name] = exactly(values)?;
        Ok(Value::Bool(map(fields)?.contains_key(&string(name)?)))
    }),
    ("keys", |values| {
        let mut names = Vec::new();
        for fields in values {
            names.extend(map(fields)?.into_keys().map(Value::Text));
        }
        Ok(Value::List(names))
    }),
    ("values", |values| {
        let [fields] = exactly(values)?;
        Ok(Value::List(map(fields)?.into_values().collect()))
    }),
    ("pick", |values| {
        let (fields, names) = first_of(values)?;
        let names = texts(names)?;
        let kept = map(fields)?
            .into_iter()
            .filter(|(name, _)| names.contains(name));
        Ok(Value::Map(kept.collect()))
    }),
    ("omit", |values| {
        let (fields, names) = first_of(values)?;
        let names = texts(names)?;
        let kept = map(fields)?
            .into_iter()
            .filter(|(name, _)| !names.contains(name));
        Ok(Value::Map(kept.collect()))
    }),
    ("pluck", |values| {
        let (name, all) = first_of(values)?;
        let name = string(name)?;
        let mut found = Vec::new();
        for fields in all {
            found.extend(map(fields)?.remove(&name));
        }
        Ok(Value::List(found))
    }),
    ("merge", |values| {
        let (first, others) = first_of(values)?;
        let mut into = map(first)?;
        for fields in others {
            merge(&mut into, map(fields)?, false);
        }
        Ok(Value::Map(into))
    }),
    ("mergeOverwrite", |values| {
        let (first, others) = first_of(values)?;
        let mut into = map(first)?;
        for fields in others {
            merge(&mut into, map(fields)?, true);
        }
        Ok(Value::Map(into))
    }),
    ("dig", |values| {
        let (mut path, fields) = last_of(values)?;
        let default = path.pop().ok_or("dig needs at least three arguments")?;
        let mut at = Value::Map(map(fields)?);
        for name in texts(path)? {
            match at {
                Value::Map(mut fields) => match fields.remove(&name) {
                    Some(value) => at = value,
                    None => return Ok(default),
                },
                other => return Err(wrong("map[string]interface {}", &other)),
            }
        }
        Ok(at)
    }),
];

fn map(value: Value) -> Result<BTreeMap<String, Value>, String> {
    match value {
        Value::Map(fields) => Ok(fields),
        other => Err(wrong("map[string]interface {}", &other)),
    }
}

fn texts(values: Vec<Value>) -> Result<Vec<String>, String> {
    values.into_iter().map(string).collect()
}

/// Adds the fields of `from`, in nested maps as well. An empty value counts as absent.
fn merge(into: &mut BTreeMap<String, Value>, from: BTreeMap<String, Value>, overwrite: bool) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Value::Map(inner)), Value::Map(value)) => merge(inner, value, overwrite),
            (Some(known), value) => {
                let replaces = match overwrite {
                    true => value.is_true(),
                    false => !known.is_true(),
                };
                if replaces {
                    *known = value;
                }
            }
            (None, value) => {
                into.insert(name, value);
            }
        }
    }
}
