use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::json_patch::difference;
use super::scope::Scope;
use super::{Judge, convert, mutate, scale, validate, validate_by};

fn deployment() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDeployment",
        "metadata": {"name": "md-0", "namespace": "default"},
        "spec": {"clusterName": "demo", "template": {"spec": {"clusterName": "demo"}}},
    })
}

fn review(object: Value, old: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "cluster.x-k8s.io", "version": "v1beta2", "kind": object["kind"]},
            "operation": if old.is_null() { "CREATE" } else { "UPDATE" },
            "object": object,
            "oldObject": old,
            "dryRun": false,
        },
    })
}

/// Applies the operations of `difference` to a document.
fn apply(document: &mut Value, operations: &[Value]) {
    for operation in operations {
        let path = operation["path"].as_str().unwrap();
        let Some((parent, key)) = path.rsplit_once('/') else {
            *document = operation["value"].clone();
            continue;
        };
        let key = key.replace("~1", "/").replace("~0", "~");
        let parent = document
            .pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap();
        match operation["op"].as_str().unwrap() {
            "remove" => drop(parent.remove(&key).unwrap()),
            "add" => assert!(parent.insert(key, operation["value"].clone()).is_none()),
            _ => assert!(parent.insert(key, operation["value"].clone()).is_some()),
        }
    }
}

#[test]
fn defaults_come_as_a_patch_with_the_uid_of_the_request() {
    let answer = mutate(&review(deployment(), Value::Null));
    let response = &answer["response"];
    assert_eq!(response["uid"], "u-1");
    assert_eq!(response["allowed"], true);
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = STANDARD
        .decode(response["patch"].as_str().unwrap())
        .unwrap();
    let patch: Vec<Value> = serde_json::from_slice(&patch).unwrap();
    let mut object = deployment();
    apply(&mut object, &patch);
    let labels = &object["spec"]["selector"]["matchLabels"];
    assert_eq!(labels["cluster.x-k8s.io/deployment-name"], "md-0");
}

#[test]
fn an_object_with_its_defaults_is_not_patched() {
    let config = json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfig",
        "metadata": {"name": "a"},
        "spec": {},
    });
    let answer = mutate(&review(config, Value::Null));
    assert_eq!(answer["response"], json!({"uid": "u-1", "allowed": true}));
}

#[test]
fn a_rejection_names_the_field() {
    let mut object = deployment();
    object["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
    object["spec"]["template"]["metadata"] = json!({"labels": {"a": "c"}});
    let answer = validate(&review(object, Value::Null));
    let response = &answer["response"];
    assert_eq!(response["allowed"], false, "{answer}");
    assert_eq!(response["status"]["code"], 422);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("MachineDeployment.cluster.x-k8s.io \"md-0\" is invalid: spec."),
        "{message}"
    );
}

#[test]
fn a_scale_is_validated_as_a_change_of_its_object() {
    let plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "demo", "namespace": "default"},
        "spec": {"replicas": 3, "version": "v1.34.1", "machineTemplate": {"spec": {"infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "K", "name": "n"}}}},
    });
    let review = |replicas: i64| {
        let scale = |replicas: i64| {
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "demo", "namespace": "default"}, "spec": {"replicas": replicas}})
        };
        let mut review = review(scale(replicas), scale(3));
        let request = &mut review["request"];
        request["subResource"] = "scale".into();
        request["kind"] = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        review
    };
    assert!(scale::is_scale(&review(2)));
    let answer = validate(&scale::of_object(&review(2), &plane));
    let message = answer["response"]["status"]["message"].as_str().unwrap();
    let expected = "KubeadmControlPlane.controlplane.cluster.x-k8s.io \"demo\" is invalid: spec.replicas: 2 is even";
    assert!(message.starts_with(expected), "{message}");
    let answer = validate(&scale::of_object(&review(5), &plane));
    assert_eq!(answer["response"], json!({"uid": "u-1", "allowed": true}));
}

#[test]
fn objects_are_converted_together_or_not_at_all() {
    let request = |objects: Value, desired: &str| json!({"request": {"uid": "u", "objects": objects, "desiredAPIVersion": desired}});
    let machine = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineSet",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {"clusterName": "demo", "selector": {}, "template": {"spec": {"clusterName": "demo",
            "bootstrap": {"dataSecretName": "x"},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "K", "name": "n"}}}},
    });
    let good = convert(&request(
        json!([machine, machine]),
        "cluster.x-k8s.io/v1beta1",
    ));
    assert_eq!(good["response"]["result"]["status"], "Success", "{good}");
    let objects = good["response"]["convertedObjects"].as_array().unwrap();
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0]["apiVersion"], "cluster.x-k8s.io/v1beta1");
    let bad = convert(&request(
        json!([machine, {"kind": "Pod"}]),
        "cluster.x-k8s.io/v1beta1",
    ));
    assert_eq!(bad["response"]["result"]["status"], "Failure");
    assert_eq!(bad["response"]["convertedObjects"], json!([]));
}

#[test]
fn older_versions_are_converted_and_unknown_ones_refused() {
    const GROUP: &str = "infrastructure.cluster.x-k8s.io";
    let machine = |version: &str| {
        json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "OpenStackMachine",
            "metadata": {"name": "a", "namespace": "b"},
            "spec": {"flavor": "m1", "image": "u", "floatingIP": "192.0.2.1"}})
    };
    let request = |objects: Value, desired: &str| json!({"request": {"uid": "u", "objects": objects, "desiredAPIVersion": format!("{GROUP}/{desired}")}});
    let versions = ["v1alpha4", "v1alpha5", "v1alpha6", "v1alpha7"];
    let objects: Vec<Value> = versions.iter().map(|it| machine(it)).collect();
    let answer = convert(&request(json!(objects), "v1beta2"));
    let converted = answer["response"]["convertedObjects"].as_array().unwrap();
    assert_eq!(converted.len(), 4, "{answer}");
    for object in converted {
        assert_eq!(object["spec"]["image"], json!({"filter": {"name": "u"}}));
        let given = review(object.clone(), Value::Null);
        let judge = Judge {
            validate: |_| Ok(()),
            beside: |_| None,
            default: |_, _| {},
            judge: |_, _| Ok(Vec::new()),
        };
        let warnings = validate_by(&given, judge, None)["response"]["warnings"].clone();
        let text = warnings[0].as_str().unwrap_or_default();
        assert!(
            text.contains("OpenStackMachine b/a: spec.floatingIP of v1alpha"),
            "{warnings}"
        );
        let again = review(object.clone(), object.clone());
        assert!(validate_by(&again, judge, None)["response"]["warnings"].is_null());
    }
    for (object, desired) in [
        (machine("v1alpha3"), "v1beta2"),
        (machine("v1alpha7"), "v1"),
        (json!({"kind": "OpenStackMachine"}), "v1beta2"),
        (json!(3), "v1beta2"),
    ] {
        let answer = convert(&request(json!([object]), desired));
        assert_eq!(
            answer["response"]["result"]["status"], "Failure",
            "{answer}"
        );
        assert_ne!(answer["response"]["result"]["message"], "", "{answer}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z~/]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c~/]{1,2}", inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn a_patch_leads_from_one_to_the_other(before in value(), after in value()) {
        let mut patched = before.clone();
        apply(&mut patched, &difference(&before, &after));
        prop_assert_eq!(patched, after);
    }

    #[test]
    fn no_review_makes_it_panic(review in value()) {
        let wrapped = json!({"request": review});
        for body in [&review, &wrapped] {
            convert(body);
            mutate(body);
            validate(body);
        }
    }
}

#[test]
fn reviews_of_groups_that_are_not_served_are_refused_by_name() {
    let scope = Scope(["infrastructure.cluster.x-k8s.io".to_owned()].into());
    let admission = |group: &str| {
        let resource = json!({"group": group, "version": "v1beta2", "resource": "any"});
        json!({"request": {"uid": "u-1", "resource": resource}})
    };
    let conversion = |group: &str| {
        let version = format!("{group}/v1beta2");
        json!({"request": {"uid": "u-1", "desiredAPIVersion": version, "objects": []}})
    };
    let ours = "infrastructure.cluster.x-k8s.io";
    assert_eq!(scope.refuses_admission(&admission(ours)), None);
    assert_eq!(scope.refuses_conversion(&conversion(ours)), None);
    for theirs in ["cluster.x-k8s.io", "apps", ""] {
        let refused = scope.refuses_admission(&admission(theirs)).unwrap();
        assert_eq!(refused["response"]["allowed"], false);
        assert_eq!(refused["response"]["uid"], "u-1");
        let message = refused["response"]["status"]["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("the group {theirs}")),
            "{message}"
        );
        let refused = scope.refuses_conversion(&conversion(theirs)).unwrap();
        assert_eq!(refused["response"]["result"]["status"], "Failure");
    }
}
