//! Tables (`meta/v1 Table`), as printed by kubectl.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Cell, Column, Version};
use crate::time::age;

/// Returns a table of rows from [`row`]. `head` adds column definitions.
pub fn table(version: &Version, rows: Vec<Value>, metadata: &Value, head: bool) -> Value {
    let columns: Value = if head {
        version.columns.iter().map(definition).collect()
    } else {
        Value::Null
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns, "rows": rows,
    })
}

/// Returns the row of an object. `include` is `includeObject` of the query; ages are computed at `now`.
pub fn row(version: &Version, value: Value, include: Option<&str>, now: Timestamp) -> Value {
    let cells: Vec<Value> = version
        .columns
        .iter()
        .map(|column| cell(column, &value, now))
        .collect();
    let object = match include {
        Some("None") => None,
        Some("Object") => Some(value),
        _ => {
            let mut object = metadata_only(&value);
            remove_template_generation(&value, &mut object);
            Some(object)
        }
    };
    match object {
        Some(object) => json!({"cells": cells, "object": object}),
        None => json!({"cells": cells, "object": null}),
    }
}

/// Returns the `PartialObjectMetadata` of an object.
pub fn metadata_only(value: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"],
    })
}

/// Removes the annotation of a DaemonSet's template generation: kube-apiserver builds rows from the internal type, with
/// a field in place of the annotation.
fn remove_template_generation(value: &Value, row: &mut Value) {
    let annotations = row["metadata"].get_mut("annotations");
    if value["kind"] != "DaemonSet" || value["apiVersion"] != "apps/v1" {
        return;
    }
    let Some(annotations) = annotations.and_then(Value::as_object_mut) else {
        return;
    };
    annotations.remove("deprecated.daemonset.template.generation");
    if annotations.is_empty()
        && let Some(metadata) = row["metadata"].as_object_mut()
    {
        metadata.remove("annotations");
    }
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name, "type": column.declared_kind.as_ref().unwrap_or(&column.kind), "format": column.format,
        "description": column.description, "priority": column.priority,
    })
}

fn cell(column: &Column, value: &Value, now: Timestamp) -> Value {
    let path = match &column.cell {
        Cell::Computed(compute) => return compute(value),
        Cell::Aged(compute) => return compute(value, now),
        Cell::Path(path) => path,
    };
    let found = crate::table_path::find(value, path);
    match column.kind.as_str() {
        "date" => match found.first().and_then(|found| found.as_str()) {
            Some(text) => Value::from(age(text, now)),
            None if path == ".metadata.creationTimestamp" => Value::from("<unknown>"),
            None => Value::Null,
        },
        "integer" => found
            .first()
            .and_then(|found| found.as_i64())
            .map_or(Value::Null, Value::from),
        "number" => found
            .first()
            .filter(|found| found.is_number())
            .map_or(Value::Null, |v| (*v).clone()),
        "boolean" => found
            .first()
            .and_then(|found| found.as_bool())
            .map_or(Value::Null, Value::from),
        _ => match found.as_slice() {
            [] => Value::Null,
            [one] if one.is_null() => Value::Null,
            many => Value::from(
                many.iter()
                    .map(|one| text(one))
                    .collect::<Vec<_>>()
                    .join(","),
            ),
        },
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
