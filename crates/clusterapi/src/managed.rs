//! Clusters with a topology: their objects come from a ClusterClass.
//!
//! Reconcile: class and templates → the existing objects → versions and objects (crate `topology`, pure) → the part
//! to be done now (pure) → writes → the condition `TopologyReconciled`. Names are computed, so that every step can be
//! repeated after an interruption ([why](../../../docs/adr/0045-names-of-a-topology.md)).
//!
//! ```text
//!   blueprint   the class, its templates, and the topology with defaults
//!   current     the existing objects
//!   plan        the objects in their order, and those that are not needed any more
//!   objects     reads, trials and writes of objects in the versions of the class
//!   apply       the steps in their order
//!   status      the condition
//! ```

use std::sync::Arc;

use api::conditions::Verdict;
use api::core::v1beta2::{Cluster, ClusterClass, MachineHealthCheck, Topology};
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use api::kube::runtime::reflector::ObjectRef;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, stream};
use operator::controller::RESYNC;
use operator::finalizer;
use operator::store::listed;
use topology::desired::{Input, desired};
use topology::names::OWNED_LABEL;
use topology::upgrade::{self, Plan, UPGRADE_CONCURRENCY};

use crate::feed::{Feed, Memory};
use crate::{CLUSTER_FINALIZER, Context, Error, pause};

mod apply;
mod blueprint;
mod current;
mod objects;
mod obstacle;
mod plan;
mod status;

use blueprint::Blueprint;
use current::Current;
use objects::Trials;
use obstacle::Obstacle;

/// Shared [`Context`], with further state for topologies.
struct Runner {
    context: Arc<Context>,
    classes: Feed<ClusterClass>,
    checks: Feed<MachineHealthCheck>,
    trials: Memory<Cluster, Trials>,
}

impl std::ops::Deref for Runner {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

/// Runs the controller until shutdown.
pub(crate) fn run(
    context: &Arc<Context>,
    classes: &Feed<ClusterClass>,
    checks: &Feed<MachineHealthCheck>,
) -> BoxFuture<'static, ()> {
    let has_topology = |cluster: &Cluster| cluster.spec.topology.is_some();
    let controller = context.clusters.controller_of(has_topology);
    let controller = controller.reconcile_on(triggers(context, classes, checks));
    let trials = context.clusters.memory();
    let context = context.of("clustertopology");
    let settings = context.settings();
    let (classes, checks) = (classes.clone(), checks.clone());
    let known = (classes.store().clone(), checks.store().clone());
    let runner = Arc::new(Runner {
        context,
        classes,
        checks,
        trials,
    });
    let work = operator::controller::run(controller, reconcile, runner, settings);
    let work = async move {
        // An unknown class would be reported as missing. Fails at shutdown only.
        if listed(&known.0).await && listed(&known.1).await {
            work.await;
        }
    };
    work.boxed()
}

/// Triggers besides the [`Cluster`]: its class, the templates of the class, and the objects of the topology.
fn triggers(
    context: &Arc<Context>,
    classes: &Feed<ClusterClass>,
    checks: &Feed<MachineHealthCheck>,
) -> impl Stream<Item = ObjectRef<Cluster>> + Send + use<> {
    let ctx = Arc::clone(context);
    let of_classes = classes.touched().flat_map(move |class| {
        let namespace = class.namespace().unwrap_or_default();
        stream::iter(of_class(&ctx, &namespace, &class.name_any()))
    });
    let ctx = Arc::clone(context);
    let objects = context.external.changes().flat_map(move |change| {
        let owners = change.owners.iter();
        let found = owners.flat_map(|owner| match owner.kind.as_str() {
            "Cluster" => of_name(&ctx, &change.namespace, &owner.name),
            "ClusterClass" => of_class(&ctx, &change.namespace, &owner.name),
            _ => Vec::new(),
        });
        stream::iter(found.collect::<Vec<_>>())
    });
    let ctx = Arc::clone(context);
    let deployments = context
        .machinedeployments
        .touched()
        .flat_map(move |deployment| {
            let namespace = deployment.namespace().unwrap_or_default();
            stream::iter(of_name(&ctx, &namespace, &deployment.spec.cluster_name))
        });
    let ctx = Arc::clone(context);
    let sets = context.machinesets.touched().flat_map(move |set| {
        let namespace = set.namespace().unwrap_or_default();
        stream::iter(of_name(&ctx, &namespace, &set.spec.cluster_name))
    });
    let ctx = Arc::clone(context);
    let checks = checks.touched().flat_map(move |check| {
        let namespace = check.namespace().unwrap_or_default();
        let ours = check.labels().contains_key(OWNED_LABEL);
        let found = ours.then(|| of_name(&ctx, &namespace, &check.spec.cluster_name));
        stream::iter(found.unwrap_or_default())
    });
    let of_workers = stream::select(stream::select(deployments, sets), checks);
    stream::select(stream::select(of_classes, objects), of_workers)
}

/// [`Cluster`] of this name, if it has a topology.
fn of_name(ctx: &Context, namespace: &str, name: &str) -> Vec<ObjectRef<Cluster>> {
    let cluster = ctx.clusters.get(namespace, name);
    let cluster = cluster.filter(|cluster| cluster.spec.topology.is_some());
    let reference = cluster.map(|cluster| ObjectRef::from_obj(cluster.as_ref()));
    reference.into_iter().collect()
}

/// [`Cluster`]s of a class.
fn of_class(ctx: &Context, namespace: &str, name: &str) -> Vec<ObjectRef<Cluster>> {
    let all = ctx.clusters.using_class(namespace, name).into_iter();
    all.map(|cluster| ObjectRef::from_obj(cluster.as_ref()))
        .collect()
}

async fn reconcile(cluster: Arc<Cluster>, runner: Arc<Runner>) -> Result<Action, Error> {
    let Some(topology) = &cluster.spec.topology else {
        return Ok(Action::await_change());
    };
    if cluster.metadata.deletion_timestamp.is_some() {
        // The controller of Clusters deletes the referenced objects, and the garbage collector the owned ones.
        return status::write(&runner, &cluster, status::deleting(), None).await;
    }
    if let Some(why) = pause::reason(Some(&cluster), cluster.as_ref()) {
        return status::write(&runner, &cluster, status::paused(&why), None).await;
    }
    if !finalizer::has(cluster.as_ref(), CLUSTER_FINALIZER) {
        return Ok(Action::await_change());
    }
    match apply_topology(&runner, &cluster, topology).await {
        Ok(Some((verdict, plan))) => status::write(&runner, &cluster, verdict, Some(&plan)).await,
        // The change of the Cluster triggers a reconcile.
        Ok(None) => Ok(Action::await_change()),
        Err(obstacle) => {
            if let Some(verdict) = obstacle.verdict() {
                status::write(&runner, &cluster, verdict, None).await?;
            }
            obstacle.action(RESYNC)
        }
    }
}

/// Brings the objects nearer to the [`Topology`]; returns the condition and the [`Plan`] of the upgrade, or `None` if the
/// [`Cluster`] was changed.
async fn apply_topology(
    runner: &Runner,
    cluster: &Cluster,
    topology: &Topology,
) -> Result<Option<(Verdict, Plan)>, Obstacle> {
    let current = Current::gather(runner, cluster).await?;
    let plane = current.plane();
    let reached = plane.as_ref().map(|plane| plane.version.as_str());
    let blueprint = Blueprint::fetch(runner, cluster, topology, reached).await?;
    let topology = &blueprint.topology;
    let listed = blueprint.class.spec.kubernetes_versions.as_deref();
    let decisions = upgrade::decide(
        topology,
        listed,
        plane.as_ref(),
        &current.deployments()?,
        concurrency(cluster),
    )
    .map_err(Obstacle::Failed)?;
    let mut wanted = desired(&Input {
        cluster,
        class: &blueprint.class,
        topology,
        templates: &blueprint.templates,
        deployments: &current.names(),
        decisions: &decisions,
        older_plane: blueprint.older_plane,
    })?;
    if apply::refer(runner, cluster, topology, &wanted).await? {
        return Ok(None);
    }
    apply::run(runner, cluster, &current, &mut wanted, &decisions).await?;
    let verdict = upgrade::verdict(&decisions, topology, plane.as_ref());
    Ok(Some((verdict, Plan::new(topology, listed, &decisions))))
}

/// Maximum number of MachineDeployments in an upgrade at a time.
fn concurrency(cluster: &Cluster) -> usize {
    let given = cluster.annotations().get(UPGRADE_CONCURRENCY);
    given.and_then(|given| given.parse().ok()).unwrap_or(1)
}
