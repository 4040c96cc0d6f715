//! Deletion of a Cluster: objects inside the workload cluster as requested, workers, control plane, infrastructure.
//!
//! The order cannot be left to the garbage collector: workers cannot be drained without the control plane, and
//! machines need the network of the infrastructure.

use api::conditions::{Reason, Type, Verdict};
use api::core::v1beta2::{Cluster, ContractReference, Machine, MachineDeployment, MachineSet};
use api::kube::Resource;
use api::kube::ResourceExt;
use api::kube::api::{DeleteParams, ListParams, Preconditions};
use api::kube::core::{NamespaceResourceScope, PartialObjectMeta};
use api::kube::runtime::controller::Action;
use api::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use operator::client::Api;
use operator::controller::RESYNC;
use operator::finalizer;
use operator::retry::is_conflict;
use operator::words::chain;
use serde::de::DeserializeOwned;

use super::descendants::{self, Descendants};
use super::release::{self, Next};
use super::{key, of, state, store};
use crate::duties::Duties;
use crate::error::{Doing, is_absent};
use crate::summary::some_of;
use crate::{CLUSTER_FINALIZER, Context, Error, owners, pause};

/// Maximum length of a label value.
const LONGEST_LABEL: usize = 63;

/// Performs the next step of the deletion of `cluster`, and reports the remaining ones.
pub(super) async fn run(ctx: &Context, cluster: &Cluster) -> Result<Action, Error> {
    if !finalizer::has(cluster, CLUSTER_FINALIZER) {
        return Ok(Action::await_change());
    }
    let (waiting, again) = match release::run(ctx, cluster).await {
        Ok(Next::Stored) => return Ok(Action::await_change()),
        Ok(Next::Descend) => (descend(ctx, cluster).await, RESYNC),
        Ok(Next::Wait(reason, message)) => (Ok(Some((reason, message))), release::AGAIN),
        Err(error) => (Err(error), RESYNC),
    };
    if waiting.as_ref().is_err_and(|it| is_conflict(it)) {
        // The step is repeated at once, and not reported.
        return waiting.map(|_| Action::await_change());
    }
    let (reason, message) = match &waiting {
        Ok(Some((reason, message))) => (*reason, message.clone()),
        Ok(None) => (Reason::DeletionCompleted, String::new()),
        Err(error) => (Reason::InternalError, chain(error)),
    };
    if matches!(waiting, Ok(None)) {
        let api = ctx.api::<Cluster>(&cluster.namespace().unwrap_or_default());
        finalizer::remove(&api, cluster, CLUSTER_FINALIZER)
            .await
            .doing(|| of("letting go of", cluster))?;
        ctx.remote.forget(&key(cluster));
        return Ok(Action::await_change());
    }
    let mut after = cluster.clone();
    let deleting = Verdict::new(Type::Deleting, true, reason).because(message);
    let mut verdicts = vec![deleting, pause::verdict(None)];
    verdicts.extend(of_descendants(ctx, cluster).await);
    state::conclude(&mut after, verdicts, ctx.now());
    store(ctx, cluster, &after).await?;
    waiting.map(|_| Action::requeue(again))
}

/// Conditions for the remaining parts of the cluster.
async fn of_descendants(ctx: &Context, cluster: &Cluster) -> Vec<Verdict> {
    let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
    let plane = match &cluster.spec.control_plane_ref {
        Some(reference) => ctx.external.get(reference, &namespace).await,
        None => Ok(None),
    };
    let plane = plane.map_err(|error| chain(&error));
    let seen = Descendants {
        control_plane: plane.as_ref().map(Option::as_deref).map_err(String::as_str),
        machines: &ctx.machines.in_cluster(&namespace, &name, |_| true),
        sets: &ctx.machinesets.in_cluster(&namespace, &name, |_| true),
        deployments: &ctx
            .machinedeployments
            .in_cluster(&namespace, &name, |_| true),
    };
    descendants::verdicts(cluster, &seen, ctx.now())
}

/// Performs one step. Returns reason and message of the next object being deleted; `None` if nothing is left.
async fn descend(ctx: &Context, cluster: &Cluster) -> Result<Option<(Reason, String)>, Error> {
    let deployments = list::<MachineDeployment>(ctx, cluster).await?;
    let sets = list::<MachineSet>(ctx, cluster).await?;
    let machines = list::<Machine>(ctx, cluster).await?;
    let has_control_plane = cluster.spec.control_plane_ref.is_some();
    let (control_plane, workers): (Vec<_>, Vec<_>) = machines
        .into_iter()
        .partition(|machine| machine.labels().contains_key(CONTROL_PLANE_LABEL));
    // Objects with another owner are deleted with that owner.
    let mut duties = Duties::default();
    delete_all(ctx, cluster, &deployments, &mut duties).await;
    delete_all(ctx, cluster, &sets, &mut duties).await;
    delete_all(ctx, cluster, &workers, &mut duties).await;
    duties.done()?;
    let left = [names(&deployments), names(&sets), names(&workers)];
    if let Some(message) = listed(&left) {
        return Ok(Some((Reason::WaitingForWorkersDeletion, message)));
    }
    if let Some(reference) = &cluster.spec.control_plane_ref
        && let Some(message) = delete_reference(ctx, cluster, reference).await?
    {
        return Ok(Some((Reason::WaitingForControlPlaneDeletion, message)));
    }
    if !has_control_plane {
        let mut duties = Duties::default();
        delete_all(ctx, cluster, &control_plane, &mut duties).await;
        duties.done()?;
    }
    if let Some(message) = listed(&[names(&control_plane)]) {
        return Ok(Some((Reason::WaitingForControlPlaneDeletion, message)));
    }
    if let Some(reference) = &cluster.spec.infrastructure_ref
        && let Some(message) = delete_reference(ctx, cluster, reference).await?
    {
        return Ok(Some((Reason::WaitingForInfrastructureDeletion, message)));
    }
    Ok(None)
}

/// Objects of a kind in `cluster`, read live. Only the metadata is requested, so that the list includes undecodable
/// objects.
async fn list<K>(ctx: &Context, cluster: &Cluster) -> Result<Vec<PartialObjectMeta<K>>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    if cluster.name_any().len() > LONGEST_LABEL {
        // A selector with a longer value is rejected, and no label can have it.
        return Ok(Vec::new());
    }
    let api: Api<K> = ctx.api(&cluster.namespace().unwrap_or_default());
    let ours = format!("{CLUSTER_NAME_LABEL}={}", cluster.name_any());
    let list = api
        .list_metadata(&ListParams::default().labels(&ours))
        .await;
    Ok(list.doing(|| of("listing what belongs to", cluster))?.items)
}

/// Deletes the `objects` with the [`Cluster`] as owner, or without an owner.
async fn delete_all<K>(
    ctx: &Context,
    cluster: &Cluster,
    objects: &[PartialObjectMeta<K>],
    duties: &mut Duties<Error>,
) where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = ctx.api(&cluster.namespace().unwrap_or_default());
    let ours = objects.iter().filter(|object| {
        object.meta().deletion_timestamp.is_none()
            && (owners::is_owned_by(object.meta(), cluster) || object.owner_references().is_empty())
    });
    for object in ours {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: object.uid(),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        match api.delete(&object.name_any(), &params).await {
            Err(error) if is_absent(&error) => {}
            other => {
                let name = object.name_any();
                duties.note(other.doing(|| format!("deleting {} {name}", K::kind(&()))));
            }
        }
    }
}

/// Deletes a referenced object. Returns a message while the object exists, then `None`.
async fn delete_reference(
    ctx: &Context,
    cluster: &Cluster,
    reference: &ContractReference,
) -> Result<Option<String>, Error> {
    let namespace = cluster.namespace().unwrap_or_default();
    if ctx.external.delete(reference, &namespace).await? {
        return Ok(None);
    }
    Ok(Some(format!("* {} {}", reference.kind, reference.name)))
}

fn names<K: Resource<DynamicType = ()>>(objects: &[PartialObjectMeta<K>]) -> (String, Vec<String>) {
    let kind = format!("{}s", K::kind(&()));
    (kind, objects.iter().map(ResourceExt::name_any).collect())
}

fn listed(left: &[(String, Vec<String>)]) -> Option<String> {
    let lines: Vec<_> = left
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(kind, names)| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            format!("* {kind}: {}", some_of(&names))
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
