//! Check for the built-in CustomResourceDefinitions in the cluster.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use installer::subset::Subset;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use operator::client::Api;

/// Checks that all kinds of the [`Subset`] are defined, with all versions.
pub(super) async fn check(client: &Client, subset: &Subset) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut missing = Vec::new();
    for wanted in subset.definitions() {
        let name = wanted.metadata.name.clone().unwrap_or_default();
        let stored = definitions.get_opt(&name).await;
        let stored = stored.with_context(|| format!("reading CustomResourceDefinition {name}"))?;
        let there = stored.as_ref().map(versions).unwrap_or_default();
        if !versions(&wanted).is_subset(&there) {
            missing.push(name);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "these kinds are not installed, or lack a version: {}. Install them first: ferrostack generate manager{} | kubectl apply --server-side -f -",
        missing.join(", "),
        match subset.is_all() {
            true => String::new(),
            false => format!(" --providers {}", subset.names(",")),
        }
    )
}

fn versions(definition: &CustomResourceDefinition) -> BTreeSet<String> {
    let served = definition
        .spec
        .versions
        .iter()
        .filter(|version| version.served);
    served.map(|version| version.name.clone()).collect()
}
