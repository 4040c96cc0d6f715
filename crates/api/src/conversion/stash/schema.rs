//! Schema check of values from a stash, before their restoration.
//!
//! An API server also converts partial objects: required fields may be absent.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::Value;

use super::path::Step;

/// Limits of a value by its schema, without descriptions, defaults and rules: the full schemas of all kinds in
/// Kubernetes' types would take 30 MB for the life of the program.
#[derive(Debug)]
pub(super) struct Schema {
    type_: Option<Type>,
    /// True if members besides `members` may have any value.
    free: bool,
    /// Members, sorted by name.
    members: Box<[(Box<str>, Schema)]>,
    /// Schema of other members.
    others: Option<Box<Schema>>,
    items: Option<Box<Schema>>,
    limits: Option<Box<Limits>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
    /// Type without values.
    Other,
}

#[derive(Debug, Default, PartialEq)]
struct Limits {
    values: Option<Box<[Value]>>,
    int32: bool,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_length: Option<i64>,
    max_length: Option<i64>,
    max_items: Option<i64>,
    max_properties: Option<i64>,
    pattern: Option<Box<str>>,
}

/// Place in an object, by schema.
pub(super) enum Spot<'a> {
    /// Place with a schema.
    Schema(&'a Schema),
    /// Place for any value.
    Free,
}

impl Schema {
    /// [`Spot`] at `steps`; `None` for a place without a field.
    pub(super) fn at(&self, steps: &[Step]) -> Option<Spot<'_>> {
        let mut schema = self;
        for step in steps {
            let next = match step {
                Step::Member(name) => schema.member(name),
                Step::Element(_) => schema.items.as_deref(),
            };
            match next {
                Some(next) => schema = next,
                None => return schema.free.then_some(Spot::Free),
            }
        }
        Some(Spot::Schema(schema))
    }

    /// True if an object with `others` further members may have one more.
    pub(super) fn has_room(&self, others: usize) -> bool {
        within(others + 1, None, self.limit(|it| it.max_properties))
    }

    /// True if the schema admits the value, or a part of an object.
    pub(super) fn admits(&self, value: &Value) -> bool {
        if let Some(values) = self.limits.as_ref().and_then(|it| it.values.as_ref())
            && !values.contains(value)
        {
            return false;
        }
        let is = |type_| self.type_.is_none_or(|it| it == type_);
        match value {
            Value::Null => true,
            Value::Bool(_) => is(Type::Boolean),
            Value::Number(number) => {
                let integer = number.is_i64() || number.is_u64();
                let number = number.as_f64().unwrap_or_default();
                (is(Type::Number) || (integer && is(Type::Integer)))
                    && self.limit(|it| it.minimum).is_none_or(|it| number >= it)
                    && self.limit(|it| it.maximum).is_none_or(|it| number <= it)
                    && (self.limits.as_ref().is_none_or(|it| !it.int32)
                        || number.abs() <= 2_147_483_648.0)
            }
            Value::String(text) => {
                let (least, most) = (
                    self.limit(|it| it.min_length),
                    self.limit(|it| it.max_length),
                );
                let pattern = self.limits.as_ref().and_then(|it| it.pattern.as_deref());
                is(Type::String)
                    && within(text.chars().count(), least, most)
                    && pattern.is_none_or(|it| matches(it, text))
            }
            Value::Array(items) => {
                is(Type::Array)
                    && within(items.len(), None, self.limit(|it| it.max_items))
                    && items
                        .iter()
                        .all(|item| self.items.as_ref().is_none_or(|of| of.admits(item)))
            }
            Value::Object(fields) => {
                is(Type::Object)
                    && within(fields.len(), None, self.limit(|it| it.max_properties))
                    && fields.iter().all(|(name, value)| match self.member(name) {
                        Some(of) => of.admits(value),
                        None => self.free,
                    })
            }
        }
    }

    fn member(&self, name: &str) -> Option<&Self> {
        let found = self.members.binary_search_by(|(it, _)| (**it).cmp(name));
        match found {
            Ok(found) => self.members.get(found).map(|(_, schema)| schema),
            Err(_) => self.others.as_deref(),
        }
    }

    fn limit<T>(&self, of: impl FnOnce(&Limits) -> Option<T>) -> Option<T> {
        self.limits.as_ref().and_then(|it| of(it))
    }
}

impl From<&JSONSchemaProps> for Schema {
    fn from(of: &JSONSchemaProps) -> Self {
        let says_nothing = of.type_.is_none() && of.x_kubernetes_int_or_string != Some(true);
        let (free, others) = match &of.additional_properties {
            Some(JSONSchemaPropsOrBool::Schema(values)) => (false, Some(&**values)),
            Some(JSONSchemaPropsOrBool::Bool(free)) => (*free, None),
            None => (false, None),
        };
        let items = match &of.items {
            Some(JSONSchemaPropsOrArray::Schema(items)) => Some(&**items),
            _ => None,
        };
        // A BTreeMap is sorted, as needed by the binary search.
        let members = of.properties.iter().flatten();
        let limits = Limits::from(of);
        Self {
            type_: of.type_.as_deref().map(Type::from),
            free: free || says_nothing || of.x_kubernetes_preserve_unknown_fields == Some(true),
            members: members
                .map(|(name, of)| (name.as_str().into(), Self::from(of)))
                .collect(),
            others: others.map(|it| Box::new(Self::from(it))),
            items: items.map(|it| Box::new(Self::from(it))),
            limits: (limits != Limits::default()).then(|| Box::new(limits)),
        }
    }
}

impl From<&str> for Type {
    fn from(name: &str) -> Self {
        match name {
            "array" => Self::Array,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "object" => Self::Object,
            "string" => Self::String,
            _ => Self::Other,
        }
    }
}

impl From<&JSONSchemaProps> for Limits {
    fn from(of: &JSONSchemaProps) -> Self {
        let values = of.enum_.as_ref();
        Self {
            values: values.map(|all| all.iter().map(|it| it.0.clone()).collect()),
            int32: of.format.as_deref() == Some("int32"),
            minimum: of.minimum,
            maximum: of.maximum,
            min_length: of.min_length,
            max_length: of.max_length,
            max_items: of.max_items,
            max_properties: of.max_properties,
            pattern: of.pattern.as_deref().map(Into::into),
        }
    }
}

/// True if a schema of Kubernetes' type admits the value, or a part of an object.
#[cfg(test)]
pub(crate) fn admits(schema: &JSONSchemaProps, value: &Value) -> bool {
    Schema::from(schema).admits(value)
}

fn within(count: usize, least: Option<i64>, most: Option<i64>) -> bool {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    least.is_none_or(|least| count >= least) && most.is_none_or(|most| count <= most)
}

/// True if a text matches a pattern of a schema. An invalid pattern matches nothing.
fn matches(pattern: &str, text: &str) -> bool {
    static KNOWN: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let regex = match known.get(pattern) {
        Some(regex) => regex,
        None => known
            .entry(pattern.to_owned())
            .or_insert_with(|| Regex::new(pattern).ok()),
    };
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: Value) -> Schema {
        let schema: JSONSchemaProps = serde_json::from_value(schema).unwrap();
        Schema::from(&schema)
    }

    #[test]
    fn what_the_schema_refuses_is_not_admitted() {
        let schema = of(json!({"type": "object", "maxProperties": 2, "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 1},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "tags": {"type": "array", "maxItems": 2, "items": {"type": "string", "pattern": "^[^,]+$"}},
        }}));
        for good in [
            json!({}),
            json!({"size": 1, "kind": "a"}),
            json!({"tags": ["x"]}),
            json!(null),
        ] {
            assert!(schema.admits(&good), "{good}");
        }
        for bad in [
            json!("text"),
            json!({"other": 1}),
            json!({"size": 0}),
            json!({"size": "1"}),
            json!({"size": 3_000_000_000_u32}),
            json!({"size": 1.5}),
            json!({"kind": "c"}),
            json!({"tags": ["a,b"]}),
            json!({"tags": ["a", "b", "c"]}),
            json!({"size": 1, "kind": "a", "tags": []}),
        ] {
            assert!(!schema.admits(&bad), "{bad}");
        }
    }

    #[test]
    fn a_place_without_a_field_in_the_schema_has_none() {
        let schema = of(json!({"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}));
        let member = |name: &str| Step::Member(name.to_owned());
        assert!(
            schema
                .at(&[member("list"), Step::Element(0), member("a")])
                .is_some()
        );
        assert!(
            schema
                .at(&[member("list"), Step::Element(0), member("b")])
                .is_none()
        );
        assert!(schema.at(&[member("map"), member("x")]).is_some());
        assert!(
            schema
                .at(&[member("map"), member("x"), member("y")])
                .is_none()
        );
        assert!(
            schema
                .at(&[member("any"), member("x"), member("y")])
                .is_some()
        );
        assert!(schema.at(&[member("metadata")]).is_none());
    }
}
