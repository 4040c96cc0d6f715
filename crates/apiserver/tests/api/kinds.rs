//! Special behaviour of built-in kinds, and requirements of definitions beyond their schema.

use http::Method;
use serde_json::{Value, json};

use crate::support::*;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, port: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [port]}})
}

#[tokio::test]
async fn services_get_addresses_and_node_ports_that_nobody_else_has() {
    let server = server().await;
    let mut given = Vec::new();
    for name in ["a", "b"] {
        let (code, created) = post(&server, SERVICES, &service(name, &json!({"port": 80}))).await;
        assert_eq!(code, 201, "{created}");
        let port = created["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
        assert!((30_000..=32_767).contains(&port), "{port}");
        let address = created["spec"]["clusterIP"].as_str().unwrap().to_owned();
        assert!(
            address.starts_with("10.9") || address.starts_with("10.10"),
            "{address}"
        );
        given.push((port, address));
    }
    assert!(
        given[0].0 != given[1].0 && given[0].1 != given[1].1,
        "{given:?}"
    );

    let taken = json!({"port": 80, "nodePort": given[0].0});
    let (code, status) = post(&server, SERVICES, &service("c", &taken)).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["details"]["causes"][0]["message"],
        format!(
            "Invalid value: {}: provided port is already allocated",
            given[0].0
        )
    );
    delete(&server, &format!("{SERVICES}/a")).await;
    assert_eq!(post(&server, SERVICES, &service("c", &taken)).await.0, 201);
    let outside = json!({"port": 80, "nodePort": 80});
    assert_eq!(
        post(&server, SERVICES, &service("d", &outside)).await.0,
        422
    );
}

#[tokio::test]
async fn an_eviction_waits_for_the_disruption_budget() {
    let server = server().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "metadata": {"name": "p", "labels": {"app": "a"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    let (code, created) = post(&server, pods, &pod).await;
    assert_eq!(code, 201, "{created}");
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    patch(&server, &format!("{pods}/p/status"), MERGE, &running).await;
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    });
    let (_, created) = post(&server, budgets, &budget).await;
    let none = json!({"status": {
        "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
        "observedGeneration": created["metadata"]["generation"],
    }});
    patch(&server, &format!("{budgets}/b/status"), MERGE, &none).await;
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let path = format!("{pods}/p/eviction");
    let (code, status) = post(&server, &path, &eviction).await;
    assert_eq!(
        (code, &status["reason"]),
        (429, &json!("TooManyRequests")),
        "{status}"
    );
    let one = json!({"status": {"disruptionsAllowed": 1}});
    patch(&server, &format!("{budgets}/b/status"), MERGE, &one).await;
    let (code, status) = post(&server, &path, &eviction).await;
    assert_eq!(code, 201, "{status}");
    let (_, budget) = get(&server, &format!("{budgets}/b")).await;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
}

#[tokio::test]
async fn a_collection_is_deleted_as_far_as_it_is_selected() {
    let server = server().await;
    for (name, tier) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut map = config_map(name, "1");
        map["metadata"]["labels"] = json!({"tier": tier});
        post(&server, MAPS, &map).await;
    }
    let x = format!("{MAPS}?labelSelector=tier%3Dx");
    let count = async || {
        let (_, list) = get(&server, MAPS).await;
        list["items"].as_array().map(Vec::len)
    };
    let before = count().await;
    assert_eq!(delete(&server, &format!("{x}&dryRun=All")).await.0, 200);
    assert_eq!(count().await, before);
    assert_eq!(delete(&server, &x).await.0, 200);
    assert_eq!(count().await, before.map(|all| all - 2));
    assert_eq!(get(&server, &format!("{MAPS}/b")).await.0, 200);
}

#[tokio::test]
async fn custom_resources_are_selected_by_the_fields_that_their_definition_names() {
    let server = server().await;
    let mut crd = widgets();
    crd["spec"]["versions"][1]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    let (code, created) = post(&server, CRDS, &crd).await;
    assert_eq!(code, 201, "{created}");
    for (name, color) in [("a", "red"), ("b", "green")] {
        let mut widget = widget(name);
        widget["spec"]["color"] = json!(color);
        post(&server, WIDGETS, &widget).await;
    }
    let green = format!("{WIDGETS}?fieldSelector=spec.color%3Dgreen");
    let (_, list) = get(&server, &green).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["items"][0]["metadata"]["name"], "b");
    let (_, event) = get(&server, &format!("{green}&watch=1&timeoutSeconds=1")).await;
    assert_eq!(event["object"]["metadata"]["name"], "b");
    let other = format!("{WIDGETS}?fieldSelector=spec.size%3D3");
    assert_eq!(get(&server, &other).await.0, 400);
}

#[tokio::test]
async fn a_version_that_comes_to_store_is_recorded_and_those_before_it_stay_so() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    post(&server, WIDGETS, &widget("a")).await;
    let path = format!("{CRDS}/widgets.example.org");
    let other = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": true},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": false},
    ]);
    let (code, crd) = patch(&server, &path, "application/json-patch+json", &other).await;
    assert_eq!(code, 200, "{crd}");
    assert_eq!(crd["status"]["storedVersions"], json!(["v1", "v1beta1"]));
    let (_, object) = get(&server, &format!("{WIDGETS}/a")).await;
    assert_eq!(object["apiVersion"], "example.org/v1");
    let moved = json!({"status": {"storedVersions": ["v1beta1"]}});
    let (code, crd) = patch(&server, &format!("{path}/status"), MERGE, &moved).await;
    assert_eq!(
        (code, &crd["status"]["storedVersions"]),
        (200, &json!(["v1beta1"]))
    );
    let unserved = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}]);
    patch(&server, &path, "application/json-patch+json", &unserved).await;
    assert_eq!(get(&server, WIDGETS).await.0, 404);
    let old = WIDGETS.replace("/v1/", "/v1beta1/");
    assert_eq!(get(&server, &format!("{old}/a")).await.0, 200);
}

#[tokio::test]
async fn duplicate_fields_are_warned_of_or_refused() {
    let server = server().await;
    let body = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"1\",\"k\":\"2\"},\"spec\":1}";
    let json = [("content-type", "application/json")];
    let path = |mode: &str| format!("{MAPS}?dryRun=All&fieldValidation={mode}");
    let warned = send(&server, Method::POST, &path("Warn"), &json, body).await;
    assert_eq!(warned.status(), 201);
    let warnings: Vec<&str> = warned
        .headers()
        .get_all("warning")
        .iter()
        .map(|value| value.to_str().unwrap())
        .collect();
    assert_eq!(
        warnings,
        [
            "299 - \"duplicate field \\\"data.k\\\"\"",
            "299 - \"unknown field \\\"spec\\\"\"",
        ]
    );
    let ignored = send(&server, Method::POST, &path("Ignore"), &json, body).await;
    assert_eq!(ignored.status(), 201);
    assert!(ignored.headers().get("warning").is_none());
    let (code, status) =
        read(send(&server, Method::POST, &path("Strict"), &json, body).await).await;
    assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
}

#[tokio::test]
async fn reviews_tell_what_a_user_may_do() {
    let server = server().await;
    let reviews = "/apis/authorization.k8s.io/v1";
    let wanted = json!({"verb": "list", "resource": "pods", "namespace": "default"});
    for (groups, allowed) in [
        (json!(["system:masters"]), true),
        // A member of the group is a node by its name alone.
        (json!(["system:nodes"]), false),
        (json!(["system:bootstrappers"]), false),
        (json!([]), false),
    ] {
        let spec = json!({"user": "jane", "groups": groups, "resourceAttributes": wanted});
        let path = format!("{reviews}/subjectaccessreviews");
        let (code, review) = post(&server, &path, &json!({"spec": spec})).await;
        assert_eq!(
            (code, &review["status"]["allowed"]),
            (201, &json!(allowed)),
            "{review}"
        );
    }
    let selfsubject = format!("{reviews}/selfsubjectaccessreviews");
    let spec = json!({"resourceAttributes": wanted});
    let (_, review) = post(&server, &selfsubject, &json!({"spec": spec})).await;
    assert_eq!(review["status"]["allowed"], true);
    let binding = json!({
        "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(post(&server, bindings, &binding).await.0, 201);
    let spec = json!({"user": "jane", "resourceAttributes": wanted});
    let path = format!("{reviews}/subjectaccessreviews");
    let (_, review) = post(&server, &path, &json!({"spec": spec})).await;
    assert_eq!(review["status"]["allowed"], true);
}
