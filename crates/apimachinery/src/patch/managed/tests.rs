use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::patch::apply::tests::{Kind, custom};

fn write(kind: &Kind, live: Option<&Value>, manager: &str, time: &str, new: Value) -> Value {
    let writer = Writer {
        manager,
        subresource: "",
        api_version: "example.com/v1",
        time,
    };
    let mut new = new;
    update(live, &mut new, writer, kind).unwrap();
    if new["metadata"].is_null() {
        new["metadata"] = json!({});
    }
    new["metadata"]["uid"] = json!("u");
    new
}

fn managers(object: &Value) -> Vec<String> {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let names = entries
        .into_iter()
        .flatten()
        .map(|entry| entry["manager"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn a_create_records_everything_that_is_set() {
    let kind = custom();
    let object = write(
        &kind,
        None,
        "curl",
        "2026-11-20T10:00:00Z",
        kind.object(json!({"spec": {"a": 1}})),
    );
    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{
            "manager": "curl", "operation": "Update", "apiVersion": "example.com/v1",
            "time": "2026-11-20T10:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {".": {}, "f:a": {}}},
        }])
    );
}

#[test]
fn an_update_owns_the_fields_it_changes_and_no_others() {
    let kind = custom();
    let live = write(
        &kind,
        None,
        "one",
        "2026-11-20T10:00:00Z",
        kind.object(json!({"spec": {"a": 1, "b": "x"}})),
    );
    let new = write(
        &kind,
        Some(&live),
        "two",
        "2026-11-20T11:00:00Z",
        kind.object(json!({"spec": {"a": 2, "b": "x"}})),
    );
    assert_eq!(managers(&new), ["one", "two"]);
    assert_eq!(
        new["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {".": {}, "f:b": {}}})
    );
    assert_eq!(
        new["metadata"]["managedFields"][1]["fieldsV1"],
        json!({"f:spec": {"f:a": {}}})
    );
    // Without a change nothing is recorded, and times stay.
    let same = write(
        &kind,
        Some(&new),
        "three",
        "2026-11-20T12:00:00Z",
        new.clone(),
    );
    assert_eq!(same, new);
}

#[test]
fn managed_fields_survive_their_omission_and_are_reset_by_an_empty_list() {
    let kind = custom();
    let live = write(
        &kind,
        None,
        "one",
        "2026-11-20T10:00:00Z",
        kind.object(json!({"spec": {"a": 1}})),
    );
    let without = kind.object(json!({"spec": {"a": 1}}));
    assert_eq!(
        managers(&write(&kind, Some(&live), "two", "", without.clone())),
        ["one"]
    );
    for reset in [json!([]), json!([{}])] {
        let mut new = without.clone();
        new["metadata"]["managedFields"] = reset;
        assert_eq!(
            managers(&write(&kind, Some(&live), "two", "", new)),
            Vec::<String>::new()
        );
    }
    let mut broken = without;
    broken["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Nothing"}]);
    assert_eq!(
        managers(&write(&kind, Some(&live), "two", "", broken)),
        ["one"]
    );
}

#[test]
fn an_object_that_violates_its_schema_keeps_its_managed_fields() {
    let kind = custom();
    let live = write(
        &kind,
        None,
        "one",
        "2026-11-20T10:00:00Z",
        kind.object(json!({"spec": {"a": 1}})),
    );
    let odd = kind.object(json!({"spec": {"a": "text"}}));
    assert_eq!(
        managers(&write(&kind, Some(&live), "two", "", odd)),
        ["one"]
    );
}

#[test]
fn the_oldest_of_many_updaters_are_merged() {
    let kind = custom();
    let mut live = write(
        &kind,
        None,
        "m0",
        "2026-11-20T10:00:00Z",
        kind.object(json!({"spec": {"c": {"k0": 0}}})),
    );
    for i in 1..15 {
        let mut spec = live["spec"].clone();
        spec["c"][format!("k{i}")] = json!(i);
        let time = format!("2026-11-20T10:00:{i:02}Z");
        live = write(
            &kind,
            Some(&live),
            &format!("m{i}"),
            &time,
            kind.object(json!({ "spec": spec })),
        );
    }
    let names = managers(&live);
    assert_eq!(names.len(), 10);
    assert_eq!(names[0], "ancient-changes");
    let fields: Vec<String> = live["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["fieldsV1"].to_string())
        .collect();
    for i in 0..15 {
        let name = format!("\"f:k{i}\"");
        assert_eq!(
            fields
                .iter()
                .filter(|fields| fields.contains(&name))
                .count(),
            1,
            "{name}"
        );
    }
}

#[test]
fn the_default_manager_is_the_program_of_the_user_agent() {
    for (agent, manager) in [
        ("kubectl/v1.37.2 (linux/amd64) kubernetes/abc", "kubectl"),
        ("curl", "curl"),
        ("", ""),
        ("/x", ""),
    ] {
        assert_eq!(default_manager(agent), manager);
    }
    assert_eq!(default_manager(&"ä".repeat(100)).len(), 128);
}

proptest! {
    #[test]
    fn no_update_panics(live in crate::patch::any_json(), new in crate::patch::any_json(), entries in crate::patch::any_json()) {
        let kind = custom();
        let writer = Writer { manager: "m", subresource: "", api_version: "example.com/v1", time: "" };
        let mut object = kind.object(json!({"spec": new}));
        object["metadata"]["managedFields"] = entries;
        let _ = update(Some(&kind.object(json!({"spec": live}))), &mut object, writer, &kind);
        let mut new = new;
        let _ = update(Some(&live), &mut new, writer, &kind);
        let _ = update(None, &mut new, writer, &kind);
    }
}

#[test]
fn times_stay_when_nothing_else_changes() {
    let entry = |manager: &str, time: &str| {
        json!({"manager": manager, "operation": "Apply", "apiVersion": "v1", "time": time,
               "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}})
    };
    let object = |data: &str, entries: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": data},
               "metadata": {"name": "n", "managedFields": entries}})
    };
    let (then, now) = ("2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z");
    let stored = object("1", json!([entry("a", then), entry("b", then)]));
    let mut same = object("1", json!([entry("b", then), entry("a", now)]));
    keep_times(&mut same, &stored);
    assert_eq!(same, stored);
    for changed in [
        object("2", json!([entry("b", then), entry("a", now)])),
        object("1", json!([entry("a", now)])),
        object("1", json!([entry("a", now), entry("c", then)])),
    ] {
        let mut kept = changed.clone();
        keep_times(&mut kept, &stored);
        assert_eq!(kept, changed);
    }
    let bare = json!({"metadata": {"name": "n"}});
    let mut same = bare.clone();
    keep_times(&mut same, &stored);
    assert_eq!(same, bare);
}
