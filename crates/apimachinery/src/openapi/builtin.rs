//! Descriptions of the built-in kinds: `builtin.json`, one definition per line, generated from the Go types of
//! k8s.io/api 0.34.2 by kube-openapi's own generator (see `generate/`).
//!
//! Two forms: text, parsed for each document and dropped again, and a compact [`Shape`] for merging, parsed once per
//! process.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Map, Value};

static TEXT: &str = include_str!("builtin.json");

/// Parts of a definition needed for merging.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Reference to another definition.
    Reference(Box<str>),
    /// Value of unknown type, or an atomic one.
    Untyped,
    Text,
    Number,
    Boolean,
    List(Box<List>),
    Object(Box<Object>),
}

/// List.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) items: Shape,
    /// `x-kubernetes-list-type`, or the list type implied by the patch strategy.
    pub(crate) kind: ListKind,
}

/// Identity of the items of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Atomic,
    Set,
    Map(Vec<String>),
}

/// Object.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) fields: BTreeMap<Box<str>, Field>,
    /// Type of the values of a map.
    pub(crate) values: Option<Shape>,
    pub(crate) atomic: bool,
}

/// Field of an object.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) shape: Shape,
    pub(crate) default: Option<Value>,
    /// `x-kubernetes-patch-strategy` contains `merge`.
    pub(crate) merge: bool,
    /// `x-kubernetes-patch-merge-key`.
    pub(crate) merge_key: Option<Box<str>>,
    /// `x-kubernetes-map-type` besides a reference.
    pub(crate) atomic: bool,
}

static SHAPES: LazyLock<BTreeMap<Box<str>, Shape>> = LazyLock::new(|| {
    definitions()
        .into_iter()
        .map(|(name, schema)| (name.as_str().into(), read(&schema)))
        .collect()
});

/// Returns all definitions as JSON, with references in the form of OpenAPI v2.
pub(super) fn definitions() -> Map<String, Value> {
    // The text is part of the program; a test parses it.
    serde_json::from_str(TEXT).unwrap_or_default()
}

/// Returns the [`Shape`] of a definition by name, `io.k8s.api.core.v1.Pod`.
pub(crate) fn shape(name: &str) -> Option<&'static Shape> {
    SHAPES.get(name)
}

/// Name of the definition of `metadata`.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Returns the name of the definition of a built-in kind; the definition may not exist.
pub(crate) fn name(group: &str, version: &str, kind: &str) -> String {
    match group {
        "apiextensions.k8s.io" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        "apiregistration.k8s.io" => {
            format!("io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}.{kind}")
        }
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        group => {
            let short = group.split('.').next().unwrap_or_default();
            format!("io.k8s.api.{short}.{version}.{kind}")
        }
    }
}

fn read(schema: &Value) -> Shape {
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    if let Some(reference) = text("$ref") {
        let name = reference.rsplit('/').next().unwrap_or_default();
        // Hard-coded in the reference as well.
        return match name {
            "io.k8s.apimachinery.pkg.api.resource.Quantity"
            | "io.k8s.apimachinery.pkg.runtime.RawExtension" => Shape::Untyped,
            name => Shape::Reference(name.into()),
        };
    }
    match text("type") {
        Some("string") if text("format").is_none_or(|f| matches!(f, "" | "byte")) => Shape::Text,
        Some("string") => Shape::Untyped,
        Some("integer" | "number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        Some("array") => Shape::List(Box::new(List {
            items: schema.get("items").map_or(Shape::Untyped, read),
            kind: list_kind(schema),
        })),
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let fields = properties.into_iter().flatten();
            let fields: BTreeMap<Box<str>, Field> = fields
                .map(|(name, field)| (name.as_str().into(), read_field(field)))
                .collect();
            let values = schema.get("additionalProperties").map(read);
            let atomic = text("x-kubernetes-map-type") == Some("atomic");
            Shape::Object(Box::new(Object {
                fields,
                values,
                atomic,
            }))
        }
        _ => Shape::Untyped,
    }
}

fn read_field(schema: &Value) -> Field {
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let strategy = text("x-kubernetes-patch-strategy").unwrap_or_default();
    Field {
        shape: read(schema),
        default: schema.get("default").cloned(),
        merge: strategy.split(',').any(|strategy| strategy == "merge"),
        merge_key: text("x-kubernetes-patch-merge-key").map(Into::into),
        atomic: text("x-kubernetes-map-type") == Some("atomic"),
    }
}

fn list_kind(schema: &Value) -> ListKind {
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let strings = |name: &str| -> Vec<String> {
        let items = schema.get(name).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_str().map(str::to_owned))
            .collect()
    };
    match text("x-kubernetes-list-type") {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(strings("x-kubernetes-list-map-keys")),
        Some(_) => ListKind::Atomic,
        None => match text("x-kubernetes-patch-strategy") {
            Some("merge" | "merge,retainKeys") => match text("x-kubernetes-patch-merge-key") {
                Some(key) => ListKind::Map(vec![key.to_owned()]),
                None => ListKind::Set,
            },
            _ => ListKind::Atomic,
        },
    }
}
