//! The identity of a pool and its finalizer, which are stored before anything is allocated.

use std::collections::BTreeSet;

use api::infra::v1alpha1::OpenStackFloatingIPPool;
use kube::ResourceExt;
use openstack::{Kind, View};
use operator::{finalizer, patch};

use super::api;
use crate::cluster::apply::FRESH;
use crate::context::{Context, Error, namespace};
use crate::credentials;
use crate::identity::{Identity, POOL_ID};
use crate::names::POOL_FINALIZER as FINALIZER;
use crate::problem::Problem;
use crate::reason::{Reason, Type};

/// Stores identity and finalizer, both in one patch, and returns the identity. A lost one is restored if it is certain.
///
/// # Errors
/// A problem when the identity is uncertain, or is that of another object.
pub(super) async fn prepare(
    ctx: &Context,
    object: &OpenStackFloatingIPPool,
    next: &mut OpenStackFloatingIPPool,
) -> Result<Identity, Error> {
    let claims = &ctx.claims.pools;
    if let Some(id) = identity(ctx, object, next).await? {
        store(ctx, object, next, id).await?;
        return Ok(id);
    }
    let id = claims.mint();
    let stored = store(ctx, object, next, id).await;
    stored.inspect_err(|_| claims.discard(id))?;
    Ok(id)
}

/// The identity with which the pool may act; `None` for a new one.
///
/// # Errors
/// As [`prepare`].
pub(super) async fn identity(
    ctx: &Context,
    object: &OpenStackFloatingIPPool,
    next: &mut OpenStackFloatingIPPool,
) -> Result<Option<Identity>, Error> {
    if let Some(id) = Identity::of(object, POOL_ID) {
        ctx.claims.pools.sole(object, id)?;
        return Ok(Some(id));
    }
    if !finalizer::has(object, FINALIZER) && addresses(object).is_empty() {
        return Ok(None);
    }
    let identity_ref = &object.spec.identity_ref;
    let cloud =
        credentials::cloud(&ctx.client, &ctx.clouds, &namespace(object), identity_ref).await?;
    let view = cloud.inventory.view(&[Kind::FloatingIps], FRESH).await;
    let id = restored(
        object,
        &*view.map_err(|error| credentials::listing(&error))?,
    )?;
    ctx.claims.pools.free(object, id)?;
    store(ctx, object, next, id).await?;
    // It may act once the watch of identities has shown that no other object has it.
    Err(Error::Behind)
}

/// The identity of a pool that has lost its annotation, by the marks on the floating IPs in its status that have its
/// name.
fn restored(object: &OpenStackFloatingIPPool, view: &View) -> Result<Identity, Problem> {
    let addresses = addresses(object);
    let name = object.name_any();
    let all = view.floating_ips.iter();
    let ids = all
        .filter(|ip| addresses.contains(&ip.floating_ip_address.as_str()))
        .filter_map(|ip| Some((Identity::of_pool(&**ip)?, &ip.description)))
        .filter(|(id, description)| id.pool_description(&name) == **description)
        .map(|(id, _)| id);
    let ids: BTreeSet<_> = ids.collect();
    let mut ids = ids.into_iter();
    if let (Some(id), None) = (ids.next(), ids.next()) {
        return Ok(id);
    }
    let text = format!(
        "the annotation {POOL_ID} is gone, and the floating IPs in the status do not tell it. Nothing is allocated or \
         deleted until the annotation is set to the identity at the end of the descriptions of the pool's floating \
         IPs; if there are none, remove the finalizer {FINALIZER} and the status, or create the pool anew"
    );
    Err(Problem::new(Type::Pool, Reason::IdentityUnknown, text))
}

/// The addresses in the status.
fn addresses(object: &OpenStackFloatingIPPool) -> Vec<&str> {
    let status = object.status.iter();
    let all = status.flat_map(|status| status.claimed_ips.iter().chain(&status.available_ips));
    let given = &object.spec.pre_allocated_floating_ips;
    all.filter(|address| !given.contains(address))
        .map(String::as_str)
        .collect()
}

async fn store(
    ctx: &Context,
    object: &OpenStackFloatingIPPool,
    next: &mut OpenStackFloatingIPPool,
    id: Identity,
) -> Result<(), Error> {
    let mut wanted = object.clone();
    let annotations = wanted.annotations_mut();
    annotations.insert(POOL_ID.to_owned(), id.to_string());
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
