use serde_json::{Value, json};

use super::*;

fn of(bastion: Value) -> Mark {
    let spec = json!({"identityRef": {"name": "s", "cloudName": "c"}, "bastion": bastion});
    let object = json!({"metadata": {"name": "demo"}, "spec": spec});
    let cluster = Identity::parse("00000000-0000-4000-8000-000000000001").unwrap();
    mark(&serde_json::from_value(object).unwrap(), cluster)
}

fn with(change: Value) -> Mark {
    let mut spec = json!({"flavor": {"id": "f"}, "image": {"id": "i"}});
    for (name, value) in change.as_object().unwrap() {
        spec[name] = value.clone();
    }
    of(json!({"enabled": true, "spec": spec}))
}

#[test]
fn what_does_not_matter_in_a_spec_leaves_the_mark() {
    let plain = with(json!({}));
    assert!(plain.is_of_bastion());
    for change in [
        json!({"trunk": false}),
        json!({"configDrive": false}),
        json!({"sshKeyName": ""}),
        json!({"identityRef": {"name": "s", "cloudName": "c"}}),
    ] {
        assert_eq!(with(change.clone()), plain, "{change}");
    }
    let address = of(json!({"enabled": true, "floatingIP": "192.0.2.7",
        "spec": {"flavor": {"id": "f"}, "image": {"id": "i"}}}));
    assert_eq!(address, plain);
    let tags = |all: [&str; 2]| with(json!({"tags": all}));
    assert_eq!(tags(["a", "b"]), tags(["b", "a"]));
    assert_eq!(
        with(json!({"trunk": true, "ports": [{}]})),
        with(json!({"ports": [{"trunk": true}]}))
    );
}

#[test]
fn what_matters_in_a_spec_is_another_mark() {
    let plain = with(json!({}));
    let mut seen = vec![plain];
    for change in [
        json!({"flavor": {"id": "g"}}),
        json!({"image": {"id": "j"}}),
        json!({"sshKeyName": "key"}),
        json!({"tags": ["a"]}),
        json!({"trunk": true}),
        json!({"configDrive": true}),
        json!({"ports": [{}, {}]}),
        json!({"rootVolume": {"sizeGiB": 1}}),
        json!({"serverMetadata": [{"key": "a", "value": "b"}]}),
    ] {
        let other = with(change.clone());
        assert!(!seen.contains(&other), "{change}");
        seen.push(other);
    }
    let zone = of(json!({"enabled": true, "availabilityZone": "az2",
        "spec": {"flavor": {"id": "f"}, "image": {"id": "i"}}}));
    assert_ne!(zone, plain);
}
