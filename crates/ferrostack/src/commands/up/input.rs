//! Applies the options of `up`: creates a cluster, changes an existing one where possible, and rejects other
//! differences with the command to apply them.

mod topology;

use std::path::Path;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use manifest::Document;
use openstack::config::CloudConfig;
use operator::client::Api;
use serde_json::{Value, json};
use status::snapshot::{Item, Kind, Snapshot};

use crate::cli::{ClusterOptions, Up};
use crate::commands::generate::{self, Origin, Source, Text};
use crate::connect::{self, quoted, quoted_text};
use crate::data_dir::DataDir;
use crate::environment::Environment;
use crate::simulated;
use crate::source;

/// Default name of the created cluster.
const DEFAULT_NAME: &str = "demo";
/// Default counts of control plane machines and workers of a new cluster.
const COUNTS: (u32, u32) = (3, 3);

/// Input read before anything is started, so that an error starts nothing.
pub(super) struct Input {
    documents: Vec<Document>,
    /// Content of `--from` and of the file in `--config`.
    template: Option<Text>,
    config: Option<String>,
}

impl Input {
    pub(super) async fn read(args: &Up, environment: &Environment) -> anyhow::Result<Self> {
        if let Some(name) = &args.cluster_name {
            generate::check_name(name)?;
        }
        if let Some(namespace) = &args.cluster.target_namespace {
            manifest::check_namespace(namespace)?;
        }
        if args.cluster.flavor.as_deref() == Some(generate::CLASS) {
            bail!(
                "--flavor {}: it has a ClusterClass and no Cluster; --flavor {} has both. The class alone: {program} generate cluster NAME --flavor {} | {program} apply -f -",
                generate::CLASS,
                generate::TOPOLOGY,
                generate::CLASS,
                program = environment.program
            );
        }
        let documents = source::read_all(&args.files).await?;
        let template = match &args.cluster.from {
            Some(from) => Some(generate::read(from).await?),
            None => None,
        };
        let config = match &args.cluster.config {
            None => None,
            Some(path) => Some(source::read_text(path).map_err(|problem| {
                anyhow::anyhow!(
                    "cannot read the configuration {}: {problem}",
                    path.display()
                )
            })?),
        };
        generate::check(&args.cluster, template.clone(), environment)?;
        Ok(Self {
            documents,
            template,
            config,
        })
    }
}

/// Decision about the stored clusters and the options.
#[derive(Debug, PartialEq)]
enum Decision {
    /// Nothing: the options describe the stored state.
    Nothing,
    /// Create the cluster with this name.
    Create(String),
    /// Change objects, each with a merge patch.
    Change(Vec<Change>),
}

/// One change of a stored object.
#[derive(Debug, PartialEq)]
struct Change {
    kind: Kind,
    namespace: String,
    name: String,
    patch: Value,
    /// Description, such as `3 to 4 workers`.
    what: String,
}

/// Applies the input; `say` is called with every change of a stored cluster.
pub(super) async fn apply(
    args: &Up,
    environment: &Environment,
    input: Input,
    client: &Client,
    config: &CloudConfig,
    data: &DataDir,
    mut say: impl FnMut(&str) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let namespace = args.cluster.target_namespace.as_deref();
    if !input.documents.is_empty() {
        ensure_namespace(client, namespace, &input.documents).await?;
        return apply::all(client, &input.documents, namespace.unwrap_or("default"))
            .await
            .context("the manifests were rejected");
    }
    let stored = Snapshot::read(client, None).await?;
    match decide(args, environment, &input, &stored, data)? {
        Decision::Nothing => Ok(()),
        Decision::Change(changes) => change(client, &changes, say).await,
        Decision::Create(name) => {
            let mut documents =
                manifests(args, environment, &input, config, data, &name, &mut say).await?;
            if args.cluster.flavor.as_deref() == Some(generate::TOPOLOGY) {
                let namespace = namespace.unwrap_or("default");
                let (rest, known) =
                    topology::without_known_classes(client, namespace, documents).await?;
                documents = rest;
                for class in known {
                    say(&format!(
                        "ClusterClass {class} exists, and is not changed: its machines have flavors, key pair and networks as before"
                    ))?;
                }
            }
            create(args, &input, client, data, &name, &documents).await
        }
    }
}

fn decide(
    args: &Up,
    environment: &Environment,
    input: &Input,
    stored: &Snapshot,
    data: &DataDir,
) -> anyhow::Result<Decision> {
    let namespace = args.cluster.target_namespace.as_deref();
    let candidates: Vec<&Item> = stored
        .of_kind(Kind::Cluster)
        .filter(|cluster| namespace.is_none_or(|namespace| cluster.namespace() == namespace))
        .filter(|cluster| {
            args.cluster_name
                .as_ref()
                .is_none_or(|name| cluster.name() == name)
        })
        .collect();
    match candidates.as_slice() {
        [] => {
            let name = args.cluster_name.as_deref().unwrap_or(DEFAULT_NAME);
            Ok(Decision::Create(name.to_owned()))
        }
        _ if is_plain(&args.cluster) => Ok(Decision::Nothing),
        [cluster] => {
            check_template(args, environment, input, cluster, data)?;
            let changes = changes(&args.cluster, stored, cluster, data)?;
            Ok(if changes.is_empty() {
                Decision::Nothing
            } else {
                Decision::Change(changes)
            })
        }
        several => {
            let names: Vec<&str> = several.iter().map(|cluster| cluster.name()).collect();
            bail!(
                "there are several clusters: {}; say with --cluster-name and --target-namespace which one the options are for",
                names.join(", ")
            )
        }
    }
}

/// True if no option describes the cluster.
fn is_plain(options: &ClusterOptions) -> bool {
    options.flavor.is_none()
        && options.from.is_none()
        && options.config.is_none()
        && options.kubernetes_version.is_none()
        && options.control_plane_machine_count.is_none()
        && options.worker_machine_count.is_none()
}

/// Checks the template: a template is used only for creation, so for a stored cluster it must be the template of the
/// creation.
fn check_template(
    args: &Up,
    environment: &Environment,
    input: &Input,
    cluster: &Item,
    data: &DataDir,
) -> anyhow::Result<()> {
    let options = &args.cluster;
    let (template, config) = record_names(cluster.namespace(), cluster.name());
    let wanted = match (&options.flavor, &input.template) {
        (Some(flavor), _) => Some(("--flavor", format!("flavor {flavor}"))),
        (None, Some(template)) => Some(("--from", template.text.clone())),
        (None, None) => None,
    };
    let config_wanted = input.config.clone().map(|text| ("--config", text));
    for (file, wanted) in [(template, wanted), (config, config_wanted)] {
        let Some((flag, wanted)) = wanted else {
            continue;
        };
        if data.read(&file)?.as_deref() != Some(&wanted) {
            bail!(
                "{flag}: cluster `{}` exists and was created from something else; a template is used only when a cluster is \
                 created. For another cluster: {} up{} --cluster-name NAME {flag} …",
                cluster.name(),
                environment.program,
                connect::data_dir_flag(environment, data.path())
            );
        }
    }
    Ok(())
}

/// The differences between a stored cluster and the options.
fn changes(
    options: &ClusterOptions,
    stored: &Snapshot,
    cluster: &Item,
    data: &DataDir,
) -> anyhow::Result<Vec<Change>> {
    let kubectl = format!("kubectl --kubeconfig {}", quoted(&data.file("kubeconfig")));
    if topology::is_managed(cluster) {
        return topology::changes(options, cluster, &kubectl);
    }
    let planes: Vec<&Item> = stored
        .belonging(cluster, Kind::KubeadmControlPlane)
        .collect();
    let deployments: Vec<&Item> = stored.belonging(cluster, Kind::MachineDeployment).collect();
    let mut out = Vec::new();
    let mut change = |item: &Item, patch: Value, what: String| {
        out.push(Change {
            kind: item.kind,
            namespace: item.namespace().to_owned(),
            name: item.name().to_owned(),
            patch,
            what,
        });
    };
    let replicas = |item: &Item| item.field("/spec/replicas").as_i64().unwrap_or(1);
    if let Some(version) = &options.kubernetes_version {
        for (items, field) in [
            (&planes, "/spec/version"),
            (&deployments, "/spec/template/spec/version"),
        ] {
            for item in items {
                let current = item.field(field).as_str().unwrap_or_default();
                if current != version {
                    let patch = match item.kind {
                        Kind::KubeadmControlPlane => json!({"spec": {"version": version}}),
                        _ => json!({"spec": {"template": {"spec": {"version": version}}}}),
                    };
                    change(item, patch, format!("{current} to {version}"));
                }
            }
        }
    }
    for (count, flag, items) in [
        (
            options.control_plane_machine_count,
            "--control-plane-machine-count",
            &planes,
        ),
        (
            options.worker_machine_count,
            "--worker-machine-count",
            &deployments,
        ),
    ] {
        let Some(count) = count.map(i64::from) else {
            continue;
        };
        let current: i64 = items.iter().map(|item| replicas(item)).sum();
        match items.as_slice() {
            _ if current == count => {}
            [one] => change(
                one,
                json!({"spec": {"replicas": count}}),
                format!("{current} to {count} machines"),
            ),
            [] => bail!(
                "{flag}: cluster `{}` has nothing that could be scaled to {count} machines",
                cluster.name()
            ),
            several => bail!(
                "{flag}: cluster `{}` has {} machines in {} MachineDeployments; say which one is to change: {kubectl} -n {} scale machinedeployment {} --replicas=N",
                cluster.name(),
                current,
                several.len(),
                cluster.namespace(),
                several.first().map(|item| item.name()).unwrap_or_default()
            ),
        }
    }
    Ok(out)
}

async fn change(
    client: &Client,
    changes: &[Change],
    mut say: impl FnMut(&str) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    for dry_run in [true, false] {
        for change in changes {
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), &change.namespace, &change.kind.resource());
            let params = PatchParams {
                dry_run,
                ..PatchParams::default()
            };
            let label = format!("{}/{}", change.kind.as_str(), change.name);
            match api
                .patch(&change.name, &params, &Patch::Merge(&change.patch))
                .await
            {
                Ok(_) if dry_run => {}
                Ok(_) => say(&format!("{label} is changed from {}", change.what))?,
                Err(kube::Error::Api(status)) => {
                    bail!(
                        "{label} cannot be changed from {}: {}",
                        change.what,
                        status.message
                    )
                }
                Err(other) => return Err(other.into()),
            }
        }
    }
    Ok(())
}

/// Manifests of a new cluster; gaps of its variables are filled in from the cloud, as `say` reports for a real one.
async fn manifests(
    args: &Up,
    environment: &Environment,
    input: &Input,
    config: &CloudConfig,
    data: &DataDir,
    name: &str,
    mut say: impl FnMut(&str) -> std::io::Result<()>,
) -> anyhow::Result<Vec<Document>> {
    let template = input.template.clone();
    if let Some(template) = &template {
        for sentence in generate::outdated(&template.name, &template.text) {
            say(&sentence)?;
        }
    }
    let mut source = Source::new(name, &args.cluster, template, environment, COUNTS)?;
    for sentence in source.notes() {
        say(&sentence)?;
    }
    let Some(cloud) = &args.cloud else {
        for (variable, value) in simulated::variables() {
            source.set_missing(&variable, &value, Origin::Default);
        }
        let filled = generate::from_cloud(&mut source, config, false).await?;
        filled.ensure_decided()?;
        return Ok(manifest::read(&source.name, &source.render()?)?);
    };
    let filled = generate::from_cloud(&mut source, config, environment.interactive).await?;
    filled.ensure_decided()?;
    if !filled.report.is_empty() {
        say(&format!("filled in from cloud {cloud}:"))?;
        for line in &filled.report {
            say(line)?;
        }
        let command = format!("{} up --cluster-name {name}", environment.program);
        let from = format!(
            " --cloud {}{}",
            quoted_text(cloud),
            connect::data_dir_flag(environment, data.path())
        );
        let command = generate::to_repeat(&source, &args.cluster, &command, &from);
        say(&format!("to get the same again:\n  {command}"))?;
    }
    Ok(manifest::read(&source.name, &source.render()?)?)
}

async fn create(
    args: &Up,
    input: &Input,
    client: &Client,
    data: &DataDir,
    name: &str,
    documents: &[Document],
) -> anyhow::Result<()> {
    let namespace = args
        .cluster
        .target_namespace
        .as_deref()
        .unwrap_or("default");
    // Written before the cluster is created, so that every cluster has its record.
    let (template_file, config_file) = record_names(namespace, name);
    let template = match &input.template {
        Some(template) => template.text.clone(),
        None => format!(
            "flavor {}",
            args.cluster.flavor.as_deref().unwrap_or("default")
        ),
    };
    data.write(&template_file, &template)?;
    data.write(&config_file, input.config.as_deref().unwrap_or_default())?;
    ensure_namespace(client, Some(namespace), documents).await?;
    apply::all(client, documents, namespace)
        .await
        .context("the manifests were rejected")
}

/// Files in the data directory with the template and configuration of a cluster's creation.
fn record_names(namespace: &str, name: &str) -> (String, String) {
    let file = |what: &str| {
        let path = Path::new("templates").join(format!("{namespace}.{name}.{what}"));
        path.display().to_string()
    };
    (file("template"), file("config"))
}

/// Creates the requested [`Namespace`], unless existing or among `documents`.
async fn ensure_namespace(
    client: &Client,
    namespace: Option<&str>,
    documents: &[Document],
) -> anyhow::Result<()> {
    let Some(name) = namespace else { return Ok(()) };
    let is_this = |document: &Document| {
        document.text(&["kind"]) == "Namespace" && document.text(&["metadata", "name"]) == name
    };
    let api: Api<Namespace> = Api::all(client.clone());
    if documents.iter().any(is_this) || api.get_opt(name).await?.is_some() {
        return Ok(());
    }
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    api.create(&PostParams::default(), &namespace)
        .await
        .with_context(|| format!("cannot create the namespace {name}"))?;
    Ok(())
}

#[cfg(test)]
mod tests;
