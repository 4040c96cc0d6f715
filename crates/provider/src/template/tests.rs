use serde_json::json;

use super::*;

fn spec(ports: serde_json::Value) -> OpenStackMachineSpec {
    serde_json::from_value(json!({"flavor": {"id": "f"}, "image": {"id": "i"}, "ports": ports}))
        .unwrap()
}

fn machine(ports: serde_json::Value) -> OpenStackMachine {
    let mut machine = OpenStackMachine::new("md-0", spec(ports));
    let notes = [
        (CLONED_FROM_NAME_ANNOTATION, "md"),
        (CLONED_FROM_GROUP_KIND_ANNOTATION, GROUP_KIND),
    ];
    machine.metadata.annotations = Some(
        notes
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    );
    machine
}

fn port(addresses: &[&str]) -> serde_json::Value {
    let pairs: Vec<_> = addresses
        .iter()
        .map(|ip| json!({"ipAddress": ip}))
        .collect();
    json!({"allowedAddressPairs": pairs})
}

#[test]
fn a_machine_follows_its_template_once_for_each_change_and_keeps_what_is_written_afterwards() {
    let template = spec(json!([port(&["10.0.0.1"]), {}]));
    let first = machine(json!([port(&["10.0.0.9"]), port(&["10.0.0.8"])]));
    let after = followed(&first, &template).unwrap();
    assert_eq!(after.spec, template);
    assert_eq!(followed(&after, &template), None);
    let mut by_hand = after.clone();
    by_hand.spec = first.spec.clone();
    assert_eq!(followed(&by_hand, &template), None);
    let again = followed(&by_hand, &spec(json!([{}, {}]))).unwrap();
    assert_eq!(again.spec, spec(json!([{}, {}])));
    // Another number of ports is another machine.
    assert_eq!(followed(&first, &spec(json!([{}]))), None);
}

#[test]
fn only_machines_of_the_template_follow_it() {
    let mut one = machine(json!([{}]));
    assert!(is_of(&one, "md"));
    assert!(!is_of(&one, "other"));
    one.annotations_mut().insert(
        CLONED_FROM_GROUP_KIND_ANNOTATION.to_owned(),
        "Other.example.com".to_owned(),
    );
    assert!(!is_of(&one, "md"));
}

#[test]
fn the_capacity_is_that_of_the_flavor_with_the_root_volume_and_without_what_is_unknown() {
    let flavor = Flavor {
        vcpus: 2,
        ram: 4096,
        disk: 0,
        ..Flavor::default()
    };
    let texts = |spec: &OpenStackMachineSpec, flavor: &Flavor| {
        let all = capacity(spec, flavor).into_iter();
        all.map(|(name, quantity)| format!("{name}={}", quantity.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&spec(json!([])), &flavor), ["cpu=2", "memory=4096Mi"]);
    let mut with_volume = spec(json!([]));
    with_volume.root_volume = serde_json::from_value(json!({"sizeGiB": 30})).unwrap();
    let flavor = Flavor {
        ephemeral: 5,
        ..flavor
    };
    assert_eq!(
        texts(&with_volume, &flavor),
        [
            "cpu=2",
            "ephemeral-storage=5Gi",
            "memory=4096Mi",
            "storage=30Gi"
        ]
    );
}
