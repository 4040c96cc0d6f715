//! Objects of the manager's kinds stored in versions no longer written: the leading manager rewrites each of them once.

use std::time::Duration;

use anyhow::Context;
use installer::storage::{self, Outdated};
use installer::subset::Subset;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, ResourceExt};
use operator::client::Api;

use crate::cli::MigrationPhase;

/// Pause after a failed migration.
const AGAIN: Duration = Duration::from_secs(300);

/// True if objects are migrated, by the phases of `--skip-crd-migration-phases`.
pub(super) fn is_wanted(skipped: &[MigrationPhase]) -> bool {
    let mut skipped = skipped.iter();
    !skipped.any(|it| *it != MigrationPhase::CleanupManagedFields)
}

/// Migrates until nothing is left. Failures are logged, and tried again.
pub(super) async fn run(client: &Client, subset: &Subset, say: &impl Fn(&str)) {
    while let Err(problem) = once(client, subset, say).await {
        tracing::warn!("stored objects are migrated later: {problem:#}");
        tokio::time::sleep(AGAIN).await;
    }
}

/// Migrates the objects of every kind of the [`Subset`].
pub(super) async fn once(
    client: &Client,
    subset: &Subset,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut outdated = Vec::new();
    for ours in subset.definitions() {
        let name = ours.name_any();
        let stored = definitions.get_opt(&name).await;
        let stored = stored.with_context(|| format!("reading CustomResourceDefinition {name}"))?;
        outdated.extend(stored.as_ref().and_then(Outdated::from_definition));
    }
    storage::rewrite(client, &outdated, say).await
}
