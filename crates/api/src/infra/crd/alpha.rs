//! Schemas of the versions before v1beta1, from a table of fields.
//!
//! No controller reads these versions, so there are no types.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceValidation,
};
use serde_json::{Value, json};

use crate::infra::convert::older::VERSIONS;

const TABLE: &str = include_str!("older.txt");
/// Number in the name of the first version.
const FIRST: usize = 4;

/// Field in the table.
struct Field<'a> {
    name: &'a str,
    type_: &'a str,
    versions: (usize, usize),
}

/// [`CustomResourceDefinition`]s with the older versions alone, oldest first.
pub(super) fn definitions(current: &[CustomResourceDefinition]) -> Vec<CustomResourceDefinition> {
    let types = types();
    let older = |definition: &CustomResourceDefinition| {
        let kind = definition.spec.names.kind.as_str();
        types.contains_key(kind).then(|| {
            let mut older = definition.clone();
            let like = older.spec.versions.first().cloned().unwrap_or_default();
            let named = VERSIONS.iter().enumerate();
            let versions = named.map(|(at, name)| version(&types, kind, at + FIRST, name, &like));
            older.spec.versions = versions.collect();
            older
        })
    };
    current.iter().filter_map(older).collect()
}

fn version(
    types: &BTreeMap<&str, Vec<Field<'_>>>,
    kind: &str,
    number: usize,
    name: &str,
    like: &CustomResourceDefinitionVersion,
) -> CustomResourceDefinitionVersion {
    let mut root = object(types, kind, number);
    root["description"] = json!(format!(
        "{kind} in {name}, of the releases before v0.10 of the Go provider; use v1beta2."
    ));
    for (name, type_) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        root["properties"][name] = json!({ "type": type_ });
    }
    CustomResourceDefinitionVersion {
        name: name.to_owned(),
        served: true,
        storage: false,
        deprecated: Some(true),
        schema: Some(CustomResourceValidation {
            open_api_v3_schema: serde_json::from_value(root).ok(),
        }),
        ..like.clone()
    }
}

fn types() -> BTreeMap<&'static str, Vec<Field<'static>>> {
    let mut types: BTreeMap<&str, Vec<Field<'_>>> = BTreeMap::new();
    let mut current = "";
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some(name), None) => current = name,
            (Some(name), Some(type_)) => {
                let versions = words.next().and_then(|words| words.split_once('-'));
                let number = |text: &str| text.parse().unwrap_or_default();
                let last = FIRST + VERSIONS.len();
                let versions =
                    versions.map_or((FIRST, last), |(from, to)| (number(from), number(to)));
                types.entry(current).or_default().push(Field {
                    name,
                    type_,
                    versions,
                });
            }
            _ => {}
        }
    }
    types
}

fn object(types: &BTreeMap<&str, Vec<Field<'_>>>, name: &str, version: usize) -> Value {
    let mut schema = json!({"type": "object", "properties": {}});
    let mut required = Vec::new();
    for field in types.get(name).into_iter().flatten() {
        if version < field.versions.0 || version > field.versions.1 {
            continue;
        }
        let name = field.name.trim_end_matches('!');
        if name != field.name {
            required.push(name);
        }
        schema["properties"][name] = of_type(types, field.type_, version);
    }
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn of_type(types: &BTreeMap<&str, Vec<Field<'_>>>, name: &str, version: usize) -> Value {
    if let Some((items, key)) = name.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let mut list = json!({"type": "array", "items": of_type(types, items, version)});
        match key {
            "" => {}
            "=" => list["x-kubernetes-list-type"] = json!("set"),
            key => {
                list["x-kubernetes-list-type"] = json!("map");
                list["x-kubernetes-list-map-keys"] = json!([key]);
            }
        }
        return list;
    }
    if let Some(values) = name
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    {
        return json!({"type": "object", "additionalProperties": of_type(types, values, version)});
    }
    match name {
        "string" | "boolean" | "integer" => json!({ "type": name }),
        "text" => json!({"type": "string", "minLength": 1}),
        "int32" => json!({"type": "integer", "format": "int32"}),
        "time" => json!({"type": "string", "format": "date-time"}),
        name => object(types, name, version),
    }
}
