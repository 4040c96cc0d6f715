//! Custom resources.

use apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn a_definition_is_served_from_the_moment_it_is_created() {
    let server = server().await;
    assert_eq!(get(&server, WIDGETS).await.0, 404);
    let (code, crd) = post(&server, CRDS, &widgets()).await;
    assert_eq!(code, 201, "{crd}");
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(crd["status"]["conditions"], json!(null));
    assert_eq!(crd["spec"]["names"]["listKind"], "WidgetList");
    let (code, list) = get(&server, WIDGETS).await;
    assert_eq!((code, list["kind"].as_str()), (200, Some("WidgetList")));
    until(&server, &format!("{CRDS}/widgets.example.org"), |crd| {
        crd["status"]["conditions"][1]["type"] == "Established"
    })
    .await;
    delete(&server, &format!("{CRDS}/widgets.example.org")).await;
    until(&server, WIDGETS, |answer| answer["kind"] != "WidgetList").await;
}

#[tokio::test]
async fn a_definition_that_is_wrong_is_refused_with_its_fields() {
    let server = server().await;
    let mut crd = widgets();
    crd["metadata"]["name"] = json!("other.example.org");
    crd["spec"]["versions"][0]["storage"] = json!(true);
    let (code, status) = post(&server, CRDS, &crd).await;
    assert_eq!(code, 422);
    let fields: Vec<&str> = status["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["field"].as_str().unwrap())
        .collect();
    assert_eq!(
        fields,
        ["metadata.name", "spec.versions", "status.storedVersions"]
    );
    for broken in [
        json!({"spec": 3}),
        json!({"spec": {"names": []}}),
        json!({"spec": {"versions": {}}}),
    ] {
        let mut crd = widgets();
        crd["spec"] = broken["spec"].clone();
        let code = post(&server, CRDS, &crd).await.0;
        assert!((400..500).contains(&code), "{code}");
    }
}

#[tokio::test]
async fn status_and_specification_are_written_apart() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let mut new = widget("a");
    new["status"] = json!({"phase": "Lost"});
    let (_, created) = post(&server, WIDGETS, &new).await;
    assert_eq!(
        (
            created.get("status"),
            created["metadata"]["generation"].as_i64()
        ),
        (None, Some(1))
    );
    let path = format!("{WIDGETS}/a");
    let status = json!({"status": {"phase": "Ready"}, "spec": {"color": "green"}});
    let (code, after) = patch(&server, &format!("{path}/status"), MERGE, &status).await;
    assert_eq!(
        (code, after["status"]["phase"].as_str()),
        (200, Some("Ready")),
        "{after}"
    );
    assert_eq!(
        (&after["spec"]["color"], &after["metadata"]["generation"]),
        (&json!("red"), &json!(1))
    );
    let (_, after) = patch(&server, &path, MERGE, &status).await;
    assert_eq!(
        (&after["spec"]["color"], &after["metadata"]["generation"]),
        (&json!("green"), &json!(2))
    );
    assert_eq!(after["status"]["phase"], "Ready");
}

/// The status of a new object is not stored, but must be readable for its fields to be known: after the removal of
/// nulls that are not nullable, as in kube-apiserver's decoder.
#[tokio::test]
async fn a_new_object_with_an_unreadable_status_has_no_record_of_its_writers() {
    let server = server().await;
    let mut crd = widgets();
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["conditions"] = json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}},
        });
    }
    assert_eq!(post(&server, CRDS, &crd).await.0, 201);
    for (name, kind, recorded) in [
        ("named", json!("Ready"), true),
        ("null", json!(null), false),
    ] {
        let mut new = widget(name);
        new["status"] = json!({"conditions": [{"type": kind}]});
        let (code, created) = post(&server, WIDGETS, &new).await;
        assert_eq!((code, created.get("status")), (201, None), "{created}");
        assert_eq!(
            created["metadata"]["managedFields"].is_array(),
            recorded,
            "{created}"
        );
    }
}

#[tokio::test]
async fn a_custom_resource_is_replaced_only_with_its_revision() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    post(&server, WIDGETS, &widget("a")).await;
    let (code, status) = put(&server, &format!("{WIDGETS}/a"), &widget("a")).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "widgets.example.org \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
}

#[tokio::test]
async fn every_served_version_shows_the_same_objects() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let mut old = widget("a");
    old["apiVersion"] = json!("example.org/v1beta1");
    let path = WIDGETS.replace("/v1/", "/v1beta1/");
    let (code, created) = post(&server, &path, &old).await;
    assert_eq!(
        (code, created["apiVersion"].as_str()),
        (201, Some("example.org/v1beta1")),
        "{created}"
    );
    let (_, new) = get(&server, &format!("{WIDGETS}/a")).await;
    assert_eq!(new["apiVersion"], "example.org/v1");
    let (_, list) = get(&server, &path).await;
    assert_eq!(list["items"][0]["apiVersion"], "example.org/v1beta1");
}

#[tokio::test]
async fn defaults_of_the_stored_version_are_seen_in_the_others_too() {
    let server = server().await;
    let mut crd = widgets();
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        let stored = version["storage"] == true;
        let schema = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        schema["bastion"] =
            json!({"type": "object", "properties": {"enabled": {"type": "boolean"}}});
        if stored {
            schema["bastion"]["properties"]["enabled"]["default"] = json!(true);
        }
    }
    assert_eq!(post(&server, CRDS, &crd).await.0, 201);
    let mut old = widget("a");
    old["apiVersion"] = json!("example.org/v1beta1");
    old["spec"]["bastion"] = json!({});
    let path = WIDGETS.replace("/v1/", "/v1beta1/");
    for query in ["?dryRun=All", ""] {
        let (code, created) = post(&server, &format!("{path}{query}"), &old).await;
        assert_eq!(
            (code, &created["spec"]["bastion"]),
            (201, &json!({"enabled": true})),
            "{created}"
        );
    }
}

#[tokio::test]
async fn scale_reads_and_writes_replicas_only() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    post(&server, WIDGETS, &widget("a")).await;
    let path = format!("{WIDGETS}/a/scale");
    let (code, scale) = patch(&server, &path, MERGE, &json!({"spec": {"replicas": 5}})).await;
    assert_eq!(
        (code, &scale["spec"]),
        (200, &json!({"replicas": 5})),
        "{scale}"
    );
    assert_eq!(scale["apiVersion"], "autoscaling/v1");
    assert_eq!(
        get(&server, &format!("{WIDGETS}/a")).await.1["spec"]["replicas"],
        5
    );
    let (code, _) = call(
        &server,
        Method::PUT,
        &path,
        &json!({"spec": {"replicas": -1}}),
    )
    .await;
    assert_eq!(code, 422);
}

#[tokio::test]
async fn strategic_merge_is_not_for_custom_resources() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    post(&server, WIDGETS, &widget("a")).await;
    let kind = "application/strategic-merge-patch+json";
    let (code, status) = patch(&server, &format!("{WIDGETS}/a"), kind, &json!({})).await;
    assert_eq!(
        (code, status["reason"].as_str()),
        (415, Some("UnsupportedMediaType"))
    );
}

#[tokio::test]
async fn a_definition_changes_while_objects_exist() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    post(&server, WIDGETS, &widget("a")).await;
    let path = format!("{CRDS}/widgets.example.org");
    let size = "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/weight";
    let add = json!([{"op": "add", "path": size, "value": {"type": "integer", "default": 7}}]);
    let (code, crd) = patch(&server, &path, "application/json-patch+json", &add).await;
    assert_eq!(
        (code, crd["metadata"]["generation"].as_i64()),
        (200, Some(2)),
        "{crd}"
    );
    let (_, created) = post(&server, WIDGETS, &widget("b")).await;
    assert_eq!(created["spec"]["weight"], 7);

    let scope = json!({"spec": {"scope": "Cluster"}});
    let (code, status) = patch(&server, &path, MERGE, &scope).await;
    assert_eq!(
        (code, &status["details"]["causes"][0]["field"]),
        (422, &json!("spec.scope"))
    );
    let last = json!([{"op": "remove", "path": "/spec/versions/1"}, {"op": "replace", "path": "/spec/versions/0/storage", "value": true}]);
    let (code, status) = patch(&server, &path, "application/json-patch+json", &last).await;
    assert_eq!(code, 422, "{status}");
    assert_eq!(
        status["details"]["causes"][0]["field"],
        "status.storedVersions[0]"
    );
}

/// Changes the properties of the specification in the stored version.
async fn change_schema(server: &ApiServer, operations: &Value) {
    let mut operations = operations.clone();
    for operation in operations.as_array_mut().unwrap() {
        let name = operation["path"].as_str().unwrap();
        let at = "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties";
        operation["path"] = json!(format!("{at}/{name}"));
    }
    let path = format!("{CRDS}/widgets.example.org");
    let (code, crd) = patch(server, &path, "application/json-patch+json", &operations).await;
    assert_eq!(code, 200, "{crd}");
}

#[tokio::test]
async fn objects_are_shown_as_a_schema_that_changed_since_has_them() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let (_, before) = post(&server, WIDGETS, &widget("a")).await;
    let path = format!("{WIDGETS}/a");
    let weight =
        json!([{"op": "add", "path": "weight", "value": {"type": "integer", "default": 7}}]);
    change_schema(&server, &weight).await;
    let (_, object) = get(&server, &path).await;
    assert_eq!(
        object["spec"],
        json!({"color": "red", "size": 3, "weight": 7})
    );
    assert_eq!(object["metadata"], before["metadata"]);
    let (_, list) = get(&server, WIDGETS).await;
    assert_eq!(list["items"][0]["spec"], object["spec"]);
    let watch = format!("{WIDGETS}?watch=1&timeoutSeconds=1");
    let (_, event) = get(&server, &watch).await;
    assert_eq!(
        (&event["type"], &event["object"]["spec"]),
        (&json!("ADDED"), &object["spec"])
    );

    change_schema(&server, &json!([{"op": "remove", "path": "color"}])).await;
    let (_, object) = get(&server, &path).await;
    assert_eq!(object["spec"], json!({"size": 3, "weight": 7}));
    let back = json!([
        {"op": "remove", "path": "weight"}, {"op": "add", "path": "color", "value": {"type": "string"}},
    ]);
    change_schema(&server, &back).await;
    assert_eq!(get(&server, &path).await.1, before);

    change_schema(&server, &weight).await;
    let (_, after) = patch(&server, &path, MERGE, &json!({})).await;
    assert_ne!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    assert_eq!(after["metadata"]["generation"], 1);
    change_schema(
        &server,
        &json!([{"op": "replace", "path": "weight/default", "value": 8}]),
    )
    .await;
    assert_eq!(get(&server, &path).await.1["spec"]["weight"], 7);
}

#[tokio::test]
async fn metadata_of_the_wrong_type_are_refused_in_the_words_of_go() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    for (metadata, why) in [
        (
            json!({"name": 3}),
            "number into Go struct field ObjectMeta.name of type string",
        ),
        (
            json!({"name": "a", "labels": {"a": true}}),
            "bool into Go struct field ObjectMeta.labels of type string",
        ),
        (
            json!({"name": "a", "uid": {}}),
            "object into Go struct field ObjectMeta.uid of type types.UID",
        ),
        (
            json!({"name": "a", "ownerReferences": [{"uid": 1}]}),
            "number into Go struct field OwnerReference.ownerReferences.uid of type types.UID",
        ),
        (
            json!({"name": "a", "generation": "1"}),
            "string into Go struct field ObjectMeta.generation of type int64",
        ),
        (
            json!({"name": "a", "creationTimestamp": 5}),
            "number into Go struct field ObjectMeta.creationTimestamp of type string",
        ),
        (json!(5), "number into Go value of type v1.ObjectMeta"),
    ] {
        let mut object = widget("a");
        object["metadata"] = metadata;
        let (code, status) = post(&server, WIDGETS, &object).await;
        let message = format!(
            "Widget in version \"v1\" cannot be handled as a Widget: json: cannot unmarshal {why}"
        );
        assert_eq!((code, &status["message"]), (400, &json!(message)));
    }
    post(&server, WIDGETS, &widget("a")).await;
    for wrong in [json!({"labels": {"a": 1}}), json!(5)] {
        let wrong = json!({"metadata": wrong});
        let (code, status) = patch(&server, &format!("{WIDGETS}/a"), MERGE, &wrong).await;
        assert_eq!(
            (code, &status["details"]["causes"][0]["field"]),
            (422, &json!("patch")),
            "{status}"
        );
    }
}

#[tokio::test]
async fn what_definitions_do_not_serve_is_not_found_in_plain_text() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let missing = json!("404 page not found\n");
    for path in [
        "/apis/example.org/v1/gadgets",
        "/apis/example.org/v2/widgets",
        "/apis/example.org/v1/widgets/a",
    ] {
        assert_eq!(get(&server, path).await, (404, missing.clone()), "{path}");
    }
    let everywhere = "/apis/example.org/v1/widgets";
    assert_eq!(get(&server, everywhere).await.0, 200);
    assert_eq!(
        post(&server, everywhere, &widget("a")).await,
        (404, missing.clone())
    );
    assert_eq!(delete(&server, everywhere).await, (404, missing));
}

#[tokio::test]
async fn unknown_fields_are_dropped_with_a_warning_or_refused() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let mut odd = widget("a");
    odd["spec"]["taste"] = json!("sweet");
    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    let (code, status) = post(&server, &strict, &odd).await;
    assert_eq!(code, 400);
    assert_eq!(
        status["message"],
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.taste\""
    );
    let json = [("content-type", "application/json")];
    let response = send(&server, Method::POST, WIDGETS, &json, odd.to_string()).await;
    assert_eq!(
        response.headers()["warning"],
        "299 - \"unknown field \\\"spec.taste\\\"\""
    );
    let (code, created) = read(response).await;
    assert_eq!(
        (code, &created["spec"]),
        (201, &json!({"color": "red", "size": 3}))
    );
    let twice = odd.to_string().replacen(
        "\"color\":\"red\"",
        "\"color\":\"red\",\"color\":\"green\"",
        1,
    );
    let response = send(&server, Method::POST, &strict, &json, twice).await;
    let (_, status) = read(response).await;
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("duplicate field \"spec.color\""),
        "{status}"
    );
}

/// Waits for the object of a path to be as it shall be.
async fn until(server: &ApiServer, path: &str, how: impl Fn(&Value) -> bool) {
    for _ in 0..30_000 {
        if how(&get(server, path).await.1) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("{path} stays {}", get(server, path).await.1);
}

#[tokio::test]
async fn a_definition_that_claims_the_names_of_another_is_served_when_that_is_gone() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let first = format!("{CRDS}/widgets.example.org");
    until(&server, &first, |crd| {
        crd["status"]["conditions"][1]["status"] == "True"
    })
    .await;
    let mut other = widgets();
    other["metadata"]["name"] = json!("others.example.org");
    other["spec"]["names"]["plural"] = json!("others");
    post(&server, CRDS, &other).await;
    let second = format!("{CRDS}/others.example.org");
    until(&server, &second, |crd| {
        crd["status"]["conditions"][0]["status"] == "False"
    })
    .await;
    let others = WIDGETS.replace("widgets", "others");
    assert_eq!(get(&server, &others).await.0, 404);
    delete(&server, &first).await;
    until(&server, &second, |crd| {
        crd["status"]["conditions"][1]["status"] == "True"
    })
    .await;
    assert_eq!(get(&server, &others).await.0, 200);
}

#[tokio::test]
async fn the_status_of_a_definition_is_what_a_client_writes() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let path = &format!("{CRDS}/widgets.example.org");
    let status = &format!("{path}/status");
    let condition = json!({
        "type": "Migrated", "status": "True", "reason": "Done", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let (_, mut crd) = get(&server, path).await;
    let conditions = crd["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(condition.clone());
    let before = crd["spec"].clone();
    crd["spec"]["names"]["categories"] = json!(["never"]);
    let (code, written) = call(&server, Method::PUT, status, &crd).await;
    assert_eq!(code, 200, "{written}");
    assert_eq!(written["spec"], before);
    let has = |crd: &Value| {
        let all = crd["status"]["conditions"].as_array().cloned();
        all.is_some_and(|all| all.contains(&condition))
    };
    assert!(has(&written), "{written}");
    assert!(has(&get(&server, path).await.1));
    // A write to the definition keeps it.
    let label = json!({"metadata": {"labels": {"a": "b"}}, "status": {"conditions": []}});
    assert!(has(&patch(&server, path, MERGE, &label).await.1));
    let wrong = json!({"status": {"conditions": "x"}});
    let (code, refused) = patch(&server, status, MERGE, &wrong).await;
    assert_eq!(code, 422, "{refused}");
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("CustomResourceDefinitionStatus.status.conditions"),
        "{message}"
    );
    let wrong = json!({"status": {"acceptedNames": {"plural": "A B"}}});
    assert_eq!(patch(&server, status, MERGE, &wrong).await.0, 422);
}

#[tokio::test]
async fn a_null_is_dropped_from_an_object_and_refused_in_an_applied_configuration() {
    const APPLY: &str = "application/apply-patch+yaml";
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let mut new = widget("a");
    new["spec"] = json!({"color": null, "size": null, "replicas": 1});
    let (code, created) = post(&server, WIDGETS, &new).await;
    let expected = json!({"size": 3, "replicas": 1});
    assert_eq!((code, &created["spec"]), (201, &expected), "{created}");
    for name in ["a", "b"] {
        let path = format!("{WIDGETS}/{name}?fieldManager=test&force=true");
        new["metadata"]["name"] = json!(name);
        let (code, status) = patch(&server, &path, APPLY, &new).await;
        assert_eq!(code, 422, "{status}");
        let causes = status["details"]["causes"].as_array().unwrap();
        assert!(
            causes.iter().any(|cause| cause["field"] == "spec.color"),
            "{status}"
        );
        // A null of a field with a default is no null any more.
        let mut other = new.clone();
        other["spec"] = json!({"size": null});
        let (code, applied) = patch(&server, &path, APPLY, &other).await;
        assert!(code == 200 || code == 201, "{applied}");
        assert_eq!(applied["spec"]["size"], 3);
    }
}
