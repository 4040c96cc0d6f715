use serde_json::{Value, json};

use super::{
    Metadata, NAMES_OF_TEMPLATES, PATHS, cluster, control_plane, family, machine_deployment,
};

fn demo() -> api::core::v1beta2::Cluster {
    serde_json::from_value(json!({
        "metadata": {
            "name": "demo", "namespace": "default", "uid": "u-1", "labels": { "a": "b" }, "annotations": { "c": "d" },
        },
        "spec": {
            "clusterNetwork": { "pods": { "cidrBlocks": ["10.0.0.0/16"] }, "services": { "cidrBlocks": ["10.1.0.0/16"] }, "serviceDomain": "cluster.local" },
            "topology": { "classRef": { "name": "small" }, "version": "v1.34.1" },
        },
    }))
    .unwrap()
}

fn metadata() -> Metadata {
    let map = |name: &str| [(name.to_owned(), "1".to_owned())].into();
    Metadata {
        labels: map("l"),
        annotations: map("n"),
    }
}

/// Every path that patches may refer to exists, when everything is set.
#[test]
fn every_builtin_variable_has_a_value() {
    let all = json!({ "builtin": {
        "cluster": cluster(&demo()),
        "controlPlane": control_plane("demo-cp", "v1.34.1", Some(3), &metadata()),
        "machineDeployment": machine_deployment(("demo-md", "default", "md-0"), "v1.34.1", Some(2), &metadata()),
    }});
    for path in PATHS {
        let pointer = format!("/{}", path.replace('.', "/"));
        assert!(all.pointer(&pointer).is_some(), "{path}");
    }
    for path in NAMES_OF_TEMPLATES {
        assert!(!PATHS.contains(&path));
    }
    assert_eq!(
        all["builtin"]["cluster"]["topology"]["classNamespace"],
        "default"
    );
    assert_eq!(all["builtin"]["cluster"]["network"]["ipFamily"], "IPv4");
}

#[test]
fn what_is_not_set_is_left_out() {
    let plane = control_plane("demo-cp", "v1.34.1", None, &Metadata::default());
    assert_eq!(plane, json!({ "name": "demo-cp", "version": "v1.34.1" }));
    let bare: api::core::v1beta2::Cluster =
        serde_json::from_value(json!({ "metadata": { "name": "demo" }, "spec": {} })).unwrap();
    assert_eq!(
        cluster(&bare),
        json!({ "name": "demo", "network": { "ipFamily": "IPv4" } })
    );
    assert_eq!(cluster(&bare).get("topology"), None::<&Value>);
}

#[test]
fn families_are_those_of_services_and_pods() {
    let list = |ranges: &[&str]| {
        ranges
            .iter()
            .map(|range| (*range).to_owned())
            .collect::<Vec<_>>()
    };
    let (four, six) = (list(&["10.0.0.0/8"]), list(&["fd00::/8"]));
    let both = list(&["10.0.0.0/8", "fd00::/8"]);
    for (services, pods, family_of) in [
        (&four, &four, "IPv4"),
        (&six, &six, "IPv6"),
        (&both, &both, "DualStack"),
        (&both, &four, "DualStack"),
        (&Vec::new(), &six, "IPv6"),
        (&four, &six, "Invalid"),
    ] {
        assert_eq!(family(services, pods), family_of, "{services:?} {pods:?}");
    }
}
