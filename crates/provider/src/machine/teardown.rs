//! Deletion of a machine: first the member of the load balancer, then the server, then ports and volumes.

use std::time::Duration;

use api::conditions::Type;
use api::infra::v1beta2::OpenStackMachine;
use kube::runtime::controller::Action;
use openstack::Kind;
use operator::finalizer;

use super::failed::{Failed, Placement};
use super::inputs::{cloud, kinds};
use super::observed::Observed;
use super::surroundings::Surroundings;
use super::work::Work;
use super::{FINALIZER, address, plan, prepare};
use crate::context::kept;
use crate::context::{Context, Error, is_deleting};

/// Deletes all resources with the mark of the machine. `None`: none is left, and the finalizer is removed.
pub(super) async fn delete(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    around: &Surroundings,
) -> Result<Option<Action>, Error> {
    if !finalizer::has(object, FINALIZER) {
        // The provider has created nothing for it.
        return Ok(Some(Action::await_change()));
    }
    let mut left = take_down(ctx, object, next, around).await;
    if let Err(Error::Problem(problem)) = &mut left
        && problem.about == Type::OpenStackAuthenticationSucceeded
    {
        problem.message.push_str(
            ". The server cannot be deleted until this is fixed (if nothing of the machine is left in the cloud, remove \
             the finalizer)",
        );
    }
    if matches!(left, Ok(None)) && object.spec.floating_ip_pool_ref.is_some() {
        address::claimant(object, around).give_back(ctx).await?;
    }
    kept::let_go(ctx, object, next, left).await
}

/// Deletes the resources with the mark of the machine, and returns the reason to wait; `None` when none is left.
async fn take_down(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    around: &Surroundings,
) -> Result<Option<String>, Error> {
    let Some(mark) = prepare::mark(ctx, object, next, around).await? else {
        return Ok(None);
    };
    let infra = around.openstack_cluster.as_ref();
    let cloud = cloud(ctx, object, infra).await?;
    let place = Placement::new(object, None, &Failed::default());
    let work = Work::new(ctx, object, (&object.spec, &place), &cloud, mark, false);
    let alive = infra.is_some_and(|infra| !is_deleting(infra));
    // Without its Cluster, nothing changes the members of a load balancer.
    let balanced = alive && around.cluster.is_some() && around.is_balanced();
    let mut kinds = kinds(&object.spec, false, balanced);
    if kinds.contains(&Kind::Trunks) {
        // Others add subports, which go with their trunk.
        let of_trunks = [Kind::Trunks, Kind::Ports];
        work.observe(&of_trunks, Duration::ZERO).await?;
    }
    let plan = |observed: &Observed| plan::plan_deletion(observed, balanced);
    let waits = work.apply(&kinds, plan, plan::deletion).await?;
    if let Some(wait) = waits.first() {
        return Ok(Some(wait.clone()));
    }
    // The view can be out of date: before the finalizer is removed, the cloud is read again.
    kinds.retain(|kind| matches!(kind, Kind::Servers | Kind::Ports | Kind::Volumes));
    if work.observe(&kinds, Duration::ZERO).await?.is_empty() {
        return Ok(None);
    }
    Ok(Some(
        "something that carries the machine's mark appeared again".to_owned(),
    ))
}
