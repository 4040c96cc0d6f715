//! Steps of the update of a machine in place.
//!
//! Bootstrap data for another start → hooks, drain and volumes, as before a deletion → the Node is left and deleted →
//! the provider is asked for the update of the infrastructure → the Node joins again. Each reconcile continues with the
//! first incomplete step, reported in the condition `Updating`.

use std::time::Duration;

use api::conditions::{self, Reason, Type, Verdict};
use api::core::v1beta2::{ContractReference, Machine};
use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::api::{DeleteParams, DynamicObject, Preconditions};
use api::kube::{self, ResourceExt};
use api::names::{
    CLONED_FROM_NAME_ANNOTATION, LEFT_NODE_ANNOTATION, UPDATE_FAILED_ANNOTATION,
    UPDATE_IN_PROGRESS_ANNOTATION, UPDATED_IN_PLACE_ANNOTATION,
};
use operator::client::Api;
use operator::words::chain;
use serde_json::json;

use super::deletion::{self, workload};
use super::facts::{Facts, Seen};
use super::state;
use crate::duties::Duties;
use crate::error::{Doing, is_absent};
use crate::external::{Referenced, contract, reference_to};
use crate::update::is_under_way;
use crate::{Context, Error, owners, update};

/// Time in which a machine must have joined again after its Node was left.
const REJOIN: Duration = Duration::from_secs(30 * 60);

/// Progress of an update.
enum Progress {
    /// Incomplete, with reason and message; repeated after the duration, if set, or on a change.
    Wait(Reason, String, Option<Duration>),
    /// Unknown until the end of the first attempt to connect: what is reported stays.
    Connecting,
    /// Failed: the owner of the machine decides.
    Failed(String),
    /// Complete.
    Done,
}

impl Progress {
    fn wait(message: impl Into<String>) -> Self {
        Self::Wait(Reason::InPlaceUpdating, message.into(), None)
    }
}

/// Performs the next step of the update of `machine`, if one is under way. Returns the time of the next look.
pub(super) async fn advance(
    ctx: &Context,
    machine: &mut Machine,
    facts: &Facts,
    duties: &mut Duties<Error>,
) -> Option<Duration> {
    let now = ctx.now();
    if !is_under_way(machine) {
        // The annotations go before the status: an interruption between both leaves the condition.
        if conditions::is_true(machine.conditions(), Type::Updating) {
            let verdict = over(machine);
            state::conclude(machine, vec![verdict], now);
        }
        return None;
    }
    let progress = match step(ctx, machine, facts, now).await {
        Ok(progress) => progress,
        Err(Error::NotConnected(reason)) if reason.connecting => Progress::Connecting,
        Err(error) => {
            let text = chain(&error);
            duties.note(Err::<(), _>(error));
            Progress::wait(text)
        }
    };
    let (verdict, again) = match progress {
        // The end of the attempt triggers a reconcile.
        Progress::Connecting => return None,
        Progress::Wait(reason, message, again) => {
            let verdict = Verdict::new(Type::Updating, true, reason);
            (verdict.because(message), again)
        }
        Progress::Failed(message) => {
            let verdict = Verdict::new(Type::Updating, true, Reason::InPlaceUpdateFailed);
            (verdict.because(message), None)
        }
        Progress::Done => {
            let annotations = machine.annotations_mut();
            annotations.remove(UPDATE_IN_PROGRESS_ANNOTATION);
            annotations.remove(LEFT_NODE_ANNOTATION);
            (over(machine), None)
        }
    };
    state::conclude(machine, vec![verdict], now);
    again
}

/// Status of a machine that is not updated any more.
fn over(machine: &mut Machine) -> Verdict {
    if let Some(status) = &mut machine.status {
        status.deletion = None;
    }
    Verdict::new(Type::Updating, false, Reason::NotUpdating)
}

async fn step(
    ctx: &Context,
    machine: &mut Machine,
    facts: &Facts,
    now: Timestamp,
) -> Result<Progress, Error> {
    let namespace = machine.namespace().unwrap_or_default();
    let Some(secret) = bootstrap_data(machine, &facts.bootstrap) else {
        return Ok(Progress::wait("Waiting for the bootstrap data"));
    };
    let Some(left) = Left::of(machine) else {
        return empty(ctx, machine, facts, now).await;
    };
    let infrastructure = machine.spec.infrastructure_ref.clone();
    let Some(object) = ctx.external.get_live(&infrastructure, &namespace).await? else {
        let text = format!("{} {} is gone", infrastructure.kind, infrastructure.name);
        return Ok(Progress::Failed(text));
    };
    if let Some(why) = refusal(&object, &secret) {
        return Ok(Progress::Failed(why.to_owned()));
    }
    let rest = REJOIN.saturating_sub(left.since(now));
    if rest.is_zero() {
        let minutes = REJOIN.as_secs() / 60;
        let text = format!("the machine has not joined again within {minutes} minutes");
        return Ok(Progress::Failed(text));
    }
    let is = |name: &str| object.annotations().get(name) == Some(&secret);
    if is(UPDATED_IN_PLACE_ANNOTATION) {
        return rejoin(ctx, machine, facts, rest).await;
    }
    if !is(UPDATE_IN_PROGRESS_ANNOTATION) {
        if let Err(why) = left.remove(ctx, machine).await? {
            return Ok(Progress::Wait(Reason::InPlaceUpdating, why, Some(rest)));
        }
        if let Some(progress) = ask(ctx, machine, &object, &secret).await? {
            return Ok(progress);
        }
    }
    let text = format!("Waiting for {} to update the machine", infrastructure.kind);
    Ok(Progress::Wait(Reason::InPlaceUpdating, text, Some(rest)))
}

/// Name of the Secret with the bootstrap data of the present config.
fn bootstrap_data(machine: &Machine, seen: &Referenced) -> Option<String> {
    let name = machine.spec.bootstrap.data_secret_name.clone();
    match seen {
        Referenced::Nothing => name,
        Referenced::There(object, version) if contract::data_secret_created(object, *version) => {
            let of_config = contract::text(object, "/status/dataSecretName");
            name.filter(|name| of_config == Some(name))
        }
        _ => None,
    }
}

/// Hooks, drain and volumes; then the Node is left.
async fn empty(
    ctx: &Context,
    machine: &mut Machine,
    facts: &Facts,
    now: Timestamp,
) -> Result<Progress, Error> {
    // A Node that is not known cannot be told from the one that joins afterwards.
    let uid = match &facts.node {
        Seen::Found(node) => node.uid().unwrap_or_default(),
        Seen::Absent => String::new(),
        Seen::Unreachable(health) if health.is_connecting() => return Ok(Progress::Connecting),
        _ => return Ok(Progress::wait("Waiting for the workload cluster to answer")),
    };
    let node = machine.node_name().map(str::to_owned);
    let mut given_up = None;
    let waits =
        deletion::before_infrastructure(ctx, machine, node.as_deref(), now, &mut given_up).await?;
    if let Some(deletion::Progress::Wait(reason, message, again)) = waits {
        return Ok(Progress::Wait(reason, message, again));
    }
    let left = Left {
        at: now,
        uid,
        name: node.unwrap_or_default(),
    };
    let annotations = machine.annotations_mut();
    annotations.insert(LEFT_NODE_ANNOTATION.to_owned(), left.text());
    // The next step needs what this one stores.
    let text = "Leaving the Node";
    Ok(Progress::Wait(
        Reason::InPlaceUpdating,
        text.to_owned(),
        Some(Duration::ZERO),
    ))
}

/// Asks the provider for the update, in one write. Returns the reason against it, if there is one.
async fn ask(
    ctx: &Context,
    machine: &Machine,
    object: &DynamicObject,
    secret: &str,
) -> Result<Option<Progress>, Error> {
    let namespace = machine.namespace().unwrap_or_default();
    let infrastructure = &machine.spec.infrastructure_ref;
    let name = machine.annotations().get(UPDATE_IN_PROGRESS_ANNOTATION);
    let kind = format!("{}Template", infrastructure.kind);
    let template = ContractReference::new(
        &infrastructure.api_group,
        &kind,
        name.map_or("", String::as_str),
    );
    let Some(wanted) = ctx.external.get_live(&template, &namespace).await? else {
        let text = format!("{kind} {} does not exist", template.name);
        return Ok(Some(Progress::Failed(text)));
    };
    let (have, want) = (update::spec_of(object), update::spec_of_template(&wanted));
    let obstacles = (ctx.options.in_place)(&infrastructure.kind, have, want);
    if !obstacles.is_empty() {
        return Ok(Some(Progress::Failed(obstacles.join("; "))));
    }
    let patch = json!({
        "metadata": {
            "resourceVersion": object.resource_version(),
            "annotations": {
                UPDATE_IN_PROGRESS_ANNOTATION: secret,
                CLONED_FROM_NAME_ANNOTATION: template.name,
            },
        },
        "spec": update::change(object, &wanted),
    });
    ctx.external.patch(object, &patch).await?;
    Ok(None)
}

/// Cause for which the provider has refused the update with this bootstrap data.
fn refusal<'o>(object: &'o DynamicObject, secret: &str) -> Option<&'o str> {
    let answer = object.annotations().get(UPDATE_FAILED_ANNOTATION)?;
    let (of, why) = answer.split_once(' ')?;
    (of == secret).then_some(why)
}

/// Waits for the Node, and ends the update.
async fn rejoin(
    ctx: &Context,
    machine: &Machine,
    facts: &Facts,
    rest: Duration,
) -> Result<Progress, Error> {
    if matches!(&facts.node, Seen::Unreachable(health) if health.is_connecting()) {
        return Ok(Progress::Connecting);
    }
    let is_healthy = conditions::is_true(machine.conditions(), Type::NodeHealthy);
    if !matches!(facts.node, Seen::Found(_)) || !is_healthy {
        let text = "Waiting for the Node to join again and to become healthy".to_owned();
        return Ok(Progress::Wait(Reason::InPlaceUpdating, text, Some(rest)));
    }
    let Some(config) = &machine.spec.bootstrap.config_ref else {
        return Ok(Progress::Done);
    };
    let namespace = machine.namespace().unwrap_or_default();
    let cluster = &machine.spec.cluster_name;
    let (external, group) = (&ctx.external, &config.api_group);
    let all = external.list_live(group, &config.kind, &namespace, cluster);
    for former in all.await?.iter().filter(|it| it.name_any() != config.name) {
        if owners::is_controlled_by(&former.metadata, machine) {
            external.delete(&reference_to(former), &namespace).await?;
        }
    }
    Ok(Progress::Done)
}

/// Node that a machine has left.
struct Left {
    at: Timestamp,
    uid: String,
    name: String,
}

impl Left {
    fn of(machine: &Machine) -> Option<Self> {
        let text = machine.annotations().get(LEFT_NODE_ANNOTATION)?;
        let mut words = text.split(' ').map(str::to_owned);
        Some(Self {
            at: words.next()?.parse().unwrap_or(Timestamp::MAX),
            uid: words.next().unwrap_or_default(),
            name: words.next().unwrap_or_default(),
        })
    }

    fn text(&self) -> String {
        let at = Timestamp::from_second(self.at.as_second()).unwrap_or(self.at);
        format!("{at} {} {}", self.uid, self.name)
    }

    fn since(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.at)).unwrap_or_default()
    }

    /// Deletes the Node: kubeadm does not join under the name of a Node that is ready. The error is the reason to wait.
    async fn remove(&self, ctx: &Context, machine: &Machine) -> Result<Result<(), String>, Error> {
        if self.name.is_empty() || self.uid.is_empty() {
            return Ok(Ok(()));
        }
        let client = match workload(ctx, machine)? {
            Ok(client) => client,
            Err(unreachable) => return Ok(Err(unreachable.to_string())),
        };
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(self.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let (nodes, name) = (Api::<Node>::all(client), &self.name);
        match nodes.delete(name, &params).await {
            Err(error) if is_absent(&error) => Ok(Ok(())),
            // Another Node has the name.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Ok(())),
            other => other
                .map(|_| Ok(()))
                .doing_remotely(|| format!("deleting Node {name}")),
        }
    }
}

/// True if the machine has left its Node for an update.
pub(super) fn has_left(machine: &Machine) -> bool {
    is_under_way(machine) && machine.annotations().contains_key(LEFT_NODE_ANNOTATION)
}

/// True for the [`Node`] that the machine has left for an update.
pub(super) fn is_left(machine: &Machine, node: &Node) -> bool {
    let left = Left::of(machine).filter(|_| is_under_way(machine));
    left.is_some_and(|left| !left.uid.is_empty() && node.uid() == Some(left.uid))
}
