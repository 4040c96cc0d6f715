use serde_json::{Value, json};

use super::{check, checked, unpack};

fn object() -> Value {
    json!({
        "apiVersion": "g/v1", "kind": "K", "spec": {"a": 1},
        "metadata": {"name": "n", "namespace": "s", "uid": "u", "labels": {"a": "b"}, "generation": 3},
    })
}

#[test]
fn a_converted_object_keeps_its_metadata_but_for_labels_and_annotations() {
    let mut converted = object();
    converted["apiVersion"] = json!("g/v2");
    converted["spec"] = json!({"b": 1});
    converted["metadata"]["labels"] = json!({"c": "d"});
    converted["metadata"]["annotations"] = json!({"e": "f g"});
    converted["metadata"]["generation"] = json!(9);
    let kept = checked(&object(), converted, "g/v2").unwrap();
    let metadata = json!({
        "name": "n", "namespace": "s", "uid": "u", "labels": {"c": "d"}, "annotations": {"e": "f g"}, "generation": 3,
    });
    assert_eq!(kept["metadata"], metadata);
    assert_eq!(kept["spec"], json!({"b": 1}));
}

#[test]
fn a_converted_object_must_be_the_same_object() {
    for (path, value, problem) in [
        (
            "/apiVersion",
            json!("g/v3"),
            "object at index 0: invalid groupVersion (expected g/v2, received g/v3)",
        ),
        (
            "/kind",
            json!("L"),
            "object at index 0: invalid kind (expected K, received L)",
        ),
        (
            "/metadata/name",
            json!("m"),
            "object: must have the same name: n != m",
        ),
        (
            "/metadata/uid",
            json!("v"),
            "object: must have the same UID: u != v",
        ),
        (
            "/metadata/labels/a",
            json!(1),
            "metadata: metadata.labels[a] must be a string in converted object",
        ),
    ] {
        let mut converted = object();
        converted["apiVersion"] = json!("g/v2");
        *converted.pointer_mut(path).unwrap() = value;
        assert_eq!(checked(&object(), converted, "g/v2").unwrap_err(), problem);
    }
}

#[test]
fn an_answer_must_be_of_its_review() {
    let answer = |response: Value| json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
    for (review, problem) in [
        (
            json!({"apiVersion": "a", "kind": "b"}),
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got a, Kind=b",
        ),
        (answer(json!(null)), "no response provided"),
        (
            answer(json!({"uid": "v"})),
            "expected response.uid=\"u\", got \"v\"",
        ),
        (
            answer(json!({"uid": "u"})),
            "response.result.status was '', not 'Success'",
        ),
        (
            answer(json!({"uid": "u", "result": {"status": "Failure", "message": "no"}})),
            "no",
        ),
    ] {
        assert_eq!(unpack(&review, "v1", "u").unwrap_err(), problem);
    }
}

#[test]
fn the_webhook_is_read_from_the_definition() {
    let paths = |conversion: Value, hooked: bool| -> Vec<String> {
        let errors = check(&json!({"spec": {"conversion": conversion}}), hooked);
        errors.into_iter().map(|error| error.path).collect()
    };
    let client = "spec.conversion.webhookClientConfig";
    let reviews = "spec.conversion.conversionReviewVersions";
    assert_eq!(
        paths(json!({"strategy": "Webhook"}), false),
        [client, reviews]
    );
    assert!(paths(json!({"strategy": "Webhook"}), true).is_empty());
    assert_eq!(
        paths(json!({"strategy": "Other"}), true),
        ["spec.conversion.strategy"]
    );
    let webhook = json!({"clientConfig": {"url": "https://h"}, "conversionReviewVersions": ["v1"]});
    assert!(paths(json!({"strategy": "Webhook", "webhook": webhook}), false).is_empty());
    assert_eq!(
        paths(json!({"strategy": "None", "webhook": webhook}), false),
        [client, reviews]
    );
}

proptest::proptest! {
    #[test]
    fn no_answer_of_a_webhook_panics(review in crate::webhook::tests::any_json()) {
        let _ = unpack(&review, "v1", "u");
        let _ = unpack(&json!({"response": review}), "v1beta1", "u");
        let _ = checked(&object(), review, "g/v2");
    }
}
