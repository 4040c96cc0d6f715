//! Controller of [`Node`]s: initialised, refreshed, tainted and deleted depending on their servers.
//!
//! ```text
//!   provider_id   the server id of a Node
//!   names         the names of servers and nodes (pure)
//!   facts         the server in the shared lists
//!   hosts         host names for users without them in the shared lists
//!   addresses     the addresses of the server, in the order of the Go manager
//!   plan          the desired state of the Node (pure)
//!   absence       missing servers, confirmed by two lists
//! ```
//!
//! All nodes share the lists of servers and ports, so the number of requests does not depend on the number of nodes.

pub(crate) mod absence;
mod addresses;
mod facts;
pub(crate) mod hosts;
pub(crate) mod names;
mod plan;
pub(crate) mod provider_id;

use std::sync::Arc;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{DeleteParams, Preconditions};
use kube::runtime::controller::Action;
use kube::runtime::reflector::Store;
use operator::client::Api;
use tokio::time::Instant;

use self::absence::{Absences, Verdict};
use self::facts::{Facts, Lookup};
use self::hosts::Hosts;
use self::plan::Instance;
use crate::context::{Context, Error};

pub(crate) use self::addresses::INTERNAL;
pub(crate) use self::plan::is_new;
pub(crate) use self::provider_id::ProviderId;

/// Requeue interval of a Node with an incomplete server, for example without addresses so far.
const SOON: Duration = Duration::from_secs(2);

/// Requeue interval of a Node without a listed server, or without an address for the Node.
const UNFOUND: Duration = Duration::from_secs(15);

/// Further shared state of the reconciles of nodes.
pub(crate) struct Shared {
    pub(crate) ctx: Arc<Context>,
    pub(crate) nodes: Store<Node>,
    pub(crate) absences: Absences,
    pub(crate) hosts: Hosts,
}

pub(crate) async fn reconcile(node: Arc<Node>, shared: Arc<Shared>) -> Result<Action, Error> {
    let ctx = &shared.ctx;
    if node.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let facts = Facts::fetch(&node, &shared).await?;
    match &facts.lookup {
        Lookup::Found(instance) => {
            shared.absences.forget(&node);
            found(&node, instance, &facts, ctx).await
        }
        Lookup::Absent => absent(&node, &shared).await,
        Lookup::Elsewhere => Ok(Action::await_change()),
        Lookup::Unusable(problem) => rejected(&node, ctx, "ServerNotFound", problem.clone()).await,
    }
}

/// Initialises or refreshes a [`Node`], and taints the Node by the status of its server. A problem with the addresses
/// does not prevent the taint.
async fn found(
    node: &Node,
    instance: &Instance,
    facts: &Facts,
    ctx: &Context,
) -> Result<Action, Error> {
    let (wanted, problem) = plan::wanted(node, instance, ctx.options.controllers);
    store(node, &wanted, ctx).await?;
    // A starting server has no addresses yet.
    let Some(problem) = problem.filter(|_| !facts.is_starting) else {
        return Ok(Action::requeue(next_look(node, facts.is_complete, ctx)));
    };
    warn(node, ctx, "AddressNotFound", problem).await;
    let frequency = ctx.options.node_status_update_frequency;
    Ok(Action::requeue(match plan::is_uninitialized(node) {
        true => UNFOUND.min(frequency),
        false => next_look(node, true, ctx),
    }))
}

/// Time of the next reconcile of a [`Node`] with a server.
fn next_look(node: &Node, is_complete: bool, ctx: &Context) -> Duration {
    let options = &ctx.options;
    match (is_complete, plan::is_ready(node)) {
        (false, _) => SOON,
        (true, true) => options.node_status_update_frequency,
        (true, false) => options.node_monitor_period,
    }
}

/// Writes the differences: addresses first, so that no pod is scheduled to a [`Node`] without addresses.
async fn store(node: &Node, wanted: &Node, ctx: &Context) -> Result<(), Error> {
    let api = Api::<Node>::all(ctx.client.clone());
    let stored = operator::patch::status(&api, node, wanted)
        .await
        .map_err(Error::kubernetes("writing the addresses of the Node"))?;
    // The status was written to the same object, so only fields set by the server differ.
    let before = stored.unwrap_or_else(|| node.clone());
    let mut after = wanted.clone();
    after.metadata.resource_version = before.metadata.resource_version.clone();
    after.metadata.managed_fields = before.metadata.managed_fields.clone();
    operator::patch::object(&api, &before, &after)
        .await
        .map_err(Error::kubernetes("writing the Node"))?;
    if plan::is_uninitialized(node) && !plan::is_uninitialized(wanted) {
        let note = "Node synced successfully";
        ctx.recorder
            .normal(node, "Synced", "Initialize", note)
            .await;
    }
    Ok(())
}

/// Reports that a [`Node`] waits for its missing server. Deletes a Node that is not ready, after the deletion of the
/// server in its providerID is confirmed.
async fn absent(node: &Node, shared: &Shared) -> Result<Action, Error> {
    let (ctx, period) = (&shared.ctx, shared.ctx.options.node_monitor_period);
    let controllers = ctx.options.controllers;
    let waits = plan::is_uninitialized(node) && controllers.node;
    let is_lost = !plan::is_ready(node) && controllers.node_lifecycle;
    if !(waits || is_lost) {
        shared.absences.forget(node);
        return Ok(Action::requeue(ctx.options.node_status_update_frequency));
    }
    match shared.absences.confirm(node, Instant::now(), period) {
        // The list may be a second old, and the server younger.
        Verdict::LookAgain(after) if waits => Ok(Action::requeue(after.min(SOON))),
        Verdict::LookAgain(after) => Ok(Action::requeue(after)),
        Verdict::Confirmed if is_lost && plan::has_provider_id(node) => {
            match facts::is_certainly_gone(node, shared).await? {
                Ok(()) => delete(node, ctx).await,
                Err(doubt) => rejected(node, ctx, "DeletionInDoubt", doubt).await,
            }
        }
        Verdict::Confirmed => unfound(node, ctx).await,
    }
}

/// Emits an event about a [`Node`] without a server: the server may belong to another project, or have another name.
async fn unfound(node: &Node, ctx: &Context) -> Result<Action, Error> {
    let (recorder, note) = (&ctx.recorder, plan::unfound(node));
    recorder.warning(node, "ServerNotFound", "Sync", note).await;
    Ok(Action::requeue(UNFOUND))
}

async fn delete(node: &Node, ctx: &Context) -> Result<Action, Error> {
    let name = node.name_any();
    // The preconditions reject another object with the same name, and an object changed since the read.
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: node.uid(),
            resource_version: node.resource_version(),
        }),
        ..DeleteParams::default()
    };
    match Api::<Node>::all(ctx.client.clone())
        .delete(&name, &params)
        .await
    {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Action::await_change()),
        result => drop(result.map_err(Error::kubernetes("deleting the Node"))?),
    }
    let note = format!("Deleting node {name} because it does not exist in the cloud provider");
    ctx.recorder
        .normal(node, "DeletingNode", "Delete", note)
        .await;
    Ok(Action::await_change())
}

/// Emits an event about a problem with the [`Node`], and retries periodically.
async fn rejected(
    node: &Node,
    ctx: &Context,
    reason: &str,
    problem: String,
) -> Result<Action, Error> {
    warn(node, ctx, reason, problem).await;
    Ok(Action::requeue(
        ctx.options
            .node_status_update_frequency
            .min(Duration::from_secs(60)),
    ))
}

async fn warn(node: &Node, ctx: &Context, reason: &str, problem: String) {
    tracing::warn!(node = node.name_any(), "{problem}");
    ctx.recorder.warning(node, reason, "Sync", problem).await;
}
