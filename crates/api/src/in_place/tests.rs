use super::*;

fn spec() -> Value {
    json!({"flavor": {"filter": {"name": "m"}}, "image": {"filter": {"name": "old"}}, "providerID": "openstack:///a",
        "identityRef": {"type": "Secret", "name": "c", "cloudName": "x"}})
}

#[test]
fn an_image_changes_in_place_and_a_flavor_does_not() {
    let mut want = spec();
    want.as_object_mut().unwrap().remove("providerID");
    assert_eq!(obstacles("OpenStackMachine", &spec(), &want), [""; 0]);
    want["image"] = json!({"id": "6e2a7c1e-0000-4000-8000-000000000000"});
    assert_eq!(obstacles("OpenStackMachine", &spec(), &want), [""; 0]);
    want["flavor"] = json!({"filter": {"name": "l"}});
    let found = obstacles("OpenStackMachine", &spec(), &want);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("spec.flavor.filter.name"), "{found:?}");
}

#[test]
fn every_other_field_stands_in_the_way_of_an_update_in_place() {
    let fields = [
        ("ports", json!([{"nameSuffix": "a"}])),
        ("rootVolume", json!({"sizeGiB": 20})),
        (
            "serverGroup",
            json!({"id": "6e2a7c1e-0000-4000-8000-000000000000"}),
        ),
        ("sshKeyName", json!("k")),
        ("tags", json!(["a"])),
        ("serverMetadata", json!([{"key": "a", "value": "b"}])),
        ("configDrive", json!(true)),
        ("trunk", json!(true)),
        ("securityGroups", json!([{"filter": {"name": "a"}}])),
        (
            "additionalBlockDevices",
            json!([{"name": "a", "sizeGiB": 1, "storage": {"type": "Local"}}]),
        ),
        (
            "schedulerHintAdditionalProperties",
            json!([{"name": "a", "value": {"type": "String", "string": "b"}}]),
        ),
    ];
    for (field, value) in fields {
        let mut want = spec();
        want[field] = value;
        let found = obstacles("OpenStackMachine", &spec(), &want);
        assert!(
            found
                .iter()
                .any(|line| line.starts_with(&format!("spec.{field}"))),
            "{field}: {found:?}"
        );
    }
}

#[test]
fn a_root_volume_and_other_kinds_stand_in_the_way() {
    let mut have = spec();
    have["rootVolume"] = json!({"sizeGiB": 20});
    let found = obstacles("OpenStackMachine", &have, &have);
    assert!(found[0].starts_with("spec.rootVolume"), "{found:?}");
    let found = obstacles("FakeMachine", &json!({}), &json!({}));
    assert_eq!(found, ["FakeMachines cannot be updated in place"]);
}

#[test]
fn the_change_of_an_image_removes_the_former_one() {
    let mut want = spec();
    want["image"] = json!({"id": "a"});
    want["providerID"] = json!(null);
    let patch = change(&spec(), &want);
    assert_eq!(patch, json!({"image": {"id": "a", "filter": null}}));
    let mut have = spec();
    merge(&mut have, &patch);
    assert_eq!(have["image"], want["image"]);
    assert_eq!(change(&want, &want), json!({}));
}

fn merge(value: &mut Value, patch: &Value) {
    for (key, part) in patch.as_object().unwrap() {
        match part {
            Value::Null => drop(value.as_object_mut().unwrap().remove(key)),
            Value::Object(_) => merge(&mut value[key], part),
            other => value[key] = other.clone(),
        }
    }
}

#[test]
fn strategies_have_the_words_of_the_annotation() {
    for (name, strategy) in Strategy::ALL {
        assert_eq!(name.parse(), Ok(strategy));
        assert_eq!(strategy.to_string(), name);
    }
    let error = "prefer".parse::<Strategy>().unwrap_err();
    assert!(error.to_string().contains("Never, Prefer and Require"));
}

#[test]
fn a_strategy_is_judged_when_it_is_written() {
    let found = |kind: &str, value: Value| {
        let annotations = json!({ IN_PLACE_UPDATE_ANNOTATION: value });
        let object = json!({ "kind": kind, "metadata": { "annotations": annotations } });
        let mut errors = Vec::new();
        check(&object, &mut errors);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(found("MachineDeployment", json!("Prefer")), [""; 0]);
    assert_eq!(found("KubeadmControlPlane", json!("Never")), [""; 0]);
    for (kind, value) in [
        ("MachineDeployment", json!("prefer")),
        ("MachineDeployment", json!(1)),
        ("KubeadmControlPlane", json!("Require")),
    ] {
        let errors = found(kind, value.clone());
        let field = "metadata.annotations[ferrostack.dev/in-place-update]: ";
        assert!(
            errors.len() == 1 && errors[0].starts_with(field),
            "{kind} {value}: {errors:?}"
        );
    }
}
