//! Controller of [`Cluster`]: infrastructure, control plane and workers of one workload cluster, as a whole.
//!
//! Reconcile: finalizer → observe infrastructure and control plane → connect → derive spec and status (pure).
//! Deletion order: workers, control plane, infrastructure.

use std::sync::Arc;

use api::core::v1beta2::Cluster;
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use api::kube::runtime::reflector::ObjectRef;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, stream};
use operator::controller::RESYNC;
use operator::{finalizer, patch};

use crate::duties::Duties;
use crate::error::{Doing, is_absent};
use crate::pki::Purpose;
use crate::remote::ClusterKey;
use crate::{CLUSTER_FINALIZER, Context, Error, connections, news, pause, remote};

mod deletion;
mod descendants;
mod facts;
mod kubeconfig;
mod release;
mod state;

pub use release::Patience;

/// Runs the controller until shutdown.
pub(crate) fn run(context: &Arc<Context>) -> BoxFuture<'static, ()> {
    let controller = context
        .clusters
        .controller()
        .reconcile_on(triggers(context));
    let context = context.of("cluster");
    let settings = context.settings();
    operator::controller::run(controller, reconcile, context, settings).boxed()
}

/// Triggers besides the [`Cluster`]: referenced objects, machines, the kubeconfig and its CA, and the connection.
fn triggers(context: &Arc<Context>) -> impl Stream<Item = ObjectRef<Cluster>> + Send + use<> {
    let ctx = Arc::clone(context);
    let objects = context.external.changes().flat_map(move |change| {
        let owner = change.owners.iter().find(|owner| owner.kind == "Cluster");
        let by_owner = owner.map(|owner| reference(&change.namespace, &owner.name));
        if by_owner.is_some()
            || change
                .owners
                .iter()
                .any(|owner| owner.controller == Some(true))
        {
            return stream::iter(Vec::from_iter(by_owner));
        }
        // No owner reference yet: created by a user, possibly after the Cluster.
        let referring = ctx
            .clusters
            .referring_to(&change.namespace, &change.reference);
        stream::iter(
            referring
                .iter()
                .map(|c| ObjectRef::from_obj(c.as_ref()))
                .collect::<Vec<_>>(),
        )
    });
    let machines = context.machines.touched().map(|machine| {
        reference(
            &machine.namespace().unwrap_or_default(),
            &machine.spec.cluster_name,
        )
    });
    let sets = context
        .machinesets
        .touched()
        .map(|set| reference(&set.namespace().unwrap_or_default(), &set.spec.cluster_name));
    let deployments = context.machinedeployments.touched().map(|deployment| {
        reference(
            &deployment.namespace().unwrap_or_default(),
            &deployment.spec.cluster_name,
        )
    });
    // A change of a Node changes Machines first, and Machines trigger the Cluster.
    let connected = context.remote.changes().flat_map(|change| {
        stream::iter(match change {
            remote::Change::Node { .. } => None,
            other => Some(reference(&other.cluster().namespace, &other.cluster().name)),
        })
    });
    let of_workers = stream::select(machines, stream::select(sets, deployments));
    let kubeconfigs = connections::kubeconfigs(context);
    let kubeconfigs = kubeconfigs.map(|key| reference(&key.namespace, &key.name));
    let certificates = context.secrets.touched().filter_map(|secret| {
        let cluster = secret.cluster_of(Purpose::Cluster);
        std::future::ready(cluster.map(|key| reference(&key.namespace, &key.name)))
    });
    let others = stream::select(connected, stream::select(kubeconfigs, certificates));
    stream::select(objects, stream::select(of_workers, others))
}

fn reference(namespace: &str, name: &str) -> ObjectRef<Cluster> {
    ObjectRef::new(name).within(namespace)
}

async fn reconcile(cluster: Arc<Cluster>, ctx: Arc<Context>) -> Result<Action, Error> {
    if let Some(why) = pause::reason(Some(&cluster), cluster.as_ref()) {
        return paused(&ctx, &cluster, &why).await;
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        return deletion::run(&ctx, &cluster).await;
    }
    if !finalizer::has(cluster.as_ref(), CLUSTER_FINALIZER) {
        let api = ctx.api::<Cluster>(&cluster.namespace().unwrap_or_default());
        finalizer::add(&api, &cluster, CLUSTER_FINALIZER)
            .await
            .doing(|| of("changing", &cluster))?;
        return Ok(Action::await_change());
    }
    let mut duties = Duties::default();
    let facts = facts::gather(&ctx, &cluster, &mut duties).await;
    duties.note(kubeconfig::ensure(&ctx, &cluster).await);
    let now = ctx.now();
    let mut after = state::desired(&cluster, &facts, now);
    state::report(&mut after, &duties, now);
    if connections::is_reachable(&after) && !facts.health.connected {
        ctx.remote.track(&key(&cluster));
    }
    let stored = store(&ctx, &cluster, &after).await;
    duties.done().and(stored)?;
    let again = descendants::look_again(&facts.machines, now);
    Ok(Action::requeue(again.unwrap_or(RESYNC)))
}

/// Writes the spec and then the status of `after` where different from `before`.
async fn store(ctx: &Context, before: &Cluster, after: &Cluster) -> Result<(), Error> {
    let api = ctx.api::<Cluster>(&before.namespace().unwrap_or_default());
    let mut base = before.clone();
    if let Some(stored) = patch::object(&api, before, after)
        .await
        .doing(|| of("changing", before))?
    {
        // The precondition of the status patch is the resourceVersion of this write.
        base.metadata.resource_version = stored.metadata.resource_version;
    }
    match patch::status(&api, &base, after).await {
        Err(error) if is_absent(&error) && before.metadata.deletion_timestamp.is_some() => {}
        other => {
            other.doing(|| of("writing the status of", before))?;
        }
    }
    news::publish(ctx, before, news::of_cluster(before, after)).await;
    Ok(())
}

async fn paused(ctx: &Context, cluster: &Cluster, why: &str) -> Result<Action, Error> {
    let mut after = cluster.clone();
    let status = after.status.get_or_insert_default();
    let generation = cluster.metadata.generation;
    pause::record(&mut status.conditions, Some(why), generation, ctx.now());
    store(ctx, cluster, &after).await?;
    Ok(Action::requeue(RESYNC))
}

fn key(cluster: &Cluster) -> ClusterKey {
    ClusterKey::new(cluster.namespace().unwrap_or_default(), cluster.name_any())
}

/// `action Cluster namespace/name`, for errors.
fn of(action: &str, cluster: &Cluster) -> String {
    format!("{action} Cluster {}", key(cluster))
}
