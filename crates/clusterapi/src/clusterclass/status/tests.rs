use api::conditions::find;
use api::core::v1beta2::ClusterClass;
use api::k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{Templates, desired};

fn class(variables: Value) -> ClusterClass {
    let template = json!({ "templateRef": { "apiVersion": "a.example/v1", "kind": "ATemplate", "name": "a" } });
    serde_json::from_value(json!({
        "metadata": { "name": "small", "namespace": "default", "generation": 3 },
        "spec": { "infrastructure": template, "controlPlane": template, "variables": variables },
    }))
    .unwrap()
}

fn condition(class: &ClusterClass, type_: &str) -> (String, String, String) {
    let conditions = &class.status.as_ref().unwrap().conditions;
    let found = find(conditions, type_).unwrap();
    (
        found.status.clone(),
        found.reason.clone(),
        found.message.clone(),
    )
}

fn after(class: &ClusterClass, seen: &Templates) -> ClusterClass {
    desired(class, seen, Timestamp::UNIX_EPOCH)
}

#[test]
fn a_class_whose_templates_exist_is_observed_with_its_variables() {
    let variables = json!([{ "name": "size", "required": true, "schema": { "openAPIV3Schema": { "type": "integer" } } }]);
    let done = after(&class(variables), &Templates::default());
    let status = done.status.as_ref().unwrap();
    assert_eq!(status.observed_generation, Some(3));
    assert_eq!(
        json!(status.variables),
        json!([{ "name": "size", "definitionsConflict": false, "definitions": [
            { "from": "inline", "required": true, "schema": { "openAPIV3Schema": { "type": "integer" } } },
        ]}])
    );
    assert_eq!(condition(&done, "VariablesReady").0, "True");
    assert_eq!(condition(&done, "RefVersionsUpToDate").0, "True");
    assert_eq!(condition(&done, "Paused").0, "False");
    assert_eq!(
        after(&done, &Templates::default()),
        done,
        "nothing is written at rest"
    );
}

#[test]
fn a_missing_template_is_named_and_the_generation_is_not_observed() {
    let seen = Templates {
        problems: vec!["ATemplate default/a does not exist".to_owned()],
        ..Templates::default()
    };
    let done = after(&class(json!(null)), &seen);
    assert_eq!(done.status.as_ref().unwrap().observed_generation, None);
    let (status, reason, message) = condition(&done, "RefVersionsUpToDate");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("Unknown", "InternalError")
    );
    assert_eq!(message, "ATemplate default/a does not exist");
}

#[test]
fn an_older_version_of_a_reference_is_reported_and_used() {
    let class = class(json!(null));
    let seen = Templates {
        outdated: vec![(
            class.spec.infrastructure.template_ref.clone(),
            "a.example/v2".to_owned(),
        )],
        ..Templates::default()
    };
    let done = after(&class, &seen);
    assert_eq!(done.status.as_ref().unwrap().observed_generation, Some(3));
    let (status, reason, message) = condition(&done, "RefVersionsUpToDate");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "RefVersionsNotUpToDate")
    );
    assert!(
        message.contains("\"a.example/v1, Kind=ATemplate default/a\" should be \"a.example/v2, "),
        "{message}"
    );
}

#[test]
fn a_variable_that_cannot_be_compiled_is_a_condition() {
    let variables = json!([{ "name": "size", "required": true, "schema": { "openAPIV3Schema": { "type": "whole" } } }]);
    let done = after(&class(variables), &Templates::default());
    let (status, reason, message) = condition(&done, "VariablesReady");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "VariableDiscoveryFailed")
    );
    assert!(message.contains("spec.variables[0]"), "{message}");
    assert_eq!(done.status.unwrap().observed_generation, None);
}
