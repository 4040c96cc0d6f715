use serde_json::{Value, json};

use super::super::FILES;
use super::*;
use crate::cli::{GenerateCsi, OnNode};
use crate::commands::cloud_controller_manager::manifests::{IMAGE, NAMESPACE};

/// The manifests with these values, and what is said of them.
fn applied(text: &str) -> (Vec<Value>, Vec<String>) {
    applied_with(text, &OnNode::default())
}

fn applied_with(text: &str, on_node: &OnNode) -> (Vec<Value>, Vec<String>) {
    let values = parse(text).unwrap();
    let mut documents = plain();
    apply(&mut documents, &values, &command(on_node)).unwrap();
    (documents, values.notes)
}

fn command(on_node: &OnNode) -> GenerateCsi {
    GenerateCsi {
        cloud: None,
        namespace: NAMESPACE.to_owned(),
        image: IMAGE.to_owned(),
        values: None,
        pvc_annotations: false,
        on_node: on_node.clone(),
    }
}

fn plain() -> Vec<Value> {
    let all = FILES.map(|file| serde_saphyr::from_multiple::<Value>(file).unwrap());
    all.into_iter().flatten().collect()
}

fn rejected(text: &str) -> String {
    rejected_by(text, &command(&OnNode::default()))
}

fn rejected_by(text: &str, command: &GenerateCsi) -> String {
    let error = parse(text).map(|values| apply(&mut plain(), &values, command).unwrap_err());
    match error {
        Ok(error) | Err(error) => format!("{error:#}"),
    }
}

fn of<'a>(all: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = all
        .iter()
        .find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("{kind} {name}"))
}

fn workloads(all: &[Value]) -> [&Value; 2] {
    [
        of(all, "Deployment", "csi-cinder-controllerplugin"),
        of(all, "DaemonSet", "csi-cinder-nodeplugin"),
    ]
}

fn container<'a>(workload: &'a Value, name: &str) -> &'a Value {
    let containers = &workload["spec"]["template"]["spec"]["containers"];
    let mut containers = containers.as_array().unwrap().iter();
    containers.find(|it| it["name"] == name).unwrap()
}

fn flags(container: &Value) -> Vec<&str> {
    let args = container["args"].as_array().unwrap().iter();
    args.map(|it| it.as_str().unwrap()).collect()
}

#[test]
fn a_file_that_sets_nothing_changes_nothing() {
    let plain = plain();
    for text in [
        "",
        "# nothing\n",
        "csi: {}\n",
        "priorityClassName: \"\"\nimagePullSecrets: []\n",
    ] {
        let (documents, notes) = applied(text);
        assert_eq!(documents, plain, "{text}");
        assert!(notes.is_empty(), "{notes:?}");
    }
}

#[test]
fn what_the_file_sets_is_set_here() {
    let text = r#"
extraLabels: {team: storage}
commonAnnotations: {owner: ops}
timeout: 5m
logVerbosityLevel: 4
clusterID: blue
pvcAnnotations: true
priorityClassName: high
imagePullSecrets: [{name: pull}]
csi:
  attacher:
    image: {repository: mirror/csi-attacher}
    resources: {limits: {memory: 1Gi}}
    extraArgs: |-
      - --worker-threads=20
  provisioner:
    image: {tag: v6.5.0, pullPolicy: Always}
    extraEnv: [{name: A, value: b}]
    topology: "false"
  snapshotter:
    extraRbac:
      - {apiGroups: [""], resources: [secrets], verbs: [get, list]}
  livenessprobe: {periodSeconds: 30}
  plugin:
    volumes: [{name: cacert, hostPath: {path: /etc/cacert}}]
    volumeMounts:
      - {name: cacert, mountPath: /etc/cacert, readOnly: true}
      - {name: cloud-config, mountPath: /etc/config, readOnly: true}
    httpEndpoint: {enabled: true, port: 9000}
    podMonitor: {enabled: true, additionalLabels: {release: prometheus}}
    extraArgs: ["--user-agent=x"]
    nodePlugin:
      kubeletDir: /var/lib/k0s/kubelet/
      tolerations: [{key: a, operator: Exists}]
      podLabels: {half: node}
    controllerPlugin:
      replicas: 2
      strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 50%}}
      nodeSelector: {role: infra}
      podSecurityContext: {runAsUser: 65532}
      securityContext: {privileged: false}
storageClass:
  delete: {isDefault: true}
  retain: {allowVolumeExpansion: false}
  custom: |-
    ---
    apiVersion: storage.k8s.io/v1
    kind: StorageClass
    metadata: {name: sas}
    provisioner: cinder.csi.openstack.org
"#;
    let (all, notes) = applied(text);
    assert!(notes.is_empty(), "{notes:?}");
    let [controller, node] = workloads(&all);
    for workload in [controller, node] {
        assert_eq!(workload["metadata"]["labels"]["team"], "storage");
        let pod = &workload["spec"]["template"];
        assert_eq!(pod["metadata"]["labels"]["team"], "storage");
        assert_eq!(pod["metadata"]["annotations"]["owner"], "ops");
        assert_eq!(pod["spec"]["priorityClassName"], "high");
        assert_eq!(pod["spec"]["imagePullSecrets"], json!([{"name": "pull"}]));
        let driver = container(workload, "cinder-csi-plugin");
        let flags = flags(driver);
        for flag in ["-v=4", "--user-agent=x", "--with-topology=false"] {
            assert!(flags.contains(&flag), "{flag}: {flags:?}");
        }
        assert!(
            !flags.iter().any(|it| it.starts_with("--log=")),
            "{flags:?}"
        );
        assert_eq!(driver["livenessProbe"]["periodSeconds"], 30);
        assert_eq!(driver["livenessProbe"]["timeoutSeconds"], 10);
    }
    let spec = &controller["spec"];
    assert_eq!(spec["replicas"], 2);
    assert_eq!(
        spec["strategy"]["rollingUpdate"],
        json!({"maxUnavailable": "50%", "maxSurge": 1})
    );
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"role": "infra"}));
    // Merged, as by Helm.
    assert_eq!(pod["securityContext"]["runAsUser"], 65532);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let volumes: Vec<&Value> = pod["volumes"].as_array().unwrap().iter().collect();
    assert_eq!(volumes.len(), 3, "{volumes:?}");
    let driver = container(controller, "cinder-csi-plugin");
    for flag in [
        "--cluster=blue",
        "--pvc-annotations=true",
        "--http-endpoint=:9000",
    ] {
        assert!(flags(driver).contains(&flag), "{driver}");
    }
    assert_eq!(driver["volumeMounts"].as_array().unwrap().len(), 3);
    assert_eq!(driver["securityContext"]["privileged"], false);
    let attacher = container(controller, "csi-attacher");
    assert_eq!(attacher["image"], "mirror/csi-attacher:v4.13.0");
    assert_eq!(attacher["resources"], json!({"limits": {"memory": "1Gi"}}));
    assert_eq!(attacher["env"], Value::Null);
    for flag in ["--timeout=5m", "-v=4", "--worker-threads=20"] {
        assert!(flags(attacher).contains(&flag), "{attacher}");
    }
    let provisioner = container(controller, "csi-provisioner");
    let image = "registry.k8s.io/sig-storage/csi-provisioner:v6.5.0";
    assert_eq!(
        (&provisioner["image"], &provisioner["imagePullPolicy"]),
        (&json!(image), &json!("Always"))
    );
    assert_eq!(provisioner["env"], json!([{"name": "A", "value": "b"}]));

    let pod = &node["spec"]["template"]["spec"];
    assert_eq!(
        pod["tolerations"],
        json!([{"key": "a", "operator": "Exists"}])
    );
    assert_eq!(
        node["spec"]["template"]["metadata"]["labels"]["half"],
        "node"
    );
    assert!(!node.to_string().contains("/var/lib/kubelet"), "{node}");
    let socket = "--kubelet-registration-path=/var/lib/k0s/kubelet/plugins/cinder.csi.openstack.org/csi.sock";
    assert!(flags(container(node, "cinder-csi-plugin")).contains(&socket));
    // The nodes have no credentials, whatever the values mount.
    assert!(!node.to_string().contains("cloud-config"), "{node}");
    assert!(!node.to_string().contains("cacert"), "{node}");

    let role = &of(&all, "ClusterRole", "csi-snapshotter-role")["rules"];
    let last = role.as_array().unwrap().last().unwrap();
    assert_eq!(last["resources"], json!(["secrets"]));
    let class = of(&all, "StorageClass", "csi-cinder-sc-delete");
    let default = "storageclass.kubernetes.io/is-default-class";
    assert_eq!(class["metadata"]["annotations"][default], "true");
    let class = of(&all, "StorageClass", "csi-cinder-sc-retain");
    assert_eq!(class["allowVolumeExpansion"], false);
    of(&all, "StorageClass", "sas");
    let monitor = of(&all, "PodMonitor", "csi-cinder-controllerplugin");
    assert_eq!(monitor["metadata"]["labels"]["release"], "prometheus");
    assert_eq!(monitor["metadata"]["annotations"]["owner"], "ops");
}

#[test]
fn the_flags_that_values_cause_are_flags_of_the_driver() {
    use clap::Parser;
    let (all, _) = applied(
        "logVerbosityLevel: 2\nclusterID: x\npvcAnnotations: true\ncsi: {provisioner: {topology: false}, \
         plugin: {httpEndpoint: {enabled: true}}}\nsecret: {enabled: true, filename: my.conf}\n",
    );
    for workload in workloads(&all) {
        let words = flags(container(workload, "cinder-csi-plugin"));
        let words = std::iter::once("ferrostack").chain(words);
        let parsed = crate::cli::Cli::try_parse_from(words);
        assert!(parsed.is_ok(), "{}", parsed.unwrap_err());
    }
}

#[test]
fn cloud_conf_comes_from_where_the_values_say() {
    let source = |text: &str| {
        let (all, _) = applied(text);
        let [controller, _] = workloads(&all);
        let volumes = &controller["spec"]["template"]["spec"]["volumes"];
        let volumes = volumes.as_array().unwrap().iter();
        let mut volumes = volumes.filter(|it| it["name"] == "cloud-config");
        let mounts = container(controller, "cinder-csi-plugin")["volumeMounts"].to_string();
        (volumes.next().cloned(), mounts.contains("cloud-config"))
    };
    let of_secret = |name: &str| json!({"name": "cloud-config", "secret": {"secretName": name}});
    let of_host = json!({"name": "cloud-config", "hostPath": {"path": "/etc/config"}});
    for (text, expected) in [
        ("", Some(of_secret("cloud-config"))),
        (
            "secret: {enabled: true, name: mine}",
            Some(of_secret("mine")),
        ),
        (
            "secret: {enabled: false, hostMount: true}",
            Some(of_host.clone()),
        ),
        ("secret: {enabled: false}", Some(of_host)),
        ("secret: {enabled: false, hostMount: false}", None),
    ] {
        let is_mounted = expected.is_some();
        assert_eq!(source(text), (expected, is_mounted), "{text}");
    }
    let text = "secret: {enabled: true, create: true, name: mine, filename: a.conf, data: {a.conf: '[Global]'}}";
    let (all, _) = applied(text);
    let secret = of(&all, "Secret", "mine");
    assert_eq!(secret["stringData"], json!({"a.conf": "[Global]"}));
    let [controller, _] = workloads(&all);
    let driver = container(controller, "cinder-csi-plugin");
    assert!(flags(driver).contains(&"--cloud-config=/etc/config/a.conf"));
}

#[test]
fn options_of_nodes_in_the_cloud_conf_of_the_file_are_flags_of_nodes() {
    let conf = "[Global]\\nauth-url = https://k\\nuser-id = u\\npassword = hidden\\ntenant-id = t\\n\
                [BlockStorage]\\nnode-volume-attach-limit = 20\\n[Metadata]\\nsearch-order = metadataService\\n";
    let text = |create: bool| {
        format!("secret: {{enabled: true, create: {create}, data: {{cloud.conf: \"{conf}\"}}}}")
    };
    let of_node = |text: &str, on_node: &OnNode| -> Vec<String> {
        let (all, _) = applied_with(text, on_node);
        let [controller, node] = workloads(&all);
        let is_of_nodes = |it: &&&str| it.contains("attach-limit") || it.contains("search-order");
        let driver = container(controller, "cinder-csi-plugin");
        assert!(!flags(driver).iter().any(|it| is_of_nodes(&it)));
        assert!(!node.to_string().contains("hidden") && !node.to_string().contains("cloud-config"));
        let flags = flags(container(node, "cinder-csi-plugin"));
        flags
            .iter()
            .filter(is_of_nodes)
            .map(|it| (*it).to_owned())
            .collect()
    };
    let expected = [
        "--node-volume-attach-limit=20",
        "--search-order=metadataService",
    ];
    let none = OnNode::default();
    assert_eq!(of_node(&text(true), &none), expected);
    // A Secret that is there already may have another cloud.conf.
    assert!(of_node(&text(false), &none).is_empty());
    // As those of the driver, of which it accepts one.
    let more = format!(
        "{}\ncsi: {{plugin: {{nodePlugin: {{extraArgs: [--search-order=configDrive]}}}}}}",
        text(true)
    );
    let expected_with_more = [
        "--node-volume-attach-limit=20",
        "--search-order=configDrive",
    ];
    assert_eq!(of_node(&more, &none), expected_with_more);
    // What the command is given comes first.
    let given = OnNode {
        node_volume_attach_limit: Some(9),
        ..OnNode::default()
    };
    let expected = [
        "--node-volume-attach-limit=9",
        "--search-order=metadataService",
    ];
    assert_eq!(of_node(&text(true), &given), expected);
}

#[test]
fn a_flag_is_there_once_and_that_of_extra_args_counts() {
    let text = "logVerbosityLevel: 2\nclusterID: a\npvcAnnotations: true\ntimeout: 4m\ncsi:\n  \
                attacher: {extraArgs: [-timeout=9m, --worker-threads=3]}\n  plugin:\n    httpEndpoint: {enabled: true}\n    \
                extraArgs: [--v=5, --pvc_annotations=false, --user-agent=x, --health-port, '1']\n    \
                nodePlugin: {extraArgs: [--node-volume-attach-limit=20, --health-port=2, --user-agent=y]}\n    \
                controllerPlugin: {extraArgs: [--cluster, b, --http-endpoint=:1]}\n";
    let given = OnNode {
        node_volume_attach_limit: Some(20),
        ..OnNode::default()
    };
    let (all, _) = applied_with(text, &given);
    let [controller, node] = workloads(&all);
    let of = |workload| flags(container(workload, "cinder-csi-plugin"));
    assert_eq!(
        of(controller),
        [
            "cinder-csi-plugin",
            "--endpoint=unix:///csi/csi.sock",
            "--cloud-config=/etc/config/cloud.conf",
            "--provide-node-service=false",
            "--v=5",
            "--pvc_annotations=false",
            "--user-agent=x",
            "--health-port",
            "1",
            "--cluster",
            "b",
            "--http-endpoint=:1"
        ]
    );
    assert_eq!(
        of(node),
        [
            "cinder-csi-plugin",
            "--endpoint=unix:///csi/csi.sock",
            "--provide-controller-service=false",
            "--kubelet-registration-path=/var/lib/kubelet/plugins/cinder.csi.openstack.org/csi.sock",
            "--v=5",
            "--pvc_annotations=false",
            "--user-agent=x",
            "--node-volume-attach-limit=20",
            "--health-port=2",
            "--user-agent=y"
        ]
    );
    assert_eq!(
        flags(container(controller, "csi-attacher")),
        [
            "--csi-address=/csi/csi.sock",
            "--leader-election=true",
            "-v=2",
            "-timeout=9m",
            "--worker-threads=3"
        ]
    );
    // A level of klog counts only without a filter.
    let (all, _) = applied("csi: {plugin: {extraArgs: [--log=debug, -v=1]}}");
    let of_log = |workload| {
        let flags = flags(container(workload, "cinder-csi-plugin")).into_iter();
        let flags = flags.filter(|it| it.starts_with("--log") || it.starts_with("-v"));
        flags.map(str::to_owned).collect::<Vec<_>>()
    };
    for workload in workloads(&all) {
        assert_eq!(of_log(workload), ["--log=debug", "-v=1"]);
    }
}

#[test]
fn a_flag_of_the_command_and_another_one_of_extra_args_are_refused() {
    let given = OnNode {
        node_volume_attach_limit: Some(9),
        search_order: Some("configDrive".parse().unwrap()),
    };
    let command = GenerateCsi {
        pvc_annotations: true,
        ..command(&given)
    };
    for (text, words) in [
        (
            "csi: {plugin: {nodePlugin: {extraArgs: [--node-volume-attach-limit=20]}}}",
            "csi.plugin.nodePlugin.extraArgs: --node-volume-attach-limit is 20 there, and 9 on the command line: leave one of them out",
        ),
        (
            "csi: {plugin: {extraArgs: [--search-order, 'metadataService,configDrive']}}",
            "csi.plugin.extraArgs: --search-order is metadataService,configDrive there, and configDrive on the command line",
        ),
        (
            "csi: {plugin: {controllerPlugin: {extraArgs: [--pvc-annotations=false]}}}",
            "--pvc-annotations is false there, and true on the command line",
        ),
    ] {
        let error = rejected_by(text, &command);
        assert!(error.contains(words), "{error}");
    }
    let same = "csi: {plugin: {extraArgs: [--node-volume-attach-limit=9], controllerPlugin: {extraArgs: [--pvc-annotations]}}}";
    apply(&mut plain(), &parse(same).unwrap(), &command).unwrap();
}

#[test]
fn what_means_nothing_here_is_said() {
    let text = "nameOverride: x\ncsi:\n  livenessprobe: {image: {tag: v2.18.0}}\n  nodeDriverRegistrar: {extraEnv: [{name: a}]}\n  \
                plugin: {image: {repository: mirror/cinder}, nodePlugin: {securityContext: {privileged: true}}}\n";
    let (_, notes) = applied(text);
    let paths: Vec<&str> = notes
        .iter()
        .map(|it| it.split(' ').next().unwrap())
        .collect();
    let mut sorted = paths.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        [
            "csi.livenessprobe.image.tag",
            "csi.nodeDriverRegistrar.extraEnv",
            "csi.plugin.image.repository",
            "csi.plugin.nodePlugin.securityContext",
            "nameOverride",
        ]
    );
    assert!(
        notes.iter().all(|it| it.contains(" has no effect: ")),
        "{notes:?}"
    );
}

#[test]
fn misspelt_keys_and_wrong_values_are_refused_with_their_paths() {
    for (text, words) in [
        (
            "csi: {plugin: {controlerPlugin: {replicas: 2}}}",
            "csi.plugin.controlerPlugin is no key of the chart; there are: controllerPlugin, extraArgs",
        ),
        (
            "clusterId: x",
            "clusterId is no key of the chart; there are: clusterID, commonAnnotations, csi",
        ),
        (
            "csi: {attacher: {image: {repo: x}}}",
            "csi.attacher.image.repo is no key of the chart; there are: pullPolicy, repository, tag",
        ),
        (
            "csi: {plugin: 3}",
            "csi.plugin: this is not a map of further keys",
        ),
        (
            "csi: {plugin: {controllerPlugin: {replicas: two}}}",
            "csi.plugin.controllerPlugin.replicas: this is not a whole number",
        ),
        (
            "pvcAnnotations: maybe",
            "pvcAnnotations: this is not true or false",
        ),
        (
            "timeout: 3",
            "timeout: this is not a text; write it in quotes",
        ),
        (
            "imagePullSecrets: pull",
            "imagePullSecrets: this is not a list",
        ),
        ("extraLabels: [a]", "extraLabels: this is not a map"),
        (
            "csi: {attacher: {extraArgs: '- --x={{ .Values.timeout }}'}}",
            "csi.attacher.extraArgs: templates of Helm are not evaluated",
        ),
        (
            "csi: {attacher: {extraArgs: {a: b}}}",
            "csi.attacher.extraArgs: this is not a list of flags",
        ),
        (
            "storageClass: {custom: 'a: b'}",
            "storageClass.custom: a document has no kind",
        ),
        ("[1]", "the file has no keys"),
        ("a: {b", "line 1"),
        (
            "extraLabels: {app: x}",
            "extraLabels: the label `app` is that by which the workload finds its pods",
        ),
        (
            "csi: {plugin: {volumeMounts: [{name: cacert, mountPath: /x}]}}",
            "csi.plugin.volumeMounts: there is no volume \"cacert\"",
        ),
        (
            "csi: {plugin: {podMonitor: {enabled: true}}}",
            "set csi.plugin.httpEndpoint.enabled as well",
        ),
        (
            "secret: {enabled: true, create: true}",
            "secret.data: there is no text under `cloud.conf`",
        ),
        (
            "clusterId: x\npvcAnnotation: true",
            "; pvcAnnotation is no key of the chart",
        ),
    ] {
        let error = rejected(text);
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn the_values_of_the_chart_itself_are_accepted() {
    // The module of the Go driver, where it is there.
    let home = std::env::var("HOME").unwrap_or_default();
    let path = format!(
        "{home}/go/pkg/mod/k8s.io/cloud-provider-openstack@v1.36.0/charts/cinder-csi-plugin/values.yaml"
    );
    let Ok(text) = std::fs::read_to_string(path) else {
        skipped::because("no Go driver: its module has the chart");
        return;
    };
    let (_, notes) = applied(&text);
    assert!(notes.iter().all(|it| it.contains("image.")), "{notes:?}");
}
