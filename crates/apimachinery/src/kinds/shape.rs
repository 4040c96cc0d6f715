//! Go types of the built-in kinds: validation of types when decoding, omission of empty fields when encoding, and
//! defaults.
//!
//! `shapes.json` is printed from the types (`tests/kubernetes/tools/shapes`). `defaults.json` (constant defaults) and
//! the module `computed` (defaults that depend on other fields) follow `pkg/apis/*/v1/defaults.go` of Kubernetes.
//! Recursion is bounded by the depth of values, which decoding limits.

mod computed;
pub mod protobuf;
mod quantity;
pub mod time;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::schema::{Budget, MAX_REPORTED, Overflow, weight};

/// Maximum size of the defaults of one object as JSON, in bytes. Their protobuf form, which counts for the limit of a
/// built-in object, takes a quarter of that size or more.
const MOST_DEFAULTS: usize = 8 << 20;
/// Approximate size of a computed default in bytes.
const COMPUTED: usize = 16;

/// Go struct.
#[derive(Debug)]
pub struct Struct {
    /// Name of the Go type, such as `Container`.
    name: &'static str,
    fields: BTreeMap<&'static str, Field>,
    defaults: Map<String, Value>,
    /// Function for the defaults that depend on other fields.
    computed: Option<fn(&mut Map<String, Value>)>,
}

#[derive(Debug)]
struct Field {
    /// True for a field that is written even when empty.
    always: bool,
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    Text,
    Bool,
    /// `int32` or `int64`.
    Integer(&'static str),
    Float,
    Bytes,
    Quantity,
    Time,
    IntOrString,
    Any,
    Pointer(Box<Shape>),
    List(Box<Shape>),
    Map(Box<Shape>),
    /// Name of a struct in `shapes.json`.
    Struct(&'static str),
}

type Entries = HashMap<&'static str, Entry>;

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Entry {
    /// Kind, with the name of its struct.
    Kind(&'static str),
    Struct(BTreeMap<&'static str, &'static str>),
}

static KINDS: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let kinds = entries()
        .into_iter()
        .filter_map(|(name, entry)| match entry {
            Entry::Kind(of) => Some((name, of)),
            Entry::Struct(_) => None,
        });
    kinds.collect()
});

static STRUCTS: LazyLock<HashMap<&'static str, Struct>> = LazyLock::new(|| {
    let text = include_str!("defaults.json");
    // Embedded in the program; a test parses the file.
    let mut defaults: HashMap<String, Map<String, Value>> =
        serde_json::from_str(text).unwrap_or_default();
    let structs = entries()
        .into_iter()
        .filter_map(|(name, entry)| match entry {
            Entry::Kind(_) => None,
            Entry::Struct(fields) => {
                let short = name.rsplit('.').next().unwrap_or(name);
                let fields = fields.into_iter().map(|(name, text)| (name, field(text)));
                let described = Struct {
                    name: short,
                    fields: fields.collect(),
                    defaults: defaults.remove(name).unwrap_or_default(),
                    computed: computed::of(name),
                };
                Some((name, described))
            }
        });
    structs.collect()
});

fn entries() -> Entries {
    // Embedded in the program; a test parses the file.
    serde_json::from_str(include_str!("shapes.json")).unwrap_or_default()
}

fn field(text: &'static str) -> Field {
    let (always, text) = match text.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    Field {
        always,
        shape: shape(text),
    }
}

fn shape(text: &'static str) -> Shape {
    if let Some(item) = text.strip_prefix('*') {
        return Shape::Pointer(Box::new(shape(item)));
    }
    match text {
        "string" => Shape::Text,
        "bool" => Shape::Bool,
        "int" | "int32" | "int64" => Shape::Integer(text),
        "float64" => Shape::Float,
        "[]byte" => Shape::Bytes,
        "quantity" => Shape::Quantity,
        "time" => Shape::Time,
        "intorstring" => Shape::IntOrString,
        "any" => Shape::Any,
        text => match (text.strip_prefix("[]"), text.strip_prefix("{}")) {
            (Some(item), _) => Shape::List(Box::new(shape(item))),
            (_, Some(item)) => Shape::Map(Box::new(shape(item))),
            _ => Shape::Struct(text),
        },
    }
}

/// Returns the type of a kind; `None` for kinds without one (CustomResourceDefinition).
pub fn of(group: &str, version: &str, kind: &str) -> Option<&'static Struct> {
    let name = KINDS.get(format!("{group}/{version}, Kind={kind}").as_str())?;
    STRUCTS.get(name)
}

/// Returns the type of the metadata of all kinds.
pub fn metadata() -> Option<&'static Struct> {
    STRUCTS.get("meta.v1.ObjectMeta")
}

/// Returns the type of the status of CustomResourceDefinitions.
pub(crate) fn definition_status() -> Option<&'static Struct> {
    STRUCTS.get("apiextensions.v1.CustomResourceDefinitionStatus")
}

impl Struct {
    /// Decodes a value: rejects wrong types with the messages of Go, removes unknown fields, and returns the paths of
    /// the removed fields.
    pub fn read(&self, value: &mut Value) -> Result<Vec<String>, String> {
        let mut unknown = Vec::new();
        read_struct(self, value, &Path::root(), &mut unknown)?;
        Ok(unknown)
    }

    /// Decodes the value of a field of another struct.
    pub(crate) fn read_field(
        &self,
        owner: &'static str,
        field: &str,
        value: &mut Value,
    ) -> Result<Vec<String>, String> {
        let mut unknown = Vec::new();
        read_struct(self, value, &Path::root().field(owner, field), &mut unknown)?;
        Ok(unknown)
    }

    /// Sets the defaults in the order of Go's decoding: the defaults of a struct first, then those of nested structs.
    ///
    /// # Errors
    /// [`Overflow`] if the defaults alone are larger than an object that can be stored; `value` may have some of them
    /// then.
    pub fn default(&self, value: &mut Value) -> Result<(), Overflow> {
        let mut budget = Budget::new(MOST_DEFAULTS);
        self.fill(value, &mut budget);
        budget.done()
    }

    fn fill(&self, value: &mut Value, budget: &mut Budget) {
        let Value::Object(fields) = value else { return };
        if budget.is_spent() {
            return;
        }
        if let Some(compute) = self.computed {
            let before = fields.len();
            compute(fields);
            budget.take(COMPUTED * fields.len().saturating_sub(before));
        }
        for (name, default) in &self.defaults {
            let found = fields.entry(name.as_str()).or_insert(Value::Null);
            if self.is_unset(name, found) {
                budget.take(weight(name, default));
                *found = default.clone();
            }
        }
        for (name, field) in &self.fields {
            match (&field.shape, fields.get_mut(*name)) {
                (shape, Some(value)) if !value.is_null() => default_value(shape, value, budget),
                // A struct that is not a pointer always exists.
                (Shape::Struct(of), _) => {
                    let mut value = json!({});
                    if let Some(of) = STRUCTS.get(of) {
                        of.fill(&mut value, budget);
                    }
                    if value != json!({}) {
                        budget.take(name.len());
                        fields.insert((*name).to_owned(), value);
                    }
                }
                _ => {}
            }
        }
    }

    /// True if a field has the zero value of its Go type.
    fn is_unset(&self, field: &str, value: &Value) -> bool {
        match value {
            Value::Null => true,
            _ if self.is_pointer(field) => false,
            Value::String(text) => text.is_empty(),
            Value::Number(_) => *value == 0,
            Value::Array(items) => items.is_empty(),
            _ => false,
        }
    }

    /// Encodes a value: empty fields are omitted or written as their Go types require.
    pub fn write(&self, value: &mut Value) {
        let Value::Object(fields) = value else { return };
        fields.retain(|name, value| {
            self.fields
                .get(name.as_str())
                .is_none_or(|field| field.always || !is_empty(&field.shape, value))
        });
        for (name, field) in &self.fields {
            if field.always && fields.get(*name).is_none_or(Value::is_null) {
                fields.insert((*name).to_owned(), zero(&field.shape));
            } else if let Some(value) = fields.get_mut(*name) {
                each_struct(&field.shape, value, &mut |of, value| of.write(value));
            }
        }
    }

    /// Converts a value to the form that kube-apiserver reads back from its storage: an empty list without `omitempty`
    /// becomes null.
    pub fn store(&self, value: &mut Value) {
        let Value::Object(fields) = value else { return };
        for (name, field) in &self.fields {
            let Some(value) = fields.get_mut(*name) else {
                continue;
            };
            if value.as_array().is_some_and(Vec::is_empty) {
                *value = Value::Null;
            } else {
                each_struct(&field.shape, value, &mut |of, value| of.store(value));
            }
        }
    }

    /// Returns the empty object.
    pub fn zero(&self) -> Value {
        let mut value = json!({});
        self.write(&mut value);
        value
    }

    fn is_pointer(&self, field: &str) -> bool {
        self.fields
            .get(field)
            .is_some_and(|field| matches!(field.shape, Shape::Pointer(_)))
    }
}

fn default_value(shape: &Shape, value: &mut Value, budget: &mut Budget) {
    match (shape, value) {
        (Shape::Map(item), Value::Object(amounts)) if matches!(**item, Shape::Quantity) => {
            for amount in amounts.values_mut() {
                if let Some(rounded) = amount.as_str().and_then(quantity::rounded) {
                    *amount = Value::from(rounded);
                }
            }
        }
        (shape, value) => each_struct(shape, value, &mut |of, value| of.fill(value, budget)),
    }
}

fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!(""),
        Shape::Bool => json!(false),
        Shape::Integer(_) | Shape::Float | Shape::IntOrString => json!(0),
        Shape::Quantity => json!("0"),
        Shape::Struct(name) => STRUCTS.get(name).map_or(Value::Null, Struct::zero),
        _ => Value::Null,
    }
}

fn is_empty(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (_, Value::Null) => true,
        (Shape::Pointer(_) | Shape::Struct(_) | Shape::Any, _) => false,
        (_, Value::String(text)) => text.is_empty(),
        (Shape::IntOrString, _) => false,
        (_, Value::Bool(value)) => !value,
        (_, Value::Number(_)) => *value == 0,
        (_, Value::Array(items)) => items.is_empty(),
        (_, Value::Object(fields)) => fields.is_empty(),
    }
}

fn each_struct(shape: &Shape, value: &mut Value, what: &mut impl FnMut(&Struct, &mut Value)) {
    match (shape, value) {
        (Shape::Pointer(inner), value) => each_struct(inner, value, what),
        (Shape::List(item), Value::Array(items)) => {
            for value in items {
                each_struct(item, value, what);
            }
        }
        (Shape::Map(item), Value::Object(fields)) => {
            for value in fields.values_mut() {
                each_struct(item, value, what);
            }
        }
        (Shape::Struct(name), value) => {
            if let Some(of) = STRUCTS.get(name) {
                what(of, value);
            }
        }
        _ => {}
    }
}

/// Path of a value as a chain of borrowed elements, without copies.
#[derive(Clone, Copy)]
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
    owner: &'static str,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Item(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    fn root() -> Self {
        Self {
            parent: None,
            step: Step::Root,
            owner: "",
        }
    }

    fn field(&'a self, owner: &'static str, name: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Field(name),
            owner,
        }
    }

    fn item(&'a self, index: usize) -> Path<'a> {
        self.below(Step::Item(index))
    }

    fn key(&'a self, key: &'a str) -> Path<'a> {
        self.below(Step::Key(key))
    }

    fn below(&'a self, step: Step<'a>) -> Path<'a> {
        Path {
            parent: Some(self),
            step,
            owner: self.owner,
        }
    }

    /// Formats the path for warnings, with indexes and keys.
    fn full(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, true);
        text
    }

    /// Formats the path for errors of Go's decoder, without indexes and keys.
    fn fields(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, false);
        text
    }

    fn write(&self, text: &mut String, full: bool) {
        if let Some(parent) = self.parent {
            parent.write(text, full);
        }
        match self.step {
            Step::Root => {}
            Step::Item(index) if full => {
                // Writing to a text cannot fail.
                let _ = write!(text, "[{index}]");
            }
            Step::Key(key) if full => {
                text.push('.');
                text.push_str(key);
            }
            Step::Item(_) | Step::Key(_) => {}
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
        }
    }

    /// Returns the name of the field that contains the value.
    fn name(&self) -> &str {
        match (self.step, self.parent) {
            (Step::Field(name), _) => name,
            (_, Some(parent)) => parent.name(),
            (_, None) => "",
        }
    }

    /// True for the uid of an object, which has its own Go type.
    fn is_uid(&self) -> bool {
        let of_user = matches!(self.owner, "UserInfo" | "SubjectAccessReviewSpec");
        self.name() == "uid" && !of_user
    }

    fn is_micro(&self) -> bool {
        time::MICROSECONDS.contains(&self.name())
    }

    fn refuse(&self, value: &Value, go: &str) -> String {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if go.starts_with("int") => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let (owner, fields) = (self.owner, self.fields());
        if owner.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {go}");
        }
        format!("json: cannot unmarshal {found} into Go struct field {owner}.{fields} of type {go}")
    }
}

fn read_struct(
    of: &Struct,
    value: &mut Value,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let Value::Object(fields) = value else {
        if value.is_null() {
            return Ok(());
        }
        return Err(path.refuse(value, &format!("v1.{}", of.name)));
    };
    let mut known = Map::with_capacity(fields.len());
    for (name, mut value) in std::mem::take(fields) {
        let path = path.field(of.name, &name);
        match of.fields.get(name.as_str()) {
            Some(field) => {
                read_value(&field.shape, &mut value, &path, unknown)?;
                known.insert(name, value);
            }
            None if unknown.len() < MAX_REPORTED => unknown.push(path.full()),
            None => {}
        }
    }
    *fields = known;
    Ok(())
}

fn read_value(
    shape: &Shape,
    value: &mut Value,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    match (shape, &mut *value) {
        (_, Value::Null) | (Shape::Any, _) => Ok(()),
        (Shape::Pointer(inner), value) => read_value(inner, value, path, unknown),
        (Shape::Struct(name), value) => match STRUCTS.get(name) {
            Some(of) => read_struct(of, value, path, unknown),
            None => Ok(()),
        },
        (Shape::List(item), Value::Array(items)) => {
            for (index, value) in items.iter_mut().enumerate() {
                read_value(item, value, &path.item(index), unknown)?;
            }
            Ok(())
        }
        (Shape::Map(item), Value::Object(fields)) => {
            for (key, value) in fields {
                // Go decodes the null of a key as the zero value.
                if value.is_null() {
                    *value = zero(item);
                }
                read_value(item, value, &path.key(key), unknown)?;
            }
            Ok(())
        }
        (Shape::Text, Value::String(_)) | (Shape::Bool, Value::Bool(_)) => Ok(()),
        (Shape::Time, Value::String(text)) => time::check(text, path.is_micro()),
        (Shape::Float, Value::Number(_)) => Ok(()),
        (Shape::Integer("int32"), Value::Number(number)) => {
            let fits = number.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
            fits.then_some(())
                .ok_or_else(|| path.refuse(value, "int32"))
        }
        (Shape::Integer(go), Value::Number(number)) => number
            .as_i64()
            .map(drop)
            .ok_or_else(|| path.refuse(value, go)),
        (Shape::IntOrString, Value::String(_)) => Ok(()),
        (Shape::IntOrString, Value::Number(number)) if number.is_i64() => Ok(()),
        (Shape::Bytes, Value::String(text)) => base64(text),
        (Shape::Quantity, Value::String(text)) => {
            *text = quantity::canonical(text)?;
            Ok(())
        }
        (Shape::Quantity, Value::Number(number)) => {
            *value = Value::from(quantity::canonical(&number.to_string())?);
            Ok(())
        }
        (Shape::Text, _) if path.is_uid() => Err(path.refuse(value, "types.UID")),
        _ => Err(path.refuse(value, &go_type(shape))),
    }
}

fn base64(text: &str) -> Result<(), String> {
    let plain = text.replace(['\n', '\r'], "");
    match STANDARD.decode(&plain) {
        Ok(_) => Ok(()),
        Err(
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _),
        ) => Err(format!("illegal base64 data at input byte {at}")),
        Err(_) => Err(format!(
            "illegal base64 data at input byte {}",
            plain.len() / 4 * 4
        )),
    }
}

fn go_type(shape: &Shape) -> String {
    match shape {
        Shape::Text => "string".to_owned(),
        Shape::Bool => "bool".to_owned(),
        Shape::Integer(go) => (*go).to_owned(),
        Shape::Float => "float64".to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::Time => "string".to_owned(),
        Shape::IntOrString => "int32".to_owned(),
        Shape::Any => "interface {}".to_owned(),
        Shape::Pointer(inner) => go_type(inner),
        Shape::List(item) => format!("[]{}", go_type(item)),
        Shape::Map(item) => format!("map[string]{}", go_type(item)),
        Shape::Struct(name) => format!("v1.{}", name.rsplit('.').next().unwrap_or(name)),
    }
}

#[cfg(test)]
mod tests;
