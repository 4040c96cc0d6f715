use super::*;

const SET: [(&str, &str); 10] = [
    ("OPENSTACK_CLOUD", "mycloud"),
    ("OPENSTACK_CLOUD_YAML_B64", "e30K"),
    (
        "OPENSTACK_EXTERNAL_NETWORK_ID",
        "2c8b8a3e-5b1c-4c6e-9a51-0d5f2a1d0c11",
    ),
    ("OPENSTACK_DNS_NAMESERVERS", "9.9.9.9"),
    ("OPENSTACK_FAILURE_DOMAIN", "az1"),
    ("OPENSTACK_IMAGE_NAME", "image"),
    ("OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR", "big"),
    ("OPENSTACK_NODE_MACHINE_FLAVOR", "small"),
    ("OPENSTACK_SSH_KEY_NAME", ""),
    ("KUBERNETES_VERSION", "v1.34.2"),
];

fn options(flavor: &str) -> ClusterOptions {
    ClusterOptions {
        flavor: Some(flavor.to_owned()),
        ..ClusterOptions::default()
    }
}

#[test]
fn every_flavor_renders_to_objects_of_one_cluster() {
    for (flavor, control_planes) in [("default", 3), ("without-lb", 1)] {
        let options = ClusterOptions {
            control_plane_machine_count: Some(3),
            worker_machine_count: Some(2),
            target_namespace: Some("team".to_owned()),
            ..options(flavor)
        };
        let text = cluster("x", &options, false, &Environment::with(&SET)).unwrap();
        let documents = manifest::read("f", &text).unwrap();
        assert_eq!(documents.len(), 8);
        assert!(
            documents
                .iter()
                .all(|d| d.text(&["metadata", "namespace"]) == "team")
        );
        let control_plane = documents
            .iter()
            .find(|d| d.text(&["kind"]) == "KubeadmControlPlane")
            .unwrap();
        assert_eq!(control_plane.value["spec"]["replicas"], control_planes);
        let workers = documents
            .iter()
            .find(|d| d.text(&["kind"]) == "MachineDeployment")
            .unwrap();
        assert_eq!(workers.value["spec"]["replicas"], 2);
    }
}

#[test]
fn flags_win_over_the_environment_and_it_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("clusterctl.yaml");
    std::fs::write(
        &config,
        "KUBERNETES_VERSION: v1.30.0\nOPENSTACK_IMAGE_NAME: from-file\nX: [1]\n",
    )
    .unwrap();
    let environment: Vec<_> = SET
        .into_iter()
        .filter(|(name, _)| *name != "OPENSTACK_IMAGE_NAME")
        .collect();
    let options = ClusterOptions {
        config: Some(config),
        kubernetes_version: Some("v1.35.0".to_owned()),
        ..options("default")
    };
    let text = cluster("x", &options, false, &Environment::with(&environment)).unwrap();
    assert!(
        text.contains("version: v1.35.0") && text.contains("name: from-file"),
        "{text}"
    );
}

#[test]
fn what_is_missing_or_wrong_is_said_at_once() {
    let nothing = Environment::with(&[]);
    let error = format!(
        "{:#}",
        cluster("x", &options("default"), false, &nothing).unwrap_err()
    );
    assert!(
        error.contains("KUBERNETES_VERSION, OPENSTACK_CLOUD, OPENSTACK_CLOUD_YAML_B64"),
        "{error}"
    );
    let error = cluster("x", &options("flatcar"), false, &nothing)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "there is no flavor `flatcar`; there are: default, without-lb. For a template of your own use --from FILE"
    );
    for name in ["", "Upper", "a_b", "-a", "a-", "a..b", &"a".repeat(64)] {
        assert!(check_name(name).is_err(), "{name}");
    }
    let from = ClusterOptions {
        from: Some("/nowhere/t.yaml".into()),
        ..ClusterOptions::default()
    };
    let error = cluster("x", &from, false, &nothing)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot read template /nowhere/t.yaml: "),
        "{error}"
    );
}

#[test]
fn variables_are_listed_required_ones_first() {
    let text = cluster("x", &options("default"), true, &Environment::with(&[])).unwrap();
    insta::assert_snapshot!(text, @r#"
    Required Variables:
      - CLUSTER_NAME
      - CONTROL_PLANE_MACHINE_COUNT
      - KUBERNETES_VERSION
      - OPENSTACK_CLOUD
      - OPENSTACK_CLOUD_YAML_B64
      - OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR
      - OPENSTACK_DNS_NAMESERVERS
      - OPENSTACK_EXTERNAL_NETWORK_ID
      - OPENSTACK_FAILURE_DOMAIN
      - OPENSTACK_IMAGE_NAME
      - OPENSTACK_NODE_MACHINE_FLAVOR
      - OPENSTACK_SSH_KEY_NAME
      - WORKER_MACHINE_COUNT

    Optional Variables:
      - NODE_CIDR  (defaults to "10.6.0.0/24")
      - OPENSTACK_CLOUD_CACERT_B64  (defaults to "Cg==")
      - POD_CIDR  (defaults to "192.168.0.0/16")
    "#);
}
