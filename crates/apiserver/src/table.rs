//! `meta/v1 Table`, which kubectl prints.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Cell, Column, Version};
use crate::rest::view::metadata_only;

/// A table of rows from [`row`]. `head`: whether it has column definitions.
pub(crate) fn table(version: &Version, rows: Vec<Value>, metadata: &Value, head: bool) -> Value {
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

/// The row of an object. `include` is `includeObject` of the query.
pub(crate) fn row(version: &Version, value: Value, include: Option<&str>) -> Value {
    let now = Timestamp::now();
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

/// Removes the annotation of a DaemonSet's template generation: kube-apiserver builds rows from the internal type,
/// which has a field for it.
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

/// The time since `since`, as kubectl prints it (`duration.HumanDuration`).
pub(crate) fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else {
        return "<invalid>".to_owned();
    };
    human(now.duration_since(since).as_secs())
}

/// A duration in seconds as kubectl prints it: `45s`, `2m5s`, `3h20m`, `5d`.
pub fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let and = |rest: i64, unit: &str| {
        if rest == 0 {
            String::new()
        } else {
            format!("{rest}{unit}")
        }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => format!("{minutes}m{}", and(seconds % 60, "s")),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => format!("{hours}h{}", and(minutes % 60, "m")),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => format!("{days}d{}", and(hours % 24, "h")),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => format!("{}y{}", days / 365, and(days % 365, "d")),
        _ => format!("{}y", days / 365),
    }
}
