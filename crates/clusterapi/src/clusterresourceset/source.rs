//! ConfigMaps and Secrets with manifests: watches of the metadata, reads, owners.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use api::addons::SECRET_TYPE;
use api::addons::v1beta2::{ClusterResourceSet, ResourceKind, ResourceRef};
use api::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use api::kube::api::{ObjectMeta, Patch, PatchParams};
use api::kube::core::{NamespaceResourceScope, PartialObjectMeta};
use api::kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use api::kube::runtime::{WatchStreamExt, reflector, watcher};
use api::kube::{self, Resource, ResourceExt};
use futures::{Stream, StreamExt, stream};
use operator::client::Api;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::manifest::{self, Data, Manifest};
use super::plan::{self, Cause, Problem};
use super::{Runner, Target, of};
use crate::duties::Duties;
use crate::error::{Doing, is_absent};
use crate::feed::Feed;
use crate::{Context, Error, owners};

/// Maximum wait of a reconcile for the lists of ConfigMaps and Secrets.
const PATIENCE: Duration = Duration::from_secs(10);

/// Hashes of the resources of a set, each with the hashed resourceVersion.
pub(super) type Hashes = BTreeMap<ResourceRef, (String, String)>;

/// Resource of a set.
pub(super) struct Source {
    pub(super) resource: ResourceRef,
    /// Hash of the data, if computed.
    pub(super) hash: Option<String>,
    /// Manifests, if due anywhere.
    pub(super) manifests: Result<Vec<Manifest>, Problem>,
}

/// Metadata of all ConfigMaps, and of the Secrets of the type for resources.
pub(super) struct Sources {
    configmaps: Store<PartialObjectMeta<ConfigMap>>,
    secrets: Store<PartialObjectMeta<Secret>>,
}

impl Sources {
    /// Starts both watches. The watches run while the returned stream of triggers is polled.
    pub(super) fn start(
        context: &Arc<Context>,
        sets: &Feed<ClusterResourceSet>,
    ) -> (
        Self,
        impl Stream<Item = ObjectRef<ClusterResourceSet>> + Send + use<>,
    ) {
        let typed = watcher::Config::default().fields(&format!("type={SECRET_TYPE}"));
        let all = watcher::Config::default();
        let (configmaps, of_configmaps) = watch::<ConfigMap>(context, all);
        let (secrets, of_secrets) = watch::<Secret>(context, typed);
        let of_configmaps = of_configmaps.map(|meta| (ResourceKind::ConfigMap, meta));
        let of_secrets = of_secrets.map(|meta| (ResourceKind::Secret, meta));
        let sets = sets.clone();
        let triggers = stream::select(of_configmaps, of_secrets).flat_map(move |(kind, meta)| {
            let namespace = meta.namespace.as_deref().unwrap_or_default();
            let users = sets.in_namespace(namespace, |set| {
                let mut resources = set.spec.resources.iter();
                resources.any(|r| r.kind == kind && Some(&r.name) == meta.name.as_ref())
            });
            let users = users.iter().map(|set| ObjectRef::from_obj(set.as_ref()));
            stream::iter(users.collect::<Vec<_>>())
        });
        let sources = Self {
            configmaps,
            secrets,
        };
        (sources, triggers)
    }

    /// Waits for both lists. Unchanged resources need no read afterwards; without the lists, everything is read.
    async fn ready(&self) {
        let both = async {
            operator::store::listed(&self.configmaps).await;
            operator::store::listed(&self.secrets).await;
        };
        let _ = tokio::time::timeout(PATIENCE, both).await;
    }

    /// Metadata of a resource, if known.
    fn metadata(&self, namespace: &str, resource: &ResourceRef) -> Option<ObjectMeta> {
        match resource.kind {
            ResourceKind::ConfigMap => cached(&self.configmaps, namespace, &resource.name),
            ResourceKind::Secret => cached(&self.secrets, namespace, &resource.name),
        }
    }
}

fn watch<K>(
    context: &Context,
    config: watcher::Config,
) -> (
    Store<PartialObjectMeta<K>>,
    impl Stream<Item = ObjectMeta> + Send + use<K>,
)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let api: Api<PartialObjectMeta<K>> = match &context.options.namespace {
        Some(namespace) => Api::namespaced(context.client.clone(), namespace),
        None => Api::all(context.client.clone()),
    };
    let writer = Writer::default();
    let store = writer.as_reader();
    let events = operator::watch::metadata(&api, config)
        .default_backoff()
        .modify(|object| {
            object.managed_fields_mut().clear();
            object.annotations_mut().clear();
        });
    let touched = reflector(writer, events).touched_objects();
    let touched = touched.filter_map(|object| std::future::ready(object.ok()));
    (store, touched.map(|object| object.metadata).boxed())
}

fn cached<K>(store: &Store<PartialObjectMeta<K>>, namespace: &str, name: &str) -> Option<ObjectMeta>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let found = store.get(&ObjectRef::new(name).within(namespace));
    found.map(|object| object.metadata.clone())
}

/// Resources of `set` in order, with the content of resources due for one of `targets`. The set becomes an owner of
/// each.
pub(super) async fn fetch(
    runner: &Runner,
    set: &ClusterResourceSet,
    targets: &[Target],
    duties: &mut Duties<Error>,
) -> Result<Vec<Source>, Error> {
    runner.sources.ready().await;
    let namespace = set.namespace().unwrap_or_default();
    let mut hashes = runner.hashes.get(set).unwrap_or_default();
    hashes.retain(|resource, _| set.spec.resources.contains(resource));
    let mut sources = Vec::new();
    for resource in &set.spec.resources {
        let is_due = |hash: Option<&str>| {
            let mut targets = targets.iter();
            targets.any(|target| plan::is_due(target.bound(set), resource, set.strategy(), hash))
        };
        let known = runner.sources.metadata(&namespace, resource);
        if let Some(metadata) = &known {
            duties.note(set_owner(runner, set, resource, metadata).await);
        }
        let version = known.and_then(|metadata| metadata.resource_version);
        let hash = hashes
            .get(resource)
            .filter(|(of, _)| Some(of) == version.as_ref());
        let hash = hash.map(|(_, hash)| hash.clone());
        let mut source = Source {
            resource: resource.clone(),
            manifests: Ok(Vec::new()),
            hash,
        };
        if is_due(source.hash.as_deref()) {
            match read(runner, &namespace, resource).await? {
                Ok((version, data)) => {
                    let hash = manifest::hash(&data);
                    hashes.insert(resource.clone(), (version, hash.clone()));
                    if is_due(Some(&hash)) {
                        source.manifests = manifest::read(&data).map_err(|p| broken(resource, &p));
                    }
                    source.hash = Some(hash);
                }
                Err(problem) => source.manifests = Err(problem),
            }
        }
        sources.push(source);
    }
    runner.hashes.insert(set, hashes);
    Ok(sources)
}

fn broken(resource: &ResourceRef, problems: &[String]) -> Problem {
    Problem {
        message: format!("{resource}, {}", problems.join("; ")),
        cause: Cause::Source,
    }
}

/// resourceVersion and data of a resource, or the reason for their absence.
async fn read(
    runner: &Runner,
    namespace: &str,
    resource: &ResourceRef,
) -> Result<Result<(String, Data), Problem>, Error> {
    let name = &resource.name;
    let problem = |cause, message: &str| {
        let message = format!("{resource} {message}");
        Ok(Err(Problem { message, cause }))
    };
    let action = || format!("reading {} {namespace}/{name}", resource.kind.as_str());
    let (version, data) = match resource.kind {
        ResourceKind::ConfigMap => {
            let found = runner.api::<ConfigMap>(namespace).get_opt(name).await;
            let Some(found) = found.doing(action)? else {
                return problem(Cause::Source, "does not exist");
            };
            if found
                .binary_data
                .as_ref()
                .is_some_and(|all| !all.is_empty())
            {
                let message = "has binaryData, which is not read: put the manifests under data";
                return problem(Cause::Source, message);
            }
            let data = found.data.unwrap_or_default().into_iter();
            let data = data.map(|(key, text)| (key, text.into_bytes()));
            (found.metadata.resource_version, data.collect::<Data>())
        }
        ResourceKind::Secret => {
            let found = runner.api::<Secret>(namespace).get_opt(name).await;
            let Some(found) = found.doing(action)? else {
                return problem(Cause::Source, "does not exist");
            };
            if found.type_.as_deref() != Some(SECRET_TYPE) {
                let has = found.type_.unwrap_or_default();
                let message = format!("has the type {has} instead of {SECRET_TYPE}");
                return problem(Cause::SecretType, &message);
            }
            let data = found.data.unwrap_or_default().into_iter();
            let data = data.map(|(key, bytes)| (key, bytes.0));
            (found.metadata.resource_version, data.collect())
        }
    };
    Ok(Ok((version.unwrap_or_default(), data)))
}

/// Makes the set an owner of the resource, so that `clusterctl move` moves both.
async fn set_owner(
    runner: &Runner,
    set: &ClusterResourceSet,
    resource: &ResourceRef,
    metadata: &ObjectMeta,
) -> Result<(), Error> {
    if owners::is_owned_by(metadata, set) || metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let mut after = metadata.clone();
    owners::ensure(&mut after, owners::owner(set));
    let patch = Patch::Merge(json!({ "metadata": {
        "ownerReferences": after.owner_references,
        "resourceVersion": metadata.resource_version,
    }}));
    let namespace = set.namespace().unwrap_or_default();
    let (name, params) = (&resource.name, PatchParams::default());
    let written = match resource.kind {
        ResourceKind::ConfigMap => {
            let api = runner.api::<ConfigMap>(&namespace);
            api.patch_metadata(name, &params, &patch).await.map(drop)
        }
        ResourceKind::Secret => {
            let api = runner.api::<Secret>(&namespace);
            api.patch_metadata(name, &params, &patch).await.map(drop)
        }
    };
    match written {
        // The watch is behind, and triggers the set when it catches up.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) if is_absent(&error) => Ok(()),
        other => other.doing(|| of(&format!("making the owner of {resource}:"), set)),
    }
}
