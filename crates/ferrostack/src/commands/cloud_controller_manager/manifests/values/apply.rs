//! Changes of the manifests by the [`Values`].

use anyhow::{Context as _, bail};
use cloud_conf::{CloudConf, Program};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::keys::SECTIONS;
use crate::chart_values::Values;
use crate::chart_values::edit::{container, extend, extend_named, flag, merge, of, set, set_in};
use crate::chart_values::flags;
use crate::cli::{CloudControllerManager, arguments_of};

const NAME: &str = "openstack-cloud-controller-manager";
const ACCOUNT: &str = "cloud-controller-manager";
const ROLE: &str = "system:cloud-controller-manager";
/// Label of the DaemonSet's selector.
const SELECTOR: &str = "k8s-app";
/// Secret with cloud.conf, and its volume.
const SECRET: &str = "cloud-config";

/// True if the file has parts of a cloud.conf.
pub(in crate::commands::cloud_controller_manager::manifests) fn has_cloud(values: &Values) -> bool {
    values.has("cloudConfig")
}

/// Changes the documents of the manifests by the [`Values`], and adds the Secret.
///
/// # Errors
/// Paths of contradicting values, or of a cloud.conf refused by the manager.
pub(in crate::commands::cloud_controller_manager::manifests) fn apply(
    documents: &mut Vec<Value>,
    values: &Values,
    namespace: &str,
) -> anyhow::Result<()> {
    names(documents, values);
    let daemons = of(documents, ("DaemonSet", NAME))?;
    labels(daemons, values)?;
    pods(daemons, values)?;
    manager(daemons, values)?;
    if let Some(secret) = created(values, namespace)? {
        documents.insert(0, secret);
    }
    for document in documents {
        set_in(
            &mut document["metadata"],
            "annotations",
            values,
            "commonAnnotations",
        );
    }
    Ok(())
}

/// Replaces the names of the account and the role everywhere.
fn names(documents: &mut [Value], values: &Values) {
    let account = values.text("serviceAccountName");
    let role = values.text("clusterRoleName");
    for document in documents {
        let kind = document["kind"].as_str().unwrap_or_default().to_owned();
        if let Some(name) = account {
            match kind.as_str() {
                "ServiceAccount" => document["metadata"]["name"] = json!(name),
                "DaemonSet" => {
                    document["spec"]["template"]["spec"]["serviceAccountName"] = json!(name);
                }
                _ => {}
            }
            let subjects = document["subjects"].as_array_mut();
            for subject in subjects.into_iter().flatten() {
                if subject["name"] == ACCOUNT {
                    subject["name"] = json!(name);
                }
            }
        }
        if let Some(name) = role {
            match kind.as_str() {
                "ClusterRole" if document["metadata"]["name"] == ROLE => {
                    document["metadata"]["name"] = json!(name);
                }
                "ClusterRoleBinding" => document["roleRef"]["name"] = json!(name),
                _ => {}
            }
        }
    }
}

fn labels(daemons: &mut Value, values: &Values) -> anyhow::Result<()> {
    let path = "podLabels";
    if values.get(path).is_some_and(|it| !it[SELECTOR].is_null()) {
        bail!(
            "{path}: the label `{SELECTOR}` is that by which the DaemonSet finds its pods; remove it"
        );
    }
    let metadata = &mut daemons["spec"]["template"]["metadata"];
    set_in(metadata, "labels", values, path);
    set_in(metadata, "annotations", values, "commonAnnotations");
    set_in(metadata, "annotations", values, "podAnnotations");
    Ok(())
}

fn pods(daemons: &mut Value, values: &Values) -> anyhow::Result<()> {
    let pod = &mut daemons["spec"]["template"]["spec"];
    set_in(pod, "securityContext", values, "podSecurityContext");
    // Merged with ours, as with the chart's, where null takes a label away.
    set_in(pod, "nodeSelector", values, "nodeSelector");
    if let Some(labels) = pod["nodeSelector"].as_object_mut() {
        labels.retain(|_, value| !value.is_null());
    }
    for key in [
        "tolerations",
        "hostAliases",
        "dnsPolicy",
        "priorityClassName",
    ] {
        set(pod, key, values, key);
    }
    set(pod, "initContainers", values, "extraInitContainers");
    if let Some(Value::Array(secrets)) = values.get("imagePullSecrets") {
        let named = secrets.iter().map(|it| match it {
            Value::String(name) => json!({"name": name}),
            other => other.clone(),
        });
        pod["imagePullSecrets"] = named.collect();
    }
    secret(daemons, values)?;
    let pod = &mut daemons["spec"]["template"]["spec"];
    extend_named(&mut pod["volumes"], values, "extraVolumes");
    let manager = container(daemons, NAME)?;
    extend(&mut manager["volumeMounts"], values, "extraVolumeMounts");
    Ok(())
}

/// Mounts the Secret, if any.
fn secret(daemons: &mut Value, values: &Values) -> anyhow::Result<()> {
    let volumes = daemons["spec"]["template"]["spec"]["volumes"].as_array_mut();
    let Some(volumes) = volumes else {
        bail!("the manifests have no volume {SECRET}");
    };
    if values.truth("secret.enabled") != Some(false) {
        let name = values.text("secret.name").unwrap_or(SECRET);
        let mut volumes = volumes.iter_mut();
        let volume = volumes.find(|it| it["name"] == SECRET);
        volume.context("the manifests have no such volume")?["secret"] =
            json!({"secretName": name});
        return Ok(());
    }
    volumes.retain(|it| it["name"] != SECRET);
    let manager = container(daemons, NAME)?;
    if let Some(mounts) = manager["volumeMounts"].as_array_mut() {
        mounts.retain(|it| it["name"] != SECRET);
    }
    Ok(())
}

/// Changes the container of the manager.
fn manager(daemons: &mut Value, values: &Values) -> anyhow::Result<()> {
    let manager = container(daemons, NAME)?;
    for key in ["livenessProbe", "readinessProbe", "resources"] {
        set(manager, key, values, key);
    }
    if values.get("extraEnv").is_some() {
        extend(&mut manager["env"], values, "extraEnv");
    }
    if let Some(level) = values.get("logVerbosityLevel") {
        // It would take precedence.
        if let Some(args) = manager["args"].as_array_mut() {
            args.retain(|it| it.as_str().is_none_or(|it| !it.starts_with("--log=")));
        }
        flag(manager, "--v", &level.to_string());
    }
    if let Some(name) = values.text("cluster.name") {
        flag(manager, "--cluster-name", name);
    }
    if let Some(Value::Array(controllers)) = values.get("enabledControllers") {
        let names: Vec<&str> = controllers.iter().filter_map(Value::as_str).collect();
        if names.len() != controllers.len() {
            bail!("enabledControllers: these are not all names of controllers");
        }
        flag(manager, "--controllers", &names.join(","));
    }
    let program = arguments_of::<CloudControllerManager>();
    flags::add(manager, &program, values, "controllerExtraArgs", &[])
}

/// Secret with the cloud.conf in the [`Values`].
fn created(values: &Values, namespace: &str) -> anyhow::Result<Option<Value>> {
    let off = [
        values.truth("secret.create"),
        values.truth("secret.enabled"),
    ]
    .contains(&Some(false));
    if off || !has_cloud(values) {
        if values.truth("secret.create") == Some(true) && !off {
            bail!("cloudConfig: there is nothing of which secret.create is to create a Secret");
        }
        return Ok(None);
    }
    let mut sections = Vec::new();
    for (key, name) in SECTIONS {
        let path = format!("cloudConfig.{key}");
        let mut entries = Vec::new();
        for (key, value) in values
            .get(&path)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            entries.push((key.as_str(), scalar(value, &format!("{path}.{key}"))?));
        }
        if !entries.is_empty() {
            sections.push((name, entries));
        }
    }
    let exposed = sections.iter().map(|(name, entries)| {
        let entries = entries
            .iter()
            .map(|(key, value)| (*key, value.expose_secret()));
        (*name, entries.collect())
    });
    let text = cloud_conf::from_sections(exposed);
    CloudConf::parse(text.expose_secret(), Program::CloudControllerManager)
        .context("cloudConfig, of which the manager's cloud.conf is made")?;
    let name = values.text("secret.name").unwrap_or(SECRET);
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": name, "namespace": namespace}});
    merge(
        &mut secret,
        &json!({"stringData": {"cloud.conf": text.expose_secret()}}),
    );
    Ok(Some(secret))
}

/// Text of a value for a line.
fn scalar(value: &Value, path: &str) -> anyhow::Result<SecretString> {
    Ok(SecretString::from(match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Null => String::new(),
        Value::Array(_) | Value::Object(_) => bail!("{path}: this is not the value of one key"),
    }))
}
