//! Objects of providers, accessed by contract alone.
//!
//! Cluster API core does not depend on the types of providers. For `{apiGroup, kind, name}` the module reads the CRD
//! `<plural>.<group>`, and uses the version in the contract label of the CRD (provider contract, "CRD labels");
//! without a label, discovery's preferred version. A kind is watched after its first use, and [`External::changes`]
//! sends its changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api::core::v1beta2::ContractReference;
use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use api::kube::core::GroupVersionKind;
use api::kube::discovery::ApiResource;
use api::kube::runtime::reflector::ObjectRef;
use api::kube::{Client, ResourceExt};
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{Stream, StreamExt};
use operator::client::Api;
use operator::metrics::Metrics;
use operator::retry::{Retry, When};
use operator::watch::Reports;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::feed::Feed;

pub mod contract;
mod metadata;
mod referenced;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use referenced::{Referenced, absent, deleted, mirrored};
pub use template::{CloneRequest, instance_of};

/// Contract of a provider's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// Cluster API 1.0 to 1.10.
    V1Beta1,
    /// Cluster API 1.11 and later.
    V1Beta2,
}

/// Kind as served by the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// [`Contract`] of this version.
    pub contract: Contract,
}

/// Error of reading or writing an object of a provider.
#[derive(Debug, thiserror::Error)]
pub enum ExternalError {
    /// The API server does not serve the kind.
    #[error("the API server does not know {kind} in {group}; is its provider installed?")]
    UnknownKind {
        /// API group.
        group: String,
        /// Kind.
        kind: String,
    },
    /// A request to the API server failed.
    #[error("{action} {kind} {namespace}/{name}")]
    Api {
        /// The failed action, such as `reading`.
        action: &'static str,
        /// Kind of the object.
        kind: String,
        /// Namespace of the object.
        namespace: String,
        /// Name of the object.
        name: String,
        /// Error of the request.
        source: Box<kube::Error>,
    },
    /// A referenced template does not exist.
    #[error("{kind} {namespace}/{name} does not exist")]
    TemplateMissing {
        /// Kind of the template.
        kind: String,
        /// Namespace of the template.
        namespace: String,
        /// Name of the template.
        name: String,
    },
    /// A template cannot be cloned.
    #[error("{kind} {name} cannot be cloned: {problem}")]
    TemplateMalformed {
        /// Kind of the template.
        kind: String,
        /// Name of the template.
        name: String,
        /// Problem of the template.
        problem: String,
    },
    /// The requested name is taken by an object of a different request.
    #[error("{kind} {namespace}/{name} exists and belongs to another owner")]
    Taken {
        /// Kind of the object.
        kind: String,
        /// Namespace of the object.
        namespace: String,
        /// Name of the object.
        name: String,
    },
}

impl Retry for ExternalError {
    fn when(&self) -> When {
        match self {
            ExternalError::Api { source, .. } => source.when(),
            // A CRD may be created later without an event; a template triggers its users.
            ExternalError::UnknownKind { .. }
            | ExternalError::TemplateMissing { .. }
            | ExternalError::Taken { .. } => When::Backoff,
            ExternalError::TemplateMalformed { .. } => When::OnChange,
        }
    }
}

/// Created, changed or deleted object of a provider.
#[derive(Clone, Debug)]
pub struct Change {
    /// Kind and name of the object.
    pub reference: ContractReference,
    /// Namespace of the object.
    pub namespace: String,
    /// Owners of the object.
    pub owners: Vec<OwnerReference>,
    /// Value of the cluster-name label.
    pub cluster: Option<String>,
}

/// Access to objects of providers; clones share caches and watches.
#[derive(Clone)]
pub struct External {
    client: Client,
    inner: Arc<Inner>,
}

struct Inner {
    watching: Client,
    namespace: Option<String>,
    metrics: Metrics,
    kinds: Mutex<HashMap<(String, String), Watched>>,
    listeners: Arc<Mutex<Vec<UnboundedSender<Change>>>>,
    shutdown: CancellationToken,
}

#[derive(Clone)]
struct Watched {
    kind: Kind,
    feed: Feed<DynamicObject>,
}

impl External {
    /// Creates empty caches. A `namespace` restricts the watches.
    pub fn new(
        client: Client,
        namespace: Option<String>,
        metrics: Metrics,
        shutdown: CancellationToken,
    ) -> Self {
        let (kinds, listeners) = (Mutex::default(), Arc::default());
        Self {
            client: client.clone(),
            inner: Arc::new(Inner {
                watching: client,
                namespace,
                metrics,
                kinds,
                listeners,
                shutdown,
            }),
        }
    }

    /// Same caches and watches; other requests are sent by `client`.
    pub fn with_client(&self, client: Client) -> Self {
        Self {
            client,
            inner: Arc::clone(&self.inner),
        }
    }

    /// Served version of `kind` of `group`, and its contract.
    ///
    /// # Errors
    /// When the kind is not served, or the request fails.
    pub async fn kind(&self, group: &str, kind: &str) -> Result<Kind, ExternalError> {
        self.watched(group, kind).await.map(|watched| watched.kind)
    }

    /// Object that `reference` names; `None` if it does not exist.
    ///
    /// An object from the cache may be outdated; [`External::changes`] sends its changes. An object outside of the
    /// cache is read live.
    ///
    /// # Errors
    /// When the kind is not served, or the request fails.
    pub async fn get(
        &self,
        reference: &ContractReference,
        namespace: &str,
    ) -> Result<Option<Arc<DynamicObject>>, ExternalError> {
        let watched = self.watched(&reference.api_group, &reference.kind).await?;
        let key = ObjectRef::new_with(&reference.name, watched.kind.resource.clone());
        if let Some(known) = watched.feed.store().get(&key.within(namespace)) {
            return Ok(Some(known));
        }
        self.get_live(reference, namespace)
            .await
            .map(|object| object.map(Arc::new))
    }

    /// Object that `reference` names, read live.
    ///
    /// # Errors
    /// When the kind is not served, or the request fails.
    pub async fn get_live(
        &self,
        reference: &ContractReference,
        namespace: &str,
    ) -> Result<Option<DynamicObject>, ExternalError> {
        let api = self.api(reference, namespace).await?;
        api.get_opt(&reference.name)
            .await
            .map_err(|source| refused("reading", reference, namespace, source))
    }

    /// Objects of a kind in the topology of a cluster, from the cache.
    ///
    /// # Errors
    /// When the kind is not served, or the request fails.
    pub async fn in_cluster(
        &self,
        group: &str,
        kind: &str,
        namespace: &str,
        cluster: &str,
    ) -> Result<Vec<Arc<DynamicObject>>, ExternalError> {
        let Watched { kind, feed } = self.watched(group, kind).await?;
        Ok(feed.of_topology(&kind.resource, namespace, cluster))
    }

    /// All objects of a kind with the value `cluster` of the cluster-name label, read live.
    ///
    /// # Errors
    /// When the kind is not served, or the request fails.
    pub async fn list_live(
        &self,
        group: &str,
        kind: &str,
        namespace: &str,
        cluster: &str,
    ) -> Result<Vec<DynamicObject>, ExternalError> {
        let reference = ContractReference::new(group, kind, "");
        let api = self.api(&reference, namespace).await?;
        let ours = format!("{}={cluster}", api::names::CLUSTER_NAME_LABEL);
        let list = api
            .list(&kube::api::ListParams::default().labels(&ours))
            .await;
        list.map(|list| list.items)
            .map_err(|source| refused("listing", &reference, namespace, source))
    }

    /// Creates an object from a template. A repeated call with the same owner and name returns the existing object.
    ///
    /// # Errors
    /// When the template does not exist or is malformed, the name is in use, or a request fails.
    pub async fn clone_template(
        &self,
        request: &CloneRequest<'_>,
    ) -> Result<ContractReference, ExternalError> {
        let CloneRequest {
            template,
            namespace,
            ..
        } = request;
        let found = self.get_live(template, namespace).await?;
        let found = found.ok_or_else(|| ExternalError::TemplateMissing {
            kind: template.kind.clone(),
            namespace: (*namespace).to_owned(),
            name: template.name.clone(),
        })?;
        let object = instance_of(&found, request)?;
        let reference = ContractReference::new(
            &template.api_group,
            object.types.as_ref().map_or("", |types| &types.kind),
            request.name,
        );
        let api = self.api(&reference, namespace).await?;
        let created = match api.create(&PostParams::default(), &object).await {
            Ok(created) => created,
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let known = self.get_live(&reference, namespace).await?;
                let same = known.filter(|known| template::is_ours(known, request));
                same.ok_or_else(|| taken(&reference, namespace))?
            }
            Err(source) => return Err(refused("creating", &reference, namespace, source)),
        };
        self.apply_metadata(&created, &request.metadata, request.manager)
            .await?;
        Ok(reference)
    }

    /// Adds missing `owner` and `labels` to `object`. A controlling owner replaces the former controlling owner: a
    /// MachineSet or control plane creates the object, and the Machine becomes its controller.
    ///
    /// # Errors
    /// When the request fails, for example with a conflict because the object has changed.
    pub async fn ensure_owner(
        &self,
        object: &DynamicObject,
        owner: &OwnerReference,
        labels: &BTreeMap<String, String>,
    ) -> Result<(), ExternalError> {
        let Some(mut patch) = template::adoption(&object.metadata, owner, labels) else {
            return Ok(());
        };
        patch["metadata"]["resourceVersion"] = json!(object.resource_version());
        self.patch(object, &patch).await
    }

    /// Applies a JSON merge patch to `object`.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn patch(&self, object: &DynamicObject, patch: &Value) -> Result<(), ExternalError> {
        let (reference, namespace) = (reference_to(object), object.namespace().unwrap_or_default());
        let api = self.api(&reference, &namespace).await?;
        api.patch(
            &reference.name,
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await
        .map(|_| ())
        .map_err(|source| refused("changing", &reference, &namespace, source))
    }

    /// Deletes the object that `reference` names; returns true if the object is gone.
    ///
    /// # Errors
    /// When the kind is not served, or a request fails.
    pub async fn delete(
        &self,
        reference: &ContractReference,
        namespace: &str,
    ) -> Result<bool, ExternalError> {
        let Some(object) = self.get_live(reference, namespace).await? else {
            return Ok(true);
        };
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        // The UID precondition excludes a new object with the same name.
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: object.uid(),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let api = self.api(reference, namespace).await?;
        match api.delete(&reference.name, &params).await {
            // An object without finalizers is gone at once: one read confirms this.
            Ok(_) => self
                .get_live(reference, namespace)
                .await
                .map(|left| left.is_none()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
            Err(source) => Err(refused("deleting", reference, namespace, source)),
        }
    }

    /// Changes of all kinds with a watch, now or later.
    pub fn changes(&self) -> impl Stream<Item = Change> + Send + Unpin + 'static + use<> {
        let (sender, receiver) = unbounded();
        self.inner.listeners.lock().push(sender);
        receiver
    }

    /// API for the kind of object that `reference` names.
    async fn api(
        &self,
        reference: &ContractReference,
        namespace: &str,
    ) -> Result<Api<DynamicObject>, ExternalError> {
        let kind = self.kind(&reference.api_group, &reference.kind).await?;
        Ok(Api::namespaced_with(
            self.client.clone(),
            namespace,
            &kind.resource,
        ))
    }

    async fn watched(&self, group: &str, kind: &str) -> Result<Watched, ExternalError> {
        let key = (group.to_owned(), kind.to_owned());
        if let Some(known) = self.inner.kinds.lock().get(&key) {
            return Ok(known.clone());
        }
        let served = self.discover(group, kind).await?;
        let mut kinds = self.inner.kinds.lock();
        // Another task may have been faster: one watch per kind.
        Ok(kinds
            .entry(key)
            .or_insert_with(|| self.watch(served))
            .clone())
    }

    fn watch(&self, kind: Kind) -> Watched {
        let inner = &self.inner;
        let api = match &inner.namespace {
            Some(name) => Api::namespaced_with(inner.watching.clone(), name, &kind.resource),
            None => Api::all_with(inner.watching.clone(), &kind.resource),
        };
        let reports = Reports {
            watch: "cluster-api",
            metrics: inner.metrics.clone(),
            recorder: None,
        };
        let resource = kind.resource.clone();
        let feed = Feed::start(api, resource, reports, inner.shutdown.clone());
        let mut touched = feed.touched();
        let listeners = Arc::clone(&inner.listeners);
        let resource = kind.resource.clone();
        let forward = async move {
            while let Some(object) = touched.next().await {
                let change = change_of(&resource, &object);
                listeners
                    .lock()
                    .retain(|to| to.unbounded_send(change.clone()).is_ok());
            }
        };
        let shutdown = inner.shutdown.clone();
        tokio::spawn(async move { shutdown.run_until_cancelled(forward).await });
        Watched { kind, feed }
    }

    async fn discover(&self, group: &str, kind: &str) -> Result<Kind, ExternalError> {
        // The version is a placeholder: only the plural is used.
        let guess = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let name = format!("{}.{group}", guess.plural);
        let crds: Api<CustomResourceDefinition> = Api::all(self.inner.watching.clone());
        let unreadable = |source| ExternalError::Api {
            action: "discovering",
            kind: kind.to_owned(),
            namespace: String::new(),
            name: name.clone(),
            source: Box::new(source),
        };
        let crd = crds.get_opt(&name).await.map_err(unreadable)?;
        if let Some((version, contract)) = crd.as_ref().and_then(contract::version_of) {
            let gvk = GroupVersionKind::gvk(group, &version, kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, &guess.plural);
            return Ok(Kind { resource, contract });
        }
        let unknown = || ExternalError::UnknownKind {
            group: group.to_owned(),
            kind: kind.to_owned(),
        };
        let served = match kube::discovery::group(&self.inner.watching, group).await {
            Ok(served) => served,
            Err(kube::Error::Discovery(_)) => return Err(unknown()),
            Err(kube::Error::Api(status)) if status.code == 404 => return Err(unknown()),
            Err(source) => return Err(unreadable(source)),
        };
        let (resource, _) = served.recommended_kind(kind).ok_or_else(unknown)?;
        Ok(Kind {
            resource,
            contract: Contract::V1Beta2,
        })
    }
}

impl std::fmt::Debug for External {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("External").finish_non_exhaustive()
    }
}

/// Reference to `object`.
pub fn reference_to(object: &DynamicObject) -> ContractReference {
    let types = object.types.as_ref();
    let version = types.map_or("", |types| types.api_version.as_str());
    let group = version.split_once('/').map_or("", |(group, _)| group);
    ContractReference::new(
        group,
        types.map_or("", |types| &types.kind),
        &object.name_any(),
    )
}

fn change_of(resource: &ApiResource, object: &DynamicObject) -> Change {
    Change {
        reference: ContractReference::new(&resource.group, &resource.kind, &object.name_any()),
        namespace: object.namespace().unwrap_or_default(),
        owners: object.owner_references().to_vec(),
        cluster: object.labels().get(api::names::CLUSTER_NAME_LABEL).cloned(),
    }
}

fn refused(
    action: &'static str,
    reference: &ContractReference,
    namespace: &str,
    source: kube::Error,
) -> ExternalError {
    ExternalError::Api {
        action,
        kind: reference.kind.clone(),
        namespace: namespace.to_owned(),
        name: reference.name.clone(),
        source: Box::new(source),
    }
}

fn taken(reference: &ContractReference, namespace: &str) -> ExternalError {
    ExternalError::Taken {
        kind: reference.kind.clone(),
        namespace: namespace.to_owned(),
        name: reference.name.clone(),
    }
}
