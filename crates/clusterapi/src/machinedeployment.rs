//! Controller of [`MachineDeployment`]: rolling updates of machines with a template.
//!
//! Reconcile: metadata → find or create the MachineSet of the current template → one step of the rolling update →
//! delete old MachineSets → status. Each step is a function of the observed state, so that an interrupted reconcile
//! can be repeated. A failure for one set or template does not affect the others.

use std::sync::Arc;

use api::core::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use api::kube::runtime::reflector::ObjectRef;
use api::names::{CLUSTER_NAME_LABEL, DEPLOYMENT_NAME_LABEL};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, stream};
use operator::controller::RESYNC;
use operator::{finalizer, patch};

use crate::error::Doing;
use crate::{Context, Error, MACHINE_DEPLOYMENT_FINALIZER, owners, pause, templates};

mod apply;
pub(crate) mod in_place;
mod proportion;
pub(crate) mod revision;
pub(crate) mod rollout;
mod status;
mod write;

/// Duties of the reconcile of a deployment.
type Duties = crate::duties::Duties<Error>;

/// Runs the controller until shutdown.
pub(crate) fn run(context: &Arc<Context>) -> BoxFuture<'static, ()> {
    let controller = context
        .machinedeployments
        .controller()
        .reconcile_on(triggers(context));
    let context = context.of("machinedeployment");
    let settings = context.settings();
    operator::controller::run(controller, reconcile, context, settings).boxed()
}

/// Triggers besides the deployment: its sets, their machines, the Cluster, and the templates, including new ones.
fn triggers(
    context: &Arc<Context>,
) -> impl Stream<Item = ObjectRef<MachineDeployment>> + Send + use<> {
    let sets = context.machinesets.touched().flat_map(|set| {
        let owner = owners::controller_of(&set.metadata);
        let owner = owner
            .filter(|owner| owner.kind == "MachineDeployment")
            .map(|owner| ObjectRef::new(&owner.name).within(&set.namespace().unwrap_or_default()));
        stream::iter(owner)
    });
    let machines = context.machines.touched().flat_map(|machine| {
        let deployment = machine
            .labels()
            .get(DEPLOYMENT_NAME_LABEL)
            .map(|name| ObjectRef::new(name).within(&machine.namespace().unwrap_or_default()));
        stream::iter(deployment)
    });
    let ctx = Arc::clone(context);
    let clusters = context.clusters.touched().flat_map(move |cluster| {
        let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
        let ours = ctx
            .machinedeployments
            .in_cluster(&namespace, &name, |_| true);
        stream::iter(references(&ours))
    });
    let ctx = Arc::clone(context);
    let templates = context.external.changes().flat_map(move |change| {
        let using = ctx
            .machinedeployments
            .referring_to(&change.namespace, &change.reference);
        stream::iter(references(&using))
    });
    let others = stream::select(clusters, templates);
    stream::select(stream::select(sets, machines), others)
}

fn references(deployments: &[Arc<MachineDeployment>]) -> Vec<ObjectRef<MachineDeployment>> {
    deployments
        .iter()
        .map(|deployment| ObjectRef::from_obj(deployment.as_ref()))
        .collect()
}

async fn reconcile(deployment: Arc<MachineDeployment>, ctx: Arc<Context>) -> Result<Action, Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let cluster = ctx.clusters.get(&namespace, &deployment.spec.cluster_name);
    if let Some(why) = pause::reason(cluster.as_deref(), deployment.as_ref()) {
        return status::paused(&ctx, &deployment, &why).await;
    }
    if deployment.is_deleting() {
        return delete(&ctx, &deployment).await;
    }
    let cluster = cluster.ok_or_else(|| Error::NoCluster {
        namespace: namespace.clone(),
        name: deployment.spec.cluster_name.clone(),
    })?;
    if ensure_metadata(&ctx, &deployment, &cluster).await? {
        return Ok(Action::await_change());
    }
    let mut duties = Duties::default();
    let template = &deployment.spec.template.spec;
    templates::set_owner_of_templates(&ctx, template, &cluster, &mut duties).await;
    // A set that cannot be decoded must not be created again.
    let decoded = ctx
        .machinesets
        .decoded(|set| owners::is_controlled_by(set, deployment.as_ref()));
    let sets = members(&ctx, &deployment);
    let applied = match decoded {
        Ok(()) => apply::run(&ctx, &deployment, sets.clone()).await,
        Err(undecoded) => Err(undecoded.into()),
    };
    status::write(&ctx, &deployment, &sets, (applied, duties)).await?;
    let due = revision::due_in(&deployment, ctx.now());
    Ok(Action::requeue(due.map_or(RESYNC, |due| due.min(RESYNC))))
}

/// Deletes the MachineSets, and removes the finalizer after the last one.
async fn delete(ctx: &Context, deployment: &MachineDeployment) -> Result<Action, Error> {
    let sets = apply::members_live(ctx, deployment).await?;
    if sets.is_empty() {
        let api = ctx.api::<MachineDeployment>(&deployment.namespace().unwrap_or_default());
        finalizer::remove(&api, deployment, MACHINE_DEPLOYMENT_FINALIZER)
            .await
            .doing(|| of("letting go of", deployment))?;
        return Ok(Action::await_change());
    }
    let mut duties = Duties::default();
    for set in sets.iter().filter(|set| !set.is_deleting()) {
        duties.note(apply::delete_set(ctx, deployment, set).await);
    }
    status::write(ctx, deployment, &sets, (Ok(Vec::new()), duties)).await?;
    Ok(Action::requeue(RESYNC))
}

/// Adds the finalizer, owner and label; returns true if anything was missing.
async fn ensure_metadata(
    ctx: &Context,
    deployment: &MachineDeployment,
    cluster: &Cluster,
) -> Result<bool, Error> {
    let mut after = deployment.clone();
    if !finalizer::has(deployment, MACHINE_DEPLOYMENT_FINALIZER) {
        let finalizers = after.metadata.finalizers.get_or_insert_default();
        finalizers.push(MACHINE_DEPLOYMENT_FINALIZER.to_owned());
    }
    owners::ensure(&mut after.metadata, owners::owner(cluster));
    let labels = after.metadata.labels.get_or_insert_default();
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), cluster.name_any());
    let api = ctx.api::<MachineDeployment>(&deployment.namespace().unwrap_or_default());
    let stored = patch::object(&api, deployment, &after).await;
    Ok(stored.doing(|| of("changing", deployment))?.is_some())
}

/// [`MachineSet`]s of `deployment`, oldest first, from the cache.
pub(crate) fn members(ctx: &Context, deployment: &MachineDeployment) -> Vec<Arc<MachineSet>> {
    let namespace = deployment.namespace().unwrap_or_default();
    let cluster = &deployment.spec.cluster_name;
    let belongs = |set: &MachineSet| revision::belongs(deployment, set);
    let sets = ctx.machinesets.in_cluster(&namespace, cluster, belongs);
    oldest_first(sets)
}

fn oldest_first(mut sets: Vec<Arc<MachineSet>>) -> Vec<Arc<MachineSet>> {
    sets.sort_by_key(|set| (set.creation_timestamp().map(|time| time.0), set.name_any()));
    sets
}

/// [`Machine`]s of `sets`, from the cache.
pub(crate) fn machines_of(ctx: &Context, sets: &[Arc<MachineSet>]) -> Vec<Arc<Machine>> {
    let Some(first) = sets.first() else {
        return Vec::new();
    };
    let (namespace, cluster) = (
        first.namespace().unwrap_or_default(),
        &first.spec.cluster_name,
    );
    ctx.machines.in_cluster(&namespace, cluster, |machine| {
        sets.iter()
            .any(|set| owners::is_controlled_by(&machine.metadata, set.as_ref()))
    })
}

/// `action MachineDeployment namespace/name`, for errors.
fn of(action: &str, deployment: &MachineDeployment) -> String {
    let namespace = deployment.namespace().unwrap_or_default();
    format!(
        "{action} MachineDeployment {namespace}/{}",
        deployment.name_any()
    )
}
