//! Updates in place: a server gets another image and other bootstrap data by a rebuild.
//!
//! The owner of the machine asks by an annotation with the name of the Secret of the bootstrap data. Nova stores the
//! metadata of a rebuild when it accepts the request, so that [`BOOTSTRAP`] in the metadata of the server tells from
//! which data its disk was made: a request whose answer was lost is neither repeated nor forgotten. Done and failed
//! updates are reported by annotations with the same name.

use std::collections::BTreeMap;

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{OpenStackMachine, OpenStackMachineSpec};
use api::names::{
    UPDATE_FAILED_ANNOTATION, UPDATE_IN_PROGRESS_ANNOTATION, UPDATED_IN_PLACE_ANNOTATION,
};
use kube::ResourceExt;
use kube::runtime::controller::Action;
use openstack::Kind;
use openstack::compute::{Server, ServerRebuild};
use operator::patch;

use super::inputs::user_data;
use super::observed::Observed;
use super::plan::{Plan, Request, Step};
use super::status;
use super::surroundings::Needs;
use super::work::Work;
use crate::context::kept::api;
use crate::context::{Error, FALLBACK, namespace};
use crate::credentials;
use crate::images;
use crate::recheck::in_lists_of_now;
use crate::resolve;

/// Key in the metadata of a rebuilt server: name of the Secret with its bootstrap data.
pub const BOOTSTRAP: &str = "ferrostack:bootstrap";

/// Maximum length of an answer, in bytes.
const LONGEST: usize = 1000;

/// Progress of the update of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No update is asked for.
    NotAsked,
    /// The rebuild has not been requested.
    Due,
    /// The server does not accept a rebuild now, or is being rebuilt.
    UnderWay,
    /// The server runs from the new disk.
    Done,
    /// Nova could not rebuild the server.
    Failed,
}

/// [`Progress`] of the update with the bootstrap data in `secret`.
pub fn progress(object: &OpenStackMachine, secret: &str, server: &Server) -> Progress {
    let asked = object.annotations().get(UPDATE_IN_PROGRESS_ANNOTATION);
    if asked.map(String::as_str) != Some(secret) || server.is_deleting() {
        return Progress::NotAsked;
    }
    let is_idle = server.task_state.as_deref().is_none_or(str::is_empty);
    let is_rebuilt = server.metadata.get(BOOTSTRAP).map(String::as_str) == Some(secret);
    match (is_rebuilt, server.status.as_str()) {
        (false, "ACTIVE" | "SHUTOFF" | "ERROR") if is_idle => Progress::Due,
        (true, "ACTIVE") if is_idle => Progress::Done,
        (true, "ERROR") if is_idle => Progress::Failed,
        _ => Progress::UnderWay,
    }
}

/// Brings the update of a server forward. `None` if there is nothing to wait for.
///
/// # Errors
/// The failed rebuild, and errors of the API server.
pub(super) async fn update(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    needs: &Needs<'_>,
    server: &Server,
) -> Result<Option<Action>, Error> {
    let secret = needs.secret;
    match progress(work.object, secret, server) {
        Progress::NotAsked => return Ok(None),
        Progress::Done => {
            let (key, value) = (UPDATED_IN_PLACE_ANNOTATION, secret.to_owned());
            return answer(work, next, key, value).await.map(|()| None);
        }
        Progress::Failed => {
            let why = format!(
                "Nova could not rebuild it: {}",
                status::fault_message(server)
            );
            return refuse(work, next, secret, &why).await.map(|()| None);
        }
        Progress::UnderWay => {}
        Progress::Due => match rebuild(work, next, secret, &server.id).await {
            Err(Error::Problem(problem)) if problem.is_refused => {
                return refuse(work, next, secret, &problem.message)
                    .await
                    .map(|()| None);
            }
            other => other?,
        },
    }
    if let Some(server) = work.known().server() {
        status::server(next, server, work.ctx.now());
    }
    Ok(Some(Action::requeue(FALLBACK)))
}

/// Requests the rebuild, unless Nova itself says that it is not due: a list may be older than a request.
async fn rebuild(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    secret: &str,
    id: &str,
) -> Result<(), Error> {
    let now = work.cloud.session.compute().server(id).await;
    let now = now.map_err(|error| credentials::listing(&error))?;
    work.cloud.inventory.fold(now);
    let image = image(work).await?;
    let data = user_data(work.ctx, &namespace(work.object), secret).await?;
    let rebuild = ServerRebuild {
        image_id: image.clone(),
        user_data: data,
        metadata: metadata(work.spec, secret),
    };
    let is_due = |observed: &Observed| {
        let server = observed.server().filter(|server| server.id == id);
        server.is_some_and(|it| progress(work.object, secret, it) == Progress::Due)
    };
    let plan = |observed: &Observed| Plan {
        steps: match is_due(observed) {
            true => vec![Step::RebuildServer(id.to_owned())],
            false => Vec::new(),
        },
        waits: Vec::new(),
    };
    let request = |_: &Step, observed: &Observed| {
        is_due(observed).then(|| Request::RebuildServer {
            id: id.to_owned(),
            rebuild: Box::new(rebuild.clone()),
        })
    };
    work.apply(&[Kind::Servers], plan, request).await?;
    let status = next.status.get_or_insert_default();
    if let Some(resolved) = &mut status.resolved {
        resolved.image_id = Some(image);
    }
    Ok(())
}

/// Id of the image in the spec.
async fn image(work: &Work<'_>) -> Result<String, Error> {
    let spec = images::named(work.ctx, &namespace(work.object), work.spec).await?;
    let project = format!("cloud {}", work.cloud.session.config().name);
    let observed = work.observe(&[Kind::Images], work.age).await?;
    let resolve = |observed: &Observed| {
        let image = resolve::image(&observed.view, &spec.image, &project);
        let image = image.map(|image| image.id.clone());
        let named = image.map_err(|why| why.in_field("image"));
        named.map_err(|why| why.problem(Type::InstanceReady, Reason::DependencyFailed))
    };
    let found = in_lists_of_now(work.cloud, observed, |view| work.of_view(view), resolve).await?;
    Ok(found.0)
}

/// Metadata of a rebuilt server: those of its spec, and [`BOOTSTRAP`].
pub fn metadata(spec: &OpenStackMachineSpec, secret: &str) -> BTreeMap<String, String> {
    let given = spec.server_metadata.iter();
    let given = given.map(|entry| (entry.key.clone(), entry.value.clone()));
    given
        .chain([(BOOTSTRAP.to_owned(), secret.to_owned())])
        .collect()
}

/// Reports an update that failed, once. The request stays, so that the failure is about this one.
async fn refuse(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    secret: &str,
    why: &str,
) -> Result<(), Error> {
    let value = format!("{secret} {why}");
    let value = api::printable::bounded(&value, LONGEST).into_owned();
    answer(work, next, UPDATE_FAILED_ANNOTATION, value).await
}

/// Stores an answer for the owner of the machine. A request that is done is removed in the same write.
async fn answer(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    key: &str,
    value: String,
) -> Result<(), Error> {
    let before = OpenStackMachine {
        metadata: next.metadata.clone(),
        ..work.object.clone()
    };
    let mut after = before.clone();
    let annotations = after.annotations_mut();
    annotations.insert(key.to_owned(), value);
    if key == UPDATED_IN_PLACE_ANNOTATION {
        annotations.remove(UPDATE_IN_PROGRESS_ANNOTATION);
        annotations.remove(UPDATE_FAILED_ANNOTATION);
    }
    let stored = patch::object(&api(work.ctx, work.object), &before, &after).await;
    let stored = stored.map_err(Error::kubernetes("recording the update in place"))?;
    next.metadata = stored.unwrap_or(before).metadata;
    Ok(())
}

#[cfg(test)]
mod tests;
