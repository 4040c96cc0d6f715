//! `generate cinder-csi-plugin`: Secret, permissions, CSIDriver with its classes, Deployment and DaemonSet.

mod values;

use std::path::Path;

use anyhow::{Context, bail};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::cli::GenerateCsi;
use crate::cloud;
use crate::commands::cloud_controller_manager::manifests::{self, IMAGE, NAMESPACE};
use crate::environment::Environment;

const FILES: [&str; 4] = [
    include_str!("../../../../../config/csi/rbac.yaml"),
    include_str!("../../../../../config/csi/driver.yaml"),
    include_str!("../../../../../config/csi/controller.yaml"),
    include_str!("../../../../../config/csi/node.yaml"),
];

/// Flag of the controller's driver before added flags.
const LAST_FLAG: &str = "        - --provide-node-service=false\n";
/// Flag of the driver on nodes before added flags.
const LAST_FLAG_OF_NODES: &str = "        - --provide-controller-service=false\n";
const PVC_ANNOTATIONS: &str = "        - --pvc-annotations=true\n";

/// Sidecars of the controller: names in the chart, and names of containers.
const SIDECARS: [(&str, &str); 4] = [
    ("attacher", "csi-attacher"),
    ("provisioner", "csi-provisioner"),
    ("snapshotter", "csi-snapshotter"),
    ("resizer", "csi-resizer"),
];

/// Manifests, as one YAML stream; with a cloud of a clouds.yaml, including the Secret `cloud-config` with the
/// credentials of the cloud, also read by the cloud controller manager. `note` reports values of the Go driver's chart
/// without an effect.
pub(crate) fn render(
    args: &GenerateCsi,
    environment: &Environment,
    note: impl Fn(&str),
) -> anyhow::Result<SecretString> {
    let namespace = args.namespace.as_str();
    let secret = match &args.cloud {
        Some(name) => {
            let found = cloud::find(name, environment)?;
            Some(manifests::secret(name, &found, namespace)?)
        }
        None => None,
    };
    let namespaced = |file: &str| {
        let namespace = format!("namespace: {namespace}\n");
        file.replace(&format!("namespace: {NAMESPACE}\n"), &namespace)
    };
    let of_nodes: String = (args.on_node.flags().into_iter())
        .map(|(name, value)| format!("        - {name}={value}\n"))
        .collect();
    let files = FILES.map(|file| {
        let file = namespaced(file).replace(IMAGE, &args.image);
        let file = file.replace(
            LAST_FLAG_OF_NODES,
            &format!("{LAST_FLAG_OF_NODES}{of_nodes}"),
        );
        match args.pvc_annotations {
            true => file.replace(LAST_FLAG, &format!("{LAST_FLAG}{PVC_ANNOTATIONS}")),
            false => file,
        }
    });
    let changed = match &args.values {
        Some(file) => changed(file, &files, args, note)?,
        None => files.map(SecretString::from).into(),
    };
    let documents = secret.iter().chain(&changed);
    let documents: Vec<&str> = documents.map(|it| it.expose_secret()).collect();
    Ok(SecretString::from(documents.join("---\n")))
}

/// Documents of `files` with the [`Values`](crate::chart_values::Values) of a file.
fn changed(
    file: &Path,
    files: &[String],
    args: &GenerateCsi,
    note: impl Fn(&str),
) -> anyhow::Result<Vec<SecretString>> {
    let title = || format!("--values {}", file.display());
    let text = std::fs::read_to_string(file).with_context(title)?;
    let values = values::parse(&text).with_context(title)?;
    if args.cloud.is_some() && values.has("secret") {
        bail!(
            "--cloud creates the Secret cloud-config: leave it out, or remove `secret` from {}",
            file.display()
        );
    }
    for sentence in &values.notes {
        note(sentence);
    }
    let mut documents: Vec<Value> = Vec::new();
    for file in files {
        let parsed: Vec<Value> = serde_saphyr::from_multiple(file)?;
        documents.extend(parsed);
    }
    values::apply(&mut documents, &values, args).with_context(title)?;
    let texts = documents.iter().map(terminal::yaml);
    texts.map(|text| Ok(SecretString::from(text?))).collect()
}

#[cfg(test)]
mod tests {
    use cloud_conf::{CloudConf, Program};
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::OnNode;

    fn documents(cloud: Option<&str>, environment: &Environment) -> Vec<Value> {
        let args = GenerateCsi {
            cloud: cloud.map(str::to_owned),
            ..arguments()
        };
        rendered(&args, environment)
    }

    fn arguments() -> GenerateCsi {
        GenerateCsi {
            cloud: None,
            namespace: "storage".to_owned(),
            image: "registry/ferrostack:1".to_owned(),
            values: None,
            pvc_annotations: false,
            on_node: OnNode::default(),
        }
    }

    fn rendered(args: &GenerateCsi, environment: &Environment) -> Vec<Value> {
        let text = render(args, environment, |note| panic!("{note}")).unwrap();
        serde_saphyr::from_multiple(text.expose_secret()).unwrap()
    }

    fn all() -> Vec<Value> {
        documents(None, &Environment::default())
    }

    fn of<'a>(all: &'a [Value], kind: &str, name: &str) -> &'a Value {
        let found = all
            .iter()
            .find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{kind} {name}"))
    }

    fn containers(workload: &Value) -> &Vec<Value> {
        let spec = &workload["spec"]["template"]["spec"];
        spec["containers"].as_array().unwrap()
    }

    #[test]
    fn the_objects_are_those_of_the_go_driver() {
        let all = all();
        for (kind, name) in [
            ("ServiceAccount", "csi-cinder-controller-sa"),
            ("ServiceAccount", "csi-cinder-node-sa"),
            ("ClusterRole", "csi-attacher-role"),
            ("ClusterRole", "csi-provisioner-role"),
            ("ClusterRole", "csi-snapshotter-role"),
            ("ClusterRole", "csi-resizer-role"),
            ("ClusterRole", "csi-nodeplugin-role"),
            ("CSIDriver", "cinder.csi.openstack.org"),
            ("StorageClass", "csi-cinder-sc-delete"),
            ("StorageClass", "csi-cinder-sc-retain"),
            ("Deployment", "csi-cinder-controllerplugin"),
            ("DaemonSet", "csi-cinder-nodeplugin"),
        ] {
            of(&all, kind, name);
        }
        for object in &all {
            let namespace = &object["metadata"]["namespace"];
            assert!(namespace.is_null() || namespace == "storage", "{object}");
            for subject in object["subjects"].as_array().into_iter().flatten() {
                assert_eq!(subject["namespace"], "storage");
            }
        }
    }

    #[test]
    fn only_the_controller_has_the_credentials() {
        let all = all();
        let controller = of(&all, "Deployment", "csi-cinder-controllerplugin");
        let volumes = &controller["spec"]["template"]["spec"]["volumes"];
        assert!(volumes.to_string().contains("cloud-config"), "{volumes}");
        let node = of(&all, "DaemonSet", "csi-cinder-nodeplugin");
        let pod = &node["spec"]["template"]["spec"];
        assert!(!pod.to_string().contains("secret"), "{pod}");
        assert_eq!(pod["automountServiceAccountToken"], false);
        let secrets = |rule: &Value| rule["resources"].to_string().contains("secrets");
        let rules = all.iter().filter_map(|it| it["rules"].as_array());
        assert!(!rules.flatten().any(secrets));
    }

    #[test]
    fn the_driver_has_no_ephemeral_volumes_and_classes_wait_for_the_pod() {
        let all = all();
        let driver = &of(&all, "CSIDriver", "cinder.csi.openstack.org")["spec"];
        assert_eq!(driver["fsGroupPolicy"], "File");
        assert_eq!(driver["volumeLifecycleModes"], json!(["Persistent"]));
        for (name, policy) in [("delete", "Delete"), ("retain", "Retain")] {
            let class = of(&all, "StorageClass", &format!("csi-cinder-sc-{name}"));
            assert_eq!(class["volumeBindingMode"], "WaitForFirstConsumer");
            assert_eq!(class["allowVolumeExpansion"], true);
            assert_eq!(class["reclaimPolicy"], policy);
            assert_eq!(class["provisioner"], "cinder.csi.openstack.org");
        }
    }

    #[test]
    fn the_flags_in_the_manifests_are_flags_of_the_command() {
        use clap::Parser;
        let all = all();
        let mut seen = 0;
        for workload in [
            of(&all, "Deployment", "csi-cinder-controllerplugin"),
            of(&all, "DaemonSet", "csi-cinder-nodeplugin"),
        ] {
            let ours = containers(workload)
                .iter()
                .filter(|it| it["name"] == "cinder-csi-plugin");
            for container in ours {
                assert_eq!(container["image"], "registry/ferrostack:1");
                let flags = container["args"].as_array().unwrap().iter();
                let flags = flags.map(|it| it.as_str().unwrap());
                let parsed = crate::cli::Cli::try_parse_from(std::iter::once("x").chain(flags));
                let crate::cli::Command::CinderCsiPlugin(args) = parsed.unwrap().command else {
                    panic!("{container}");
                };
                assert!(args.provide_controller_service != args.provide_node_service);
                assert_eq!(args.provide_node_service, args.cloud_config.is_empty());
                seen += 1;
            }
        }
        assert_eq!(seen, 2);
        // The sidecars find the socket of the driver.
        for container in containers(of(&all, "Deployment", "csi-cinder-controllerplugin")) {
            let flags = container["args"].to_string();
            assert!(flags.contains("/csi/csi.sock"), "{flags}");
            assert_eq!(container["volumeMounts"][0]["mountPath"], "/csi");
        }
    }

    #[test]
    fn hints_of_claims_are_a_flag_whose_permissions_are_there() {
        let args = GenerateCsi {
            pvc_annotations: true,
            ..arguments()
        };
        let all = rendered(&args, &Environment::default());
        let flags = |all: &[Value], kind: &str, name: &str| {
            let flags = containers(of(all, kind, name)).iter();
            let flags =
                flags.filter(|it| it["args"].to_string().contains("--pvc-annotations=true"));
            flags.map(|it| it["name"].clone()).collect::<Vec<_>>()
        };
        let controller = ("Deployment", "csi-cinder-controllerplugin");
        let found = flags(&all, controller.0, controller.1);
        assert_eq!(found, [json!("cinder-csi-plugin")]);
        assert!(flags(&all, "DaemonSet", "csi-cinder-nodeplugin").is_empty());
        assert!(flags(&self::all(), controller.0, controller.1).is_empty());
        let provisioner = containers(of(&all, controller.0, controller.1)).iter();
        let mut provisioner = provisioner.filter(|it| it["name"] == "csi-provisioner");
        let provisioner = provisioner.next().unwrap()["args"].to_string();
        assert!(provisioner.contains("--extra-create-metadata"));
        let rules = of(&all, "ClusterRole", "csi-provisioner-role")["rules"].as_array();
        let mut rules = rules.unwrap().iter();
        let claims = rules.find(|it| it["resources"] == json!(["persistentvolumeclaims"]));
        assert!(claims.unwrap()["verbs"].to_string().contains("\"get\""));
    }

    #[test]
    fn nodes_have_their_options_as_flags() {
        let args = GenerateCsi {
            on_node: OnNode {
                node_volume_attach_limit: Some(20),
                search_order: Some("metadataService".parse().unwrap()),
            },
            ..arguments()
        };
        let all = rendered(&args, &Environment::default());
        let flags = |all: &[Value], kind: &str, name: &str| {
            let flags = containers(of(all, kind, name))[0]["args"].as_array();
            let is_of_nodes = |it: &&Value| {
                let flag = it.as_str().unwrap();
                flag.contains("attach-limit") || flag.contains("search-order")
            };
            let flags = flags.unwrap().iter().filter(is_of_nodes);
            flags.cloned().collect::<Vec<_>>()
        };
        let node = ("DaemonSet", "csi-cinder-nodeplugin");
        let expected = [
            "--node-volume-attach-limit=20",
            "--search-order=metadataService",
        ];
        assert_eq!(flags(&all, node.0, node.1), expected);
        assert!(flags(&self::all(), node.0, node.1).is_empty());
        for workload in all.iter().filter(|it| it["kind"] == "Deployment") {
            assert!(!workload.to_string().contains("attach-limit"), "{workload}");
        }
    }

    #[test]
    fn a_named_cloud_gives_a_secret_whose_cloud_conf_is_valid() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("clouds.yaml");
        let clouds = "clouds: {mine: {auth: {auth_url: 'https://k', user_id: u, password: p, project_id: t}}}";
        std::fs::write(&file, clouds).unwrap();
        let file = file.display().to_string();
        let environment = Environment::with(&[("OS_CLIENT_CONFIG_FILE", &file)]);
        let all = documents(Some("mine"), &environment);
        let secret = of(&all, "Secret", "cloud-config");
        assert_eq!(secret["metadata"]["namespace"], "storage");
        let conf = secret["stringData"]["cloud.conf"].as_str().unwrap();
        let conf = CloudConf::parse(conf, Program::CinderCsi).unwrap().conf;
        let cloud = conf.cloud("").unwrap().cloud(None).unwrap();
        assert_eq!(cloud.auth_url, "https://k");
    }
}
