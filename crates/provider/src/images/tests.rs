use serde_json::{Value, json};

use super::*;

fn image(status: Value) -> OrcImage {
    let object = json!({"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Image",
        "metadata": {"name": "node"}, "spec": {"managementPolicy": "managed"}, "status": status});
    serde_json::from_value(object).unwrap()
}

fn condition(type_: &str, status: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": "R", "message": message,
        "lastTransitionTime": "2026-11-30T00:00:00Z", "observedGeneration": 1})
}

#[test]
fn an_image_has_an_id_once_it_is_available() {
    let both = |available: &str, progressing: &str| {
        json!([
            condition("Available", available, "uploading"),
            condition("Progressing", progressing, "uploading"),
        ])
    };
    let ready = image(json!({"id": "i-1", "conditions": both("True", "False")}));
    assert_eq!(ready.id(), Ok("i-1"));
    let loading = image(json!({"id": "i-1", "conditions": both("False", "True")}));
    let (reason, text) = loading.id().unwrap_err();
    assert_eq!(reason, Reason::InstanceNotReady);
    assert_eq!(text, "is not available yet: uploading");
    let broken = image(json!({"conditions": both("False", "False")}));
    let (reason, text) = broken.id().unwrap_err();
    assert_eq!(reason, Reason::DependencyFailed);
    assert_eq!(text, "failed: uploading");
    let without_id = image(json!({"conditions": both("True", "True")}));
    assert!(without_id.id().is_err());
    let (reason, text) = image(json!({})).id().map(str::to_owned).unwrap_err();
    assert_eq!(reason, Reason::InstanceNotReady);
    assert_eq!(text, "is not available yet: ORC says nothing of it yet");
    let new: OrcImage = serde_json::from_value(json!({"metadata": {"name": "node"}})).unwrap();
    assert!(new.id().is_err());
}

#[test]
fn only_the_image_of_a_spec_is_replaced_by_its_id() {
    let spec: OpenStackMachineSpec = serde_json::from_value(json!({
        "flavor": {"id": "f"}, "image": {"imageRef": {"name": "node"}}, "sshKeyName": "k"}))
    .unwrap();
    let available = Available::from([("node".to_owned(), "i-1".to_owned())]);
    let with = of(&available, &spec).into_owned();
    assert_eq!(with.image, ImageParam::Id("i-1".to_owned()));
    let back = OpenStackMachineSpec {
        image: spec.image.clone(),
        ..with
    };
    assert_eq!(back, spec);
    assert!(matches!(of(&Available::new(), &spec), Cow::Borrowed(_)));
}
