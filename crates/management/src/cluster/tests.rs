use serde_json::{Value, json};

use super::{class_of, default_by, validate_by};
use api::admission::Review;

fn class(observed: i64) -> Value {
    let template = |kind: &str| json!({ "templateRef": { "apiVersion": "a.example/v1", "kind": kind, "name": "t" } });
    let schema = json!({ "type": "integer", "default": 2, "maximum": 5 });
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": { "name": "small", "namespace": "default", "generation": 1 },
        "spec": {
            "infrastructure": template("ATemplate"), "controlPlane": template("BTemplate"),
            "variables": [{ "name": "size", "required": true, "schema": { "openAPIV3Schema": schema } }],
        },
        "status": { "observedGeneration": observed },
    })
}

fn cluster(version: &str, variables: &Value) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "demo", "namespace": "default" },
        "spec": { "topology": { "classRef": { "name": "small" }, "version": version, "variables": variables } },
    })
}

fn judged(
    object: &Value,
    old: Option<&Value>,
    class: Option<&Value>,
) -> Result<Vec<String>, Vec<String>> {
    let review = Review {
        object,
        old,
        dry_run: false,
    };
    validate_by(review, class).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

#[test]
fn the_class_is_in_the_namespace_of_the_cluster_unless_it_says_otherwise() {
    let mut object = cluster("v1.34.1", &Value::Null);
    let place = class_of(&object).unwrap();
    assert_eq!(
        (place.namespace.as_str(), place.name.as_str()),
        ("default", "small")
    );
    object["spec"]["topology"]["classRef"]["namespace"] = json!("shelf");
    assert_eq!(class_of(&object).unwrap().namespace, "shelf");
    object["spec"] = json!({});
    assert_eq!(class_of(&object), None);
}

#[test]
fn variables_get_the_defaults_of_the_class_and_are_validated_by_it() {
    let mut object = cluster("v1.34.1", &Value::Null);
    default_by(&mut object, &class(1));
    let variables = &object["spec"]["topology"]["variables"];
    assert_eq!(*variables, json!([{ "name": "size", "value": 2 }]));
    assert_eq!(judged(&object, None, Some(&class(1))), Ok(Vec::new()));
    let large = cluster("v1.34.1", &json!([{ "name": "size", "value": 7 }]));
    let errors = judged(&large, None, Some(&class(1))).unwrap_err();
    assert!(
        errors[0].starts_with("spec.topology.variables"),
        "{errors:?}"
    );
    // A value that is stored already does not stop other changes.
    let upgraded = cluster("v1.35.0", &json!([{ "name": "size", "value": 7 }]));
    assert_eq!(
        judged(&upgraded, Some(&large), Some(&class(1))),
        Ok(Vec::new())
    );
}

#[test]
fn a_class_that_becomes_usable_after_the_defaults_of_a_review_refuses_nothing() {
    let mut object = cluster("v1.34.1", &Value::Null);
    default_by(&mut object, &class(0));
    assert_eq!(judged(&object, None, Some(&class(1))), Ok(Vec::new()));
}

#[test]
fn without_a_class_that_can_be_used_there_is_a_warning() {
    let object = cluster("v1.34.1", &Value::Null);
    for (class, words) in [
        (None, "does not exist"),
        (Some(class(0)), "is not reconciled yet"),
    ] {
        let warnings = judged(&object, None, class.as_ref()).unwrap();
        assert!(warnings[0].contains(words), "{warnings:?}");
        let mut same = object.clone();
        if let Some(class) = &class {
            default_by(&mut same, class);
        }
        assert_eq!(same, object);
    }
}

#[test]
fn a_version_that_no_upgrade_reaches_is_rejected() {
    let values = json!([{ "name": "size", "value": 2 }]);
    let (old, far) = (cluster("v1.33.1", &values), cluster("v1.35.0", &values));
    let errors = judged(&far, Some(&old), Some(&class(1))).unwrap_err();
    assert!(
        errors[0].starts_with("spec.topology.version: no version of v1.34 is known"),
        "{errors:?}"
    );
    let mut listing = class(1);
    listing["spec"]["kubernetesVersions"] = json!(["v1.33.1", "v1.34.2", "v1.35.0"]);
    assert_eq!(judged(&far, Some(&old), Some(&listing)), Ok(Vec::new()));
}

#[test]
fn a_class_of_another_kind_is_rejected() {
    let values = json!([{ "name": "size", "value": 2 }]);
    let mut object = cluster("v1.34.1", &values);
    let old = object.clone();
    object["spec"]["infrastructureRef"] =
        json!({ "apiGroup": "a.example", "kind": "C", "name": "x" });
    let errors = judged(&object, Some(&old), Some(&class(1))).unwrap_err();
    assert!(
        errors[0].contains("spec.infrastructureRef names a C of a.example"),
        "{errors:?}"
    );
    object["spec"]["infrastructureRef"]["kind"] = json!("A");
    assert_eq!(judged(&object, Some(&old), Some(&class(1))), Ok(Vec::new()));
}
