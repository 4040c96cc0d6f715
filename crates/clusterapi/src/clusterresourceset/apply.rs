//! Objects in a workload cluster.

use std::collections::HashMap;

use api::addons::v1beta2::{ResourceRef, Strategy};
use api::kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use api::kube::core::GroupVersionKind;
use api::kube::discovery::{ApiCapabilities, ApiResource, Scope, oneshot};
use api::kube::{self, Client, ResourceExt};
use operator::client::Api;
use operator::words::chain;

use super::manifest::Manifest;
use super::plan::{Cause, Problem};

/// Field manager of the strategy Reconcile.
const MANAGER: &str = "ferrostack-clusterresourceset";
/// Default namespace of namespaced objects, as with kubectl.
const NAMESPACE: &str = "default";

/// Workload cluster, with the kinds known to be served.
pub(super) struct Workload {
    client: Client,
    strategy: Strategy,
    kinds: HashMap<GroupVersionKind, (ApiResource, ApiCapabilities)>,
}

impl Workload {
    pub(super) fn new(client: Client, strategy: Strategy) -> Self {
        Self {
            client,
            strategy,
            kinds: HashMap::new(),
        }
    }

    /// Applies all objects of `resource`; returns the problems. A failed object does not stop the others.
    pub(super) async fn apply(
        &mut self,
        resource: &ResourceRef,
        manifests: &[Manifest],
    ) -> Vec<Problem> {
        let mut problems = Vec::new();
        for manifest in manifests {
            if let Err(problem) = self.one(&manifest.object).await {
                let (place, label) = (&manifest.place, label(&manifest.object));
                problems.push(Problem {
                    message: format!("{resource}, {place} ({label}): {problem}"),
                    cause: Cause::Workload,
                });
            }
        }
        problems
    }

    async fn one(&mut self, object: &DynamicObject) -> Result<(), String> {
        let (resource, capabilities) = self.kind_of(object).await?;
        let client = self.client.clone();
        let api: Api<DynamicObject> = match (&capabilities.scope, object.namespace()) {
            (Scope::Cluster, _) => Api::all_with(client, &resource),
            (Scope::Namespaced, namespace) => {
                let namespace = namespace.unwrap_or_else(|| NAMESPACE.to_owned());
                Api::namespaced_with(client, &namespace, &resource)
            }
        };
        let written = match self.strategy {
            Strategy::ApplyOnce => api.create(&PostParams::default(), object).await,
            Strategy::Reconcile => {
                let params = PatchParams::apply(MANAGER).force();
                let patch = Patch::Apply(object);
                api.patch(&object.name_any(), &params, &patch).await
            }
        };
        match written {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if exists(self.strategy, &status) => Ok(()),
            Err(source) => Err(words(&source)),
        }
    }

    /// API resource of the kind of `object`, by one request for each kind.
    async fn kind_of(
        &mut self,
        object: &DynamicObject,
    ) -> Result<(ApiResource, ApiCapabilities), String> {
        let types = object.types.clone().unwrap_or_default();
        let gvk = GroupVersionKind::try_from(types.clone()).map_err(|error| error.to_string())?;
        if let Some(known) = self.kinds.get(&gvk) {
            return Ok(known.clone());
        }
        match oneshot::pinned_kind(&self.client, &gvk).await {
            Ok(found) => {
                self.kinds.insert(gvk, found.clone());
                Ok(found)
            }
            Err(kube::Error::Api(status)) if status.code != 404 => Err(status.message.clone()),
            Err(kube::Error::Api(_) | kube::Error::Discovery(_)) => Err(format!(
                "the kind {} of {} is not served",
                types.kind, types.api_version
            )),
            Err(source) => Err(words(&source)),
        }
    }
}

/// True if a write failed only because the object exists: no error with ApplyOnce.
fn exists(strategy: Strategy, status: &kube::core::Status) -> bool {
    strategy == Strategy::ApplyOnce && status.is_already_exists()
}

/// Message of the API server, or the reason for its absence.
fn words(source: &kube::Error) -> String {
    match source {
        kube::Error::Api(status) => status.message.clone(),
        other => chain(other),
    }
}

/// `Kind namespace/name`.
fn label(object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map_or("", |types| &types.kind);
    match object.namespace() {
        Some(namespace) => format!("{kind} {namespace}/{}", object.name_any()),
        None => format!("{kind} {}", object.name_any()),
    }
}
