//! Upgrades from the version in the annotations of the CRDs, written by [`install`](crate::install::install), to this
//! program's version.

pub(crate) mod plan;

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::ListParams;
use operator::client::Api;
use terminal::counted;

pub use self::plan::Plan;
use crate::install::available;
use crate::installed::{self, Manager};
use crate::names::MANAGER;
use crate::older::Older;
use crate::{manifests, storage};

/// Timeout for the availability of the managers, before objects in old versions are rewritten.
const MANAGERS: Duration = Duration::from_secs(300);
/// Interval between checks of the Deployment of the managers.
const LOOK: Duration = Duration::from_millis(500);

/// [`Plan`] of an upgrade.
///
/// # Errors
/// If the CRDs cannot be listed.
pub async fn read(client: &Client) -> anyhow::Result<Plan> {
    let there = installed::read(client).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let listed = definitions.list(&ListParams::default()).await;
    let listed = listed.context("cannot list CustomResourceDefinitions")?;
    Ok(Plan::new(&there, &listed.items))
}

/// Applies the manifests of this version for each [`Manager`]; nothing is written when a manifest is rejected. Then
/// objects stored in versions no longer written are rewritten.
///
/// # Errors
/// If no version or a newer version is installed, or a manifest is rejected.
pub async fn upgrade(
    client: &Client,
    image: Option<&str>,
    older: Older,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let plan = read(client).await?;
    ensure!(
        !plan.managers.is_empty(),
        "ferrostack has installed no providers here: `init` installs them"
    );
    if let Some(newer) = plan.newer() {
        bail!(
            "{newer} is installed, which is newer than this program ({}): use that version, or delete the providers first",
            installed::THIS
        );
    }
    let older = older.and_of(client, installed::is_ours).await?;
    let mut rendered = Vec::new();
    for manager in &plan.managers {
        let documents = documents(client, manager, image, older.clone()).await?;
        rendered.push((manager, documents));
    }
    for (manager, documents) in rendered {
        apply::all(client, &documents, &manager.namespace)
            .await
            .context("the manifests were rejected")?;
        say(&format!(
            "upgraded {} to {}: {}, with namespace {}",
            manager.subset.names(", "),
            installed::THIS,
            counted(documents.len(), "object"),
            manager.namespace
        ));
    }
    if let Some(note) = plan.others() {
        say(&note);
    }
    // The new definitions may store another version than those before.
    let outdated = read(client).await?.stored;
    if outdated.is_empty() {
        return Ok(());
    }
    managers_available(client, &plan.managers, MANAGERS)
        .await
        .context(
            "objects in old versions are not rewritten, which another `upgrade apply` goes on with",
        )?;
    storage::rewrite(client, &outdated, say).await
}

async fn documents(
    client: &Client,
    manager: &Manager,
    image: Option<&str>,
    older: Older,
) -> anyhow::Result<Vec<manifest::Document>> {
    let (subset, namespace) = (&manager.subset.clone().serving(older), &manager.namespace);
    let name = subset.named(MANAGER);
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let found = deployments.get_opt(&name).await;
    let found = found.with_context(|| format!("cannot read Deployment {namespace}/{name}"))?;
    if found.is_some() && image.is_none() {
        bail!(
            "Deployment {namespace}/{name} runs managers of the version before: name the image of this version with --image"
        );
    }
    let clouds = found.as_ref().and_then(clouds_of);
    // Where the managers run elsewhere, they are upgraded there.
    let image = image.filter(|_| found.is_some());
    let text = manifests::render(subset, namespace, image, clouds.as_deref())?;
    Ok(manifest::read("the manifests of the manager", &text)?)
}

/// Waits until the managers in the cluster are available: their webhooks convert objects for readers.
///
/// # Errors
/// If a manager is still unavailable after `limit`.
pub async fn managers_available(
    client: &Client,
    managers: &[Manager],
    limit: Duration,
) -> anyhow::Result<()> {
    for manager in managers {
        let (namespace, name) = (&manager.namespace, manager.subset.named(MANAGER));
        let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
        let started = Instant::now();
        loop {
            let found = api.get_opt(&name).await;
            let found = found.with_context(|| format!("cannot read Deployment {name}"))?;
            let Some(Err(why)) = found.as_ref().map(available) else {
                break;
            };
            if started.elapsed() > limit {
                bail!(
                    "Deployment {namespace}/{name} is not available after {} s: {why}",
                    limit.as_secs()
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(())
}

/// Namespace of clouds in the arguments of a [`Deployment`].
fn clouds_of(deployment: &Deployment) -> Option<String> {
    let pod = deployment.spec.template.spec.as_ref()?;
    let args = pod
        .containers
        .iter()
        .flat_map(|it| it.args.iter().flatten());
    let mut clouds = args.filter_map(|it| it.strip_prefix("--openstack-namespace="));
    clouds.next().map(str::to_owned)
}

#[cfg(test)]
mod tests;
