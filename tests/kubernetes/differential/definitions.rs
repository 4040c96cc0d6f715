//! A folder of CustomResourceDefinitions, and the steps that compare what becomes of them: how they are stored, their
//! OpenAPI documents, and for each version that is served objects made from its schema, right and wrong.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::root;
use crate::sample::{least, most, wrong};
use crate::scenario::{Step, step};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The suite's own folder, and those of the upstream projects where they are there.
pub(crate) fn folders() -> Vec<PathBuf> {
    let ours = root().join("config/crd");
    let mut folders = Vec::new();
    let upstream = root().join("../shared/upstream/crds");
    match std::fs::read_dir(&upstream) {
        Ok(entries) => folders.extend(entries.map(|entry| entry.unwrap().path())),
        Err(error) => skipped::because(format_args!(
            "definitions of upstream: {}: {error}",
            upstream.display()
        )),
    }
    folders.sort();
    folders.insert(0, ours);
    if let Some(only) = only() {
        folders.retain(|folder| folder.ends_with(&only));
    }
    folders
}

/// `FERROSTACK_FOLDER=capo-v0.12.0`: that one alone, and each of its versions with all of its schemas.
fn only() -> Option<String> {
    std::env::var("FERROSTACK_FOLDER").ok()
}

/// The steps for a folder. It begins and ends without its definitions.
///
/// What is wrong in a schema that was `seen` in another folder or version is not tried again: releases hardly differ.
pub(crate) fn steps(folder: &Path, seen: &mut BTreeSet<String>) -> Vec<Step> {
    let stem = folder.file_name().unwrap().to_string_lossy().into_owned();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let definitions: Vec<Value> = files
        .iter()
        .map(|path| serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
        .collect();
    let mut values = vec![
        json!({"name": "a namespace", "do": "POST /api/v1/namespaces", "quiet": true,
            "body": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "u-$run"}}}),
    ];
    for definition in &definitions {
        values.extend(removal(definition));
    }
    for definition in &definitions {
        let name = text(&definition["metadata"]["name"]);
        values.push(json!({"name": format!("define {name}"), "do": format!("POST {DEFINITIONS}"), "body": definition}));
        values.push(
            json!({"name": format!("{name} is there"), "do": format!("GET {DEFINITIONS}/{name}"),
            "until": {"at": "/status/conditions/1/status", "is": "True"},
            "only": ["/spec", "/status/acceptedNames", "/status/storedVersions"]}),
        );
    }
    for definition in &definitions {
        for version in definition["spec"]["versions"].as_array().unwrap() {
            if version["served"] == true {
                if only().is_some() {
                    seen.clear();
                }
                values.extend(of_version(definition, version, seen));
            }
        }
    }
    for definition in &definitions {
        values.extend(removal(definition));
    }
    values.push(json!({"name": "the namespace goes", "do": "DELETE /api/v1/namespaces/u-$run", "quiet": true}));
    let mut names = BTreeSet::new();
    for value in &mut values {
        let mut name = format!("{stem}: {}", text(&value["name"]));
        while !names.insert(name.clone()) {
            name.push_str(" again");
        }
        value["name"] = Value::from(name);
    }
    values.into_iter().map(|value| step(value, &stem)).collect()
}

fn removal(definition: &Value) -> [Value; 2] {
    let name = text(&definition["metadata"]["name"]);
    let at = format!("{DEFINITIONS}/{name}");
    [
        json!({"name": format!("{name} goes"), "do": format!("DELETE {at}"), "quiet": true}),
        json!({"name": format!("{name} is gone"), "do": format!("GET {at}"), "until": {"status": 404}, "quiet": true}),
    ]
}

fn of_version(definition: &Value, version: &Value, seen: &mut BTreeSet<String>) -> Vec<Value> {
    let spec = &definition["spec"];
    let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
    let version_name = text(&version["name"]);
    let what = format!("{kind} {version_name}");
    let namespace = match spec["scope"].as_str() {
        Some("Namespaced") => "/namespaces/u-$run",
        _ => "",
    };
    let plural = text(&spec["names"]["plural"]);
    let list = format!("/apis/{group}/{version_name}{namespace}/{plural}");
    let schema = &version["schema"]["openAPIV3Schema"];
    let sample = |name: &str, mut object: Value| {
        object["apiVersion"] = json!(format!("{group}/{version_name}"));
        object["kind"] = json!(kind);
        object["metadata"] = json!({ "name": name });
        object
    };
    let reversed: Vec<&str> = group.split('.').rev().collect();
    let model = format!(
        "/components/schemas/{}.{version_name}.{kind}",
        reversed.join(".")
    );
    let mut steps = vec![
        json!({"name": format!("{what} is served"), "do": format!("GET {list}"), "until": {"status": 200}}),
        json!({"name": format!("{what} is explained"), "do": format!("GET /openapi/v3/apis/{group}/{version_name}"),
            "until": {"at": model}, "only": [model]}),
        json!({"name": format!("least {what}"), "do": format!("POST {list}"), "body": sample("least-$run", least(schema)), "unordered": true}),
        json!({"name": format!("most {what}"), "do": format!("POST {list}?fieldValidation=Strict"), "body": sample("most-$run", most(schema)), "unordered": true}),
        json!({"name": format!("{what} as a table"), "do": format!("GET {list}"), "accept": "table"}),
        json!({"name": format!("apply most {what}"), "do": format!("PATCH {list}/applied-$run?fieldManager=m"), "type": "apply",
            "body": sample("applied-$run", most(schema)), "unordered": true}),
    ];
    // An object that an apply empties becomes null on a real server, and is refused for that; here it stays empty.
    if !has_empty(&least(schema)) {
        steps.push(
        json!({"name": format!("apply less {what}"), "do": format!("PATCH {list}/applied-$run?fieldManager=m"), "type": "apply",
            "body": sample("applied-$run", least(schema)), "unordered": true}),
        );
    }
    // Each field of the spec alone.
    let no_fields = serde_json::Map::new();
    let fields = schema["properties"]["spec"]["properties"].as_object();
    for (name, field) in fields.unwrap_or(&no_fields) {
        let mut object = least(schema);
        object["spec"][name] = most(field);
        steps.push(json!({"name": format!("{what} with {name}"), "do": format!("POST {list}?dryRun=All"), "body": sample("one", object), "unordered": true}));
    }
    for (how, object) in wrong(schema, seen) {
        steps.push(json!({"name": format!("{what} {how}"), "do": format!("POST {list}?dryRun=All"), "body": sample("wrong", object), "unordered": true}));
    }
    if !version["subresources"]["status"].is_null() {
        let status = most(&schema["properties"]["status"]);
        steps.push(json!({"name": format!("status of {what}"), "do": format!("PATCH {list}/least-$run/status"), "type": "merge", "body": {"status": status}, "unordered": true}));
    }
    if !version["subresources"]["scale"].is_null() {
        steps.push(json!({"name": format!("scale of {what}"), "do": format!("GET {list}/least-$run/scale")}));
    }
    steps.push(json!({"name": format!("{what} as they ended"), "do": format!("GET {list}"), "only": ["/items"]}));
    steps.push(json!({"name": format!("delete each {what}"), "do": format!("DELETE {list}"), "only": ["/kind"]}));
    steps
}

fn has_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty() || fields.values().any(has_empty),
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
        _ => false,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
