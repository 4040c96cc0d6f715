//! Controller of [`Machine`]: one host, from its bootstrap data to its Node, and its deletion.
//!
//! Reconcile: metadata → observe bootstrap config, infrastructure and Node → derive spec and status (pure) → copy
//! labels to the Node. Deletion is a separate sequence of steps.

use std::sync::Arc;
use std::time::Duration;

use api::core::v1beta2::{Cluster, Machine};
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use api::kube::runtime::reflector::ObjectRef;
use api::names::CLUSTER_NAME_LABEL;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, stream};
use operator::controller::RESYNC;
use operator::patch;

use crate::duties::Duties;
use crate::error::{Doing, is_absent};
use crate::remote::{Change, ClusterKey};
use crate::{Context, Error, MACHINE_FINALIZER, news, owners, pause};

mod deletion;
mod drain;
mod facts;
mod node;
mod state;
mod update;

pub use node::Synced;

/// Runs the controller until shutdown.
pub(crate) fn run(context: &Arc<Context>) -> BoxFuture<'static, ()> {
    let controller = context
        .machines
        .controller()
        .reconcile_on(triggers(context));
    let context = context.of("machine");
    let settings = context.settings();
    operator::controller::run(controller, reconcile, context, settings).boxed()
}

/// Triggers besides the [`Machine`]: the Cluster, the referenced objects, and the Node.
fn triggers(context: &Arc<Context>) -> impl Stream<Item = ObjectRef<Machine>> + Send + use<> {
    let ctx = Arc::clone(context);
    let clusters = context.clusters.touched().flat_map(move |cluster| {
        let key = ClusterKey::new(cluster.namespace().unwrap_or_default(), cluster.name_any());
        stream::iter(of_cluster(&ctx, &key, |_| true))
    });
    let ctx = Arc::clone(context);
    let objects = context
        .external
        .changes()
        .flat_map(move |change| stream::iter(referring(&ctx, &change)));
    let ctx = Arc::clone(context);
    let remote = context.remote.changes().flat_map(move |change| {
        let machines = match &change {
            Change::Connected(key) | Change::Disconnected(key) => of_cluster(&ctx, key, |_| true),
            Change::Node {
                cluster,
                name,
                provider_id,
            } => of_cluster(&ctx, cluster, |machine| {
                machine.node_name() == Some(name)
                    || (provider_id.is_some() && machine.spec.provider_id == *provider_id)
            }),
        };
        stream::iter(machines)
    });
    stream::select(stream::select(clusters, objects), remote)
}

fn of_cluster(
    ctx: &Context,
    cluster: &ClusterKey,
    predicate: impl Fn(&Machine) -> bool,
) -> Vec<ObjectRef<Machine>> {
    let machines = ctx
        .machines
        .in_cluster(&cluster.namespace, &cluster.name, predicate);
    machines
        .iter()
        .map(|machine| ObjectRef::from_obj(machine.as_ref()))
        .collect()
}

fn referring(ctx: &Context, change: &crate::external::Change) -> Vec<ObjectRef<Machine>> {
    let owner = change.owners.iter().find(|owner| owner.kind == "Machine");
    if let Some(owner) = owner {
        return vec![ObjectRef::new(&owner.name).within(&change.namespace)];
    }
    if change.reference.kind.ends_with("Template") {
        return Vec::new();
    }
    // No owner reference yet: created by a user, or by the MachineSet a moment ago.
    let machines = ctx
        .machines
        .referring_to(&change.namespace, &change.reference);
    machines
        .iter()
        .map(|machine| ObjectRef::from_obj(machine.as_ref()))
        .collect()
}

async fn reconcile(machine: Arc<Machine>, ctx: Arc<Context>) -> Result<Action, Error> {
    let namespace = machine.namespace().unwrap_or_default();
    let cluster = ctx.clusters.get(&namespace, &machine.spec.cluster_name);
    if let Some(why) = pause::reason(cluster.as_deref(), machine.as_ref()) {
        return paused(&ctx, &machine, &why).await;
    }
    if machine.is_deleting() {
        return deletion::run(&ctx, &machine, cluster.as_deref()).await;
    }
    let cluster = cluster.ok_or_else(|| Error::NoCluster {
        namespace: namespace.clone(),
        name: machine.spec.cluster_name.clone(),
    })?;
    if ensure_metadata(&ctx, &machine, &cluster).await? {
        return Ok(Action::await_change());
    }
    let mut duties = Duties::default();
    let facts = facts::gather(&ctx, &machine, &cluster, &mut duties).await;
    let now = ctx.now();
    let mut after = state::desired(&machine, &facts, now);
    let again = update::advance(&ctx, &mut after, &facts, &mut duties).await;
    duties.note(node::sync(&ctx, &after, &facts).await);
    state::report(&mut after, &duties, now);
    let stored = store(&ctx, &machine, &after, None).await;
    duties.done().and(stored)?;
    let pauses = again.into_iter().chain(state::look_again(&after, now));
    Ok(Action::requeue(pauses.fold(RESYNC, Duration::min)))
}

/// Adds the finalizer, the label and, for a [`Machine`] without controller, the [`Cluster`] as owner. Returns true if
/// anything was missing.
async fn ensure_metadata(
    ctx: &Context,
    machine: &Machine,
    cluster: &Cluster,
) -> Result<bool, Error> {
    let mut after = machine.clone();
    let finalizers = after.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|known| known == MACHINE_FINALIZER) {
        finalizers.push(MACHINE_FINALIZER.to_owned());
    }
    let labels = after.metadata.labels.get_or_insert_default();
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), cluster.name_any());
    if owners::controller_of(&machine.metadata).is_none() {
        owners::ensure(&mut after.metadata, owners::owner(cluster));
    }
    let api = ctx.api::<Machine>(&machine.namespace().unwrap_or_default());
    let stored = patch::object(&api, machine, &after).await;
    Ok(stored.doing(|| of("changing", machine))?.is_some())
}

/// Writes the spec and then the status of `after` where different from `before`. `given_up` is the reason why a drain
/// has ended with remaining Pods.
async fn store(
    ctx: &Context,
    before: &Machine,
    after: &Machine,
    given_up: Option<&str>,
) -> Result<(), Error> {
    let api = ctx.api::<Machine>(&before.namespace().unwrap_or_default());
    let mut base = before.clone();
    if let Some(stored) = patch::object(&api, before, after)
        .await
        .doing(|| of("changing", before))?
    {
        // The precondition of the status patch is the resourceVersion of this write.
        base.metadata.resource_version = stored.metadata.resource_version;
    }
    match patch::status(&api, &base, after).await {
        Err(error) if is_absent(&error) && before.is_deleting() => {}
        other => {
            other.doing(|| of("writing the status of", before))?;
        }
    }
    let news = news::of_machine(before, after, given_up);
    news::publish(ctx, before, news).await;
    Ok(())
}

async fn paused(ctx: &Context, machine: &Machine, why: &str) -> Result<Action, Error> {
    let mut after = machine.clone();
    let status = after.status.get_or_insert_default();
    let generation = machine.metadata.generation;
    pause::record(&mut status.conditions, Some(why), generation, ctx.now());
    store(ctx, machine, &after, None).await?;
    Ok(Action::requeue(RESYNC))
}

/// `action Machine namespace/name`, for errors.
fn of(action: &str, machine: &Machine) -> String {
    let namespace = machine.namespace().unwrap_or_default();
    format!("{action} Machine {namespace}/{}", machine.name_any())
}
