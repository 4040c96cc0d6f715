//! Changes of the manifests by the [`Values`].

use anyhow::bail;
use cloud_conf::{CloudConf, Program};
use serde_json::{Value, json};

use super::super::SIDECARS;
use crate::chart_values::Values;
use crate::chart_values::edit::{container, extend, extend_named, flag, merge, of, set, set_in};
use crate::chart_values::flags;
use crate::cli::{CinderCsiPlugin, GenerateCsi, OnNode, arguments_of};

const CONTROLLER: (&str, &str) = ("Deployment", "csi-cinder-controllerplugin");
const NODE: (&str, &str) = ("DaemonSet", "csi-cinder-nodeplugin");
const PLUGIN: &str = "cinder-csi-plugin";
const KUBELET: &str = "/var/lib/kubelet";
/// Directory of cloud.conf in the pod.
const DIRECTORY: &str = "/etc/config";
/// Label of the workloads' selectors.
const SELECTOR: &str = "app";

/// Changes the documents of the manifests, made from the command's flags, and adds others.
///
/// # Errors
/// Paths of values that contradict each other or the command.
pub(in crate::commands::csi::manifests) fn apply(
    documents: &mut Vec<Value>,
    values: &Values,
    args: &GenerateCsi,
) -> anyhow::Result<()> {
    let namespace = args.namespace.as_str();
    let controller = of(documents, CONTROLLER)?;
    labels(controller, values, "controllerPlugin")?;
    pods(controller, values, "controllerPlugin");
    strategy(controller, values);
    sidecars(controller, values)?;
    plugin(controller, values)?;
    served(controller, values)?;
    secret(controller, values)?;
    volumes(controller, values)?;
    let given = args
        .pvc_annotations
        .then(|| ("--pvc-annotations", "true".to_owned()));
    let given: Vec<_> = given.into_iter().collect();
    more_flags(controller, values, "controllerPlugin", &given)?;
    let node = of(documents, NODE)?;
    labels(node, values, "nodePlugin")?;
    pods(node, values, "nodePlugin");
    plugin(node, values)?;
    let driver = container(node, PLUGIN)?;
    for (name, value) in args.on_node.or(of_nodes(values)).flags() {
        flag(driver, name, &value);
    }
    kubelet(node, values);
    more_flags(node, values, "nodePlugin", &args.on_node.flags())?;
    for (sidecar, role) in [
        ("snapshotter", "csi-snapshotter-role"),
        ("resizer", "csi-resizer-role"),
    ] {
        let role = of(documents, ("ClusterRole", role))?;
        extend(
            &mut role["rules"],
            values,
            &format!("csi.{sidecar}.extraRbac"),
        );
    }
    classes(documents, values)?;
    documents.extend(monitor(values, namespace)?);
    if let Some(secret) = created(values, namespace)? {
        documents.insert(0, secret);
    }
    Ok(())
}

/// Driver's flags in `extraArgs`, placed before flags of all other values.
fn more_flags(
    workload: &mut Value,
    values: &Values,
    half: &str,
    given: &[(&str, String)],
) -> anyhow::Result<()> {
    let driver = container(workload, PLUGIN)?;
    let program = arguments_of::<CinderCsiPlugin>();
    for path in ["csi.plugin", &format!("csi.plugin.{half}")] {
        let path = format!("{path}.extraArgs");
        flags::add(driver, &program, values, &path, given)?;
    }
    Ok(())
}

fn labels(workload: &mut Value, values: &Values, half: &str) -> anyhow::Result<()> {
    let of_pods = [
        ("labels", "extraLabels".to_owned()),
        ("annotations", "commonAnnotations".to_owned()),
        ("labels", format!("csi.plugin.{half}.podLabels")),
        ("annotations", format!("csi.plugin.{half}.podAnnotations")),
    ];
    for (index, (key, path)) in of_pods.iter().enumerate() {
        let is_label = *key == "labels";
        if is_label && values.get(path).is_some_and(|it| !it[SELECTOR].is_null()) {
            bail!(
                "{path}: the label `{SELECTOR}` is that by which the workload finds its pods; remove it"
            );
        }
        if index < 2 {
            set_in(&mut workload["metadata"], key, values, path);
        }
        set_in(
            &mut workload["spec"]["template"]["metadata"],
            key,
            values,
            path,
        );
    }
    Ok(())
}

fn pods(workload: &mut Value, values: &Values, half: &str) {
    let pod = &mut workload["spec"]["template"]["spec"];
    let path = |key: &str| format!("csi.plugin.{half}.{key}");
    set_in(pod, "securityContext", values, &path("podSecurityContext"));
    for key in [
        "affinity",
        "nodeSelector",
        "tolerations",
        "hostAliases",
        "dnsPolicy",
    ] {
        set(pod, key, values, &path(key));
    }
    set(pod, "priorityClassName", values, "priorityClassName");
    set(pod, "imagePullSecrets", values, "imagePullSecrets");
    if let Some(context) = values.get(&path("securityContext")) {
        let containers = pod["containers"].as_array_mut();
        for container in containers.into_iter().flatten() {
            merge(&mut container["securityContext"], context);
        }
    }
}

fn strategy(controller: &mut Value, values: &Values) {
    let (spec, path) = (&mut controller["spec"], "csi.plugin.controllerPlugin");
    set(spec, "replicas", values, &format!("{path}.replicas"));
    let (strategy, path) = (&mut spec["strategy"], format!("{path}.strategy"));
    set(strategy, "type", values, &format!("{path}.type"));
    if strategy["type"] != "RollingUpdate" {
        *strategy = json!({"type": strategy["type"]});
        return;
    }
    for key in ["maxUnavailable", "maxSurge"] {
        let path = format!("{path}.rollingUpdate.{key}");
        set(&mut strategy["rollingUpdate"], key, values, &path);
    }
}

fn sidecars(controller: &mut Value, values: &Values) -> anyhow::Result<()> {
    for (sidecar, name) in SIDECARS {
        let container = container(controller, name)?;
        let path = |key: &str| format!("csi.{sidecar}.{key}");
        let image = container["image"].as_str().unwrap_or_default();
        let (repository, tag) = image.rsplit_once(':').unwrap_or((image, ""));
        let repository = values.text(&path("image.repository")).unwrap_or(repository);
        let tag = values.text(&path("image.tag")).unwrap_or(tag);
        container["image"] = json!(format!("{repository}:{tag}"));
        let policy = path("image.pullPolicy");
        set(container, "imagePullPolicy", values, &policy);
        set(container, "resources", values, &path("resources"));
        if let Some(timeout) = values.text("timeout") {
            flag(container, "--timeout", timeout);
        }
        if let Some(level) = values.get("logVerbosityLevel") {
            flag(container, "-v", &level.to_string());
        }
        flags::add_to_go(container, values, &path("extraArgs"));
        extend(&mut container["env"], values, &path("extraEnv"));
        if container["env"].is_null()
            && let Some(container) = container.as_object_mut()
        {
            container.remove("env");
        }
    }
    Ok(())
}

/// Changes the container of the driver, in both kinds of pods.
fn plugin(workload: &mut Value, values: &Values) -> anyhow::Result<()> {
    let container = container(workload, PLUGIN)?;
    let path = "csi.plugin";
    let policy = format!("{path}.image.pullPolicy");
    set(container, "imagePullPolicy", values, &policy);
    set(container, "resources", values, &format!("{path}.resources"));
    for key in [
        "failureThreshold",
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
    ] {
        let path = format!("csi.livenessprobe.{key}");
        set(&mut container["livenessProbe"], key, values, &path);
    }
    if let Some(level) = values.get("logVerbosityLevel") {
        // It would take precedence.
        if let Some(args) = container["args"].as_array_mut() {
            args.retain(|it| it.as_str().is_none_or(|it| !it.starts_with("--log=")));
        }
        flag(container, "-v", &level.to_string());
    }
    // What is not asked of the provisioner is not answered by the driver.
    if values.truth("csi.provisioner.topology") == Some(false) {
        flag(container, "--with-topology", "false");
    }
    if values.get(&format!("{path}.extraEnv")).is_some() {
        extend(&mut container["env"], values, &format!("{path}.extraEnv"));
    }
    Ok(())
}

/// Changes the flags and services of the controller's driver.
fn served(controller: &mut Value, values: &Values) -> anyhow::Result<()> {
    let container = container(controller, PLUGIN)?;
    if let Some(cluster) = values.text("clusterID") {
        flag(container, "--cluster", cluster);
    }
    if values.truth("pvcAnnotations") == Some(true) {
        flag(container, "--pvc-annotations", "true");
    }
    if values.truth("csi.plugin.httpEndpoint.enabled") == Some(true) {
        let port = values.get("csi.plugin.httpEndpoint.port");
        let port = port.and_then(Value::as_u64).unwrap_or(8080);
        flag(container, "--http-endpoint", &format!(":{port}"));
        if let Some(ports) = container["ports"].as_array_mut() {
            ports.push(json!({"name": "http", "containerPort": port, "protocol": "TCP"}));
        }
    }
    Ok(())
}

/// Source of cloud.conf: a Secret, a directory of the host, or none.
fn secret(controller: &mut Value, values: &Values) -> anyhow::Result<()> {
    let enabled = values.truth("secret.enabled");
    let host = values.truth("secret.hostMount");
    if let Some(file) = values.text("secret.filename") {
        let driver = container(controller, PLUGIN)?;
        flag(driver, "--cloud-config", &format!("{DIRECTORY}/{file}"));
    }
    let source = match (enabled, host) {
        (None, None) | (Some(true), _) => {
            let name = values.text("secret.name").unwrap_or("cloud-config");
            Some(json!({"name": "cloud-config", "secret": {"secretName": name}}))
        }
        (_, Some(true) | None) => {
            Some(json!({"name": "cloud-config", "hostPath": {"path": DIRECTORY}}))
        }
        (_, Some(false)) => None,
    };
    let all = &mut controller["spec"]["template"]["spec"]["volumes"];
    if let Some(all) = all.as_array_mut() {
        all.retain(|it| it["name"] != "cloud-config");
        all.extend(source.clone());
    }
    if source.is_none() {
        let driver = container(controller, PLUGIN)?;
        if let Some(mounts) = driver["volumeMounts"].as_array_mut() {
            mounts.retain(|it| it["name"] != "cloud-config");
        }
    }
    Ok(())
}

/// Further volumes, such as one with a CA. The driver on nodes needs none, since it sends no requests to a cloud.
fn volumes(controller: &mut Value, values: &Values) -> anyhow::Result<()> {
    let all = &mut controller["spec"]["template"]["spec"]["volumes"];
    extend_named(all, values, "csi.plugin.volumes");
    let names: Vec<Value> = all
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| it["name"].clone())
        .collect();
    let driver = container(controller, PLUGIN)?;
    extend_named(
        &mut driver["volumeMounts"],
        values,
        "csi.plugin.volumeMounts",
    );
    for mount in driver["volumeMounts"].as_array().into_iter().flatten() {
        if !names.contains(&mount["name"]) {
            bail!(
                "csi.plugin.volumeMounts: there is no volume {}; add it to csi.plugin.volumes, or remove it",
                mount["name"]
            );
        }
    }
    Ok(())
}

fn kubelet(node: &mut Value, values: &Values) {
    let path = "csi.plugin.nodePlugin.kubeletDir";
    if let Some(directory) = values.text(path) {
        replace(node, directory.trim_end_matches('/'));
    }
}

/// Replaces the directory of the kubelet in all texts.
fn replace(value: &mut Value, directory: &str) {
    match value {
        Value::String(text) => *text = text.replace(KUBELET, directory),
        Value::Array(list) => {
            for value in list {
                replace(value, directory);
            }
        }
        Value::Object(map) => {
            for value in map.values_mut() {
                replace(value, directory);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn classes(documents: &mut Vec<Value>, values: &Values) -> anyhow::Result<()> {
    if values.truth("storageClass.enabled") == Some(false) {
        documents.retain(|it| it["kind"] != "StorageClass");
    } else {
        for policy in ["delete", "retain"] {
            let name = format!("csi-cinder-sc-{policy}");
            let class = of(documents, ("StorageClass", &name))?;
            let path = format!("storageClass.{policy}");
            let expansion = format!("{path}.allowVolumeExpansion");
            set(class, "allowVolumeExpansion", values, &expansion);
            if values.truth(&format!("{path}.isDefault")) == Some(true) {
                let key = "storageclass.kubernetes.io/is-default-class";
                class["metadata"]["annotations"] = json!({key: "true"});
            }
        }
    }
    let custom = values.get("storageClass.custom").and_then(Value::as_array);
    documents.extend(custom.into_iter().flatten().cloned());
    Ok(())
}

fn monitor(values: &Values, namespace: &str) -> anyhow::Result<Option<Value>> {
    if values.truth("csi.plugin.podMonitor.enabled") != Some(true) {
        return Ok(None);
    }
    if values.truth("csi.plugin.httpEndpoint.enabled") != Some(true) {
        bail!(
            "csi.plugin.podMonitor.enabled: nothing would be served; set csi.plugin.httpEndpoint.enabled as well"
        );
    }
    let (_, name) = CONTROLLER;
    let mut labels = json!({SELECTOR: name});
    for path in ["extraLabels", "csi.plugin.podMonitor.additionalLabels"] {
        if let Some(more) = values.get(path) {
            merge(&mut labels, more);
        }
    }
    let mut monitor = json!({"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"podMetricsEndpoints": [{"interval": "30s", "port": "http", "scheme": "http"}],
            "selector": {"matchLabels": {SELECTOR: name}}}});
    set(
        &mut monitor["metadata"],
        "annotations",
        values,
        "commonAnnotations",
    );
    Ok(Some(monitor))
}

/// [`OnNode`] options in the cloud.conf of the file. The driver reports errors in cloud.conf at its start.
fn of_nodes(values: &Values) -> OnNode {
    let file = values.text("secret.filename").unwrap_or("cloud.conf");
    let data = values.get("secret.data").filter(|_| is_created(values));
    let text = data.and_then(|data| data[file].as_str());
    let parsed = text.and_then(|text| CloudConf::parse(text, Program::CinderCsi).ok());
    parsed.map_or_else(OnNode::default, |parsed| OnNode::from_conf(&parsed.conf))
}

fn is_created(values: &Values) -> bool {
    ["secret.create", "secret.enabled"]
        .iter()
        .all(|path| values.truth(path) == Some(true))
}

/// Secret in the [`Values`].
fn created(values: &Values, namespace: &str) -> anyhow::Result<Option<Value>> {
    if !is_created(values) {
        return Ok(None);
    }
    let file = values.text("secret.filename").unwrap_or("cloud.conf");
    let data = values.get("secret.data").filter(|it| it[file].is_string());
    let Some(data) = data else {
        bail!("secret.data: there is no text under `{file}`, which secret.create is to create");
    };
    let name = values.text("secret.name").unwrap_or("cloud-config");
    Ok(Some(
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": name, "namespace": namespace}, "stringData": data}),
    ))
}
