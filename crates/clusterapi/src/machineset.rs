//! Controller of [`MachineSet`]: a number of machines with one template.
//!
//! Reconcile: adopt → synchronize in-place changes of the template → remediate unhealthy machines → create or delete
//! machines → status. The parts are independent; only the number of machines waits for the adoption, which decides on
//! the counted machines. The creation of a machine requires three writes (bootstrap config, infrastructure, Machine);
//! after an interruption, the next reconcile finds the leftovers and continues with them.

use std::sync::Arc;

use api::conditions::{self, Type};
use api::core::v1beta2::{Machine, MachineSet};
use api::kube::ResourceExt;
use api::kube::api::ObjectMeta;
use api::kube::runtime::controller::Action;
use api::kube::runtime::reflector::ObjectRef;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, stream};
use operator::{finalizer, patch};

use crate::error::Doing;
use crate::feed::Memory;
use crate::machinedeployment::in_place;
use crate::{Context, Error, MACHINE_SET_FINALIZER, owners, pause, selector};

mod apply;
mod inplace;
mod preflight;
mod remediate;
mod scale;
mod status;
mod sync;
mod update;

/// Duties of the reconcile of a set.
type Duties = crate::duties::Duties<Error>;

/// Runs the controller until shutdown.
pub(crate) fn run(context: &Arc<Context>) -> BoxFuture<'static, ()> {
    let controller = context
        .machinesets
        .controller()
        .reconcile_on(triggers(context));
    let context = context.of("machineset");
    let settings = context.settings();
    let runner = Arc::new(Runner {
        swept: context.machinesets.memory(),
        context,
    });
    operator::controller::run(controller, reconcile, runner, settings).boxed()
}

/// Shared context, and the sets after a search for leftovers.
struct Runner {
    context: Arc<Context>,
    swept: Memory<MachineSet, ()>,
}

impl std::ops::Deref for Runner {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

/// Triggers besides the set: its machines and those that it takes over, the deployment, the Cluster, the control plane, and the templates,
/// including new ones.
fn triggers(context: &Arc<Context>) -> impl Stream<Item = ObjectRef<MachineSet>> + Send + use<> {
    let ctx = Arc::clone(context);
    let machines = context
        .machines
        .touched()
        .flat_map(move |machine| stream::iter(sets_of_machine(&ctx, &machine)));
    let ctx = Arc::clone(context);
    let sets = context
        .machinesets
        .touched()
        .flat_map(move |set| stream::iter(receivers(&ctx, &set)));
    let machines = stream::select(machines, sets);
    let ctx = Arc::clone(context);
    let deployments = context
        .machinedeployments
        .touched()
        .flat_map(move |deployment| {
            let namespace = deployment.namespace().unwrap_or_default();
            let cluster = &deployment.spec.cluster_name;
            let sets = ctx.machinesets.in_cluster(&namespace, cluster, |set| {
                owners::is_controlled_by(&set.metadata, deployment.as_ref())
            });
            stream::iter(references(&sets))
        });
    let ctx = Arc::clone(context);
    let clusters = context.clusters.touched().flat_map(move |cluster| {
        let namespace = cluster.namespace().unwrap_or_default();
        stream::iter(of_cluster(&ctx, &namespace, &cluster.name_any()))
    });
    let ctx = Arc::clone(context);
    let objects = context.external.changes().flat_map(move |change| {
        let owner = change.owners.iter().find(|owner| owner.kind == "Cluster");
        let is_control_plane = owner.filter(|owner| {
            let cluster = ctx.clusters.get(&change.namespace, &owner.name);
            let reference = cluster.and_then(|cluster| cluster.spec.control_plane_ref.clone());
            reference.as_ref() == Some(&change.reference)
        });
        let sets = is_control_plane.map(|owner| of_cluster(&ctx, &change.namespace, &owner.name));
        let using = ctx
            .machinesets
            .referring_to(&change.namespace, &change.reference);
        stream::iter(sets.unwrap_or_else(|| references(&using)))
    });
    stream::select(
        stream::select(machines, deployments),
        stream::select(clusters, objects),
    )
}

fn references(sets: &[Arc<MachineSet>]) -> Vec<ObjectRef<MachineSet>> {
    sets.iter()
        .map(|set| ObjectRef::from_obj(set.as_ref()))
        .collect()
}

fn of_cluster(ctx: &Context, namespace: &str, cluster: &str) -> Vec<ObjectRef<MachineSet>> {
    references(&ctx.machinesets.in_cluster(namespace, cluster, |_| true))
}

fn sets_of_machine(ctx: &Context, machine: &Machine) -> Vec<ObjectRef<MachineSet>> {
    let namespace = machine.namespace().unwrap_or_default();
    match owners::controller_of(&machine.metadata) {
        Some(owner) if owner.kind == "MachineSet" => {
            let set = ctx.machinesets.get(&namespace, &owner.name);
            let receivers = set.map(|set| receivers(ctx, &set)).unwrap_or_default();
            let owner = ObjectRef::new(&owner.name).within(&namespace);
            receivers.into_iter().chain([owner]).collect()
        }
        Some(_) => Vec::new(),
        None => {
            let cluster = &machine.spec.cluster_name;
            references(&ctx.machinesets.in_cluster(&namespace, cluster, |set| {
                selector::matches(&set.spec.selector, machine.labels())
            }))
        }
    }
}

/// Sets of the same deployment that take over machines from `set`: they begin an update when a machine or the numbers of
/// the former sets allow it.
fn receivers(ctx: &Context, set: &MachineSet) -> Vec<ObjectRef<MachineSet>> {
    let Some(deployment) = owners::controller_of(&set.metadata) else {
        return Vec::new();
    };
    let namespace = set.namespace().unwrap_or_default();
    let cluster = &set.spec.cluster_name;
    references(&ctx.machinesets.in_cluster(&namespace, cluster, |other| {
        let owner = owners::controller_of(&other.metadata);
        in_place::receives(other)
            && other.uid() != set.uid()
            && owner.is_some_and(|owner| owner.uid == deployment.uid)
    }))
}

async fn reconcile(set: Arc<MachineSet>, runner: Arc<Runner>) -> Result<Action, Error> {
    let namespace = set.namespace().unwrap_or_default();
    let cluster = runner.clusters.get(&namespace, &set.spec.cluster_name);
    if let Some(why) = pause::reason(cluster.as_deref(), set.as_ref()) {
        return status::paused(&runner, &set, &why).await;
    }
    if set.is_deleting() {
        return delete(&runner, &set).await;
    }
    let cluster = cluster.ok_or_else(|| Error::NoCluster {
        namespace: namespace.clone(),
        name: set.spec.cluster_name.clone(),
    })?;
    if !finalizer::has(set.as_ref(), MACHINE_SET_FINALIZER) {
        let sets = runner.api::<MachineSet>(&namespace);
        finalizer::add(&sets, &set, MACHINE_SET_FINALIZER)
            .await
            .doing(|| of("changing", &set))?;
        return Ok(Action::await_change());
    }
    if sync::ensure_metadata(&runner, &set, &cluster).await? {
        return Ok(Action::await_change());
    }
    let mut duties = Duties::default();
    sync::templates_without_deployment(&runner, &set, &cluster, &mut duties).await;
    let adopted = apply::adopt(&runner, &set).await;
    let Some(machines) = duties.note(members(&runner, &set)) else {
        return status::unseen(&runner, &set, duties).await;
    };
    inplace::machines(&runner, &set, &machines, &mut duties).await;
    status::freshen(&runner, &set, &machines, &mut duties).await;
    let problems = preflight::run(&runner, &set, &cluster, &mut duties).await;
    remediate::run(&runner, &set, &machines, &problems, &mut duties).await;
    duties.note(update::run(&runner, &set, &problems).await);
    let scaled = match adopted {
        Ok(()) => apply::scale(&runner, &set, &machines, &problems, &mut duties).await,
        Err(error) => Err(error),
    };
    status::write(&runner, &set, &machines, &problems, (scaled, duties)).await
}

/// Deletes the machines, and removes the finalizer after the last one.
async fn delete(runner: &Runner, set: &MachineSet) -> Result<Action, Error> {
    let machines = apply::members_live(runner, set).await?;
    if machines.is_empty() {
        apply::sweep(runner, set, &machines).await?;
        let sets = runner.api::<MachineSet>(&set.namespace().unwrap_or_default());
        finalizer::remove(&sets, set, MACHINE_SET_FINALIZER)
            .await
            .doing(|| of("letting go of", set))?;
        return Ok(Action::await_change());
    }
    let mut duties = Duties::default();
    for machine in machines.iter().filter(|machine| !machine.is_deleting()) {
        duties.note(apply::delete_machine(runner, set, machine).await);
    }
    status::write(runner, set, &machines, &[], (Ok(()), duties)).await
}

/// [`Machine`]s controlled by `set`, from the cache. Fails on an undecodable machine, which would be replaced otherwise.
fn members(ctx: &Context, set: &MachineSet) -> Result<Vec<Arc<Machine>>, Error> {
    let namespace = set.namespace().unwrap_or_default();
    let ours = |metadata: &ObjectMeta| owners::is_controlled_by(metadata, set);
    ctx.machines.decoded(ours)?;
    Ok(ctx
        .machines
        .in_cluster(&namespace, &set.spec.cluster_name, |machine| {
            ours(&machine.metadata)
        }))
}

/// `action MachineSet namespace/name`, for errors.
fn of(action: &str, set: &MachineSet) -> String {
    format!(
        "{action} MachineSet {}/{}",
        set.namespace().unwrap_or_default(),
        set.name_any()
    )
}

/// Writes the status of `after` if different from the status of `set`.
async fn patch_status(ctx: &Context, set: &MachineSet, after: &MachineSet) -> Result<(), Error> {
    let sets = ctx.api::<MachineSet>(&set.namespace().unwrap_or_default());
    match patch::status(&sets, set, after).await {
        // The set was being deleted and is gone.
        Err(error) if crate::error::is_absent(&error) && set.is_deleting() => Ok(()),
        other => other.map(|_| ()).doing(|| of("writing the status of", set)),
    }
}

/// Differences between the machines of the set and the template of its deployment, one line each; empty without a
/// deployment, `None` while the deployment is not in the cache.
fn is_current(ctx: &Context, set: &MachineSet) -> Option<Vec<String>> {
    let owner = owners::controller_of(&set.metadata).filter(|o| o.kind == "MachineDeployment");
    let Some(owner) = owner else {
        return Some(Vec::new());
    };
    let deployment = ctx
        .machinedeployments
        .get(&set.namespace().unwrap_or_default(), &owner.name)?;
    let mut lines = crate::machinedeployment::revision::differences(
        &set.spec.template.spec,
        &deployment.spec.template.spec,
    );
    let sets = crate::machinedeployment::members(ctx, &deployment);
    let now = ctx.now();
    let current = crate::machinedeployment::revision::current(&deployment, &sets, now);
    if lines.is_empty() && current.is_none_or(|current| current.uid() != set.uid()) {
        lines.push("MachineDeployment spec.rollout.after expired".to_owned());
    }
    Some(lines)
}

/// True if the [`Machine`] failed its health check and waits for a replacement by its owner.
fn waits_for_remediation(machine: &Machine) -> bool {
    let is_false = |type_| {
        conditions::find(machine.conditions(), type_).is_some_and(|found| found.status == "False")
    };
    is_false(Type::HealthCheckSucceeded) && is_false(Type::OwnerRemediated)
}
