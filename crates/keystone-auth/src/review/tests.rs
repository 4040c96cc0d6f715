use proptest::prelude::*;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::*;

fn decoded(body: &Value) -> Result<Review, String> {
    decode(body.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn access_of(body: &Value) -> AccessReview {
    match decoded(body) {
        Ok(Review::Access(review)) => *review,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reviews_are_answered_in_the_version_in_which_they_are_asked() {
    for version in ["v1", "v1beta1"] {
        let api = format!("authentication.k8s.io/{version}");
        let body = json!({"apiVersion": api, "kind": "TokenReview", "metadata": {"creationTimestamp": null},
            "spec": {"token": "secret", "audiences": ["a"]}, "status": {"user": {}}});
        let Ok(Review::Token(review)) = decoded(&body) else {
            panic!("{body}");
        };
        assert_eq!(
            (review.token.expose_secret(), &*review.audiences),
            ("secret", &["a".to_owned()][..])
        );
        let answer: Value = serde_json::from_slice(&review.refused("no").unwrap()).unwrap();
        let status = json!({"authenticated": false, "error": "no"});
        assert_eq!(
            answer,
            json!({"apiVersion": api, "kind": "TokenReview", "status": status})
        );
        let user = Subject {
            name: "alice".to_owned(),
            uid: "1".to_owned(),
            groups: vec!["g".to_owned()],
            extra: Some(HashMap::from([("k".to_owned(), vec!["v".to_owned()])])),
        };
        let answer = review.authenticated(&user, &["a".to_owned()]).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let status = json!({"authenticated": true, "audiences": ["a"],
            "user": {"username": "alice", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}}});
        assert_eq!(answer["status"], status);
        let api = format!("authorization.k8s.io/{version}");
        let groups = if version == "v1" { "groups" } else { "group" };
        let review = access_of(
            &json!({"apiVersion": api, "kind": "SubjectAccessReview", "spec": {
            "user": "alice", "uid": "1", groups: ["g"], "extra": {"k": ["v"]}, "resourceAttributes": {
                "verb": "get", "group": "apps", "version": "v1", "resource": "deployments", "subresource": "scale",
                "namespace": "n", "name": "x", "fieldSelector": {"rawSelector": "a=b"},
                "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}}}}),
        );
        assert_eq!(review.subject, user);
        let expected = ["get", "apps", "v1", "deployments", "scale", "n", "x"].map(str::to_owned);
        let Attributes::Resource(it) = &review.attributes else {
            panic!("{review:?}");
        };
        assert_eq!(
            [
                &it.verb,
                &it.group,
                &it.version,
                &it.resource,
                &it.subresource,
                &it.namespace,
                &it.name
            ],
            expected.each_ref()
        );
        let decision = Decision {
            allowed: false,
            reason: "because".into(),
        };
        let answer: Value = serde_json::from_slice(&review.answer(&decision).unwrap()).unwrap();
        let status = json!({"allowed": false, "reason": "because"});
        assert_eq!(
            answer,
            json!({"apiVersion": api, "kind": "SubjectAccessReview", "status": status})
        );
    }
}

#[test]
fn paths_and_absent_fields_are_what_they_are_in_kubernetes() {
    let body = |spec: Value| json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
    let review = access_of(&body(
        json!({"nonResourceAttributes": {"verb": "get", "path": "/healthz"}}),
    ));
    let (verb, path) = ("get".to_owned(), "/healthz".to_owned());
    assert_eq!(review.attributes, Attributes::Path { verb, path });
    assert_eq!(review.subject, Subject::default());
    let nothing = json!({"user": null, "uid": null, "groups": null, "extra": null, "resourceAttributes": {
        "verb": null, "group": null, "version": null, "resource": null, "subresource": null, "namespace": null, "name": null,
        "fieldSelector": null, "labelSelector": null}, "nonResourceAttributes": null});
    let review = access_of(&body(nothing));
    assert_eq!(
        review.attributes,
        Attributes::Resource(ResourceAttributes::default())
    );
    let review = access_of(&body(
        json!({"extra": {"k": null}, "resourceAttributes": {}}),
    ));
    assert_eq!(
        review.subject.extra,
        Some(HashMap::from([("k".to_owned(), Vec::new())]))
    );
}

#[test]
fn what_is_no_review_is_refused_with_the_field_and_without_the_token() {
    let token = |spec: &str| {
        format!(r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{spec}}}"#)
    };
    let access = |spec: &str| {
        format!(
            r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{spec}}}"#
        )
    };
    let deep = format!(r#"{{"spec":{{"extra":{}"#, r#"{"a":"#.repeat(100_000));
    let ignored = format!(r#"{{"x":{}"#, "[".repeat(100_000));
    for (body, expected) in [
        (String::new(), "the body: is no JSON: EOF"),
        ("x".to_owned(), "the body: is no JSON: "),
        ("[]".to_owned(), "the body: "),
        ("null".to_owned(), "the body: is of the wrong type"),
        ("\"x\"".to_owned(), "the body: is of the wrong type"),
        ("{}".to_owned(), "apiVersion: is missing"),
        (
            r#"{"apiVersion":1}"#.to_owned(),
            "apiVersion: is of the wrong type, expected a string",
        ),
        (
            r#"{"apiVersion":null}"#.to_owned(),
            "apiVersion: is missing",
        ),
        (r#"{"apiVersion":"v1"}"#.to_owned(), "kind: is missing"),
        (
            r#"{"apiVersion":"v1","kind":"Pod"}"#.to_owned(),
            "kind: `Pod` is neither",
        ),
        (
            r#"{"apiVersion":"v1","kind":"TokenReview"}"#.to_owned(),
            "apiVersion: `v1` has no TokenReview",
        ),
        (
            r#"{"apiVersion":"authentication.k8s.io/v2","kind":"TokenReview"}"#.to_owned(),
            "apiVersion: ",
        ),
        (
            r#"{"apiVersion":"authorization.k8s.io/v1","kind":"TokenReview"}"#.to_owned(),
            "apiVersion: ",
        ),
        (
            r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SubjectAccessReview"}"#.to_owned(),
            "apiVersion: ",
        ),
        (
            r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview"}"#.to_owned(),
            "spec: is missing",
        ),
        (
            r#"{"apiVersion":"a","apiVersion":"b"}"#.to_owned(),
            "is there twice",
        ),
        (token("null"), "spec: is missing"),
        (token("[]"), "spec"),
        (token("{}"), "spec.token: is missing"),
        (token(r#"{"token":null}"#), "spec.token: is missing"),
        (
            token(r#"{"token":["secret-token"]}"#),
            "spec.token: is of the wrong type, expected a string",
        ),
        (token(r#"{"token":{"secret-token":1}}"#), "spec.token: "),
        (
            token(r#"{"token":"a","token":"secret-token"}"#),
            "spec: `token` is there twice",
        ),
        (
            token(r#"{"token":"secret-token","audiences":"a"}"#),
            "spec.audiences: is of the wrong type, expected a sequence",
        ),
        (
            token(r#"{"token":"secret-token","audiences":[1]}"#),
            "spec.audiences[0]: is of the wrong type",
        ),
        (
            token(r#"{"token":"secret-token","audiences":[null]}"#),
            "spec.audiences[0]: is of the wrong type",
        ),
        (
            format!("{} x", token(r#"{"token":"secret-token"}"#)),
            "after the end",
        ),
        (token("{\"token\":\"secret-token\u{1}\"}"), "no JSON"),
        (token(r#"{"token":"secret-token"#), "no JSON"),
        (access("null"), "spec: is missing"),
        (access("{}"), "spec.resourceAttributes: is missing"),
        (
            access(r#"{"resourceAttributes":{},"nonResourceAttributes":{}}"#),
            "spec.nonResourceAttributes: cannot be there",
        ),
        (access(r#"{"user":1}"#), "spec.user: is of the wrong type"),
        (
            access(r#"{"groups":{}}"#),
            "spec.groups: is of the wrong type",
        ),
        (
            access(r#"{"extra":[]}"#),
            "spec.extra: is of the wrong type",
        ),
        (
            access(r#"{"extra":{"k":"v"}}"#),
            "spec.extra.k: is of the wrong type",
        ),
        (
            access(r#"{"extra":{"k":[1]}}"#),
            "spec.extra.k[0]: is of the wrong type",
        ),
        (
            access(r#"{"resourceAttributes":[]}"#),
            "spec.resourceAttributes",
        ),
        (
            access(r#"{"resourceAttributes":{"verb":1}}"#),
            "spec.resourceAttributes.verb: is of the wrong type",
        ),
        (
            access(r#"{"resourceAttributes":{"fieldSelector":1}}"#),
            "spec.resourceAttributes.fieldSelector: ",
        ),
        (
            access(r#"{"nonResourceAttributes":{"path":[]}}"#),
            "spec.nonResourceAttributes.path: is of the wrong type",
        ),
        (deep, ""),
        (ignored, ""),
    ] {
        let error = decode(body.as_bytes()).unwrap_err().to_string();
        assert!(
            error.contains(expected),
            "{}: {error}",
            &body[..body.len().min(200)]
        );
        assert!(
            !error.contains("secret-token") && error.len() < 400,
            "{error}"
        );
    }
    assert!(decode(b"\xff\xfe").is_err());
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    let keys = proptest::sample::select(vec![
        "apiVersion",
        "kind",
        "spec",
        "token",
        "audiences",
        "user",
        "groups",
        "group",
        "extra",
        "resourceAttributes",
        "nonResourceAttributes",
        "verb",
        "path",
        "namespace",
        "fieldSelector",
        "requirements",
    ]);
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(keys.clone(), inner, 0..6).prop_map(|map| map
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    /// Whatever the spec is, there is a review or an error, and a review decides.
    #[test]
    fn no_spec_makes_the_decoder_panic(spec in values(), version in 0..4usize) {
        let (group, kind) = [("authentication", "TokenReview"), ("authorization", "SubjectAccessReview")][version % 2];
        let version = ["v1", "v1beta1"][version / 2];
        let body = json!({"apiVersion": format!("{group}.k8s.io/{version}"), "kind": kind, "spec": spec});
        if let Ok(Review::Access(review)) = decode(body.to_string().as_bytes()) {
            let decision = crate::policy::decide(&crate::policy::Policy::default(), &review.subject, &review.attributes);
            prop_assert!(!decision.allowed);
        }
        let _ = decode(spec.to_string().as_bytes());
    }
}
