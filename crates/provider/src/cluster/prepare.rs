//! The identity of an OpenStackCluster and its finalizer, which are stored before anything is created.

use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use kube::ResourceExt;
use openstack::Kind;
use operator::{finalizer, patch};

use super::apply::FRESH;
use super::{FINALIZER, api, openstack_machines};
use crate::context::{Context, Error, namespace, of_cluster};
use crate::credentials;
use crate::evidence::{Evidence, Verdict};
use crate::identity::{CLUSTER_ID, Identity};
use crate::problem::Problem;
use crate::reason::{Reason, Type};

/// Stores identity and finalizer, both in one patch. A lost identity is restored if it is certain. A cluster acts only
/// with an identity that no other object has.
///
/// # Errors
/// A problem when the identity is uncertain, or is that of another object.
pub(super) async fn prepare(
    ctx: &Context,
    object: &OpenStackCluster,
) -> Result<OpenStackCluster, Error> {
    let claims = &ctx.claims.clusters;
    if let Some(id) = Identity::of(object, CLUSTER_ID) {
        claims.sole(object, id)?;
        return store(ctx, object, id).await;
    }
    if let Some(id) = recovered(ctx, object).await? {
        claims.free(object, id)?;
        store(ctx, object, id).await?;
        // It may act once the watch of identities has shown that no other object has it.
        return Err(Error::Behind);
    }
    let id = claims.mint();
    let stored = store(ctx, object, id).await;
    stored.inspect_err(|_| claims.discard(id))
}

async fn store(
    ctx: &Context,
    object: &OpenStackCluster,
    id: Identity,
) -> Result<OpenStackCluster, Error> {
    let mut next = object.clone();
    next.annotations_mut()
        .insert(CLUSTER_ID.to_owned(), id.to_string());
    if !finalizer::has(object, FINALIZER) {
        next.finalizers_mut().push(FINALIZER.to_owned());
    }
    if next.metadata == object.metadata {
        return Ok(next);
    }
    let stored = patch::object(&api(ctx, object), object, &next).await;
    let stored = stored.map_err(Error::kubernetes("storing identity and finalizer"))?;
    Ok(stored.unwrap_or(next))
}

/// The identity of an object without the annotation; `None` when nothing was created for it yet.
async fn recovered(ctx: &Context, object: &OpenStackCluster) -> Result<Option<Identity>, Error> {
    let machines = match of_cluster(object) {
        Some(name) => openstack_machines(ctx, object, name).await?,
        None => Vec::new(),
    };
    let verdict = |view: &openstack::View| restored(object, &machines, view);
    if verdict(&openstack::View::default()) == Verdict::New {
        return Ok(None);
    }
    let identity_ref = &object.spec.identity_ref;
    let cloud =
        credentials::cloud(&ctx.client, &ctx.clouds, &namespace(object), identity_ref).await?;
    let mut kinds = vec![
        Kind::Networks,
        Kind::Routers,
        Kind::SecurityGroups,
        Kind::FloatingIps,
    ];
    let status = object.status.as_ref();
    if status.is_some_and(|status| status.api_server_managed_load_balancer.is_some()) {
        kinds.push(Kind::LoadBalancers);
    }
    let view = cloud.inventory.view(&kinds, FRESH).await;
    match verdict(&*view.map_err(|error| credentials::listing(&error))?) {
        Verdict::New => Ok(None),
        Verdict::Known(mark) => Ok(Some(mark.cluster)),
        Verdict::Unknown(why) => {
            Err(Problem::new(Type::Ready, Reason::IdentityUnknown, why).into())
        }
    }
}

/// What a view tells of the identity of a cluster without the annotation.
pub(crate) fn restored(
    object: &OpenStackCluster,
    machines: &[OpenStackMachine],
    view: &openstack::View,
) -> Verdict {
    let has_finalizer = finalizer::has(object, FINALIZER);
    Evidence::of_cluster(object, machines, view).verdict(CLUSTER_ID, has_finalizer)
}
