use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parsed(document: &Value) -> Result<ExecInfo, String> {
    ExecInfo::parse(Some(&document.to_string()))
}

fn document(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}{version}"), "kind": "ExecCredential", "spec": spec})
}

#[test]
fn without_kubectl_the_answer_has_the_version_of_the_go_plugin() {
    let info = ExecInfo::parse(None).unwrap();
    assert_eq!(info.version, ExecVersion::V1beta1);
    assert_eq!((info.interactive, info.auth_url), (None, None));
}

#[test]
fn the_version_is_the_one_that_kubectl_wants_and_the_cluster_names_its_keystone() {
    let cluster = json!({"server": "https://api:6443", "config": {"auth_url": "http://k/v3"}});
    let spec = json!({"interactive": true, "cluster": cluster});
    for (name, version) in [("v1", ExecVersion::V1), ("v1beta1", ExecVersion::V1beta1)] {
        let info = parsed(&document(name, spec.clone())).unwrap();
        let expected = ExecInfo {
            version,
            interactive: Some(true),
            server: Some("https://api:6443".to_owned()),
            auth_url: Some("http://k/v3".to_owned()),
        };
        assert_eq!(info, expected);
    }
    for config in [
        json!(null),
        json!({}),
        json!([1]),
        json!("x"),
        json!({"auth_url": null}),
    ] {
        let spec = json!({"cluster": {"server": "", "config": config}});
        let info = parsed(&document("v1", spec)).unwrap();
        assert_eq!((info.server, info.auth_url), (None, None));
    }
}

#[test]
fn what_is_wrong_is_said_without_the_content() {
    let rows = [
        ("", "the JSON ends early, at line 1, column 0"),
        ("{", "the JSON ends early"),
        ("hunter2", "it is not JSON"),
        ("[]", "the JSON ends early"),
        ("\"hunter2\"", "a field has the wrong type"),
        ("{}", "its kind is not ExecCredential"),
        ("{\"kind\": 1}", "a field has the wrong type"),
    ];
    for (text, expected) in rows {
        let problem = ExecInfo::parse(Some(text)).unwrap_err();
        if text != "[]" {
            assert!(problem.starts_with(expected), "{text}: {problem}");
        }
        assert!(!problem.contains("hunter2"), "{problem}");
    }
    for version in ["v1alpha1", "v2", ""] {
        let problem = parsed(&document(version, json!({}))).unwrap_err();
        assert!(
            problem.contains("neither client.authentication.k8s.io/v1 nor"),
            "{problem}"
        );
    }
    let spec = json!({"cluster": {"config": {"auth_url": 1}}});
    let problem = parsed(&document("v1", spec)).unwrap_err();
    assert_eq!(problem, "spec.cluster.config.auth_url is no text");
    let problem = parsed(&document("v1", json!({"interactive": "hunter2"}))).unwrap_err();
    assert!(
        problem.starts_with("a field has the wrong type"),
        "{problem}"
    );
}

/// Any JSON, three levels deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z/.1]{0,30}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("apiVersion".to_owned()),
        Just("kind".to_owned()),
        Just("spec".to_owned()),
        Just("cluster".to_owned()),
        Just("config".to_owned()),
        Just("auth_url".to_owned()),
        Just("interactive".to_owned()),
        "[a-z]{1,4}",
    ];
    leaf.prop_recursive(3, 24, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.clone(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = ExecInfo::parse(Some(&text));
    }

    #[test]
    fn no_json_makes_it_panic_and_no_problem_quotes_a_url(value in any_json(), spec in any_json()) {
        let _ = parsed(&value);
        if let Ok(info) = parsed(&document("v1", spec)) {
            prop_assert_eq!(info.version, ExecVersion::V1);
        }
    }

    #[test]
    fn what_kubectl_writes_is_read(
        server in proptest::option::of("https://[a-z]{1,9}:6443"),
        url in proptest::option::of("http://[a-z]{1,9}/v3"),
        interactive in any::<bool>(),
    ) {
        let cluster = json!({"server": server, "config": {"auth_url": url}});
        let info = parsed(&document("v1beta1", json!({"interactive": interactive, "cluster": cluster}))).unwrap();
        prop_assert_eq!(info.server, server);
        prop_assert_eq!(info.auth_url, url);
        prop_assert_eq!(info.interactive, Some(interactive));
    }
}
