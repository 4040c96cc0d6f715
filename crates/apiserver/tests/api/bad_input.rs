//! Unreadable input, and input that would cost too much to read.

use apiserver::{ApiServer, Options};
use http::Method;
use serde_json::{Value, json};

use crate::support::*;

async fn refused(server: &ApiServer, path: &str) -> (u16, String) {
    let (code, status) = get(server, path).await;
    let message = status["message"].as_str().unwrap_or_default();
    (code, message.to_owned())
}

#[tokio::test]
async fn selectors_that_do_not_parse_are_refused_and_so_are_unknown_fields() {
    let server = server().await;
    for (query, why) in [
        ("labelSelector=a%3D%3D%3Db", "unable to parse requirement"),
        ("labelSelector=a+in+(b", "unable to parse requirement"),
        ("fieldSelector=metadata.name", "invalid selector"),
        (
            "fieldSelector=spec.color%3Dred",
            "\"spec.color\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
    ] {
        for path in [MAPS, "/api/v1/pods"] {
            let (code, message) = refused(&server, &format!("{path}?{query}")).await;
            assert_eq!(code, 400, "{query}");
            assert!(message.contains(why) || path != MAPS, "{query}: {message}");
        }
    }
}

#[tokio::test]
async fn continue_tokens_that_do_not_parse_are_refused() {
    let server = server().await;
    // No base64, no JSON, no revision, and a revision that is none.
    for token in [
        "%25%25",
        "bm90aGluZw",
        "e30",
        "eyJydiI6LTEsInN0YXJ0IjoiYSJ9",
    ] {
        let (code, message) = refused(&server, &format!("{MAPS}?limit=1&continue={token}")).await;
        assert_eq!(code, 400, "{token}");
        assert!(message.contains("continue key is not valid"), "{message}");
    }
}

#[tokio::test]
async fn a_page_that_comes_too_late_is_gone_and_brings_a_token_to_go_on_with() {
    let options = Options {
        history: 4,
        ..Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    for name in ["a", "b", "c"] {
        post(&server, MAPS, &config_map(name, "1")).await;
    }
    let (_, first) = get(&server, &format!("{MAPS}?limit=1")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    for number in 0..10 {
        let data = json!({"data": {"k": number.to_string()}});
        patch(&server, &format!("{MAPS}/c"), MERGE, &data).await;
    }
    let (code, status) = get(&server, &format!("{MAPS}?limit=9&continue={token}")).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    let fresh = status["metadata"]["continue"].as_str().unwrap();
    let (code, rest) = get(&server, &format!("{MAPS}?limit=9&continue={fresh}")).await;
    let names: Vec<&str> = rest["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!((code, names), (200, vec!["b", "c"]));
}

#[tokio::test]
async fn text_of_another_encoding_is_repaired_as_go_does_it_or_refused() {
    let server = server().await;
    let json = [("content-type", "application/json")];
    let latin =
        b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"gr\xfc\xe2\x82n\"}}";
    let (code, created) =
        read(send(&server, Method::POST, MAPS, &json, latin.to_vec()).await).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["data"]["k"], "gr\u{fffd}\u{fffd}\u{fffd}n");
    let wide: Vec<u8> = "\u{feff}{}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (kind, reason) in [
        ("application/json", "BadRequest"),
        // YAML may be of that encoding; this one is an object without a name.
        ("application/yaml", "Invalid"),
    ] {
        let headers = [("content-type", kind)];
        let response = send(&server, Method::POST, MAPS, &headers, wide.clone()).await;
        assert_eq!(read(response).await.1["reason"], reason);
    }
}

#[tokio::test]
async fn bodies_nested_without_end_are_refused_in_every_place() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    post(&server, WIDGETS, &widget("a")).await;
    let nested = |open: &str, close: &str| open.repeat(50_000) + &close.repeat(50_000);
    let deep = format!(
        "{{\"apiVersion\":\"example.org/v1\",\"kind\":\"Widget\",\"metadata\":{{\"name\":\"b\"}},\"spec\":{}}}",
        nested("{\"a\":", "}").replace("{\"a\":}", "{\"a\":{}}")
    );
    for (method, path, kind, body) in [
        (Method::POST, WIDGETS, "application/json", deep.clone()),
        (Method::POST, WIDGETS, "application/yaml", deep.clone()),
        (Method::PATCH, "a", MERGE, deep.clone()),
        (
            Method::PATCH,
            "a",
            "application/json-patch+json",
            nested("[", "]"),
        ),
        (Method::PATCH, "b", "application/apply-patch+yaml", deep),
    ] {
        let path = match path {
            WIDGETS => WIDGETS.to_owned(),
            name => format!("{WIDGETS}/{name}?fieldManager=m"),
        };
        let (code, status) =
            read(send(&server, method, &path, &[("content-type", kind)], body).await).await;
        assert!((400..500).contains(&code), "{kind}: {code} {status}");
        assert_eq!(status["kind"], "Status");
    }
    let (_, list) = get(&server, WIDGETS).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn rules_that_cost_too_much_are_refused_with_their_definition_or_not_run() {
    let server = server().await;
    let rule = |max: Value, rule: &str| {
        let mut crd = widgets();
        let mut list = json!({"type": "array", "items": {"type": "string"}});
        if !max.is_null() {
            list["maxItems"] = max.clone();
            list["items"]["maxLength"] = max;
        }
        let spec =
            &mut crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec["properties"]["list"] = list;
        spec["x-kubernetes-validations"] = json!([{"rule": rule}]);
        crd
    };
    let squared =
        "!has(self.list) || self.list.all(a, self.list.all(b, self.list.all(c, a != b || b != c)))";
    let (code, status) = post(&server, CRDS, &rule(Value::Null, squared)).await;
    assert_eq!(code, 422, "{status}");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains("estimated rule cost exceeds budget"),
        "{message}"
    );
    let (code, status) = post(&server, CRDS, &rule(json!(5), squared)).await;
    assert_eq!(code, 201, "{status}");
}

#[tokio::test]
async fn definitions_that_are_not_structural_are_refused() {
    let server = server().await;
    let mut crd = widgets();
    crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["x"] =
        json!({"anyOf": [{"type": "string"}]});
    let (code, status) = post(&server, CRDS, &crd).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains("must not be empty for specified object fields"),
        "{message}"
    );
}

#[tokio::test]
async fn times_that_are_none_are_refused_in_the_words_of_go() {
    let server = server().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let micro = "2006-01-02T15:04:05.000000Z07:00";
    for (time, why) in [
        ("2026-01-02T03:04:05.000006Z", None),
        ("2026-01-02T03:04:05.000006+02:00", None),
        (
            "x",
            Some(format!(
                "\"x\" as \"{micro}\": cannot parse \"x\" as \"2006\""
            )),
        ),
        (
            "2026-01-02 03:04:05.000006Z",
            Some(format!(
                "\"2026-01-02 03:04:05.000006Z\" as \"{micro}\": cannot parse \" 03:04:05.000006Z\" as \"T\""
            )),
        ),
        (
            "2026-01-02T03:04:05Z",
            Some(format!(
                "\"2026-01-02T03:04:05Z\" as \"{micro}\": cannot parse \"Z\" as \".000000\""
            )),
        ),
        (
            "2026-13-02T03:04:05.000006Z",
            Some("\"2026-13-02T03:04:05.000006Z\": month out of range".to_owned()),
        ),
        (
            "2026-02-30T03:04:05.000006Z",
            Some("\"2026-02-30T03:04:05.000006Z\": day out of range".to_owned()),
        ),
        (
            "2026-01-02T03:04:05.000006+99:00",
            Some(
                "\"2026-01-02T03:04:05.000006+99:00\": time zone offset hour out of range"
                    .to_owned(),
            ),
        ),
        (
            "2026-01-02T03:04:05.000006Zulu",
            Some("\"2026-01-02T03:04:05.000006Zulu\": extra text: \"ulu\"".to_owned()),
        ),
    ] {
        let lease = json!({"metadata": {"generateName": "l"}, "spec": {"renewTime": time}});
        let (code, status) = post(&server, leases, &lease).await;
        match why {
            None => assert_eq!(code, 201, "{status}"),
            Some(why) => {
                let message = format!(
                    "Lease in version \"v1\" cannot be handled as a Lease: parsing time {why}"
                );
                assert_eq!((code, &status["message"]), (400, &json!(message)));
            }
        }
    }
}
