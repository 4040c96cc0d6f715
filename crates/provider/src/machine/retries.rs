//! Servers for which Nova had no room, and their replacements, provided that a failed server was never used.
//!
//! Nova's record of actions shows the use: a server without actions after its creation never ran. A failed server stays
//! for a pause that doubles, so that its fault can be read, and is deleted then; the next one is created in the next
//! place of the user's lists. Attempts are recorded before the deletion: an interrupted replacement continues, and a
//! server is counted once.

use std::time::Duration;

use api::conditions::{Reason, Type};
use api::infra::v1beta2::OpenStackMachine;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use openstack::Kind;
use openstack::compute::Server;
use operator::patch;

use super::failed::{FAILED_SERVERS_ANNOTATION, Failed, Placement, is_without_room};
use super::observed::Observed;
use super::plan::{self, Plan, Step};
use super::status;
use super::work::Work;
use crate::context::kept::{api, reported};
use crate::context::{Error, FALLBACK};

/// Replaces the failed server of a machine, once its pause is over. `None` for any other server.
///
/// # Errors
/// The failed deletion, and errors of the API server.
pub(super) async fn retry(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    zone: Option<String>,
    server: &Server,
) -> Result<Option<Action>, Error> {
    if let Some(left) = unexplained(work, next, server) {
        return Ok(Some(Action::requeue(left)));
    }
    let known = Failed::from_object(next);
    let leaves = known.is(&server.id) && server.is_deleting();
    let is_to_go =
        leaves || (is_without_room(next, server) && is_untouched(work, &server.id).await);
    if !is_to_go {
        return Ok(None);
    }
    let failed = known.with(&server.id);
    let place = Placement::new(next, zone, &failed);
    let since = work.ctx.failures.since(&server.id);
    report(work, next, server, &failed, &place).await;
    let left = failed.pause().saturating_sub(since);
    if !left.is_zero() && !leaves {
        return Ok(Some(Action::requeue(left)));
    }
    record(work, next, &failed).await?;
    let id = server.id.clone();
    let deletion = move |observed: &Observed| Plan {
        steps: match observed.servers.iter().find(|server| server.id == id) {
            Some(server) if !server.is_deleting() => vec![Step::DeleteServer(id.clone())],
            _ => Vec::new(),
        },
        waits: Vec::new(),
    };
    work.apply(&[Kind::Servers], deletion, plan::deletion)
        .await?;
    work.ctx.failures.forget(&server.id);
    Ok(Some(Action::requeue(FALLBACK)))
}

/// How long the fault of a server that cannot be built is waited for: Nova records it after the state, within a second.
const FAULT_FOLLOWS: Duration = Duration::from_secs(10);

/// Time for which the fault of a failed server is still waited for.
fn unexplained(work: &Work<'_>, next: &mut OpenStackMachine, server: &Server) -> Option<Duration> {
    if !server.is_unexplained() || next.spec.provider_id.is_some() {
        return None;
    }
    let left = FAULT_FOLLOWS.saturating_sub(work.ctx.failures.unexplained(&server.id));
    if left.is_zero() {
        return None;
    }
    let now = work.ctx.now();
    let text = format!("server {} failed, and Nova has not said why yet", server.id);
    status::not_ready(
        next,
        now,
        Type::InstanceReady,
        Reason::InstanceNotReady,
        &text,
    );
    Some(left)
}

/// True if Nova has recorded nothing of a server but its creation. An unreadable record counts as a use.
async fn is_untouched(work: &Work<'_>, server: &str) -> bool {
    if let Some(known) = work.ctx.failures.is_untouched(server) {
        return known;
    }
    let compute = work.cloud.session.compute();
    let Ok(actions) = compute.actions_of_server(server).await else {
        return false;
    };
    let verdict = !actions.is_empty() && actions.iter().all(|it| it.action == "create");
    work.ctx.failures.note(server, verdict);
    verdict
}

/// Reports the failure, with the time and place of the next server.
async fn report(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    server: &Server,
    failed: &Failed,
    place: &Placement,
) {
    let (instance, now) = (next.status.get_or_insert_default(), work.ctx.now());
    instance.instance_id = Some(server.id.clone());
    instance.instance_state = Some(server.status.clone());
    let text = format!(
        "server {} is in ERROR: {}. Nothing was made of it: it is deleted, and another one follows{} after {} s ({} failed \
         so far)",
        server.id,
        status::fault_message(server),
        place.words(),
        failed.pause().as_secs(),
        failed.failed
    );
    status::not_ready(
        next,
        now,
        Type::InstanceReady,
        Reason::InstanceRetried,
        &text,
    );
    if reported(work.object, Type::InstanceReady) != reported(next, Type::InstanceReady) {
        let recorder = &work.ctx.recorder;
        recorder
            .warning(work.object, "FailedCreateServer", "CreateServer", text)
            .await;
    }
}

/// Records a failed server, before it is deleted.
async fn record(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    failed: &Failed,
) -> Result<(), Error> {
    let text = serde_json::to_string(failed).unwrap_or_default();
    let before = OpenStackMachine {
        metadata: next.metadata.clone(),
        ..work.object.clone()
    };
    let mut wanted = before.clone();
    let annotations = wanted.annotations_mut();
    annotations.insert(FAILED_SERVERS_ANNOTATION.to_owned(), text);
    let stored = patch::object(&api(work.ctx, work.object), &before, &wanted).await;
    let stored = stored.map_err(Error::kubernetes("recording a failed server"))?;
    next.metadata = stored.map_or(before.metadata, |stored| stored.metadata);
    Ok(())
}

/// Creates the next server with the next flavor, after Nova has refused one for want of quota.
///
/// # Errors
/// Errors of the API server.
pub(super) async fn refused(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    zone: Option<String>,
) -> Result<(), Error> {
    match Failed::refused(next, zone) {
        Some(failed) => record(work, next, &failed).await,
        None => Ok(()),
    }
}
