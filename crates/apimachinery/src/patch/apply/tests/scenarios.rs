//! Scenarios with several managers.

use super::*;

#[test]
fn creating_by_apply_records_the_manager() {
    let kind = built_in("apps/v1", "Deployment");
    let config = json!({"spec": {"replicas": 1, "template": {"spec": {"containers": [
        {"name": "a", "ports": [{"containerPort": 80}]},
    ]}}}});
    let live = kind
        .apply(&kind.object(json!({})), "kubectl", config, false)
        .unwrap();
    assert_eq!(
        live["metadata"]["managedFields"],
        json!([{
            "manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1",
            "time": "2026-11-20T10:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {
                "f:replicas": {},
                "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {
                    ".": {}, "f:name": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                }}}},
            }},
        }])
    );
}

#[test]
fn a_conflict_names_manager_and_field() {
    let kind = custom();
    let live = kind
        .apply(
            &kind.object(json!({})),
            "one",
            json!({"spec": {"a": 1, "b": "x"}}),
            false,
        )
        .unwrap();
    let error = kind
        .apply(&live, "two", json!({"spec": {"a": 2}}), false)
        .unwrap_err();
    assert_eq!((error.code(), error.reason()), (409, "Conflict"));
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.a"
    );
    assert_eq!(
        error.causes(),
        [
            json!({"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".spec.a"})
        ]
    );
    let error = kind
        .apply(&live, "two", json!({"spec": {"a": 2, "b": "y"}}), false)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.a\n- .spec.b"
    );
}

#[test]
fn force_takes_a_field_over_and_sharing_needs_none() {
    let kind = custom();
    let live = kind
        .apply(
            &kind.object(json!({})),
            "one",
            json!({"spec": {"a": 1}}),
            false,
        )
        .unwrap();
    let shared = kind
        .apply(&live, "two", json!({"spec": {"a": 1}}), false)
        .unwrap();
    assert_eq!(owned(&shared, "one"), owned(&shared, "two"));
    let taken = kind
        .apply(&live, "two", json!({"spec": {"a": 2}}), true)
        .unwrap();
    assert_eq!(taken["spec"]["a"], 2);
    assert_eq!(owned(&taken, "one"), Value::Null);
    // Shared fields are removed when the last manager no longer applies them.
    let one_left = kind.apply(&shared, "one", json!({}), false).unwrap();
    assert_eq!(one_left["spec"]["a"], 1);
    let none_left = kind.apply(&one_left, "two", json!({}), false).unwrap();
    assert_eq!(none_left.pointer("/spec/a"), None);
}

#[test]
fn items_no_longer_applied_are_removed_and_others_stay() {
    let kind = custom();
    let config = json!({"spec": {"m": [{"k": "a", "v": 1}, {"k": "b"}], "s": ["x", "y"]}});
    let live = kind
        .apply(&kind.object(json!({})), "one", config, false)
        .unwrap();
    let live = kind
        .apply(
            &live,
            "two",
            json!({"spec": {"m": [{"k": "a", "w": 2}, {"k": "c"}]}}),
            false,
        )
        .unwrap();
    let config = json!({"spec": {"m": [{"k": "b"}], "s": ["y"]}});
    let live = kind.apply(&live, "one", config, false).unwrap();
    assert_eq!(
        live["spec"],
        json!({"m": [{"k": "a", "w": 2}, {"k": "b"}, {"k": "c"}], "s": ["y"]})
    );
}

#[test]
fn fields_set_before_the_first_apply_are_kept_and_named() {
    let kind = custom();
    let mut live = kind.object(json!({"spec": {"a": 1, "b": "x"}}));
    live["metadata"]["uid"] = json!("u");
    let error = kind
        .apply(&live, "one", json!({"spec": {"a": 2}}), false)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using example.com/v1: .spec.a"
    );
    let applied = kind
        .apply(&live, "one", json!({"spec": {"a": 1}}), false)
        .unwrap();
    assert_eq!(applied["spec"], json!({"a": 1, "b": "x"}));
}

#[test]
fn kubectl_may_change_fields_set_by_its_client_side_apply() {
    let kind = custom();
    let last = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "n"}, "spec": {"a": 1}});
    let mut live = kind.object(json!({"spec": {"a": 1, "b": "x"}}));
    live["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": last.to_string()});
    live["metadata"]["uid"] = json!("u");
    live["metadata"]["managedFields"] = json!([{
        "manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "example.com/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:a": {}, "f:b": {}}},
    }]);
    let applied = kind
        .apply(&live, "kubectl", json!({"spec": {"a": 2}}), false)
        .unwrap();
    assert_eq!(applied["spec"]["a"], 2);
    let annotation =
        applied["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
            .as_str()
            .unwrap();
    assert!(annotation.contains("\"a\":2"), "{annotation}");
    // A field that client-side apply did not set conflicts, as it does for any other manager.
    assert!(
        kind.apply(&live, "kubectl", json!({"spec": {"b": "y"}}), false)
            .is_err()
    );
    assert!(
        kind.apply(&live, "other", json!({"spec": {"a": 2}}), false)
            .is_err()
    );
}

#[test]
fn status_is_not_owned_by_writers_of_the_main_resource() {
    let kind = built_in("v1", "Namespace");
    let config = json!({"status": {"phase": "Active"}, "spec": {"finalizers": ["kubernetes"]}});
    let live = kind
        .apply(&kind.object(json!({})), "one", config, false)
        .unwrap();
    assert_eq!(owned(&live, "one"), json!({"f:spec": {"f:finalizers": {}}}));
}

#[test]
fn invalid_configurations_are_rejected() {
    let kind = custom();
    let empty = kind.object(json!({}));
    let error = kind
        .apply(
            &empty,
            "one",
            json!({"apiVersion": "example.com/v2"}),
            false,
        )
        .unwrap_err();
    assert_eq!(error.code(), 400);
    assert_eq!(
        error.to_string(),
        "Incorrect version specified in apply patch. Specified patch version: example.com/v2, expected: example.com/v1"
    );
    let error = kind
        .apply(
            &empty,
            "one",
            json!({"metadata": {"managedFields": []}}),
            false,
        )
        .unwrap_err();
    assert_eq!(error.to_string(), "metadata.managedFields must be nil");
    let error = kind
        .apply(&empty, "one", json!({"spec": {"nothing": 1}}), false)
        .unwrap_err();
    assert_eq!(error.code(), 500);
    assert_eq!(
        error.to_string(),
        "failed to create typed patch object (/n; example.com/v1, Kind=Foo): .spec.nothing: field not declared in schema"
    );
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = Value::Object([("a".to_owned(), deep)].into_iter().collect());
    }
    assert_eq!(
        kind.apply(&empty, "one", json!({"spec": {"f": deep}}), false)
            .unwrap_err()
            .code(),
        400
    );
}

/// A kind with two versions that name a field differently.
struct Renamed;

impl Versions for Renamed {
    fn types(&self, api_version: &str) -> Option<Types<'_>> {
        matches!(api_version, "example.com/v1" | "example.com/v2").then_some(Types::BuiltIn {
            group: "example.com",
            kind: "Foo",
        })
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let (from, to) = if api_version.ends_with("v2") {
            ("old", "new")
        } else {
            ("new", "old")
        };
        let mut object = object.clone();
        object["apiVersion"] = json!(api_version);
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
        Ok(object)
    }
}

#[test]
fn managers_keep_the_field_names_of_the_version_they_used() {
    let apply_as = |live: &Value, version: &str, manager: &str, spec: Value| {
        let config =
            json!({"apiVersion": version, "kind": "Foo", "metadata": {"name": "n"}, "spec": spec});
        let live = Renamed.convert(live, version).unwrap();
        let applier = Applier {
            manager,
            force: false,
            subresource: "",
            api_version: version,
            time: "",
        };
        apply(&live, &config, applier, &Renamed)
    };
    let empty = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "n"}});
    let live = apply_as(&empty, "example.com/v1", "one", json!({"old": 1})).unwrap();
    let error = apply_as(&live, "example.com/v2", "two", json!({"new": 2})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.old"
    );
    let both = apply_as(&live, "example.com/v2", "two", json!({"new": 1, "more": 1})).unwrap();
    // When one manager no longer applies a field in the other version, the field stays for the other manager.
    let left = apply_as(&both, "example.com/v2", "one", json!({})).unwrap();
    assert_eq!(left["spec"], json!({"new": 1, "more": 1}));
    let gone = apply_as(&left, "example.com/v1", "two", json!({"more": 1})).unwrap();
    assert_eq!(gone["spec"], json!({"more": 1}));
}
