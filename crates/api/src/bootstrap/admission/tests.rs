use serde_json::{Value, json};

use crate::admission::{Review, validate};

fn problems(spec: Value) -> Vec<String> {
    let object = json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfig",
        "metadata": {"name": "c"},
        "spec": spec,
    });
    let review = Review {
        object: &object,
        old: None,
        dry_run: false,
    };
    validate(review)
        .err()
        .unwrap_or_default()
        .into_iter()
        .map(|error| error.path)
        .collect()
}

#[test]
fn each_mistake_is_named_by_its_field() {
    let none: &[&str] = &[];
    for (spec, expected) in [
        (json!({}), none),
        (
            json!({"files": [{"path": "/a", "content": "x"}, {"path": "/b"}]}),
            none,
        ),
        (
            json!({"files": [{"path": "/a", "content": "x", "contentFrom": {"secret": {"name": "s", "key": "k"}}}]}),
            &["spec.files[0]"],
        ),
        (
            json!({"files": [{"path": "/a"}, {"path": "/a"}]}),
            &["spec.files[1].path"],
        ),
        (
            json!({"users": [{"name": "u", "passwd": "x", "passwdFrom": {"secret": {"name": "s", "key": "k"}}}]}),
            &["spec.users[0]"],
        ),
        (json!({"ignition": {}}), &["spec.ignition"]),
        (json!({"format": "ignition", "ignition": {}}), none),
        (
            json!({"format": "ignition", "bootCommands": ["x"]}),
            &["spec.bootCommands"],
        ),
        (
            json!({"format": "ignition", "users": [{"name": "u", "inactive": true}]}),
            &["spec.users[0].inactive"],
        ),
        (
            json!({"diskSetup": {"partitions": [{"device": "d", "layout": true, "diskLayout": [{"percentage": 60}, {"percentage": 60}]}]}}),
            &["spec.diskSetup.partitions[0].diskLayout"],
        ),
        (
            json!({
                "initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 1}},
                "joinConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 2}},
            }),
            &["spec.joinConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds"],
        ),
    ] {
        assert_eq!(problems(spec.clone()), expected, "{spec}");
    }
}
