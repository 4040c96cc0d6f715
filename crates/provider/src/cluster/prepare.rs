//! The identity of an OpenStackCluster and its finalizer, which are stored before anything is created.

use api::infra::v1beta2::OpenStackCluster;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt};
use openstack::Kind;
use operator::{finalizer, patch};

use super::apply::FRESH;
use super::{FINALIZER, api, openstack_machines};
use crate::context::{Context, Error, namespace};
use crate::credentials;
use crate::evidence::{Evidence, Verdict};
use crate::identity::{CLUSTER_ID, Identity};
use crate::problem::Problem;
use crate::reason::{Reason, Type};

/// Stores identity and finalizer, both in one patch. A lost identity is restored if it is certain.
///
/// # Errors
/// A problem when the identity is uncertain, or is that of another object.
pub(super) async fn prepare(
    ctx: &Context,
    object: &OpenStackCluster,
) -> Result<OpenStackCluster, Error> {
    let known = Identity::of(object, CLUSTER_ID);
    if known.is_some() && finalizer::has(object, FINALIZER) {
        return Ok(object.clone());
    }
    let known = match known {
        Some(id) => Some(id),
        None => recovered(ctx, object).await?,
    };
    if let Some(id) = known {
        unique(ctx, object, id).await?;
    }
    let mut next = object.clone();
    let id = known.unwrap_or_default().to_string();
    next.annotations_mut().insert(CLUSTER_ID.to_owned(), id);
    if !finalizer::has(object, FINALIZER) {
        next.finalizers_mut().push(FINALIZER.to_owned());
    }
    let stored = patch::object(&api(ctx, object), object, &next).await;
    let stored = stored.map_err(Error::kubernetes("storing identity and finalizer"))?;
    Ok(stored.unwrap_or(next))
}

/// The identity of an object without the annotation; `None` when nothing was created for it yet.
async fn recovered(ctx: &Context, object: &OpenStackCluster) -> Result<Option<Identity>, Error> {
    let machines = match super::cluster_name(object) {
        Some(name) => openstack_machines(ctx, object, &name).await?,
        None => Vec::new(),
    };
    let has_finalizer = finalizer::has(object, FINALIZER);
    let verdict = |view: &openstack::View| {
        Evidence::of_cluster(object, &machines, view).verdict(CLUSTER_ID, has_finalizer)
    };
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

/// Rejects an identity that another object has, too: an object copied with its annotations would share the network of
/// the original, and deleting either of them would delete it.
pub(super) async fn unique(
    ctx: &Context,
    object: &OpenStackCluster,
    id: Identity,
) -> Result<(), Error> {
    let all: Api<OpenStackCluster> = match &ctx.options.namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    };
    let all = all.list_metadata(&ListParams::default()).await;
    let all = all.map_err(Error::kubernetes("listing OpenStackClusters"))?;
    let same = |other: &&PartialObjectMeta<OpenStackCluster>| {
        other.uid() != object.uid() && Identity::of(*other, CLUSTER_ID) == Some(id)
    };
    let Some(other) = all.iter().find(same) else {
        return Ok(());
    };
    let text = format!(
        "OpenStackCluster {}/{} has the same annotation {CLUSTER_ID}: delete the copy, remove its \
         finalizer {FINALIZER}, and create it anew without this annotation",
        namespace(other),
        other.name_any()
    );
    Err(Problem::new(Type::Ready, Reason::InvalidClusterSpec, text).into())
}
