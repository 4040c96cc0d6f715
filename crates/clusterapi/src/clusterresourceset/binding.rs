//! Record of applied resources, one for each Cluster. A binding ends with its Cluster: a new Cluster of the same name
//! starts anew.

use std::sync::Arc;

use api::addons::FINALIZER;
use api::addons::v1beta2::{
    ClusterResourceSet, ClusterResourceSetBinding, ClusterResourceSetBindingSpec, ResourceBinding,
    ResourceSetBinding,
};
use api::core::v1beta2::Cluster;
use api::kube::ResourceExt;
use api::kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use api::kube::runtime::controller::Action;
use api::kube::runtime::reflector::ObjectRef;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use operator::{finalizer, patch};

use super::{Runner, Target};
use crate::error::{Doing, is_absent};
use crate::feed::Feed;
use crate::{Context, Error, owners};

/// Runs the controller that deletes the bindings of deleted Clusters, until shutdown.
pub(super) fn run(
    context: &Arc<Context>,
    bindings: &Feed<ClusterResourceSetBinding>,
) -> BoxFuture<'static, ()> {
    // A binding has the name of its Cluster.
    let clusters = context.clusters.touched().map(|cluster| {
        ObjectRef::new(&cluster.name_any()).within(&cluster.namespace().unwrap_or_default())
    });
    let controller = bindings.controller().reconcile_on(clusters);
    let context = context.of("clusterresourcesetbinding");
    let settings = context.settings();
    operator::controller::run(controller, reconcile, context, settings).boxed()
}

async fn reconcile(
    binding: Arc<ClusterResourceSetBinding>,
    context: Arc<Context>,
) -> Result<Action, Error> {
    let namespace = binding.namespace().unwrap_or_default();
    let name = &binding.spec.cluster_name;
    let cached = context.clusters.get(&namespace, name);
    let is_alive = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_none();
    if binding.is_deleting() || cached.is_some_and(|cluster| is_alive(&cluster.metadata)) {
        return Ok(Action::await_change());
    }
    // The cache may be behind, or lack an undecodable Cluster.
    let live = context.api::<Cluster>(&namespace);
    let live = live.get_metadata_opt(name).await;
    let live = live.doing(|| format!("reading Cluster {namespace}/{name}"))?;
    if !live.is_some_and(|cluster| is_alive(&cluster.metadata)) {
        delete(&context, &binding).await?;
    }
    Ok(Action::await_change())
}

/// Records the results of an attempt in the binding of the Cluster.
pub(super) async fn record(
    runner: &Runner,
    set: &ClusterResourceSet,
    target: &Target,
    results: Vec<ResourceBinding>,
) -> Result<(), Error> {
    let (namespace, name) = (
        set.namespace().unwrap_or_default(),
        target.cluster.name_any(),
    );
    let api = runner.api::<ClusterResourceSetBinding>(&namespace);
    let before = target.binding.as_deref();
    let mut after = before.cloned().unwrap_or_else(|| {
        let spec = ClusterResourceSetBindingSpec {
            cluster_name: name.clone(),
            bindings: None,
        };
        ClusterResourceSetBinding::new(&name, spec)
    });
    owners::ensure(&mut after.metadata, owners::owner(set));
    merge(&mut after, &set.name_any(), results);
    match before {
        Some(before) => patch::object(&api, before, &after)
            .await
            .map(drop)
            .doing(|| of("changing", before)),
        None => api
            .create(&PostParams::default(), &after)
            .await
            .map(drop)
            .doing(|| format!("creating ClusterResourceSetBinding {namespace}/{name}")),
    }
}

/// Replaces the entries of the set's resources in `results`; others stay.
pub(super) fn merge(
    binding: &mut ClusterResourceSetBinding,
    set: &str,
    results: Vec<ResourceBinding>,
) {
    let sets = binding.spec.bindings.get_or_insert_default();
    let known = sets
        .iter()
        .position(|known| known.cluster_resource_set_name == set);
    let at = known.unwrap_or_else(|| {
        sets.push(ResourceSetBinding {
            cluster_resource_set_name: set.to_owned(),
            resources: None,
        });
        sets.len() - 1
    });
    let resources = sets[at].resources.get_or_insert_default();
    for result in results {
        let same =
            |known: &&mut ResourceBinding| known.kind == result.kind && known.name == result.name;
        match resources.iter_mut().find(same) {
            Some(known) => *known = result,
            None => resources.push(result),
        }
    }
}

/// Removes a set being deleted from all bindings, and then the finalizer. Applied objects stay.
pub(super) async fn release_all(
    runner: &Runner,
    set: &ClusterResourceSet,
) -> Result<Action, Error> {
    let namespace = set.namespace().unwrap_or_default();
    let name = set.name_any();
    let bindings = runner
        .bindings
        .in_namespace(&namespace, |binding| !binding.is_deleting());
    for binding in bindings {
        let mut after = ClusterResourceSetBinding::clone(&binding);
        let sets = after.spec.bindings.get_or_insert_default();
        sets.retain(|known| known.cluster_resource_set_name != name);
        let is_last = sets.is_empty();
        let owners = after.metadata.owner_references.get_or_insert_default();
        owners.retain(|owner| Some(&owner.uid) != set.metadata.uid.as_ref());
        if after == *binding {
            continue;
        }
        if is_last {
            delete(runner, &binding).await?;
        } else {
            let api = runner.api::<ClusterResourceSetBinding>(&namespace);
            let changed = patch::object(&api, &binding, &after).await;
            changed.doing(|| of("changing", &binding))?;
        }
    }
    let api = runner.api::<ClusterResourceSet>(&namespace);
    let released = finalizer::remove(&api, set, FINALIZER).await;
    released.doing(|| super::of("letting go of", set))?;
    Ok(Action::await_change())
}

/// Deletes the binding in its known version.
async fn delete(context: &Context, binding: &ClusterResourceSetBinding) -> Result<(), Error> {
    let namespace = binding.namespace().unwrap_or_default();
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: binding.uid(),
        resource_version: binding.resource_version(),
    });
    let api = context.api::<ClusterResourceSetBinding>(&namespace);
    match api.delete(&binding.name_any(), &params).await {
        Err(error) if is_absent(&error) => Ok(()),
        other => other.map(drop).doing(|| of("deleting", binding)),
    }
}

fn of(action: &str, binding: &ClusterResourceSetBinding) -> String {
    let namespace = binding.namespace().unwrap_or_default();
    format!(
        "{action} ClusterResourceSetBinding {namespace}/{}",
        binding.name_any()
    )
}
