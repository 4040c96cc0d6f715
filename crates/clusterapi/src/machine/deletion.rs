//! Steps of the deletion of a machine.
//!
//! Pre-drain hooks → drain → volumes → pre-terminate hooks → infrastructure → bootstrap config → Node → finalizer.
//! Each reconcile starts with the first step and stops at the first incomplete one, reported in the condition
//! `Deleting`.

use std::time::Duration;

use api::conditions::{Reason, Type, Verdict};
use api::core::v1beta2::{Cluster, Machine, MachineDeletionStatus};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::runtime::controller::Action;
use api::kube::{Client, ResourceExt};
use operator::controller::RESYNC;
use operator::finalizer;
use operator::retry::is_conflict;
use operator::words::chain;

use self::silence::{Silence, is_over};
use super::facts::{Seen, find};
use super::{drain, of, state, store};
use crate::error::Doing;
use crate::external::contract;
use crate::news::without_types;
use crate::remote::{ClusterKey, NotConnected};
use crate::{Context, Error, MACHINE_FINALIZER, pause};

pub(super) mod silence;

/// Prefixes of the hook annotations, for hooks before the drain or the termination.
const PRE_DRAIN: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
const PRE_TERMINATE: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
/// Annotations that skip a step.
const NO_DRAIN: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
const NO_VOLUMES: &str = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";
/// Interval at which Pods and volumes are polled; shorter at first.
const POLL: Duration = Duration::from_secs(20);
const POLL_FIRST: Duration = Duration::from_secs(2);
/// Default of `nodeDeletionTimeoutSeconds`.
const NODE_DELETION_TIMEOUT: i32 = 10;

/// Progress of a deletion.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Incomplete, with reason and message; requeued after the duration, if set, or on a change.
    Wait(Reason, String, Option<Duration>),
    /// Complete.
    Done,
}

/// Performs the next step of the deletion of `machine`.
pub(super) async fn run(
    ctx: &Context,
    machine: &Machine,
    cluster: Option<&Cluster>,
) -> Result<Action, Error> {
    if !finalizer::has(machine, MACHINE_FINALIZER) {
        return Ok(Action::await_change());
    }
    let now = ctx.now();
    let mut after = machine.clone();
    let mut given_up = None;
    let progress = descend(ctx, &mut after, cluster, now, &mut given_up).await;
    if matches!(&progress, Err(Error::NotConnected(reason)) if reason.connecting) {
        // After a restart: the reported conditions stay until the end of the first attempt to connect, which triggers
        // a reconcile.
        return Ok(Action::requeue(RESYNC));
    }
    if progress.as_ref().is_err_and(|it| is_conflict(it)) {
        // The step is repeated at once, and not reported.
        return progress.map(|_| Action::await_change());
    }
    let (reason, message, pause_for) = match &progress {
        Ok(Progress::Wait(reason, message, pause_for)) => (*reason, message.clone(), *pause_for),
        Ok(Progress::Done) => (Reason::DeletionCompleted, String::new(), None),
        Err(error) => (Reason::Deleting, chain(error), None),
    };
    let deleting = Verdict::new(Type::Deleting, true, reason).because(message);
    state::conclude(&mut after, vec![deleting, pause::verdict(None)], now);
    store(ctx, machine, &after, given_up.as_deref()).await?;
    if progress? == Progress::Done {
        let api = ctx.api::<Machine>(&machine.namespace().unwrap_or_default());
        // The status patch has changed the resourceVersion.
        let stored = api
            .get_opt(&machine.name_any())
            .await
            .doing(|| of("reading", machine))?;
        if let Some(stored) = stored.filter(|stored| stored.uid() == machine.uid()) {
            finalizer::remove(&api, &stored, MACHINE_FINALIZER)
                .await
                .doing(|| of("letting go of", machine))?;
        }
    }
    Ok(Action::requeue(pause_for.unwrap_or(RESYNC)))
}

/// Performs the steps. `given_up` is set to the reason if the drain ends with remaining Pods.
async fn descend(
    ctx: &Context,
    machine: &mut Machine,
    cluster: Option<&Cluster>,
    now: Timestamp,
    given_up: &mut Option<String>,
) -> Result<Progress, Error> {
    let namespace = machine.namespace().unwrap_or_default();
    let infrastructure = machine.spec.infrastructure_ref.clone();
    let object = ctx.external.get_live(&infrastructure, &namespace).await?;
    let under_way = object
        .as_ref()
        .is_none_or(|o| o.metadata.deletion_timestamp.is_some());
    let node = node_to_handle(ctx, machine, cluster).await?;
    // The earlier steps are skipped once the infrastructure is being deleted.
    if !under_way
        && let Some(progress) =
            before_infrastructure(ctx, machine, node.as_deref(), now, given_up).await?
    {
        return Ok(progress);
    }
    if !ctx.external.delete(&infrastructure, &namespace).await? {
        let kind = &infrastructure.kind;
        let ready = object
            .as_ref()
            .and_then(|object| contract::condition(object, Type::Ready));
        let detail = ready
            .map(|ready| ready.message)
            .filter(|message| !message.is_empty());
        let message = match detail {
            Some(detail) => format!("{kind} is being deleted: {}", without_types(&detail)),
            None => format!("{kind} is being deleted"),
        };
        return Ok(Progress::Wait(
            Reason::WaitingForInfrastructureDeletion,
            message,
            None,
        ));
    }
    if let Some(config) = machine.spec.bootstrap.config_ref.clone()
        && !ctx.external.delete(&config, &namespace).await?
    {
        let message = format!("{} is being deleted", config.kind);
        return Ok(Progress::Wait(
            Reason::WaitingForBootstrapDeletion,
            message,
            None,
        ));
    }
    match node {
        Some(node) => remove_node(ctx, machine, &node, now).await,
        None => Ok(Progress::Done),
    }
}

/// Hooks, drain and volumes; `None` when all are complete.
pub(super) async fn before_infrastructure(
    ctx: &Context,
    machine: &mut Machine,
    node: Option<&str>,
    now: Timestamp,
    given_up: &mut Option<String>,
) -> Result<Option<Progress>, Error> {
    if let Some(hooks) = hooks(machine, PRE_DRAIN) {
        began(&mut times(machine).wait_for_pre_drain_hook_start_time, now);
        return Ok(Some(Progress::Wait(
            Reason::WaitingForPreDrainHook,
            hooks,
            None,
        )));
    }
    if let Some(node) = node.filter(|_| !was_emptied(machine)) {
        if let Some(progress) = empty(ctx, machine, node, now, given_up).await? {
            return Ok(Some(progress));
        }
        if let Some(progress) = detach(ctx, machine, node, now).await? {
            return Ok(Some(progress));
        }
    }
    if let Some(hooks) = hooks(machine, PRE_TERMINATE) {
        began(
            &mut times(machine).wait_for_pre_terminate_hook_start_time,
            now,
        );
        return Ok(Some(Progress::Wait(
            Reason::WaitingForPreTerminateHook,
            hooks,
            None,
        )));
    }
    Ok(None)
}

async fn empty(
    ctx: &Context,
    machine: &mut Machine,
    node: &str,
    now: Timestamp,
    given_up: &mut Option<String>,
) -> Result<Option<Progress>, Error> {
    if machine.annotations().contains_key(NO_DRAIN) {
        return Ok(None);
    }
    let limit = drain_limit(machine);
    let start = began(&mut times(machine).node_drain_start_time, now);
    let field = "nodeDrainTimeoutSeconds";
    if is_over(start, limit, None, now) {
        *given_up = Some(field.to_owned());
        return Ok(None);
    }
    let (left, silence) = match workload(ctx, machine)? {
        Ok(client) => {
            let rules = drain::rules::Rules::for_machine(ctx, machine).await?;
            let seen = drain::drain(&client, node, &rules, now).await?;
            (seen.left, seen.silence)
        }
        Err(unreachable) => (Some(unreachable.to_string()), Some(silence(ctx, machine))),
    };
    let Some(left) = left else { return Ok(None) };
    if is_over(start, limit, silence.as_ref(), now) {
        *given_up = silence.map(|silence| silence.cause());
        return Ok(None);
    }
    let awaited = awaited(&left, silence.filter(|_| limit.is_none()), start, field);
    let message = format!("Drain not completed yet (started at {start}):\n{awaited}");
    Ok(Some(Progress::Wait(
        Reason::DrainingNode,
        message,
        Some(poll(start, now)),
    )))
}

async fn detach(
    ctx: &Context,
    machine: &mut Machine,
    node: &str,
    now: Timestamp,
) -> Result<Option<Progress>, Error> {
    if machine.annotations().contains_key(NO_VOLUMES) {
        return Ok(None);
    }
    let limit = machine
        .spec
        .deletion
        .as_ref()
        .and_then(|d| d.node_volume_detach_timeout_seconds);
    let start = began(
        &mut times(machine).wait_for_node_volume_detach_start_time,
        now,
    );
    if is_over(start, limit, None, now) {
        return Ok(None);
    }
    let (left, silence) = match workload(ctx, machine)? {
        // Volumes of a Node with a silent kubelet are not waited for at all.
        Ok(client) => (drain::volumes(&client, node).await?, None),
        Err(unreachable) => (Some(unreachable.to_string()), Some(silence(ctx, machine))),
    };
    // A silence after the end of the drain causes no second wait.
    let drained = times(machine).node_drain_start_time.as_ref();
    let begun = drained.map_or(start, |at| at.0);
    let Some(left) = left.filter(|_| !is_over(begun, limit, silence.as_ref(), now)) else {
        return Ok(None);
    };
    let field = "nodeVolumeDetachTimeoutSeconds";
    let awaited = awaited(&left, silence.filter(|_| limit.is_none()), begun, field);
    let message = format!("Waiting for volumes to be detached (started at {start}):\n{awaited}");
    Ok(Some(Progress::Wait(
        Reason::WaitingForVolumeDetach,
        message,
        Some(poll(start, now)),
    )))
}

/// [`Silence`] of an API server without a connection.
fn silence(ctx: &Context, machine: &Machine) -> Silence {
    let key = key(machine);
    Silence::of_api_server(&key.to_string(), &ctx.remote.health(&key))
}

/// Remaining objects, and the end of the wait for them because of a [`Silence`].
fn awaited(left: &str, silence: Option<Silence>, start: Timestamp, field: &str) -> String {
    match silence {
        Some(silence) => format!("{left}\n* {}", silence.message(start, field)),
        None => left.to_owned(),
    }
}

async fn remove_node(
    ctx: &Context,
    machine: &Machine,
    node: &str,
    now: Timestamp,
) -> Result<Progress, Error> {
    let problem = match workload(ctx, machine)? {
        Ok(client) => match drain::delete_node(&client, node).await {
            Ok(()) => return Ok(Progress::Done),
            Err(error) => chain(&error),
        },
        Err(unreachable) => unreachable.to_string(),
    };
    let deletion = machine.spec.deletion.as_ref();
    let limit = deletion.and_then(|deletion| deletion.node_deletion_timeout_seconds);
    let since = machine
        .metadata
        .deletion_timestamp
        .as_ref()
        .map_or(now, |time| time.0);
    if is_over(
        since,
        Some(limit.unwrap_or(NODE_DELETION_TIMEOUT)),
        None,
        now,
    ) {
        let note =
            format!("Node {node} is left behind: {problem}. Delete it (kubectl delete node)");
        ctx.events
            .warning(machine, "FailedDeleteNode", "Delete", note)
            .await;
        return Ok(Progress::Done);
    }
    let message = format!("Node {node} cannot be deleted yet: {problem}");
    Ok(Progress::Wait(
        Reason::DeletingNode,
        message,
        Some(POLL_FIRST),
    ))
}

/// Node of the [`Machine`], if to be drained and deleted.
async fn node_to_handle(
    ctx: &Context,
    machine: &Machine,
    cluster: Option<&Cluster>,
) -> Result<Option<String>, Error> {
    let Some(cluster) = cluster else {
        return Ok(None);
    };
    let namespace = machine.namespace().unwrap_or_default();
    let control_plane = match &cluster.spec.control_plane_ref {
        Some(reference) => ctx.external.get(reference, &namespace).await?,
        None => None,
    };
    let control_plane_goes =
        control_plane.is_some_and(|object| object.metadata.deletion_timestamp.is_some());
    let others = ctx
        .machines
        .in_cluster(&namespace, &machine.spec.cluster_name, |other| {
            other.is_control_plane()
                && !other.is_deleting()
                && other.name_any() != machine.name_any()
        });
    if !is_worth_it(machine, cluster, control_plane_goes, others.len()) {
        return Ok(None);
    }
    if let Some(known) = machine.node_name() {
        return Ok(Some(known.to_owned()));
    }
    // The Node may have registered since the status was written.
    match find(ctx, cluster, machine.spec.provider_id.as_deref()) {
        Seen::Found(node) => Ok(Some(node.name_any())),
        Seen::Unreachable(health) if health.is_connecting() && cluster.endpoint().is_some() => {
            workload(ctx, machine).map(|_| None)
        }
        _ => Ok(None),
    }
}

/// Client for the workload cluster, or the reason for the missing connection.
///
/// # Errors
/// Before the end of the first attempt to connect.
pub(super) fn workload(
    ctx: &Context,
    machine: &Machine,
) -> Result<Result<Client, NotConnected>, Error> {
    match ctx.remote.client(&key(machine)) {
        Err(reason) if reason.connecting => Err(Error::NotConnected(reason)),
        other => Ok(other),
    }
}

/// True if the Node is drained and deleted: not during a deletion of the [`Cluster`] or its control plane, and not with
/// the last control plane [`Machine`].
fn is_worth_it(
    machine: &Machine,
    cluster: &Cluster,
    control_plane_goes: bool,
    other_control_planes: usize,
) -> bool {
    let last = machine.is_control_plane() && other_control_planes == 0;
    cluster.metadata.deletion_timestamp.is_none() && !control_plane_goes && !last
}

/// True if the Node was drained before pre-terminate hooks that are done by now. The Node is not looked at again: the
/// hook of a control plane [`Machine`] removes its etcd member, and requests that the load balancer still sends to its
/// API server fail until the infrastructure is deleted.
fn was_emptied(machine: &Machine) -> bool {
    let status = machine.status.as_ref();
    let deletion = status.and_then(|status| status.deletion.as_ref());
    deletion.is_some_and(|times| times.wait_for_pre_terminate_hook_start_time.is_some())
        && hooks(machine, PRE_TERMINATE).is_none()
}

/// Message with the remaining hooks of this prefix.
fn hooks(machine: &Machine, prefix: &str) -> Option<String> {
    let is_hook = |name: &&String| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let names: Vec<_> = machine
        .annotations()
        .keys()
        .filter(is_hook)
        .cloned()
        .collect();
    (!names.is_empty()).then(|| format!("Waiting for hooks to succeed: {}", names.join(", ")))
}

fn times(machine: &mut Machine) -> &mut MachineDeletionStatus {
    machine
        .status
        .get_or_insert_default()
        .deletion
        .get_or_insert_default()
}

fn drain_limit(machine: &Machine) -> Option<i32> {
    let deletion = machine.spec.deletion.as_ref();
    deletion.and_then(|deletion| deletion.node_drain_timeout_seconds)
}

/// Sets an unset start time to `now`, and returns the time in whole seconds, as stored.
fn began(at: &mut Option<Time>, now: Timestamp) -> Timestamp {
    let whole = Timestamp::from_second(now.as_second()).unwrap_or(now);
    at.get_or_insert(Time(whole)).0
}

fn poll(start: Timestamp, now: Timestamp) -> Duration {
    let passed = Duration::try_from(now.duration_since(start)).unwrap_or_default();
    if passed < POLL { POLL_FIRST } else { POLL }
}

fn key(machine: &Machine) -> ClusterKey {
    ClusterKey::new(
        machine.namespace().unwrap_or_default(),
        &machine.spec.cluster_name,
    )
}

#[cfg(test)]
mod tests;
