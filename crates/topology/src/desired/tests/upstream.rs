//! The ClusterClass that the Go provider publishes.

use std::collections::BTreeMap;

use api::admission::{Review, default_object, validate};
use api::core::v1beta2::{Cluster, ClusterClass};
use serde_json::{Value, json};

use crate::cluster::{defaulted, problems};
use crate::desired::{Desired, Input, Templates, desired, key};
use crate::upgrade::decide;
use crate::variables::definitions;

const FILES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/upstream/templates/capo-v0.15.0-beta.0"
);

/// Returns the documents of a template with these values, and the defaults of other variables.
fn documents(name: &str, values: &[(&str, &str)]) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(format!("{FILES}/{name}")).ok()?;
    let dollar = "\u{0}";
    let text = text.replace("$$", dollar);
    let variable = regex::Regex::new(r"\$\{([A-Z_]+)(?::=([^}]*))?\}").unwrap();
    let text = variable.replace_all(&text, |found: &regex::Captures<'_>| {
        let given = values.iter().find(|(name, _)| *name == &found[1]);
        let default = found.get(2).map(|default| default.as_str().to_owned());
        given
            .map(|(_, value)| (*value).to_owned())
            .or(default)
            .unwrap()
    });
    let text = text.replace(dollar, "$");
    let documents = text.split("\n---\n");
    Some(
        documents
            .map(|document| serde_saphyr::from_str(document).unwrap())
            .collect(),
    )
}

fn compute(version: &str, variables: &[(&str, Value)]) -> Option<Desired> {
    let mut class = documents("clusterclass-dev-test.yaml", &[])?;
    let templates: Vec<Value> = class.drain(1..).collect();
    let class: ClusterClass = serde_json::from_value(class.remove(0)).unwrap();
    let mut cluster = documents(
        "cluster-template-topology.yaml",
        &[
            ("CLUSTER_NAME", "demo"),
            ("KUBERNETES_VERSION", version),
            ("CONTROL_PLANE_MACHINE_COUNT", "1"),
            ("WORKER_MACHINE_COUNT", "2"),
        ],
    )?
    .remove(0);
    cluster["metadata"]["uid"] = json!("uid-1");
    for (name, value) in variables {
        let list = cluster["spec"]["topology"]["variables"]
            .as_array_mut()
            .unwrap();
        list.retain(|variable| variable["name"] != *name);
        list.push(json!({ "name": name, "value": value }));
    }
    let cluster: Cluster = serde_json::from_value(cluster).unwrap();
    let definitions = definitions(class.variables()).unwrap();
    let topology = defaulted(cluster.spec.topology.as_ref().unwrap(), &definitions);
    assert_eq!(problems(&class, &definitions, &topology, None), Vec::new());
    let find = |kind: &str, name: &str| {
        let found = templates
            .iter()
            .find(|template| template["kind"] == kind && template["metadata"]["name"] == name);
        found.cloned().unwrap()
    };
    let templates: Templates = class
        .templates()
        .into_iter()
        .map(|(_, reference)| (key(reference), find(&reference.kind, &reference.name)))
        .collect();
    let decisions = decide(&topology, None, None, &[], 1).unwrap();
    let computed = desired(&Input {
        cluster: &cluster,
        class: &class,
        topology: &topology,
        templates: &templates,
        deployments: &BTreeMap::new(),
        decisions: &decisions,
        older_plane: false,
    });
    Some(computed.unwrap())
}

/// Skips if upstream's templates are not available.
macro_rules! compute {
    ($($argument:expr),*) => {
        match compute($($argument),*) {
            Some(desired) => desired,
            None => return skipped::because(format_args!("no published templates at {FILES}")),
        }
    };
}

#[test]
fn the_published_topology_gives_objects_that_admission_accepts() {
    let desired = compute!("v1.34.1", &[]);
    let deployment = &desired.deployments[0];
    for object in [
        &desired.infrastructure,
        &desired.control_plane,
        desired.control_plane_machines.as_ref().unwrap(),
        &deployment.object,
        &deployment.bootstrap,
        &deployment.machines,
    ] {
        let mut object = object.clone();
        default_object(&mut object, None);
        let review = Review {
            object: &object,
            old: None,
            dry_run: false,
        };
        assert_eq!(validate(review), Ok(()), "{object}");
    }
    assert_eq!(
        desired.infrastructure["spec"]["identityRef"],
        json!({ "cloudName": "capo-e2e", "name": "dev-test-cloud-config" })
    );
    let config = &desired.control_plane["spec"]["kubeadmConfigSpec"];
    assert_eq!(config["format"], "ignition");
    let container = config["ignition"]["containerLinuxConfig"]["additionalConfig"]
        .as_str()
        .unwrap();
    for part in [
        "path: /etc/sysupdate.kubernetes.d/kubernetes-v1.34.conf",
        "target: /opt/extensions/kubernetes/kubernetes-v1.34.1-x86-64.raw",
    ] {
        assert!(container.contains(part), "{container}");
    }
    let image = &deployment.machines["spec"]["template"]["spec"]["image"];
    assert_eq!(*image, json!({ "imageRef": { "name": "node-image" } }));
    assert_eq!(deployment.object["spec"]["replicas"], 2);
}

#[test]
fn the_published_variables_choose_image_and_addresses() {
    let desired = compute!(
        "v1.34.1",
        &[
            ("imageName", json!("ubuntu")),
            ("imageRef", json!("")),
            ("addImageVersion", json!(true)),
            ("injectIgnitionSysext", json!(false)),
            ("allowedCIDRs", json!(["10.0.0.0/8"])),
        ]
    );
    let machines = &desired.deployments[0].machines["spec"]["template"]["spec"];
    assert_eq!(
        machines["image"],
        json!({ "filter": { "name": "ubuntu-v1.34.1" } })
    );
    let balancer = &desired.infrastructure["spec"]["apiServer"]["managedLoadBalancer"];
    assert_eq!(balancer["allowedCIDRs"], json!(["10.0.0.0/8"]));
    let config = &desired.control_plane["spec"]["kubeadmConfigSpec"];
    assert_eq!(config.get("format"), None);
    assert_eq!(desired.infrastructure["spec"].get("bastion"), None);
}
