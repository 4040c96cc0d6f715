use serde_json::json;

use super::*;
use crate::admission::Review;
use crate::admission::tests::merge;

const VERSION: &str = "cluster.x-k8s.io/v1beta2";

fn written<'a>(object: &'a Value, old: Option<&'a Value>) -> Change<'a> {
    let review = Review {
        object,
        old,
        dry_run: false,
    };
    review.change()
}

fn deployment(spec: Value) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "MachineDeployment", "metadata": { "name": "demo-md" },
        "spec": spec,
    })
}

fn spec() -> Value {
    json!({
        "clusterName": "demo",
        "selector": {},
        "template": { "spec": {
            "clusterName": "demo", "version": "1.34.1",
            "bootstrap": { "dataSecretName": "s" }, "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "K", "name": "n" },
        }},
    })
}

#[test]
fn a_machine_deployment_gets_selector_labels_strategy_and_version() {
    let mut object = deployment(spec());
    default_object(&mut object, None);
    let labels = json!({
        "cluster.x-k8s.io/cluster-name": "demo",
        "cluster.x-k8s.io/deployment-name": "demo-md",
    });
    assert_eq!(object["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(object["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(
        object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"],
        "demo"
    );
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(object["spec"]["template"]["spec"]["version"], "v1.34.1");
    let rolling = json!({ "maxSurge": 1, "maxUnavailable": 0 });
    assert_eq!(
        object["spec"]["rollout"]["strategy"]["rollingUpdate"],
        rolling
    );
    assert!(validate(written(&object, None)).is_empty());
    let again = object.clone();
    default_object(&mut object, Some(&again));
    assert_eq!(object, again, "defaulting twice changes nothing");
}

#[test]
fn a_selector_of_its_own_keeps_to_it() {
    let mut object = deployment(spec());
    object["spec"]["selector"] = json!({ "matchLabels": { "pool": "a" } });
    object["spec"]["rollout"] = json!({ "strategy": { "type": "OnDelete" } });
    default_object(&mut object, None);
    let selector = json!({ "pool": "a", "cluster.x-k8s.io/cluster-name": "demo" });
    assert_eq!(object["spec"]["selector"]["matchLabels"], selector);
    assert_eq!(
        object["spec"]["rollout"],
        json!({ "strategy": { "type": "OnDelete" } })
    );
    let errors = validate(written(&object, None));
    assert_eq!(errors[0].path, "spec.template.metadata.labels");
}

#[test]
fn replicas_follow_the_autoscaler_s_bounds() {
    let bounds = json!({ AUTOSCALER_MIN: "2", AUTOSCALER_MAX: "5" });
    for (stored, expected) in [(None, 2), (Some(1), 2), (Some(4), 4), (Some(9), 5)] {
        let mut object = deployment(spec());
        object["metadata"]["annotations"] = bounds.clone();
        let old = stored.map(|replicas| deployment(json!({ "replicas": replicas })));
        default_object(&mut object, old.as_ref());
        assert_eq!(object["spec"]["replicas"], expected);
    }
}

#[test]
fn a_machine_gets_its_timeout_and_label() {
    let mut object = json!({
        "apiVersion": VERSION, "kind": "Machine", "metadata": { "name": "m" },
        "spec": { "clusterName": "demo", "version": "1.34.1", "bootstrap": {} },
    });
    default_object(&mut object, None);
    assert_eq!(
        object["spec"]["deletion"],
        json!({ "nodeDeletionTimeoutSeconds": 10 })
    );
    assert_eq!(object["spec"]["version"], "v1.34.1");
    let errors = validate(written(&object, None));
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].path, "spec.bootstrap");
}

#[test]
fn mistakes_are_named_with_their_field() {
    let cases = [
        (json!({ "replicas": -1 }), "spec.replicas"),
        (
            json!({ "machineNaming": { "template": "worker" } }),
            "spec.machineNaming.template",
        ),
        (
            json!({ "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "many" } } } }),
            "spec.rollout.strategy.rollingUpdate.maxSurge",
        ),
        (
            json!({ "template": { "spec": { "version": "latest" } } }),
            "spec.template.spec.version",
        ),
        (
            json!({ "template": { "spec": { "clusterName": "other" } } }),
            "spec.template.spec.clusterName",
        ),
    ];
    for (change, path) in cases {
        let mut object = deployment(spec());
        merge(&mut object["spec"], &change);
        default_object(&mut object, None);
        let errors = validate(written(&object, None));
        let paths: Vec<_> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(paths, [path]);
    }
    let mut object = deployment(spec());
    default_object(&mut object, None);
    let mut old = object.clone();
    old["spec"]["clusterName"] = json!("before");
    let errors = validate(written(&object, Some(&old)));
    assert_eq!(errors[0].path, "spec.clusterName");
}

#[test]
fn ranges_of_a_cluster_must_be_ranges() {
    let cluster = |blocks: Value| {
        json!({
            "apiVersion": VERSION, "kind": "Cluster", "metadata": { "name": "demo" },
            "spec": { "clusterNetwork": { "pods": { "cidrBlocks": blocks } } },
        })
    };
    let wrong = |blocks: Value| validate(written(&cluster(blocks), None)).len();
    assert_eq!(wrong(json!(["10.0.0.0/8", "fd00::/64"])), 0);
    assert_eq!(wrong(json!(["10.0.0.0/8", "10.1.0.0/16"])), 1);
    assert_eq!(wrong(json!(["10.0.0.0"])), 1);
}

#[test]
fn what_would_have_no_effect_is_rejected_unless_it_is_stored_already() {
    let of_others = json!([
        {"key": "k", "effect": "NoSchedule", "propagation": "Always"},
        {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute", "propagation": "Always"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "propagation": "Always"},
    ]);
    let spec = json!({"clusterName": "demo", "bootstrap": {"dataSecretName": "s"},
        "infrastructureRef": {"apiGroup": "a.b", "kind": "K", "name": "n"}, "taints": of_others});
    let object = |kind: &str, spec: &Value| json!({"apiVersion": VERSION, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
    let group = json!({"clusterName": "demo", "selector": {}, "template": {"spec": spec}});
    let topology = json!({"classRef": {"name": "c"}, "version": "v1.34.1", "controlPlane": {"taints": of_others}});
    for (mut object, path) in [
        (
            object("Cluster", &json!({"topology": topology})),
            "spec.topology.controlPlane.taints[2].key",
        ),
        (object("Machine", &spec), "spec.taints[2].key"),
        (
            object("MachineSet", &group),
            "spec.template.spec.taints[2].key",
        ),
        (
            object("MachineDeployment", &group),
            "spec.template.spec.taints[2].key",
        ),
    ] {
        default_object(&mut object, None);
        let review = |old| Review {
            object: &object,
            old,
            dry_run: false,
        };
        let errors = crate::admission::validate(review(None)).unwrap_err();
        let paths: Vec<_> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(paths, [path]);
        let mut old = object.clone();
        old["spec"]["paused"] = json!(true);
        crate::admission::validate(review(Some(&old))).unwrap();
    }
}

#[test]
fn nonsense_never_panics() {
    for object in [
        json!(null),
        json!({ "apiVersion": VERSION, "kind": "MachineDeployment" }),
        json!({ "apiVersion": VERSION, "kind": "MachineDeployment", "metadata": 1, "spec": [] }),
        json!({ "apiVersion": VERSION, "kind": "MachineSet", "spec": { "selector": 3, "template": "" } }),
        json!({ "apiVersion": VERSION, "kind": "Cluster", "spec": { "clusterNetwork": [] } }),
    ] {
        let mut object = object;
        default_object(&mut object, None);
        let _ = validate(written(&object, None));
    }
}
