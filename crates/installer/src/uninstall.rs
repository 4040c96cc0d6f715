//! Deletes the objects of [`install`](crate::install::install).

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use api::providers::Provider;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Preconditions};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt};
use operator::client::Api;
use serde_json::Value;
use terminal::counted;

use crate::choice::{self, Named};
use crate::installed::{self, Manager};
use crate::{manifests, names};

/// Timeout for the deletion of CRDs and namespaces; a working API server needs seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Providers to delete, and other objects deleted with their managers.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Providers by name.
    pub providers: Named,
    /// All providers installed by ferrostack.
    pub all: bool,
    /// Deletes the CRDs, too.
    pub include_crd: bool,
    /// Deletes the namespaces of the managers, too.
    pub include_namespace: bool,
}

/// Deletes managers with their objects in the cluster.
///
/// # Errors
/// If no manager is named or installed, or a CRD to delete has objects.
pub async fn delete(client: &Client, options: &Options, say: &impl Fn(&str)) -> anyhow::Result<()> {
    let there = installed::read(client).await?;
    let managers = installed::managers(&there);
    let named = choice::named(&options.providers)?;
    let chosen = chosen(&managers, &named, options.all)?;
    if options.include_crd {
        for manager in &chosen {
            unused(client, manager).await?;
        }
    }
    for manager in chosen {
        let count = manager_objects(client, manager, options).await?;
        say(&format!(
            "deleted {}: {} of namespace {} and of the cluster",
            manager.subset.names(", "),
            counted(count, "object"),
            manager.namespace
        ));
        if !options.include_crd {
            say(
                "the kinds stay, and their objects; without a manager these cannot be read in v1beta1",
            );
        }
    }
    Ok(())
}

/// [`Manager`]s with named providers: all providers of a manager, which is one program.
fn chosen<'a>(
    managers: &'a [Manager],
    named: &BTreeSet<Provider>,
    all: bool,
) -> anyhow::Result<Vec<&'a Manager>> {
    ensure!(
        all || !named.is_empty(),
        "nothing is named: use --all, or flags such as --infrastructure openstack; a cluster is deleted with `delete cluster NAME`"
    );
    ensure!(
        !managers.is_empty(),
        "ferrostack has installed no providers here"
    );
    let mut chosen = Vec::new();
    let mut left = named.clone();
    for manager in managers {
        let providers = manager.subset.providers();
        left.retain(|it| !providers.contains(it));
        if all || providers.is_subset(named) {
            chosen.push(manager);
        } else if !providers.is_disjoint(named) {
            bail!(
                "one manager runs {} in namespace {}: name all of them, or --all",
                manager.subset.names(", "),
                manager.namespace
            );
        }
    }
    if let Some(provider) = left.first() {
        bail!("ferrostack has not installed {}", provider.label());
    }
    Ok(chosen)
}

/// Rejects the deletion of CRDs with objects: the objects would be deleted with their CRD, and resources in a cloud
/// would stay.
async fn unused(client: &Client, manager: &Manager) -> anyhow::Result<()> {
    for definition in manager.subset.definitions() {
        let Some(version) = definition.spec.versions.iter().find(|it| it.storage) else {
            continue;
        };
        let names = &definition.spec.names;
        let gvk = GroupVersionKind::gvk(&definition.spec.group, &version.name, &names.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &names.plural);
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        match api.list(&ListParams::default().limit(1)).await {
            Ok(found) if found.items.is_empty() => {}
            Ok(_) => bail!(
                "there are objects of {}: delete the clusters first, so that nothing stays in a cloud, or leave out --include-crd",
                definition.name_any()
            ),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(source) => {
                let name = definition.name_any();
                return Err(source).with_context(|| format!("cannot list {name}"));
            }
        }
    }
    Ok(())
}

/// Deletes the objects of the manifests in the reverse order of their application; returns their number. CRDs and
/// namespaces are gone on return: before, an `init` of the same ones fails.
async fn manager_objects(
    client: &Client,
    manager: &Manager,
    options: &Options,
) -> anyhow::Result<usize> {
    let (subset, namespace) = (&manager.subset, &manager.namespace);
    let text = manifests::render(subset, namespace, Some(names::IMAGE), None)?;
    // What is in the namespace of clouds stays with them.
    let nodes = manifests::nodes_of_clouds(subset, namespace);
    let text = format!("{text}---\n{nodes}");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let (mut deleted, mut leaving) = (0, Vec::new());
    for document in documents.iter().rev() {
        let kind = document["kind"].as_str().unwrap_or_default();
        let wanted = match kind {
            "CustomResourceDefinition" => options.include_crd,
            "Namespace" => options.include_namespace,
            _ => true,
        };
        if !wanted {
            continue;
        }
        if let Some(object) = object(client, document).await? {
            deleted += 1;
            leaving
                .extend(matches!(kind, "CustomResourceDefinition" | "Namespace").then_some(object));
        }
    }
    for object in leaving {
        object.gone().await?;
    }
    Ok(deleted)
}

/// Object whose deletion the API server has accepted.
struct Leaving {
    api: Api<DynamicObject>,
    kind: String,
    name: String,
    uid: String,
}

impl Leaving {
    /// Returns when no object has the name, or another one.
    async fn gone(self) -> anyhow::Result<()> {
        let Self {
            api,
            kind,
            name,
            uid,
        } = self;
        let deleted = await_condition(api.kube(), &name, conditions::is_deleted(&uid));
        match tokio::time::timeout(PATIENCE, deleted).await {
            Ok(outcome) => {
                outcome.with_context(|| format!("cannot watch the deletion of {kind} {name}"))?;
                Ok(())
            }
            Err(_) => bail!(
                "{kind} {name} is still being deleted after {} s: `kubectl get {} {name} -o yaml` shows in its conditions what it waits for",
                PATIENCE.as_secs(),
                kind.to_lowercase()
            ),
        }
    }
}

/// Deletes the object of a manifest, if present. A [`CustomResourceDefinition`] is deleted only if still installed by
/// this program.
async fn object(client: &Client, manifest: &Value) -> anyhow::Result<Option<Leaving>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&manifest["kind"]), text(&manifest["metadata"]["name"]));
    if kind == "CustomResourceDefinition" {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let stored = api.get_opt(&name).await?;
        if stored.is_some_and(|it| installed::ours(&installed::installer(&it)).is_none()) {
            return Ok(None);
        }
    }
    let version = text(&manifest["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api: Api<DynamicObject> = match manifest["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let Some(uid) = api.get_metadata_opt(&name).await?.and_then(|it| it.uid()) else {
        return Ok(None);
    };
    let same = DeleteParams::background().preconditions(Preconditions {
        uid: Some(uid.clone()),
        resource_version: None,
    });
    match api.delete(&name, &same).await {
        Ok(_) => Ok(Some(Leaving {
            api,
            kind,
            name,
            uid,
        })),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(source) => Err(source).with_context(|| format!("cannot delete {kind} {name}")),
    }
}

#[cfg(test)]
mod tests;
