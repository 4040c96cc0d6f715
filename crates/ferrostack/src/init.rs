//! `init`: makes a management cluster of an existing Kubernetes cluster.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use crate::apply;
use crate::cli::{Init, InitCommand, Output, Providers};
use crate::connect;
use crate::environment::Environment;
use crate::generate::check_namespace;
use crate::manager::manifests;
use crate::manifest;
use crate::snapshot::counted;

/// Label of definitions with the name of their provider.
const PROVIDER: &str = "cluster.x-k8s.io/provider";
/// The Deployment of the managers.
const DEPLOYMENT: &str = "ferrostack-manager";
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Installs kinds, permissions, webhooks and managers, or lists the images that they need.
pub(crate) async fn run(
    args: &Init,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    if let Some(InitCommand::ListImages { image, output }) = &args.command {
        return print(&images(image.as_deref(), output.output));
    }
    check(&args.providers)?;
    let namespaces = [
        Some(&args.target_namespace),
        args.openstack_namespace.as_ref(),
    ];
    for namespace in namespaces.into_iter().flatten() {
        check_namespace(namespace)?;
    }
    let client = connect::cluster(&args.server, environment).await?;
    install(&client, args, &say).await?;
    if args.wait_providers {
        wait(&client, args, &say).await?;
    }
    let program = &environment.program;
    if args.image.is_none() {
        say(&format!(
            "no manager runs yet: `{program} manager --leader-elect` is one, and `{program} init --image IMAGE` has two run in the cluster"
        ));
    }
    say(&format!(
        "the cluster can manage clusters; the manifests of one are printed by: {program} generate cluster NAME --cloud CLOUD"
    ));
    Ok(())
}

/// The names of providers must be those that the one manager is.
fn check(providers: &Providers) -> anyhow::Result<()> {
    let core: Vec<String> = providers.core.iter().cloned().collect();
    for (flag, names, ours) in [
        ("--core", &core, "cluster-api"),
        ("--infrastructure", &providers.infrastructure, "openstack"),
        ("--bootstrap", &providers.bootstrap, "kubeadm"),
        ("--control-plane", &providers.control_plane, "kubeadm"),
    ] {
        for name in names {
            // A version is that of this program.
            let (plain, version) = name.split_once(':').unwrap_or((name, ""));
            if plain != ours || !version.is_empty() {
                bail!(
                    "{flag} {name}: ferrostack has the provider {ours} in its own version only, and installs no other; it runs all of its controllers"
                );
            }
        }
    }
    Ok(())
}

/// Applies the manifests; nothing is written when one of them is rejected.
async fn install(client: &Client, args: &Init, say: &impl Fn(&str)) -> anyhow::Result<()> {
    others(client).await?;
    let namespace = &args.target_namespace;
    let clouds = args.openstack_namespace.as_deref();
    let text = manifests::render(namespace, args.image.as_deref(), clouds)?;
    let documents = manifest::read("the manifests of the manager", &text)?;
    apply::all(client, &documents, namespace)
        .await
        .context("the manifests were rejected")?;
    let definitions = documents
        .iter()
        .filter(|it| it.text(&["kind"]) == "CustomResourceDefinition");
    let kinds = definitions.count();
    say(&format!(
        "installed: {} and {}, with namespace {namespace}",
        counted(kinds, "kind"),
        counted(documents.len() - kinds, "other object"),
    ));
    Ok(())
}

/// Controllers of other programs for the same kinds would work against ours.
///
/// # Errors
/// With the providers that clusterctl has installed.
async fn others(client: &Client) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let ours = api::crds::all();
    let listed = definitions.list(&ListParams::default()).await;
    let listed = listed.context("cannot list CustomResourceDefinitions")?;
    let is_known = |name: &str| ours.iter().any(|our| our.name_any() == name);
    let known = listed.items.iter().filter(|it| is_known(&it.name_any()));
    let known: Vec<&CustomResourceDefinition> = known.collect();
    if known.iter().any(|it| manifests::is_in_process(it)) {
        bail!(
            "this is the API server of a `ferrostack up`, which has kinds and controllers already; name another cluster with --kubeconfig"
        );
    }
    let mut providers: Vec<String> = known
        .iter()
        .filter(|it| manifests::is_of_another(it))
        .map(|it| match it.labels().get(PROVIDER) {
            Some(provider) => provider.clone(),
            None => it.name_any(),
        })
        .collect();
    providers.sort_unstable();
    providers.dedup();
    if providers.is_empty() {
        return Ok(());
    }
    bail!(
        "the cluster has kinds of these providers, whose controllers would work against ours: {}. Use another cluster, and `ferrostack move` \
         for the clusters of this one",
        providers.join(", ")
    )
}

/// Waits until the managers are available.
async fn wait(client: &Client, args: &Init, say: &impl Fn(&str)) -> anyhow::Result<()> {
    let namespace = &args.target_namespace;
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let started = Instant::now();
    loop {
        let found = api.get_opt(DEPLOYMENT).await;
        let found = found.with_context(|| format!("cannot read Deployment {DEPLOYMENT}"))?;
        let state = found
            .as_ref()
            .map_or(Err("it is not there".to_owned()), available);
        let Err(why) = state else {
            say("the managers are available");
            return Ok(());
        };
        if started.elapsed() > args.wait_provider_timeout {
            bail!(
                "Deployment {namespace}/{DEPLOYMENT} is not available after {} s: {why}",
                args.wait_provider_timeout.as_secs()
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether the Deployment is available, or why not.
fn available(deployment: &Deployment) -> Result<(), String> {
    let status = deployment.status.as_ref();
    let conditions = status.and_then(|it| it.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    match conditions.find(|it| it.type_.as_deref() == Some("Available")) {
        Some(found) if found.status.as_deref() == Some("True") => Ok(()),
        Some(found) => Err(found.message.clone().unwrap_or_default()),
        None => Err("it has no status".to_owned()),
    }
}

/// The images of all containers, one in a line.
fn images(image: Option<&str>, output: Output) -> String {
    let image = image.unwrap_or(manifests::IMAGE);
    match output {
        Output::Text => format!("{image}\n"),
        Output::Json => format!("{:#}\n", serde_json::json!([image])),
    }
}

#[cfg(test)]
mod tests;
