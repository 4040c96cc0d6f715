use proptest::prelude::*;
use serde_json::{Value, json};

use crate::admission::tests::merge;
use crate::admission::{Review, default_object, validate};

fn plane(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "demo"},
        "spec": {
            "version": "v1.34.1",
            "machineTemplate": {"spec": {"infrastructureRef": {"apiGroup": "a", "kind": "b", "name": "c"}}},
        },
    });
    merge(&mut object["spec"], &spec);
    object
}

fn problems(old: Option<Value>, new: Value) -> Vec<String> {
    let (old, mut new) = (old.map(plane), plane(new));
    default_object(&mut new, old.as_ref());
    let old = old.map(|mut old| {
        default_object(&mut old, None);
        old
    });
    let review = Review {
        object: &new,
        old: old.as_ref(),
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
fn defaults_are_those_of_upstream() {
    let mut object = plane(json!({"version": "1.34.1"}));
    default_object(&mut object, None);
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(object["spec"]["version"], "v1.34.1");
    assert_eq!(
        object["spec"]["rollout"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}})
    );
    let once = object.clone();
    default_object(&mut object, None);
    assert_eq!(object, once, "defaulting twice changes nothing");
}

#[test]
fn what_makes_no_control_plane_is_refused() {
    let none: &[&str] = &[];
    let external = json!({"etcd": {"external": {"endpoints": ["https://e"], "caFile": "a", "certFile": "b", "keyFile": "c"}}});
    for (spec, expected) in [
        (json!({"replicas": 3}), none),
        (json!({"replicas": 2}), &["spec.replicas"]),
        (json!({"replicas": 0}), &["spec.replicas"]),
        (
            json!({"replicas": 2, "kubeadmConfigSpec": {"clusterConfiguration": external}}),
            none,
        ),
        (json!({"version": "latest"}), &["spec.version"]),
        (json!({"version": "v1.34"}), &["spec.version"]),
        (json!({"version": "v1.35.0-beta.1"}), none),
        (
            json!({"replicas": 3, "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}}}),
            none,
        ),
        (
            json!({"replicas": 1, "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}}}),
            &["spec.rollout.strategy.rollingUpdate.maxSurge"],
        ),
        (
            json!({"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "30%"}}}}),
            &["spec.rollout.strategy.rollingUpdate.maxSurge"],
        ),
        (
            json!({"machineNaming": {"template": "x-{{ .random }}"}}),
            none,
        ),
        (
            json!({"machineNaming": {"template": "x"}}),
            &["spec.machineNaming.template"],
        ),
        (
            json!({"rollout": {"before": {"certificatesExpiryDays": 364}}}),
            none,
        ),
        (
            json!({"rollout": {"before": {"certificatesExpiryDays": 365}}}),
            &["spec.rollout.before.certificatesExpiryDays"],
        ),
        (
            json!({"rollout": {"before": {"certificatesExpiryDays": 30}},
                "kubeadmConfigSpec": {"clusterConfiguration": {"certificateValidityPeriodDays": 30}}}),
            &["spec.rollout.before.certificatesExpiryDays"],
        ),
        (
            json!({"machineTemplate": {"spec": {
                "infrastructureRef": {"apiGroup": "a.b", "kind": "K", "name": "n"},
                "taints": [{"key": "k", "effect": "NoSchedule", "propagation": "Always"}],
            }}}),
            none,
        ),
        (
            json!({"machineTemplate": {"spec": {
                "infrastructureRef": {"apiGroup": "a.b", "kind": "K", "name": "n"},
                "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule", "propagation": "Always"}],
            }}}),
            &["spec.machineTemplate.spec.taints[0].key"],
        ),
        (
            json!({"machineNaming": {"template": "{{ .random }}-{{ .machine }}"}}),
            &["spec.machineNaming.template"],
        ),
        (
            json!({"kubeadmConfigSpec": {"clusterConfiguration": {"etcd": {"local": {"dataDir": "/x"}, "external": {"endpoints": ["https://e"], "caFile": "a", "certFile": "b", "keyFile": "c"}}}}}),
            &["spec.kubeadmConfigSpec.clusterConfiguration.etcd"],
        ),
    ] {
        assert_eq!(problems(None, spec.clone()), expected, "{spec}");
    }
}

#[test]
fn only_listed_fields_may_change() {
    let config = |spec: Value| json!({"kubeadmConfigSpec": spec});
    let cluster = |spec: Value| config(json!({"clusterConfiguration": spec}));
    let none: &[&str] = &[];
    for (old, new, expected) in [
        (json!({"replicas": 1}), json!({"replicas": 3}), none),
        (json!({}), json!({"version": "v1.35.0"}), none),
        (json!({}), json!({"version": "v1.36.0"}), &["spec.version"]),
        (json!({}), json!({"version": "v1.33.9"}), &["spec.version"]),
        (json!({}), json!({"version": "v1.34.0"}), none),
        (
            json!({}),
            config(json!({"files": [{"path": "/a", "content": "x"}]})),
            none,
        ),
        (
            json!({}),
            cluster(json!({"apiServer": {"certSANs": ["x"]}})),
            none,
        ),
        (
            cluster(json!({"apiServer": {"certSANs": ["x"]}})),
            json!({}),
            none,
        ),
        (
            json!({}),
            cluster(json!({"certificatesDir": "/x"})),
            &["spec.kubeadmConfigSpec.clusterConfiguration.certificatesDir"],
        ),
        (
            cluster(json!({"controlPlaneEndpoint": "a:1"})),
            cluster(json!({"controlPlaneEndpoint": "b:1"})),
            &["spec.kubeadmConfigSpec.clusterConfiguration.controlPlaneEndpoint"],
        ),
        (
            json!({}),
            config(
                json!({"joinConfiguration": {"caCertPath": "/x", "nodeRegistration": {"name": "n"}}}),
            ),
            &["spec.kubeadmConfigSpec.joinConfiguration.caCertPath"],
        ),
        (
            cluster(json!({"etcd": {"local": {"imageTag": "1"}}})),
            cluster(json!({"etcd": {"local": {"imageTag": "2"}}})),
            none,
        ),
    ] {
        assert_eq!(
            problems(Some(old.clone()), new.clone()),
            expected,
            "{old} -> {new}"
        );
    }
    let local = cluster(json!({"etcd": {"local": {"imageTag": "1"}}}));
    let external = cluster(
        json!({"etcd": {"external": {"endpoints": ["https://e"], "caFile": "a", "certFile": "b", "keyFile": "c"}}}),
    );
    let fields = problems(Some(local), external);
    assert_eq!(fields, ["spec.kubeadmConfigSpec.clusterConfiguration.etcd"]);
}

#[test]
fn a_template_changes_only_in_a_dry_run_of_the_topology() {
    let template = |label: &str, annotations: Value| {
        json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmControlPlaneTemplate",
            "metadata": {"name": "t", "annotations": annotations},
            "spec": {"template": {"metadata": {"labels": {"a": label}}}},
        })
    };
    let (old, new) = (template("1", json!({})), template("2", json!({})));
    let review = |object, dry_run| Review {
        object,
        old: Some(&old),
        dry_run,
    };
    assert!(validate(review(&new, false)).is_err());
    assert!(validate(review(&new, true)).is_err());
    let marked = template("2", json!({"topology.cluster.x-k8s.io/dry-run": ""}));
    assert!(validate(review(&marked, true)).is_ok());
    assert!(validate(review(&marked, false)).is_err());
    assert!(validate(review(&old, false)).is_ok());
}

proptest! {
    #[test]
    fn no_version_panics(version in ".{0,20}") {
        let _ = problems(None, json!({"version": version}));
    }

    #[test]
    fn no_naming_template_panics(template in "[a-z{}. ]{0,30}") {
        let _ = problems(None, json!({"machineNaming": {"template": template}}));
    }
}

#[test]
fn an_annotation_that_names_no_machine_is_refused() {
    let with = |value: Value| {
        let mut object = plane(json!({}));
        object["metadata"]["annotations"] = json!({"ferrostack.dev/etcd-survivor": value});
        default_object(&mut object, None);
        let review = Review {
            object: &object,
            old: None,
            dry_run: false,
        };
        let errors = validate(review).err().unwrap_or_default();
        errors.into_iter().map(|it| it.path).collect::<Vec<_>>()
    };
    for name in ["demo-x7k2p", "demo.a-1"] {
        assert!(with(json!(name)).is_empty(), "{name}");
    }
    for name in ["", "Demo", "a b", "-a", "a-", "a..b", "machine/demo"] {
        let field = "metadata.annotations[ferrostack.dev/etcd-survivor]";
        assert_eq!(with(json!(name)), [field], "{name}");
    }
}
