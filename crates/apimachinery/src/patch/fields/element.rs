//! Elements of a field path.

use std::{cmp::Ordering, fmt};

use serde_json::Value;

use crate::schema::{go_json, go_quote};

/// Step from an object or list to a member, in the sort order of the reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    /// Field, or a key of a map.
    Field(String),
    /// List item with these values of the key fields, sorted by field name.
    Key(Vec<(String, Item)>),
    /// Set item with this value.
    Value(Item),
    /// Item with this index.
    Index(i64),
}

/// Value in an [`Element`], with an order.
#[derive(Clone, Debug)]
pub(crate) struct Item(pub(crate) Value);

impl Element {
    /// Decodes `f:name`, `k:{"name":"a"}`, `v:"a"` or `i:0`; `None` for an unknown kind.
    pub(super) fn read(text: &str) -> Result<Option<Self>, String> {
        let Some((kind, rest)) = text.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
            return Err(match text.len() {
                0 | 1 => "key must be 2 characters long:".to_owned(),
                _ => format!("missing colon: {text}"),
            });
        };
        let json = || serde_json::from_str::<Value>(rest).map_err(|e| format!("{text}: {e}"));
        Ok(Some(match kind {
            "f" => Self::Field(rest.to_owned()),
            "v" => Self::Value(Item(json()?)),
            "k" => match json()? {
                Value::Object(fields) => Self::Key(
                    fields
                        .into_iter()
                        .map(|(name, value)| (name, Item(value)))
                        .collect(),
                ),
                _ => return Err(format!("{text}: the keys of an item must be an object")),
            },
            "i" => Self::Index(rest.parse().map_err(|e| format!("{text}: {e}"))?),
            _ => return Ok(None),
        }))
    }

    /// Formats the [`Element`] in a printed path: `.name`, `[name="a"]`, `[="a"]`, `[0]`.
    pub(super) fn in_path(&self) -> String {
        match self {
            Self::Field(name) => format!(".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{name}={}", value.in_path()))
                    .collect();
                format!("[{}]", fields.join(","))
            }
            Self::Value(value) => format!("[={}]", value.in_path()),
            Self::Index(index) => format!("[{index}]"),
        }
    }
}

/// Formats the [`Element`] in `fieldsV1`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, "f:{name}"),
            Self::Key(fields) => {
                f.write_str("k:{")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(
                        f,
                        "{comma}{}:{}",
                        go_json(&Value::from(name.as_str())),
                        go_json(&value.0)
                    )?;
                }
                f.write_str("}")
            }
            Self::Value(value) => write!(f, "v:{}", go_json(&value.0)),
            Self::Index(index) => write!(f, "i:{index}"),
        }
    }
}

impl Item {
    fn in_path(&self) -> String {
        match &self.0 {
            Value::String(text) => go_quote(text),
            other => go_json(other),
        }
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Order: numbers, texts, booleans, lists, objects, null; numbers by value.
impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => {
                let float = |n: &serde_json::Number| n.as_f64().unwrap_or_default();
                float(a).total_cmp(&float(b))
            }
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a
                .iter()
                .zip(b)
                .map(|(a, b)| compare(a, b))
                .find(|order| order.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let pairs = a.iter().zip(b);
            let unequal = pairs
                .map(|((an, av), (bn, bv))| an.cmp(bn).then_with(|| compare(av, bv)))
                .find(|order| order.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
