//! Tree of a schema, read once from `openAPIV3Schema`.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::{FieldError, cel::Rule, path::Path};

/// Schema of a value. Junctor branches (`allOf` and so on) are nodes, too; in a structural schema branches have value
/// validation only.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) kind: Option<Kind>,
    pub(crate) nullable: bool,
    pub(crate) preserve: bool,
    pub(crate) embedded: bool,
    pub(crate) int_or_string: bool,
    pub(crate) list: Option<ListType>,
    pub(crate) map: Option<MapType>,
    pub(crate) properties: BTreeMap<String, Node>,
    /// Names of the properties with a default.
    pub(crate) defaulted: Vec<String>,
    pub(crate) additional: Option<Additional>,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) default: Option<Value>,
    pub(crate) checks: Option<Box<Checks>>,
    pub(crate) rules: Vec<Rule>,
    /// True if this node or a descendant has rules; walks skip all other nodes.
    pub(crate) has_rules: bool,
}

/// `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
}

/// `additionalProperties`.
#[derive(Debug)]
pub(crate) enum Additional {
    Any(bool),
    Schema(Box<Node>),
}

/// `x-kubernetes-list-type`, with the keys of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    Map(Vec<String>),
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapType {
    Atomic,
    Granular,
}

/// Value validation.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) format: Option<String>,
    pub(crate) allowed: Option<Vec<Value>>,
    pub(crate) maximum: Option<(f64, bool)>,
    pub(crate) minimum: Option<(f64, bool)>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    /// `uniqueItems`.
    pub(crate) unique: bool,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) required: Vec<String>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
}

/// Compiled `pattern`. Go's syntax (RE2) and the syntax of the regex crate are nearly the same.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) regex: Regex,
}

impl Kind {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "array" => Self::Array,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "object" => Self::Object,
            "string" => Self::String,
            _ => return None,
        })
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        }
    }
}

impl Node {
    /// Returns the [`Node`] of a field or key of an object, and true if the field is declared.
    pub(crate) fn child(&self, name: &str) -> Option<(&Node, bool)> {
        match (self.properties.get(name), &self.additional) {
            (Some(property), _) => Some((property, true)),
            (None, Some(Additional::Schema(schema))) => Some((schema, false)),
            _ => None,
        }
    }

    /// Returns `type` as in messages.
    pub(crate) fn type_name(&self) -> &'static str {
        self.kind.map_or("", Kind::as_str)
    }

    /// Reads a schema and appends its errors to `errors`. The caller has checked the depth of the whole document.
    pub(crate) fn read(schema: &Value, path: Path<'_>, errors: &mut Vec<FieldError>) -> Self {
        let Value::Object(fields) = schema else {
            errors.push(FieldError::invalid(
                path.bracketed(),
                schema,
                "must be a schema object",
            ));
            return Self::default();
        };
        let reader = Reader { fields, path };
        let extension = |name: &str| fields.get(name) == Some(&Value::Bool(true));
        let properties = reader.children("properties", errors);
        let additional = match fields.get("additionalProperties") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(allowed)) => Some(Additional::Any(*allowed)),
            Some(schema) => {
                let path = path.field("additionalProperties");
                Some(Additional::Schema(Box::new(Self::read(
                    schema, path, errors,
                ))))
            }
        };
        let items = match fields.get("items") {
            None | Some(Value::Null | Value::Array(_)) => None, // arrays are rejected by the checks
            Some(schema) => Some(Box::new(Self::read(schema, path.field("items"), errors))),
        };
        Self {
            kind: reader.text("type", errors).and_then(Kind::parse),
            nullable: extension("nullable"),
            preserve: extension("x-kubernetes-preserve-unknown-fields"),
            embedded: extension("x-kubernetes-embedded-resource"),
            int_or_string: extension("x-kubernetes-int-or-string"),
            list: reader.list_type(errors),
            map: match reader.text("x-kubernetes-map-type", errors) {
                Some("atomic") => Some(MapType::Atomic),
                Some("granular") => Some(MapType::Granular),
                _ => None,
            },
            defaulted: properties
                .iter()
                .filter(|(_, property)| property.default.is_some())
                .map(|(name, _)| name.clone())
                .collect(),
            properties,
            additional,
            items,
            default: fields
                .get("default")
                .filter(|value| !value.is_null())
                .cloned(),
            checks: reader.checks(errors),
            rules: Vec::new(),
            has_rules: false,
        }
    }
}

struct Reader<'a> {
    fields: &'a Map<String, Value>,
    path: Path<'a>,
}

impl<'a> Reader<'a> {
    fn checks(&self, errors: &mut Vec<FieldError>) -> Option<Box<Checks>> {
        const NAMES: [&str; 20] = [
            "format",
            "enum",
            "maximum",
            "minimum",
            "multipleOf",
            "maxLength",
            "minLength",
            "pattern",
            "maxItems",
            "minItems",
            "uniqueItems",
            "maxProperties",
            "minProperties",
            "required",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "exclusiveMaximum",
            "exclusiveMinimum",
        ];
        if !NAMES.iter().any(|name| self.fields.contains_key(*name)) {
            return None;
        }
        let bound = |value: Option<f64>, exclusive: &str| {
            value.map(|v| (v, self.fields.get(exclusive) == Some(&Value::Bool(true))))
        };
        Some(Box::new(Checks {
            format: self.format(errors),
            allowed: self.array("enum", errors).map(<[Value]>::to_vec),
            maximum: bound(self.number("maximum", errors), "exclusiveMaximum"),
            minimum: bound(self.number("minimum", errors), "exclusiveMinimum"),
            multiple_of: self.number("multipleOf", errors),
            max_length: self.integer("maxLength", errors),
            min_length: self.integer("minLength", errors),
            pattern: self.pattern(errors),
            max_items: self.integer("maxItems", errors),
            min_items: self.integer("minItems", errors),
            unique: self.fields.get("uniqueItems") == Some(&Value::Bool(true)),
            max_properties: self.integer("maxProperties", errors),
            min_properties: self.integer("minProperties", errors),
            required: self.strings("required", errors),
            all_of: self.branches("allOf", errors),
            any_of: self.branches("anyOf", errors),
            one_of: self.branches("oneOf", errors),
            not: match self.fields.get("not") {
                None | Some(Value::Null) => None,
                Some(schema) => Some(Box::new(Node::read(schema, self.path.field("not"), errors))),
            },
        }))
    }

    /// Returns the format, if Kubernetes validates it for definitions. Others are ignored, formats of numbers among
    /// them (`apiextensions-apiserver/pkg/apiserver/validation/formats.go`).
    fn format(&self, errors: &mut Vec<FieldError>) -> Option<String> {
        let format = self
            .text("format", errors)
            .filter(|format| !format.is_empty())?;
        let int_or_string =
            self.fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
        // A value of two types has the formats of neither.
        let supported = !int_or_string && super::format::is_known(format);
        supported.then(|| format.to_owned())
    }

    fn pattern(&self, errors: &mut Vec<FieldError>) -> Option<Pattern> {
        let text = self
            .text("pattern", errors)
            .filter(|text| !text.is_empty())?;
        // The limit of the compiled size rejects patterns such as `(a{1000}){1000}`.
        match regex::RegexBuilder::new(text).size_limit(1 << 20).build() {
            Ok(regex) => Some(Pattern {
                text: text.to_owned(),
                regex,
            }),
            Err(error) => {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default();
                let detail = format!("must be a valid regular expression, but isn't: {why}");
                let path = self.path.field("pattern").bracketed();
                errors.push(FieldError::invalid(path, &Value::from(text), detail));
                None
            }
        }
    }

    fn list_type(&self, errors: &mut Vec<FieldError>) -> Option<ListType> {
        let keys = self.strings("x-kubernetes-list-map-keys", errors);
        match self.text("x-kubernetes-list-type", errors)? {
            "atomic" => Some(ListType::Atomic),
            "set" => Some(ListType::Set),
            "map" => Some(ListType::Map(keys)),
            _ => None, // rejected by the checks
        }
    }

    fn branches(&self, name: &'static str, errors: &mut Vec<FieldError>) -> Vec<Node> {
        let Some(schemas) = self.array(name, errors) else {
            return Vec::new();
        };
        let path = self.path.field(name);
        schemas
            .iter()
            .enumerate()
            .map(|(i, schema)| Node::read(schema, path.index(i), errors))
            .collect()
    }

    fn children(&self, name: &'static str, errors: &mut Vec<FieldError>) -> BTreeMap<String, Node> {
        let path = self.path.field(name);
        match self.fields.get(name) {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(Value::Object(schemas)) => schemas
                .iter()
                .map(|(name, schema)| (name.clone(), Node::read(schema, path.key(name), errors)))
                .collect(),
            Some(other) => {
                errors.push(FieldError::invalid(
                    path.bracketed(),
                    other,
                    "must be an object",
                ));
                BTreeMap::new()
            }
        }
    }

    fn text(&self, name: &'static str, errors: &mut Vec<FieldError>) -> Option<&'a str> {
        self.get(name, Value::as_str, "must be a string", errors)
    }

    fn number(&self, name: &'static str, errors: &mut Vec<FieldError>) -> Option<f64> {
        self.get(name, Value::as_f64, "must be a number", errors)
    }

    fn integer(&self, name: &'static str, errors: &mut Vec<FieldError>) -> Option<i64> {
        // Go also decodes 3.0 into an int64 field of the internal type.
        let read = |value: &Value| {
            value.as_i64().or_else(|| {
                value
                    .as_f64()
                    .filter(|f| f.fract() == 0.0)
                    .map(|f| f as i64)
            })
        };
        self.get(name, read, "must be an integer", errors)
    }

    fn array(&self, name: &'static str, errors: &mut Vec<FieldError>) -> Option<&'a [Value]> {
        self.get(
            name,
            |value| value.as_array().map(Vec::as_slice),
            "must be an array",
            errors,
        )
    }

    fn strings(&self, name: &'static str, errors: &mut Vec<FieldError>) -> Vec<String> {
        let items = self.array(name, errors).unwrap_or_default();
        items
            .iter()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    }

    fn get<T>(
        &self,
        name: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
        detail: &str,
        errors: &mut Vec<FieldError>,
    ) -> Option<T> {
        let value = self.fields.get(name).filter(|value| !value.is_null())?;
        let read = read(value);
        if read.is_none() {
            errors.push(FieldError::invalid(
                self.path.field(name).bracketed(),
                value,
                detail,
            ));
        }
        read
    }
}
