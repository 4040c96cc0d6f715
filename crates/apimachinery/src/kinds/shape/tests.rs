use proptest::prelude::*;

use super::*;

#[test]
fn the_tables_parse_and_all_referenced_types_exist() {
    assert!(KINDS.len() > 40, "{}", KINDS.len());
    for (kind, name) in &*KINDS {
        assert!(STRUCTS.contains_key(name), "{kind}");
    }
    fn named(shape: &Shape) {
        match shape {
            Shape::Pointer(inner) | Shape::List(inner) | Shape::Map(inner) => named(inner),
            Shape::Struct(name) => assert!(STRUCTS.contains_key(name), "{name}"),
            _ => {}
        }
    }
    for of in STRUCTS.values() {
        of.fields.values().for_each(|field| named(&field.shape));
    }
    let defaults: HashMap<String, Map<String, Value>> =
        serde_json::from_str(include_str!("../defaults.json")).unwrap();
    for (name, fields) in defaults {
        let of = &STRUCTS[name.as_str()];
        for field in fields.keys() {
            assert!(of.fields.contains_key(field.as_str()), "{name}.{field}");
        }
    }
}

#[test]
fn values_of_the_wrong_type_are_rejected_with_the_messages_of_go() {
    for (mut value, message) in [
        (
            json!({"spec": {"replicas": "2"}}),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"template": {"spec": {"containers": [{"name": 1}]}}}}),
            "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.name of type string",
        ),
        (
            json!({"spec": []}),
            "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec",
        ),
    ] {
        let error = of("apps", "v1", "Deployment").unwrap().read(&mut value);
        assert_eq!(error.unwrap_err(), message);
    }
}

#[test]
fn unknown_fields_are_dropped_and_named() {
    let mut value =
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b", "x": 1}], "y": {}}});
    let unknown = of("", "v1", "Pod").unwrap().read(&mut value).unwrap();
    assert_eq!(unknown, ["spec.containers[1].x", "spec.y"]);
    assert_eq!(
        value,
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}})
    );
}

#[test]
fn empty_fields_are_written_if_their_type_requires_it() {
    let event = of("", "v1", "Event").unwrap().zero();
    assert_eq!(event["lastTimestamp"], Value::Null);
    assert_eq!(event["reportingComponent"], "");
    let mut pod =
        json!({"spec": {"hostNetwork": false, "nodeName": "", "containers": [{"name": "a"}]}});
    of("", "v1", "Pod").unwrap().write(&mut pod);
    let expected = json!({
        "metadata": {}, "spec": {"containers": [{"name": "a", "resources": {}}]}, "status": {},
    });
    assert_eq!(pod, expected);
}

proptest! {
    #[test]
    fn reading_and_writing_never_panic_and_writing_twice_changes_nothing(mut value in crate::patch::any_json()) {
        for kind in ["Pod", "Node", "Event", "Secret"] {
            let of = of("", "v1", kind).unwrap();
            let _ = of.read(&mut value.clone());
            of.default(&mut value).unwrap();
            of.write(&mut value);
            let once = value.clone();
            of.write(&mut value);
            prop_assert_eq!(&value, &once);
        }
    }
}
