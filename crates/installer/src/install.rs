//! Makes an existing Kubernetes cluster a management cluster.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use operator::client::Api;
use terminal::counted;

use crate::choice::{self, Named};
use crate::names::MANAGER;
use crate::older::Older;
use crate::subset::Subset;
use crate::{installed, manifests};

/// Interval between checks of the Deployment of the managers.
const LOOK: Duration = Duration::from_millis(500);

/// Providers to install, with their managers.
#[derive(Clone, Debug)]
pub struct Options {
    /// Providers by name.
    pub providers: Named,
    /// [`Older`] versions in the CRDs.
    pub older: Older,
    /// Namespace of the managers.
    pub namespace: String,
    /// Image; adds a Deployment.
    pub image: Option<String>,
    /// Namespace of clouds.
    pub clouds: Option<String>,
}

impl Options {
    /// Checks names without a request to the cluster.
    ///
    /// # Errors
    /// If a provider is unknown, or a name is no valid name of a namespace.
    pub fn check(&self) -> anyhow::Result<()> {
        choice::check(&self.providers)?;
        let namespaces = [Some(&self.namespace), self.clouds.as_ref()];
        for namespace in namespaces.into_iter().flatten() {
            manifest::check_namespace(namespace)?;
        }
        Ok(())
    }
}

/// Applies the manifests; nothing is written when a manifest is rejected.
///
/// # Errors
/// If the cluster has such providers of another program, or a manifest is rejected.
pub async fn install(
    client: &Client,
    options: &Options,
    say: &impl Fn(&str),
) -> anyhow::Result<Subset> {
    let namespace = &options.namespace;
    let clouds = options.clouds.as_deref();
    let there = installed::read(client).await?;
    let chosen = choice::of(&options.providers, &there, namespace)?;
    let older = options.older.clone();
    let older = older.and_of(client, installed::is_ours).await?;
    let subset = Subset::new(chosen, clouds.is_some()).serving(older);
    let text = manifests::render(&subset, namespace, options.image.as_deref(), clouds)?;
    let documents = manifest::read("the manifests of the manager", &text)?;
    apply::all(client, &documents, namespace)
        .await
        .context("the manifests were rejected")?;
    let definitions = documents
        .iter()
        .filter(|it| it.text(&["kind"]) == "CustomResourceDefinition");
    let kinds = definitions.count();
    let providers = match subset.is_all() {
        true => String::new(),
        false => format!(" of {}", subset.names(", ")),
    };
    say(&format!(
        "installed{providers}: {} and {}, with namespace {namespace}",
        counted(kinds, "kind"),
        counted(documents.len() - kinds, "other object"),
    ));
    Ok(subset)
}

/// Waits until the managers in a namespace are available.
///
/// # Errors
/// If a manager is still unavailable after `limit`.
pub async fn wait(
    client: &Client,
    namespace: &str,
    subset: &Subset,
    limit: Duration,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let name = subset.named(MANAGER);
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let started = Instant::now();
    loop {
        let found = api.get_opt(&name).await;
        let found = found.with_context(|| format!("cannot read Deployment {name}"))?;
        let state = found
            .as_ref()
            .map_or(Err("it is not there".to_owned()), available);
        let Err(why) = state else {
            say("the managers are available");
            return Ok(());
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

/// Availability of the [`Deployment`], or the reason against it.
pub(crate) fn available(deployment: &Deployment) -> Result<(), String> {
    let status = deployment.status.as_ref();
    let conditions = status.and_then(|it| it.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    match conditions.find(|it| it.type_.as_deref() == Some("Available")) {
        Some(found) if found.status.as_deref() == Some("True") => Ok(()),
        Some(found) => Err(found.message.clone().unwrap_or_default()),
        None => Err("it has no status".to_owned()),
    }
}

#[cfg(test)]
mod tests;
