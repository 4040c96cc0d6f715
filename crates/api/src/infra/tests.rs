//! Comparison with the released CustomResourceDefinitions of the Go provider, and with objects that it stored.

mod admission;
mod stored;

use std::fs;
use std::path::PathBuf;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::Value;

use super::crd::crds;

/// A released CRD of the Go provider; `None` if the reference data is not available.
fn upstream(kind: &str) -> Option<CustomResourceDefinition> {
    let plural = if kind.ends_with("Identity") {
        format!("{}ies", kind.trim_end_matches('y').to_lowercase())
    } else {
        format!("{}s", kind.to_lowercase())
    };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/upstream/crds/capo-v0.15.0-beta.0")
        .join(format!("infrastructure.cluster.x-k8s.io_{plural}.yaml"));
    let Ok(text) = fs::read_to_string(&path) else {
        skipped::because(format_args!("no {}", path.display()));
        return None;
    };
    Some(serde_saphyr::from_str(&text).unwrap())
}

/// The rows of the table below `heading` in docs/reference/validation.md: the texts in backquotes of the first cell.
fn documented(heading: &str) -> Vec<Vec<String>> {
    let page = include_str!("../../../../docs/reference/validation.md");
    let (_, below) = page.split_once(&format!("## {heading}\n")).unwrap();
    let table = below.split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let quoted = |cell: &str| {
        let parts = cell.split('`').skip(1).step_by(2);
        parts.map(str::to_owned).collect()
    };
    cells.map(quoted).collect()
}

/// True if `text` matches `pattern`, where `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    (0..=text.len()).any(|at| text.is_char_boundary(at) && matches(rest, &text[at..]))
}

/// Flattens a schema to lines with the path of each keyword, except documentation and defaults.
fn flat(schema: &Value, path: &str, into: &mut Vec<String>) {
    let Some(members) = schema.as_object() else {
        return;
    };
    for (key, value) in members {
        match key.as_str() {
            "description" => {}
            // The default.
            "x-kubernetes-list-type" if value == "atomic" => {}
            "properties" => {
                for (name, inner) in value.as_object().unwrap() {
                    flat(inner, &format!("{path}.{name}"), into);
                }
            }
            "items" => flat(value, &format!("{path}[]"), into),
            "additionalProperties" if value.is_object() => {
                flat(value, &format!("{path}{{}}"), into)
            }
            "required" => {
                let names = value.as_array().unwrap().iter();
                into.extend(
                    names.map(|name| format!("{path} required {}", name.as_str().unwrap())),
                );
            }
            "minimum" | "maximum" => into.push(format!("{path} {key} {}", value.as_f64().unwrap())),
            "enum" => {
                let mut values: Vec<_> = value
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(Value::to_string)
                    .collect();
                values.sort();
                into.push(format!("{path} enum {}", values.join(",")));
            }
            _ => into.push(format!("{path} {key} {value}")),
        }
    }
}

fn lines(version: &CustomResourceDefinitionVersion) -> Vec<String> {
    let value = serde_json::to_value(version.schema.as_ref().unwrap()).unwrap();
    let mut lines = Vec::new();
    let schema = &value["openAPIV3Schema"];
    flat(&schema["properties"]["spec"], "spec", &mut lines);
    flat(&schema["properties"]["status"], "status", &mut lines);
    for column in version.additional_printer_columns.iter().flatten() {
        lines.push(format!(
            "column {} {} {:?}",
            column.name, column.json_path, column.priority
        ));
    }
    lines.sort();
    lines
}

/// The lines of `these` that are not in `those`.
fn only<'a>(these: &'a [String], those: &'a [String]) -> impl Iterator<Item = &'a String> {
    these.iter().filter(|line| !those.contains(line))
}

fn differences(ours: &CustomResourceDefinition, theirs: &CustomResourceDefinition) -> Vec<String> {
    let kind = &ours.spec.names.kind;
    let mut found = Vec::new();
    for version in &ours.spec.versions {
        let name = &version.name;
        let Some(other) = theirs.spec.versions.iter().find(|v| v.name == *name) else {
            found.push(format!("{kind} {name} is not upstream"));
            continue;
        };
        let (mine, upstream) = (lines(version), lines(other));
        found.extend(only(&mine, &upstream).map(|line| format!("{kind} {name} + {line}")));
        found.extend(only(&upstream, &mine).map(|line| format!("{kind} {name} - {line}")));
    }
    found
}

#[test]
fn schemas_differ_from_upstream_in_what_is_documented_and_in_nothing_else() {
    let mut found = Vec::new();
    for crd in crds() {
        let Some(theirs) = upstream(&crd.spec.names.kind) else {
            return;
        };
        assert_eq!(crd.spec.names.short_names, theirs.spec.names.short_names);
        assert_eq!(crd.spec.names.categories, theirs.spec.names.categories);
        assert_eq!(crd.spec.names.plural, theirs.spec.names.plural);
        assert_eq!(crd.spec.scope, theirs.spec.scope);
        found.extend(differences(&crd, &theirs));
    }
    let rows = documented("Schemas");
    let meant = |line: &String| rows.iter().flatten().any(|pattern| matches(pattern, line));
    let undocumented: Vec<_> = found.iter().filter(|line| !meant(line)).collect();
    assert!(undocumented.is_empty(), "{undocumented:#?}");
    for pattern in rows.iter().flatten() {
        let used = found.iter().any(|line| matches(pattern, line));
        assert!(used, "no difference is documented by {pattern}");
    }
}
