//! Sizes of values: actual sizes, or upper bounds from a schema.

use std::collections::BTreeMap;

use serde_json::Value;

use super::convert::escape;
use crate::schema::node::{Additional, Kind, Node};

/// Maximum size of a request in bytes (`MaxRequestSizeBytes`), the bound of values without a bound in the schema.
pub(super) const REQUEST: u64 = 3 * 1024 * 1024;

/// Size of a value, or an upper bound.
#[derive(Clone, Debug, Default)]
pub(super) struct Measure {
    pub(super) shape: Shape,
    /// Number of characters, items or entries.
    pub(super) length: u64,
    /// Size of the smallest value as JSON, in bytes.
    pub(super) smallest: u64,
    pub(super) fields: BTreeMap<String, Measure>,
    pub(super) item: Option<Box<Measure>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shape {
    /// Object with the declared fields only.
    Object,
    Map,
    List,
    Text,
    #[default]
    Other,
}

impl Measure {
    /// Returns the largest value allowed by the schema of a [`Node`].
    pub(super) fn of_schema(node: &Node, root: bool) -> Self {
        let checks = node.checks.as_ref();
        let limit = |max: Option<i64>| max.map(|max| max.max(0) as u64);
        let max_length = limit(checks.and_then(|c| c.max_length)).map(|max| max.saturating_mul(4));
        if node.int_or_string {
            let length = max_length.unwrap_or(REQUEST - 2);
            return Self {
                shape: Shape::Other,
                length,
                smallest: 1,
                ..Self::default()
            };
        }
        match node.kind {
            Some(Kind::Array) => {
                let item = node
                    .items
                    .as_ref()
                    .map(|n| Box::new(Self::of_schema(n, n.embedded)));
                let smallest = item.as_ref().map_or(1, |item| item.smallest);
                let length = limit(checks.and_then(|c| c.max_items))
                    .unwrap_or((REQUEST - 2) / (smallest + 1));
                Self {
                    shape: Shape::List,
                    length,
                    smallest: 2,
                    item,
                    ..Self::default()
                }
            }
            Some(Kind::Object) => Self::of_object(node, root),
            Some(Kind::String) => {
                let (length, smallest) = match checks.and_then(|c| c.format.as_deref()) {
                    Some("duration") => (32, 4),
                    Some("date") => (10, 12),
                    Some("date-time") => (27, 22),
                    _ => {
                        let allowed = checks.and_then(|c| c.allowed.as_ref()).map(|allowed| {
                            let lengths = allowed.iter().filter_map(Value::as_str).map(str::len);
                            lengths.max().unwrap_or(0) as u64
                        });
                        (max_length.or(allowed).unwrap_or(REQUEST - 2), 2)
                    }
                };
                Self {
                    shape: Shape::Text,
                    length,
                    smallest,
                    ..Self::default()
                }
            }
            Some(Kind::Boolean) => Self {
                smallest: 4,
                length: 1,
                ..Self::default()
            },
            Some(Kind::Integer | Kind::Number) => Self {
                smallest: 1,
                length: 1,
                ..Self::default()
            },
            None => Self {
                length: REQUEST - 2,
                smallest: 1,
                ..Self::default()
            },
        }
    }

    fn of_object(node: &Node, root: bool) -> Self {
        if let Some(Additional::Schema(schema)) = &node.additional {
            let item = Box::new(Self::of_schema(schema, schema.embedded));
            let max = node
                .checks
                .as_ref()
                .and_then(|checks| checks.max_properties);
            let length = max.map_or((REQUEST - 2) / (item.smallest + 6), |max| max.max(0) as u64);
            let item = Some(item);
            return Self {
                shape: Shape::Map,
                length,
                smallest: 2,
                item,
                ..Self::default()
            };
        }
        let mut smallest = 2;
        let mut fields = BTreeMap::new();
        for (name, property) in &node.properties {
            let field = Self::of_schema(property, property.embedded);
            let required = node
                .checks
                .as_ref()
                .is_some_and(|c| c.required.contains(name));
            if required && property.default.is_none() {
                smallest += name.len() as u64 + field.smallest + 4;
            }
            fields.insert(escape(name), field);
        }
        if root {
            let text = || Self {
                shape: Shape::Text,
                length: REQUEST - 2,
                ..Self::default()
            };
            let names = [
                ("name".to_owned(), text()),
                ("generateName".to_owned(), text()),
            ];
            let metadata = Self {
                shape: Shape::Object,
                fields: names.into(),
                ..Self::default()
            };
            fields.insert("apiVersion".into(), text());
            fields.insert("kind".into(), text());
            fields.insert("metadata".into(), metadata);
        }
        Self {
            shape: Shape::Object,
            length: 1,
            smallest,
            fields,
            item: None,
        }
    }

    /// Returns the size of an actual value; items of a list are joined to one.
    pub(super) fn of_value(value: &Value) -> Self {
        match value {
            Value::String(text) => Self {
                shape: Shape::Text,
                length: text.len() as u64,
                ..Self::default()
            },
            Value::Array(items) => {
                let item = items
                    .iter()
                    .map(Self::of_value)
                    .reduce(Self::join)
                    .map(Box::new);
                Self {
                    shape: Shape::List,
                    length: items.len() as u64,
                    item,
                    ..Self::default()
                }
            }
            Value::Object(entries) => {
                let fields: BTreeMap<String, Self> = entries
                    .iter()
                    .map(|(name, v)| (escape(name), Self::of_value(v)))
                    .collect();
                let item = fields.values().cloned().reduce(Self::join).map(Box::new);
                // A map: rules may select any key, present or not.
                Self {
                    shape: Shape::Map,
                    length: entries.len() as u64,
                    fields,
                    item,
                    smallest: 0,
                }
            }
            _ => Self {
                length: 1,
                ..Self::default()
            },
        }
    }

    pub(super) fn join(mut self, other: Self) -> Self {
        if self.shape != other.shape {
            self.shape = Shape::Other;
        }
        self.length = self.length.max(other.length);
        for (name, field) in other.fields {
            let joined = match self.fields.remove(&name) {
                Some(present) => present.join(field),
                None => field,
            };
            self.fields.insert(name, joined);
        }
        self.item = match (self.item, other.item) {
            (Some(a), Some(b)) => Some(Box::new(a.join(*b))),
            (a, b) => a.or(b),
        };
        self
    }

    pub(super) fn text(length: u64) -> Self {
        Self {
            shape: Shape::Text,
            length,
            ..Self::default()
        }
    }

    pub(super) fn list(length: u64, item: Measure) -> Self {
        Self {
            shape: Shape::List,
            length,
            item: Some(Box::new(item)),
            ..Self::default()
        }
    }

    pub(super) fn item(&self) -> Measure {
        self.item.as_deref().cloned().unwrap_or(Self {
            length: self.length,
            ..Self::default()
        })
    }
}
