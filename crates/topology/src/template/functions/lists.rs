//! Lists.

use super::{Named, Value, exactly, first_of, int, is_empty, list, string};

pub(super) const ALL: &[Named] = &[
    ("list", |values| Ok(Value::List(values))),
    ("len", |values| {
        let [value] = exactly(values)?;
        let length = match &value {
            Value::Text(text) => text.len(),
            Value::List(items) => items.len(),
            Value::Map(fields) => fields.len(),
            other => return Err(format!("len of type {}", other.type_name())),
        };
        Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
    }),
    ("index", index),
    ("slice", slice),
    ("first", |values| {
        let [items] = exactly(values)?;
        Ok(list(items)?.into_iter().next().unwrap_or(Value::Nil))
    }),
    ("last", |values| {
        let [items] = exactly(values)?;
        Ok(list(items)?.pop().unwrap_or(Value::Nil))
    }),
    ("rest", |values| {
        let [items] = exactly(values)?;
        Ok(Value::List(list(items)?.into_iter().skip(1).collect()))
    }),
    ("initial", |values| {
        let [items] = exactly(values)?;
        let mut items = list(items)?;
        items.pop();
        Ok(Value::List(items))
    }),
    ("append", |values| {
        let [items, item] = exactly(values)?;
        let mut items = list(items)?;
        items.push(item);
        Ok(Value::List(items))
    }),
    ("prepend", |values| {
        let [items, item] = exactly(values)?;
        let mut items = list(items)?;
        items.insert(0, item);
        Ok(Value::List(items))
    }),
    ("concat", |values| {
        let mut all = Vec::new();
        for items in values {
            all.extend(list(items)?);
        }
        Ok(Value::List(all))
    }),
    ("reverse", |values| {
        let [items] = exactly(values)?;
        Ok(Value::List(list(items)?.into_iter().rev().collect()))
    }),
    ("uniq", |values| {
        let [items] = exactly(values)?;
        let mut kept: Vec<Value> = Vec::new();
        for item in list(items)? {
            if !kept.contains(&item) {
                kept.push(item);
            }
        }
        Ok(Value::List(kept))
    }),
    ("without", |values| {
        let (items, unwanted) = first_of(values)?;
        let kept = list(items)?
            .into_iter()
            .filter(|item| !unwanted.contains(item));
        Ok(Value::List(kept.collect()))
    }),
    ("has", |values| {
        let [item, items] = exactly(values)?;
        match items {
            Value::Nil => Ok(Value::Bool(false)),
            items => Ok(Value::Bool(list(items)?.contains(&item))),
        }
    }),
    ("compact", |values| {
        let [items] = exactly(values)?;
        let kept = list(items)?.into_iter().filter(|item| !is_empty(item));
        Ok(Value::List(kept.collect()))
    }),
    ("sortAlpha", |values| {
        let [items] = exactly(values)?;
        let mut texts: Vec<String> = list(items)?.iter().map(Value::go_text).collect();
        texts.sort();
        Ok(Value::List(texts.into_iter().map(Value::Text).collect()))
    }),
    ("join", |values| {
        let [separator, items] = exactly(values)?;
        let texts: Vec<String> = match items {
            Value::List(items) => items
                .iter()
                .filter(|item| !matches!(item, Value::Nil | Value::Missing))
                .map(Value::go_text)
                .collect(),
            Value::Nil => Vec::new(),
            other => vec![other.go_text()],
        };
        Ok(Value::Text(texts.join(&string(separator)?)))
    }),
    ("toStrings", |values| {
        let [items] = exactly(values)?;
        let texts = list(items)?;
        let texts = texts.iter().map(|item| Value::Text(item.go_text()));
        Ok(Value::List(texts.collect()))
    }),
];

fn index(values: Vec<Value>) -> Result<Value, String> {
    let (mut value, keys) = first_of(values)?;
    for key in keys {
        value = match value {
            Value::List(items) => {
                let at = place(&key, items.len().saturating_sub(1), "index out of range")?;
                items.into_iter().nth(at).ok_or("index out of range: 0")?
            }
            Value::Map(mut fields) => fields.remove(&string(key)?).unwrap_or(Value::Missing),
            Value::Text(text) => {
                let at = place(&key, text.len().saturating_sub(1), "index out of range")?;
                let byte = text.as_bytes().get(at).ok_or("index out of range: 0")?;
                Value::Int(i64::from(*byte))
            }
            Value::Nil | Value::Missing => return Err("index of untyped nil".to_owned()),
            other => return Err(format!("can't index item of type {}", other.type_name())),
        };
    }
    Ok(value)
}

/// Returns an index from 0 to `most`.
fn place(key: &Value, most: usize, problem: &str) -> Result<usize, String> {
    let at = match key {
        Value::Int(at) => *at,
        other => {
            return Err(format!(
                "cannot index slice/array with type {}",
                other.type_name()
            ));
        }
    };
    let found = usize::try_from(at).ok().filter(|at| *at <= most);
    found.ok_or_else(|| format!("{problem}: {at}"))
}

/// Implements Go's `slice` of texts and lists, and also sprig's `slice` of lists, which replaces Go's.
fn slice(values: Vec<Value>) -> Result<Value, String> {
    let (value, bounds) = first_of(values)?;
    let items = list(value)?;
    let mut bounds = bounds.iter().map(int);
    let mut bound = |default: usize| match bounds.next() {
        Some(at) => place(&Value::Int(at?), items.len(), "index out of range"),
        None => Ok(default),
    };
    let (from, to) = (bound(0)?, bound(items.len())?);
    match items.get(from..to) {
        Some(part) => Ok(Value::List(part.to_vec())),
        None => Err(format!("invalid slice index: {from} > {to}")),
    }
}
