//! Identity of an [`OpenStackCluster`] and its finalizer, stored before anything is created.

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{OpenStackCluster, OpenStackClusterStatus, OpenStackMachine};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use openstack::{Kind, View};
use operator::finalizer;

use super::adoption;
use super::adoption::apply::adopt;
use super::apply::FRESH;
use super::{FINALIZER, openstack_machines};
use crate::context::kept::{self, Kept};
use crate::context::{Context, Error, namespace, of_cluster};
use crate::credentials;
use crate::evidence::{Evidence, Verdict};
use crate::identity::{CLUSTER_ID, Identity};
use crate::placement;
use crate::problem::Problem;

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

/// Stores identity and finalizer, both in one patch. A lost [`Identity`] is restored if certain. A cluster acts only
/// with an identity that no other object has.
///
/// # Errors
/// A [`Problem`] when the identity is uncertain, or belongs to another object.
pub(super) async fn prepare(
    ctx: &Context,
    object: &OpenStackCluster,
) -> Result<OpenStackCluster, Error> {
    let claims = &ctx.claims.clusters;
    if let Some(id) = Identity::for_object(object, CLUSTER_ID) {
        claims.sole(object, id)?;
        return kept::store(ctx, object, id, recorded).await;
    }
    if let Some(id) = inherited(ctx, object).await? {
        claims.free(object, id)?;
        kept::store(ctx, object, id, recorded).await?;
        // It may act once the watch of identities has shown that no other object has it.
        return Err(Error::Behind);
    }
    let id = claims.mint();
    let stored = kept::store(ctx, object, id, recorded).await;
    stored.inspect_err(|_| claims.discard(id))
}

/// Records the request for server groups, before one is created.
fn recorded(object: &mut OpenStackCluster) {
    if placement::is_used(object) {
        let name = placement::HAS_SERVER_GROUPS_ANNOTATION.to_owned();
        object.annotations_mut().insert(name, "true".to_owned());
    }
}

/// [`Identity`] of an object without the annotation: a lost one, or the identity of a cluster taken over from the Go
/// provider. `None` when nothing was created for the object yet.
async fn inherited(ctx: &Context, object: &OpenStackCluster) -> Result<Option<Identity>, Error> {
    let name = of_cluster(object);
    let machines = match name {
        Some(name) => openstack_machines(ctx, object, name).await?,
        None => Vec::new(),
    };
    if restored(object, &machines, &View::default()) == Verdict::New {
        return Ok(None);
    }
    let adopted = match name.filter(|_| adoption::is_wanted(object)) {
        Some(name) => Some(adopt(ctx, object, name, &machines).await),
        None => None,
    };
    match adopted {
        Some(Err(Error::Problem(problem))) if problem.reason == Reason::AdoptionRefused => {
            // What carries the marks of a cluster that was taken over before still tells its identity.
            let found = recovered(ctx, object, &machines).await;
            Ok(Some(found.ok().flatten().ok_or(problem)?))
        }
        Some(adopted) => adopted.map(Some),
        None => recovered(ctx, object, &machines).await,
    }
}

/// Lost [`Identity`] of an object; `None` when nothing was created for the object yet.
async fn recovered(
    ctx: &Context,
    object: &OpenStackCluster,
    machines: &[OpenStackMachine],
) -> Result<Option<Identity>, Error> {
    let identity_ref = &object.spec.identity_ref;
    let cloud = credentials::cloud(ctx.access(), &namespace(object), identity_ref).await?;
    let mut kinds = vec![
        Kind::Networks,
        Kind::Routers,
        Kind::SecurityGroups,
        Kind::FloatingIps,
    ];
    let status = object.status.as_ref();
    let has_balancer = |status: &OpenStackClusterStatus| {
        status.api_server_managed_load_balancer.is_some()
            || !status.api_server_load_balancers.is_empty()
    };
    if status.is_some_and(has_balancer) {
        kinds.push(Kind::LoadBalancers);
    }
    let view = cloud.inventory.view(&kinds, FRESH).await;
    let view = view.map_err(|error| credentials::listing(&error))?;
    match restored(object, machines, &view) {
        Verdict::New => Ok(None),
        Verdict::Known(mark) => Ok(Some(mark.cluster)),
        Verdict::Unknown(why) => {
            let text = format!("{why}{}", adoption_hint(object));
            Err(Problem::new(Type::Ready, Reason::IdentityUnknown, text).into())
        }
    }
}

/// Hint at an adoption, for a cluster of the Go provider.
fn adoption_hint(object: &OpenStackCluster) -> String {
    let (name, namespace) = (object.name_any(), namespace(object));
    let cluster = of_cluster(object).unwrap_or(&name);
    format!(
        ". If cluster-api-provider-openstack has created the cluster, stop it, and take the cluster over: `ferrostack adopt \
         cluster {cluster} -n {namespace} --dry-run` shows what would be marked"
    )
}

/// [`Verdict`] of a view on the identity of a cluster without the annotation.
pub(crate) fn restored(
    object: &OpenStackCluster,
    machines: &[OpenStackMachine],
    view: &View,
) -> Verdict {
    let has_finalizer = finalizer::has(object, FINALIZER);
    Evidence::of_cluster(object, machines, view).verdict(CLUSTER_ID, has_finalizer)
}
