//! The identity of an OpenStackServer and its finalizer, which are stored before anything is created.

use api::infra::v1alpha1::OpenStackServer;
use kube::ResourceExt;
use openstack::{Kind, View};
use operator::{finalizer, patch};

use super::{api, cloud, mark};
use crate::cluster::apply::FRESH;
use crate::context::{Context, Error};
use crate::credentials;
use crate::identity::{Identity, MACHINE_ID, Mark};
use crate::names::SERVER_FINALIZER as FINALIZER;
use crate::problem::Problem;
use crate::reason::{Reason, Type};

/// Stores identity and finalizer, both in one patch, and returns the identity. A lost one is restored if it is certain.
///
/// # Errors
/// A problem when the identity is uncertain, or is that of another object.
pub(super) async fn prepare(
    ctx: &Context,
    object: &OpenStackServer,
    next: &mut OpenStackServer,
) -> Result<Identity, Error> {
    let claims = &ctx.claims.servers;
    if let Some(id) = identity(ctx, object, next).await? {
        store(ctx, object, next, id).await?;
        return Ok(id);
    }
    let id = claims.mint();
    let stored = store(ctx, object, next, id).await;
    stored.inspect_err(|_| claims.discard(id))?;
    Ok(id)
}

/// The identity with which the server may act; `None` for a new one.
///
/// # Errors
/// As [`prepare`].
pub(super) async fn identity(
    ctx: &Context,
    object: &OpenStackServer,
    next: &mut OpenStackServer,
) -> Result<Option<Identity>, Error> {
    if let Some(id) = Identity::of(object, MACHINE_ID) {
        if id.is_of_bastion() {
            return Err(unknown("has the identity of a bastion").into());
        }
        ctx.claims.servers.sole(object, id)?;
        return Ok(Some(id));
    }
    if !finalizer::has(object, FINALIZER) && recorded(object).is_none() {
        return Ok(None);
    }
    let cloud = cloud(ctx, object).await?;
    let view = cloud.inventory.view(&[Kind::Servers], FRESH).await;
    let id = restored(
        object,
        &*view.map_err(|error| credentials::listing(&error))?,
    )?;
    ctx.claims.servers.free(object, id)?;
    store(ctx, object, next, id).await?;
    // It may act once the watch of identities has shown that no other object has it.
    Err(Error::Behind)
}

fn recorded(object: &OpenStackServer) -> Option<&String> {
    object.status.as_ref()?.instance_id.as_ref()
}

/// The identity of a server that has lost its annotation, by the tags of the server in its status that has its name.
fn restored(object: &OpenStackServer, view: &View) -> Result<Identity, Problem> {
    let server = recorded(object).and_then(|id| view.servers.get(id));
    let server = server.filter(|server| server.name == object.name_any());
    let found = server.and_then(|server| Mark::in_tags(&server.tags));
    let id = found.filter(|found| mark(found.cluster) == *found);
    id.map(|found| found.cluster)
        .ok_or_else(|| unknown("is gone, and the server in the status does not tell it"))
}

fn unknown(why: &str) -> Problem {
    let text = format!(
        "the annotation {MACHINE_ID} {why}. Nothing is created or deleted until the annotation is set to the identity \
         in the tags of the server; what another provider created is not taken over; if there is nothing in the cloud, \
         remove the finalizer {FINALIZER} and create the object anew"
    );
    Problem::new(Type::Instance, Reason::IdentityUnknown, text)
}

async fn store(
    ctx: &Context,
    object: &OpenStackServer,
    next: &mut OpenStackServer,
    id: Identity,
) -> Result<(), Error> {
    let mut wanted = object.clone();
    let annotations = wanted.annotations_mut();
    annotations.insert(MACHINE_ID.to_owned(), id.to_string());
    if !finalizer::has(object, FINALIZER) {
        wanted.finalizers_mut().push(FINALIZER.to_owned());
    }
    if wanted.metadata != object.metadata {
        let stored = patch::object(&api(ctx, object), object, &wanted).await;
        let stored = stored.map_err(Error::kubernetes("storing identity and finalizer"))?;
        next.metadata = stored.unwrap_or(wanted).metadata;
    }
    Ok(())
}
