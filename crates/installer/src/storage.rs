//! Rewrites objects stored in versions no longer written once, unchanged, and then removes these versions from
//! `status.storedVersions`, like kube-storage-version-migrator.
//!
//! A run can be interrupted at any point: `status.storedVersions` is cleared last, and the API server leaves a
//! rewritten object unchanged.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::{Client, ResourceExt};
use operator::client::Api;
use serde_json::json;

use terminal::counted;

/// Number of objects in a page of a list, as in kube-storage-version-migrator.
const PAGE: u32 = 500;
/// Attempts to write an object while other clients change the object.
const TRIES: usize = 10;
/// Interval between attempts to reach webhooks.
const LOOK: Duration = Duration::from_millis(500);

/// Timeout for unreachable webhooks: managers outside of the cluster write their address again within 30 seconds.
const WEBHOOKS: Duration = Duration::from_secs(120);

/// Kind with objects in versions no longer written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outdated {
    /// Name of the CRD.
    name: String,
    /// Kind in the written version.
    resource: ApiResource,
    /// Other versions.
    versions: Vec<String>,
}

impl Outdated {
    /// Kind of a [`CustomResourceDefinition`]; `None` if all objects are stored in the written version.
    pub fn from_definition(definition: &CustomResourceDefinition) -> Option<Self> {
        let spec = &definition.spec;
        let current = spec.versions.iter().find(|it| it.storage)?;
        let status = definition.status.as_ref();
        let mut versions = status.and_then(|it| it.stored_versions.clone())?;
        versions.retain(|it| *it != current.name);
        (!versions.is_empty()).then(|| Self {
            name: definition.name_any(),
            resource: ApiResource {
                group: spec.group.clone(),
                version: current.name.clone(),
                api_version: format!("{}/{}", spec.group, current.name),
                kind: spec.names.kind.clone(),
                plural: spec.names.plural.clone(),
            },
            versions,
        })
    }

    /// `openstackclusters.infrastructure.cluster.x-k8s.io (v1beta1)`, for each of these versions.
    pub fn words(&self) -> Vec<String> {
        let versions = self.versions.iter();
        versions.map(|it| format!("{} ({it})", self.name)).collect()
    }
}

/// Writes the objects of each [`Outdated`] kind, and clears `status.storedVersions`.
///
/// # Errors
/// First error of each kind; the other kinds are done all the same.
pub async fn rewrite(
    client: &Client,
    kinds: &[Outdated],
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let (mut failed, started) = (Vec::new(), Instant::now());
    for kind in kinds {
        match patiently(client, kind, started, say).await {
            Ok(objects) => say(&format!(
                "{}: stored in {} alone, {} written",
                kind.name,
                kind.resource.version,
                counted(objects, "object")
            )),
            Err(error) => failed.push(format!("{}: {error:#}", kind.name)),
        }
    }
    if !failed.is_empty() {
        bail!(
            "objects may still be stored in old versions; `upgrade apply` goes on with them: {}",
            failed.join("; ")
        );
    }
    Ok(())
}

/// Writes all objects of a kind, as soon as the API server reaches the webhooks. The manifests name a Service; managers
/// outside of the cluster have no Pods behind the Service, and replace the Service by their own address after a check.
async fn patiently(
    client: &Client,
    kind: &Outdated,
    started: Instant,
    say: &impl Fn(&str),
) -> anyhow::Result<usize> {
    let mut is_announced = false;
    loop {
        match of_kind(client, kind, PAGE, say).await {
            Err(error) if is_unreachable(&error) && started.elapsed() < WEBHOOKS => {
                if !std::mem::replace(&mut is_announced, true) {
                    say(&format!(
                        "{}: waiting for the webhooks of the managers",
                        kind.name
                    ));
                }
                tokio::time::sleep(LOOK).await;
            }
            done => return done,
        }
    }
}

/// True if the API server could not call a webhook, of conversion or of admission. A webhook that has answered is not
/// called again.
fn is_unreachable(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => status.code == 500 && status.message.contains("webhook"),
        _ => false,
    }
}

/// Writes all objects of a kind, `page` at a time, and returns their number.
async fn of_kind(
    client: &Client,
    kind: &Outdated,
    page: u32,
    say: &impl Fn(&str),
) -> anyhow::Result<usize> {
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource);
    let mut params = ListParams::default().limit(page);
    let mut done = 0;
    loop {
        let listed = match all.list_metadata(&params).await {
            // The position in the list has expired: objects that have been written are written in no time.
            Err(kube::Error::Api(status))
                if status.code == 410 && params.continue_token.is_some() =>
            {
                params.continue_token = None;
                done = 0;
                continue;
            }
            listed => listed.context("cannot list the objects")?,
        };
        for object in &listed.items {
            write(client, kind, object).await?;
        }
        done += listed.items.len();
        params.continue_token = listed.metadata.continue_.filter(|it| !it.is_empty());
        if params.continue_token.is_none() {
            break;
        }
        say(&format!(
            "{}: {} written, and there are more",
            kind.name,
            counted(done, "object")
        ));
    }
    clear(client, kind).await?;
    Ok(done)
}

/// Writes an object without a change, unless deleted. The uid and resource version of the object are preconditions.
async fn write(
    client: &Client,
    kind: &Outdated,
    listed: &PartialObjectMeta<DynamicObject>,
) -> anyhow::Result<()> {
    let name = listed.name_any();
    let api: Api<DynamicObject> = match listed.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &kind.resource),
        None => Api::all_with(client.clone(), &kind.resource),
    };
    let mut metadata = listed.metadata.clone();
    for _ in 0..TRIES {
        let patch = json!({"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}});
        let params = PatchParams::default();
        match api
            .patch_metadata(&name, &params, &Patch::Merge(patch))
            .await
        {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(other) => return Err(other).with_context(|| format!("cannot write {name}")),
        }
        let again = api.get_metadata_opt(&name).await;
        match again.with_context(|| format!("cannot read {name}"))? {
            // Another object of this name was created in the version that is written.
            Some(again) if again.metadata.uid == metadata.uid => metadata = again.metadata,
            _ => return Ok(()),
        }
    }
    bail!("{name} is being changed by others all the time")
}

/// Sets `status.storedVersions` to the written version, provided that the written version has not changed meanwhile.
async fn clear(client: &Client, kind: &Outdated) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let current = &kind.resource.version;
    for _ in 0..TRIES {
        let definition = definitions.get(&kind.name).await;
        let definition = definition.context("cannot read the definition")?;
        let mut versions = definition.spec.versions.iter();
        if !versions.any(|it| it.storage && it.name == *current) {
            bail!("the definition has been changed, and {current} is not written any more");
        }
        let patch = json!({
            "metadata": {"resourceVersion": definition.metadata.resource_version},
            "status": {"storedVersions": [current]},
        });
        let params = PatchParams::default();
        match definitions
            .patch_status(&kind.name, &params, &Patch::Merge(patch))
            .await
        {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(other) => return Err(other).context("cannot clear status.storedVersions"),
        }
    }
    bail!("the definition is being changed by others all the time")
}

#[cfg(test)]
mod tests;
