//! Controller of [`MachineHealthCheck`]: marks unhealthy machines, so that their owners replace them.
//!
//! Reconcile: observe the selected machines and their Nodes → plan (pure) → conditions of the machines → status. The
//! controllers of MachineSets and of control planes replace marked machines; with a template, an object of another
//! provider does.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{self, Type};
use api::core::v1beta2::{Cluster, MachineHealthCheck};
use api::k8s_openapi::api::core::v1::Node;
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use api::kube::runtime::reflector::ObjectRef;
use api::names::{CLUSTER_NAME_LABEL, PAUSED_ANNOTATION, SKIP_REMEDIATION_ANNOTATION};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, stream};
use operator::client::Api;
use operator::controller::RESYNC;
use operator::patch;

use crate::duties::Duties;
use crate::error::{Doing, Error, is_absent};
use crate::feed::Feed;
use crate::remote::ClusterKey;
use crate::{Context, news, owners, pause, selector};

mod plan;
mod remediate;
mod verdict;

use plan::{Allowed, Plan};
use verdict::{Seen, Target};

/// Added to the time until a machine may become unhealthy.
const MARGIN: Duration = Duration::from_secs(1);

/// Runs the controller until shutdown.
pub(crate) fn run(
    context: &Arc<Context>,
    checks: &Feed<MachineHealthCheck>,
) -> BoxFuture<'static, ()> {
    let controller = checks.controller().reconcile_on(triggers(context, checks));
    let context = context.of("machinehealthcheck");
    let settings = context.settings();
    operator::controller::run(controller, reconcile, context, settings).boxed()
}

/// Triggers besides the check: the machines, the Cluster, and the Nodes.
fn triggers(
    context: &Arc<Context>,
    checks: &Feed<MachineHealthCheck>,
) -> impl Stream<Item = ObjectRef<MachineHealthCheck>> + Send + use<> {
    let machines = context.machines.touched().map(|machine| {
        let namespace = machine.namespace().unwrap_or_default();
        ClusterKey::new(namespace, machine.spec.cluster_name.clone())
    });
    let clusters = context.clusters.touched().map(|cluster| {
        ClusterKey::new(cluster.namespace().unwrap_or_default(), cluster.name_any())
    });
    let remote = context
        .remote
        .changes()
        .map(|change| change.cluster().clone());
    let checks = checks.clone();
    stream::select(stream::select(machines, clusters), remote).flat_map(move |key| {
        let found = checks.in_cluster(&key.namespace, &key.name, |_| true);
        let found = found
            .iter()
            .map(|check| ObjectRef::from_obj(check.as_ref()));
        stream::iter(found.collect::<Vec<_>>())
    })
}

async fn reconcile(check: Arc<MachineHealthCheck>, runner: Arc<Context>) -> Result<Action, Error> {
    let namespace = check.namespace().unwrap_or_default();
    let cluster = runner.clusters.get(&namespace, &check.spec.cluster_name);
    if check.is_deleting() {
        return Ok(Action::await_change());
    }
    if let Some(why) = pause::reason(cluster.as_deref(), check.as_ref()) {
        return paused(&runner, &check, &why).await;
    }
    let cluster = cluster.ok_or_else(|| Error::NoCluster {
        namespace,
        name: check.spec.cluster_name.clone(),
    })?;
    if ensure_metadata(&runner, &check, &cluster).await? {
        return Ok(Action::await_change());
    }
    let mut duties = Duties::default();
    // Without a connection nothing is known about Nodes, and nothing is decided.
    let targets = match targets(&runner, &check, &cluster).await {
        Ok(targets) => targets,
        // The end of the first attempt to connect triggers a reconcile; the reported state stays until then.
        Err(Error::NotConnected(missing)) if missing.connecting => return Err(missing.into()),
        Err(error) => return undecided(&runner, &check, error).await,
    };
    let now = runner.now();
    let plan = plan::plan(&check, &cluster, &targets, now);
    remediate::run(&runner, &check, &plan, &mut duties).await;
    let written = write(&runner, &check, &plan, &duties).await;
    duties.done().and(written)?;
    let next = plan.next.map_or(RESYNC, |next| (next + MARGIN).min(RESYNC));
    Ok(Action::requeue(next))
}

/// Reports the reason for a missing check; the reported state of the machines stays.
async fn undecided(
    runner: &Context,
    check: &MachineHealthCheck,
    error: Error,
) -> Result<Action, Error> {
    let mut duties = Duties::default();
    duties.note(Err::<(), _>(error));
    let mut after = check.clone();
    let list = &mut after.status.get_or_insert_default().conditions;
    duties.report(list, check.metadata.generation, runner.now());
    let stored = store(runner, check, &after).await;
    duties.done().and(stored)?;
    Ok(Action::await_change())
}

/// Sets the label and the owner; returns true if anything was missing.
async fn ensure_metadata(
    runner: &Context,
    check: &MachineHealthCheck,
    cluster: &Cluster,
) -> Result<bool, Error> {
    let mut after = check.clone();
    owners::ensure(&mut after.metadata, owners::owner(cluster));
    let labels = after.metadata.labels.get_or_insert_default();
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), cluster.name_any());
    let api = runner.api::<MachineHealthCheck>(&check.namespace().unwrap_or_default());
    let stored = patch::object(&api, check, &after).await;
    Ok(stored.doing(|| of("changing", check))?.is_some())
}

/// Selected machines of the [`Cluster`] with their Nodes, without paused or exempt machines.
async fn targets(
    runner: &Context,
    check: &MachineHealthCheck,
    cluster: &Cluster,
) -> Result<Vec<Target>, Error> {
    let namespace = check.namespace().unwrap_or_default();
    let key = ClusterKey::new(namespace.clone(), cluster.name_any());
    let exempt = [PAUSED_ANNOTATION, SKIP_REMEDIATION_ANNOTATION];
    let machines = runner
        .machines
        .in_cluster(&namespace, &key.name, |machine| {
            selector::matches(&check.spec.selector, machine.labels())
                && !exempt
                    .iter()
                    .any(|name| machine.annotations().contains_key(*name))
        });
    // Before the initialization, no API server has Nodes.
    let initialized = conditions::is_true(cluster.conditions(), Type::ControlPlaneInitialized);
    let nodes = if initialized {
        runner.remote.nodes(&key)?
    } else {
        Vec::new()
    };
    let mut targets = Vec::new();
    for machine in machines {
        let name = machine.node_name();
        let known = nodes
            .iter()
            .find(|node| Some(node.name_any().as_str()) == name);
        let node = match (name, known) {
            (None, _) => Seen::None,
            (Some(_), Some(node)) => Seen::There(Arc::clone(node)),
            (Some(_), None) if !initialized => Seen::None,
            (Some(name), None) => live(runner, &key, name).await?,
        };
        targets.push(Target { machine, node });
    }
    Ok(targets)
}

/// Node, read live: a machine is replaced at once if its Node is gone, and the cache may be outdated.
async fn live(runner: &Context, key: &ClusterKey, name: &str) -> Result<Seen, Error> {
    let nodes = Api::<Node>::all(runner.remote.client(key)?);
    let found = nodes.get_opt(name).await;
    let found = found.doing_remotely(|| format!("reading Node {name}"))?;
    Ok(found.map_or(Seen::Gone, |node| Seen::There(Arc::new(node))))
}

/// Writes the counts and conditions of `plan`.
async fn write(
    runner: &Context,
    check: &MachineHealthCheck,
    plan: &Plan,
    duties: &Duties<Error>,
) -> Result<(), Error> {
    let (now, generation) = (runner.now(), check.metadata.generation);
    let mut after = check.clone();
    let status = after.status.get_or_insert_default();
    status.expected_machines = Some(plan::count(plan.targets.len()));
    status.current_healthy = Some(plan::count(plan.healthy.len()));
    status.remediations_allowed = Some(match plan.allowed {
        Allowed::Yes(left) => left,
        Allowed::No(_) => 0,
    });
    status.targets = (!plan.targets.is_empty()).then(|| plan.targets.clone());
    status.observed_generation = generation;
    let verdict = plan::verdict(&plan.allowed);
    let restricted = matches!(plan.allowed, Allowed::No(_))
        && conditions::find(&status.conditions, verdict.type_)
            .is_none_or(|known| known.status != "False");
    let note = verdict.message.clone();
    conditions::set(&mut status.conditions, verdict, generation, now);
    pause::record(&mut status.conditions, None, generation, now);
    duties.report(&mut status.conditions, generation, now);
    store(runner, check, &after).await?;
    if restricted {
        runner
            .events
            .warning(check, "RemediationRestricted", "Check", note)
            .await;
    }
    Ok(())
}

async fn paused(runner: &Context, check: &MachineHealthCheck, why: &str) -> Result<Action, Error> {
    let mut after = check.clone();
    let status = after.status.get_or_insert_default();
    pause::record(
        &mut status.conditions,
        Some(why),
        check.metadata.generation,
        runner.now(),
    );
    store(runner, check, &after).await?;
    Ok(Action::requeue(RESYNC))
}

async fn store(
    runner: &Context,
    check: &MachineHealthCheck,
    after: &MachineHealthCheck,
) -> Result<(), Error> {
    let api = runner.api::<MachineHealthCheck>(&check.namespace().unwrap_or_default());
    match patch::status(&api, check, after).await {
        Err(error) if is_absent(&error) => return Ok(()),
        other => other.doing(|| of("writing the status of", check))?,
    };
    let list = |it: &MachineHealthCheck| it.status.clone().unwrap_or_default().conditions;
    news::publish(runner, check, news::pause(&list(check), &list(after))).await;
    Ok(())
}

/// `action MachineHealthCheck namespace/name`, for errors.
fn of(action: &str, check: &MachineHealthCheck) -> String {
    let namespace = check.namespace().unwrap_or_default();
    format!(
        "{action} MachineHealthCheck {namespace}/{}",
        check.name_any()
    )
}
