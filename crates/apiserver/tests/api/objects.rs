//! create, get, list, update, patch and delete of built-in kinds.

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn a_created_object_has_what_the_server_adds() {
    let server = server().await;
    let (code, created) = post(&server, MAPS, &config_map("a", "1")).await;
    assert_eq!(code, 201, "{created}");
    let metadata = &created["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert!(metadata["uid"].as_str().is_some_and(|uid| uid.len() == 36));
    assert!(
        metadata["creationTimestamp"]
            .as_str()
            .is_some_and(|time| time.ends_with('Z'))
    );
    assert!(
        metadata["resourceVersion"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            > 1
    );
    assert_eq!(get(&server, &format!("{MAPS}/a")).await, (200, created));
}

#[tokio::test]
async fn a_missing_object_is_named_as_kube_apiserver_names_it() {
    let server = server().await;
    let (code, status) = get(&server, &format!("{MAPS}/none")).await;
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "configmaps \"none\" not found", "reason": "NotFound",
        "details": {"name": "none", "kind": "configmaps"}, "code": 404,
    });
    assert_eq!((code, status), (404, expected));
}

#[tokio::test]
async fn a_name_is_taken_only_once() {
    let server = server().await;
    post(&server, MAPS, &config_map("a", "1")).await;
    let (code, status) = post(&server, MAPS, &config_map("a", "2")).await;
    assert_eq!(
        (code, status["reason"].as_str()),
        (409, Some("AlreadyExists"))
    );
    assert_eq!(status["message"], "configmaps \"a\" already exists");
}

#[tokio::test]
async fn a_generated_name_starts_with_its_base() {
    let server = server().await;
    let mut map = config_map("", "1");
    map["metadata"] = json!({"generateName": "base-"});
    let (code, created) = post(&server, MAPS, &map).await;
    let name = created["metadata"]["name"].as_str().unwrap();
    assert!(
        code == 201 && name.starts_with("base-") && name.len() == 10,
        "{name}"
    );
}

#[tokio::test]
async fn an_update_of_an_old_revision_is_a_conflict() {
    let server = server().await;
    let (_, first) = post(&server, MAPS, &config_map("a", "1")).await;
    let mut second = first.clone();
    second["data"]["k"] = json!("2");
    let path = format!("{MAPS}/a");
    let (code, updated) = put(&server, &path, &second).await;
    assert_eq!((code, &updated["data"]["k"]), (200, &json!("2")));
    assert_ne!(
        updated["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    second["data"]["k"] = json!("3");
    let (code, status) = put(&server, &path, &second).await;
    assert_eq!((code, status["reason"].as_str()), (409, Some("Conflict")));
}

#[tokio::test]
async fn an_update_that_changes_nothing_makes_no_revision() {
    let server = server().await;
    let (_, created) = post(&server, MAPS, &config_map("a", "1")).await;
    let (code, same) = put(&server, &format!("{MAPS}/a"), &created).await;
    assert_eq!((code, same), (200, created));
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let server = server().await;
    let (code, created) = post(
        &server,
        &format!("{MAPS}?dryRun=All"),
        &config_map("a", "1"),
    )
    .await;
    assert_eq!(
        (code, created["metadata"]["name"].as_str()),
        (201, Some("a"))
    );
    assert_eq!(get(&server, &format!("{MAPS}/a")).await.0, 404);
}

#[tokio::test]
async fn pages_of_a_list_show_one_revision() {
    let server = server().await;
    for name in ["a", "b", "c", "d", "e"] {
        post(&server, MAPS, &config_map(name, "1")).await;
    }
    let (_, first) = get(&server, &format!("{MAPS}?limit=2")).await;
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    let token = first["metadata"]["continue"].as_str().unwrap();
    delete(&server, &format!("{MAPS}/d")).await;
    post(&server, MAPS, &config_map("dd", "1")).await;
    let (_, rest) = get(&server, &format!("{MAPS}?limit=9&continue={token}")).await;
    let names: Vec<&str> = rest["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["c", "d", "e"]);
    assert_eq!(
        rest["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn finalizers_hold_a_deleted_object_until_the_last_is_gone() {
    let server = server().await;
    let mut map = config_map("a", "1");
    map["metadata"]["finalizers"] = json!(["example.org/hold"]);
    post(&server, MAPS, &map).await;
    let path = format!("{MAPS}/a");
    let (code, marked) = delete(&server, &path).await;
    assert_eq!(code, 200);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(get(&server, &path).await.0, 200);
    let none = json!({"metadata": {"finalizers": null}});
    assert_eq!(patch(&server, &path, MERGE, &none).await.0, 200);
    assert_eq!(get(&server, &path).await.0, 404);
}

#[tokio::test]
async fn a_delete_with_another_uid_is_refused() {
    let server = server().await;
    post(&server, MAPS, &config_map("a", "1")).await;
    let options =
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}});
    let (code, status) = call(&server, Method::DELETE, &format!("{MAPS}/a"), &options).await;
    assert_eq!((code, status["reason"].as_str()), (409, Some("Conflict")));
}

#[tokio::test]
async fn secrets_take_text_and_keep_base64() {
    let server = server().await;
    let path = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"a": "hello"}});
    let (code, created) = post(&server, path, &secret).await;
    assert_eq!((code, &created["data"]), (201, &json!({"a": "aGVsbG8="})));
    assert_eq!(
        (created["type"].as_str(), created.get("stringData")),
        (Some("Opaque"), None)
    );
    let broken = json!({"metadata": {"name": "t"}, "data": {"a": "***"}});
    assert_eq!(post(&server, path, &broken).await.0, 400);
}

#[tokio::test]
async fn objects_need_a_namespace_that_exists() {
    let server = server().await;
    let (code, status) = post(
        &server,
        "/api/v1/namespaces/none/configmaps",
        &config_map("a", "1"),
    )
    .await;
    assert_eq!(
        (code, status["message"].as_str()),
        (404, Some("namespaces \"none\" not found"))
    );
}

#[tokio::test]
async fn label_and_field_selectors_narrow_a_list() {
    let server = server().await;
    for (name, tier) in [("a", "x"), ("b", "y")] {
        let mut map = config_map(name, "1");
        map["metadata"]["labels"] = json!({"tier": tier});
        post(&server, MAPS, &map).await;
    }
    for query in ["labelSelector=tier%3Dy", "fieldSelector=metadata.name%3Db"] {
        let (_, list) = get(&server, &format!("{MAPS}?{query}")).await;
        let items = list["items"].as_array().unwrap();
        assert_eq!(
            (items.len(), items[0]["metadata"]["name"].as_str()),
            (1, Some("b")),
            "{query}"
        );
    }
    assert_eq!(
        get(&server, &format!("{MAPS}?fieldSelector=data.k%3D1"))
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn events_of_both_groups_are_the_same_objects() {
    let server = server().await;
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p"}, "note": "happened", "reason": "R", "type": "Normal",
        "action": "A", "reportingController": "c", "eventTime": "2026-01-01T00:00:00.000000Z",
    });
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    assert_eq!(post(&server, path, &event).await.0, 201);
    let (code, core) = get(&server, "/api/v1/namespaces/default/events/e").await;
    assert_eq!(
        (code, core["involvedObject"]["name"].as_str()),
        (200, Some("p"))
    );
    assert_eq!(core["message"], "happened");
    let (_, list) = get(&server, &format!("{path}?fieldSelector=regarding.name%3Dp")).await;
    assert_eq!(list["items"][0]["note"], "happened");
}

#[tokio::test]
async fn bad_bodies_are_refused_and_never_panic() {
    let server = server().await;
    let deep = "[".repeat(100_000);
    for (body, kind) in [
        ("", "application/json"),
        ("{", "application/json"),
        ("[]", "application/json"),
        ("3", "application/json"),
        (
            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":3}",
            "application/json",
        ),
        (
            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":3}}",
            "application/json",
        ),
        (
            "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}",
            "application/json",
        ),
        ("a: [", "application/yaml"),
        (deep.as_str(), "application/json"),
        (deep.as_str(), "application/yaml"),
    ] {
        let response = send(
            &server,
            Method::POST,
            MAPS,
            &[("content-type", kind)],
            body.to_owned(),
        )
        .await;
        let (code, status) = read(response).await;
        assert!((400..500).contains(&code), "{code} {status}");
        assert_eq!(status["kind"], "Status", "{body:.20}");
    }
    let large = vec![b' '; 4 << 20];
    assert_eq!(
        send(&server, Method::POST, MAPS, &[], large).await.status(),
        413
    );
}

#[tokio::test]
async fn built_in_kinds_are_answered_in_protobuf() {
    let server = server().await;
    post(
        &server,
        MAPS,
        &json!({"metadata": {"name": "a"}, "data": {"k": "v"}}),
    )
    .await;
    let only = [("accept", "application/vnd.kubernetes.protobuf")];
    let one = format!("{MAPS}/a");
    let absent = format!("{MAPS}/absent");
    let watch = format!("{MAPS}?watch=1&timeoutSeconds=1");
    for (path, code, media, begin) in [
        (one.as_str(), 200, "", &b"k8s\0"[..]),
        (MAPS, 200, "", b"k8s\0"),
        (&absent, 404, "", b"k8s\0"),
        // The length of an event, and its type.
        (&watch, 200, ";stream=watch", b"\0\0\0"),
    ] {
        let response = send(&server, Method::GET, path, &only, "").await;
        assert_eq!(response.status(), code, "{path}");
        let expected = format!("application/vnd.kubernetes.protobuf{media}");
        assert_eq!(
            response.headers()["content-type"],
            expected.as_str(),
            "{path}"
        );
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert!(bytes.starts_with(begin), "{path}: {bytes:?}");
    }
    let table = [(
        "accept",
        "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
    )];
    let response = send(&server, Method::GET, MAPS, &table, "").await;
    assert_eq!(response.status(), 406);
    let refused = [(
        "accept",
        "application/vnd.kubernetes.protobuf;q=0,application/json",
    )];
    let response = send(&server, Method::GET, MAPS, &refused, "").await;
    assert_eq!(response.headers()["content-type"], "application/json");
}

#[tokio::test]
async fn the_open_api_document_is_answered_in_protobuf() {
    let server = server().await;
    for wanted in ["v2@v1.0", "v2.v1.0"] {
        let wanted = format!("application/com.github.proto-openapi.spec.{wanted}+protobuf");
        let headers = [("accept", wanted.as_str())];
        let response = send(&server, Method::GET, "/openapi/v2", &headers, "").await;
        assert_eq!(
            response.headers()["content-type"],
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        );
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert!(bytes.starts_with(b"\x0a\x032.0\x12"), "{:?}", &bytes[..20]);
    }
    let text = [("accept", "text/html")];
    let response = send(&server, Method::GET, "/openapi/v2", &text, "").await;
    assert_eq!(response.status(), 406);
}

#[tokio::test]
async fn media_types_that_are_not_there_are_refused_with_those_that_are() {
    let server = server().await;
    let protobuf = [("content-type", "application/vnd.kubernetes.protobuf")];
    for (body, why) in [
        (
            "k8s",
            "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (6b3873)",
        ),
        ("k8s\0\u{a}\u{5}ab", "unexpected EOF"),
    ] {
        let (code, status) = read(send(&server, Method::POST, MAPS, &protobuf, body).await).await;
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
        assert!(
            status["message"].as_str().unwrap().contains(why),
            "{status}"
        );
    }
    let known = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let text = [("content-type", "text/plain"), ("accept", "text/html")];
    let answer = async |method: Method, path: &str, headers: &[(&str, &str)]| {
        let (code, status) = read(send(&server, method, path, headers, "x").await).await;
        (code, status["message"].as_str().unwrap().to_owned())
    };
    let unknown = format!(
        "the body of the request was in an unknown format - accepted media types include: {known}"
    );
    assert_eq!(answer(Method::POST, MAPS, &text[..1]).await, (415, unknown));
    let none = format!("406: Not Acceptable\n\nAvailable representations: {known}");
    let one = format!("{MAPS}/a");
    assert_eq!(
        answer(Method::GET, &one, &text[1..]).await,
        (406, none.clone())
    );
    let streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!(
        answer(Method::GET, MAPS, &text[1..]).await,
        (406, format!("{none}, {streams}"))
    );
    let form = [("accept", "application/json;as=Chart;v=v1;g=meta.k8s.io")];
    assert_eq!(
        answer(Method::GET, &one, &form).await,
        (
            406,
            format!("only the following media types are accepted: {known}")
        )
    );
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused() {
    let server = server().await;
    assert_eq!(
        get(&server, "/apis/none.example.org/v1/things").await.0,
        404
    );
    assert_eq!(
        get(&server, "/apis/apps/v1/things").await.1["reason"],
        "NotFound"
    );
    assert_eq!(put(&server, MAPS, &Value::Null).await.0, 405);
    for health in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
        assert_eq!(get(&server, health).await, (200, json!("ok")));
    }
    assert_eq!(get(&server, "/version").await.1["gitVersion"], "v1.34.1");
}
