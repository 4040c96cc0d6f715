use serde_json::json;

use super::*;

fn metadata(managed: Value, labels: Value) -> ObjectMeta {
    serde_json::from_value(json!({ "labels": labels, "managedFields": managed })).unwrap()
}

fn entry(manager: &str, operation: &str, labels: &[&str]) -> Value {
    let fields: Map<String, Value> = labels
        .iter()
        .map(|name| (format!("f:{name}"), json!({})))
        .collect();
    json!({
        "manager": manager, "operation": operation, "apiVersion": "g/v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:metadata": { "f:labels": fields }, "f:spec": { "f:x": {} } },
    })
}

fn wanted(labels: &[(&str, &str)]) -> Wanted {
    let labels = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Wanted {
        labels: labels.collect(),
        annotations: BTreeMap::new(),
    }
}

#[test]
fn what_is_applied_is_compared_with_what_is_wanted() {
    let applied = |labels: &[&str]| json!([entry("capi-machineset", "Apply", labels)]);
    let cases = [
        // (managedFields, labels of the object, wanted, outdated)
        (
            applied(&["a"]),
            json!({ "a": "1" }),
            wanted(&[("a", "1")]),
            false,
        ),
        (
            applied(&["a"]),
            json!({ "a": "2" }),
            wanted(&[("a", "1")]),
            true,
        ),
        (applied(&["a"]), json!({}), wanted(&[("a", "1")]), true),
        (
            applied(&["a", "b"]),
            json!({ "a": "1", "b": "1" }),
            wanted(&[("a", "1")]),
            true,
        ),
        (
            applied(&["a"]),
            json!({ "a": "1", "users": "1" }),
            wanted(&[("a", "1")]),
            false,
        ),
        (json!([]), json!({ "a": "1" }), wanted(&[("a", "1")]), true),
        (json!([]), json!({}), wanted(&[]), false),
    ];
    for (at, (managed, labels, wanted, outdated)) in cases.into_iter().enumerate() {
        let metadata = metadata(managed, labels);
        assert_eq!(
            is_outdated(&metadata, &wanted, &MACHINE_SET),
            outdated,
            "case {at}"
        );
    }
}

#[test]
fn only_updates_of_former_managers_lose_wanted_labels() {
    let managed = json!([
        entry(
            "ferrostack-machineset",
            "Update",
            &["a", "b", CLUSTER_NAME_LABEL]
        ),
        entry("manager", "Update", &["a"]),
        entry("kubectl-label", "Update", &["a"]),
        entry("capi-machineset", "Apply", &["a"]),
    ]);
    let metadata = metadata(managed, json!({ "a": "1", "b": "1" }));
    let wanted = wanted(&[("a", "1"), (CLUSTER_NAME_LABEL, "demo")]);
    let released = released(&metadata, &wanted, &MACHINE_SET).unwrap();
    let left: Vec<Vec<&String>> = released
        .iter()
        .map(|entry| fields(entry, "f:labels").unwrap().keys().collect())
        .collect();
    assert_eq!(left[0], ["f:b", &format!("f:{CLUSTER_NAME_LABEL}")]);
    assert!(left[1].is_empty());
    assert_eq!((left[2].len(), left[3].len()), (1, 1));
    let again = ObjectMeta {
        managed_fields: Some(released),
        ..metadata
    };
    assert_eq!(super::released(&again, &wanted, &MACHINE_SET), None);
}

#[test]
fn caches_keep_what_is_compared_and_nothing_else() {
    let managed = json!([
        entry("capi-machineset", "Apply", &["a", CLUSTER_NAME_LABEL]),
        entry("ferrostack-machineset", "Update", &[CLUSTER_NAME_LABEL]),
        entry("ferrostack-machine", "Update", &["a"]),
    ]);
    let full = metadata(managed, json!({ "a": "1", CLUSTER_NAME_LABEL: "demo" }));
    let mut reduced = full.clone();
    reduce(reduced.managed_fields.get_or_insert_default());
    let entries = reduced.managed_fields.as_ref().unwrap();
    assert_eq!(entries.len(), 1);
    let FieldsV1(fields) = entries[0].fields_v1.as_ref().unwrap();
    assert!(fields.get("f:spec").is_none());
    let wanted = wanted(&[("a", "1"), (CLUSTER_NAME_LABEL, "demo")]);
    assert!(!is_outdated(&reduced, &wanted, &MACHINE_SET));
    assert_eq!(
        is_outdated(&full, &wanted, &MACHINE_SET),
        is_outdated(&reduced, &wanted, &MACHINE_SET)
    );
}

#[test]
fn updates_of_former_managers_become_what_was_applied() {
    let former = "ferrostack-machinedeployment";
    let managed = json!([
        entry(former, "Update", &["a", "b"]),
        entry("kubectl-label", "Update", &["a"]),
        entry("capi-machinedeployment", "Apply", &["b", "c"]),
    ]);
    let before = metadata(managed, json!({}));
    let entries = adopted(&before, &MACHINE_DEPLOYMENT).unwrap();
    let managers: Vec<_> = entries.iter().map(|it| it.manager.as_deref()).collect();
    assert_eq!(
        managers,
        [Some("kubectl-label"), Some("capi-machinedeployment")]
    );
    assert_eq!(entries[1].operation.as_deref(), Some("Apply"));
    let labels: Vec<_> = fields(&entries[1], "f:labels").unwrap().keys().collect();
    assert_eq!(labels, ["f:a", "f:b", "f:c"]);
    let after = ObjectMeta {
        managed_fields: Some(entries),
        ..before
    };
    assert_eq!(adopted(&after, &MACHINE_DEPLOYMENT), None);
}
