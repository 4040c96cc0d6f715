//! The identity of an OpenStackCluster and its finalizer, which are stored before anything is created.

use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use openstack::Kind;
use operator::finalizer;

use super::apply::FRESH;
use super::{FINALIZER, openstack_machines};
use crate::context::kept::{self, Kept};
use crate::context::{Context, Error, namespace, of_cluster};
use crate::credentials;
use crate::evidence::{Evidence, Verdict};
use crate::identity::{CLUSTER_ID, Identity};
use crate::problem::Problem;
use crate::reason::{Reason, Type};

impl Kept for OpenStackCluster {
    const ID: &'static str = CLUSTER_ID;
    const FINALIZER: &'static str = FINALIZER;

    fn conditions(&self) -> Option<&[Condition]> {
        self.status.as_ref().map(|it| it.conditions.as_slice())
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

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
        return kept::store(ctx, object, id, |_| {}).await;
    }
    if let Some(id) = recovered(ctx, object).await? {
        claims.free(object, id)?;
        kept::store(ctx, object, id, |_| {}).await?;
        // It may act once the watch of identities has shown that no other object has it.
        return Err(Error::Behind);
    }
    let id = claims.mint();
    let stored = kept::store(ctx, object, id, |_| {}).await;
    stored.inspect_err(|_| claims.discard(id))
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
    let cloud = credentials::cloud(ctx.access(), &namespace(object), identity_ref).await?;
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
