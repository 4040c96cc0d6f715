//! Deletion of the resources of a Service.

use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use openstack::loadbalancer::LoadBalancerUpdate;
use openstack::network::FloatingIp;
use openstack::{Kind, View};

use super::groups;
use super::identity::Identity;
use super::observed::{Observed, Role};
use super::second::Second;
use super::vip::Family;
use super::{AT_REST, FALLBACK, FINALIZER, FRESH, Work, annotations, observed, pending};
use crate::context::Error;
use crate::metrics::Operation;

/// Deletes floating IPs and load balancers, and removes the finalizer after the last deletion.
pub(crate) async fn run(work: &Work<'_>) -> Result<Action, Error> {
    let known = work.view(AT_REST).await?;
    if let Some(found) = find(work, &known).filter(is_going) {
        pending::watch(work, Operation::Delete, Some(&found.balancer)).await;
        return Ok(Action::requeue(pending::next_look(work)));
    }
    let view = work.view(FRESH).await?;
    let mut is_gone = true;
    for family in Family::ALL {
        if is_left(work, &work.identity.of_second(family), &view) {
            let second = Second::new(work.service, work.identity, family);
            is_gone &= remove(&second.work(work), &view).await?;
        }
    }
    is_gone &= remove(work, &view).await?;
    match is_gone {
        true => finish(work).await,
        false => Ok(Action::requeue(pending::next_look(work))),
    }
}

/// Deletes floating IP, load balancer and security group. Returns true if all are gone.
pub(crate) async fn remove(work: &Work<'_>, view: &View) -> Result<bool, Error> {
    work.shared.settled.forget(work.identity);
    let found = find(work, view);
    let balancer = found.as_ref().map(|found| &*found.balancer);
    pending::watch(work, Operation::Delete, balancer).await;
    if found.as_ref().is_some_and(is_going) {
        return Ok(false);
    }
    let leaves = found.as_ref().is_some_and(|found| !is_ours(work, found));
    let going = found.as_ref().filter(|_| !leaves);
    for ip in floating_ips(work.service, work.identity, going, view) {
        let deleted = work.cloud.inventory.delete_floating_ip(&ip.id).await;
        deleted.map_err(Error::cloud(format!(
            "deleting the floating IP {}",
            ip.floating_ip_address
        )))?;
    }
    let Some(found) = found else {
        groups::remove(work).await?;
        return Ok(true);
    };
    let status = found.balancer.provisioning_status.as_str();
    match (leaves, status) {
        (true, "ACTIVE") => leave(work, &found).await?,
        (false, "ACTIVE" | "ERROR") => delete(work, &found.balancer.id).await?,
        _ => {}
    }
    Ok(false)
}

fn is_going(found: &Observed) -> bool {
    found.balancer.provisioning_status == "PENDING_DELETE"
}

/// True if a part of a second load balancer is left.
pub(crate) fn is_left(work: &Work<'_>, identity: &Identity, view: &View) -> bool {
    let tagged = view.load_balancers.tagged(&identity.service_tag());
    tagged.iter().any(|balancer| identity.owns(&balancer.tags))
        || groups::exists(identity, view)
        || !floating_ips(work.service, identity, None, view).is_empty()
}

/// True if the load balancer is deleted with the Service: created by a manager of this cluster, and serving no other
/// Service.
fn is_ours(work: &Work<'_>, found: &Observed) -> bool {
    let (identity, balancer) = (work.identity, &found.balancer);
    let is_managed =
        found.role == Role::Owner || identity.is_managed(&balancer.name, &balancer.tags);
    is_managed && identity.others(&balancer.name, &balancer.tags).is_empty()
}

async fn delete(work: &Work<'_>, id: &str) -> Result<(), Error> {
    let deleted = work.cloud.inventory.delete_load_balancer(id).await;
    deleted.map_err(Error::cloud("deleting the load balancer"))?;
    let note = "Deleting load balancer";
    work.ctx
        .recorder
        .normal(work.service, "DeletingLoadBalancer", "Delete", note)
        .await;
    Ok(())
}

/// Takes the next part of the Service, and at last its tags, off a load balancer that stays.
async fn leave(work: &Work<'_>, found: &Observed) -> Result<(), Error> {
    let (inventory, id) = (&work.cloud.inventory, found.balancer.id.as_str());
    if let Some(branch) = found.listeners.values().next() {
        let deleted = inventory.delete_listener(id, &branch.listener.id).await;
        inventory.stale(Kind::Pools);
        return deleted.map_err(Error::cloud("deleting a listener"));
    }
    if let Some(pool) = found.orphans.first() {
        let deleted = inventory.delete_pool(id, pool).await;
        return deleted.map_err(Error::cloud("deleting a pool"));
    }
    let balancer = &found.balancer;
    let left = work.identity.without_ours(&balancer.name, &balancer.tags);
    let change = LoadBalancerUpdate { tags: Some(left) };
    let updated = inventory.update_load_balancer(id, &change).await;
    updated
        .map(drop)
        .map_err(Error::cloud("taking the tags off the load balancer"))
}

/// Load balancer of the Service. Another one in the annotation is ignored.
fn find(work: &Work<'_>, view: &View) -> Option<Observed> {
    let mut service = work.service.clone();
    let found = observed::find(&service, work.identity, view).or_else(|_| {
        service.annotations_mut().remove(annotations::ID);
        observed::find(&service, work.identity, view)
    });
    found
        .ok()
        .flatten()
        .filter(|found| found.role != Role::Applicant)
}

/// Floating IPs deleted with a load balancer: its own, and floating IPs without a port that were created for the
/// [`Service`].
fn floating_ips(
    service: &Service,
    identity: &Identity,
    found: Option<&Observed>,
    view: &View,
) -> Vec<Arc<FloatingIp>> {
    if annotations::keeps_floating_ip(service.annotations()) {
        return Vec::new();
    }
    let attached = found.and_then(|found| found.floating_ip.clone());
    let attached = attached.filter(|ip| Identity::is_managed_floating_ip(&ip.description));
    let lost = view
        .floating_ips
        .iter()
        .filter(|ip| ip.port_id.is_none() && identity.owns_floating_ip(&ip.description));
    attached.into_iter().chain(lost.cloned()).collect()
}

/// Removes annotations, address and finalizer, after all deletions in the cloud.
async fn finish(work: &Work<'_>) -> Result<Action, Error> {
    let mut after = work.service.clone();
    if let Some(list) = &mut after.metadata.annotations {
        list.remove(annotations::ID);
        list.remove(annotations::ADDRESS);
    }
    let finalizers = after.metadata.finalizers.get_or_insert_default();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    let status = work.service.status.as_ref();
    let published = status.and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
    if published.is_some_and(|list| !list.is_empty()) && after.metadata.deletion_timestamp.is_none()
    {
        let mut cleared = work.service.clone();
        cleared.status.get_or_insert_default().load_balancer = Some(Default::default());
        let written = operator::patch::status(&work.api(), work.service, &cleared).await;
        written.map_err(Error::kubernetes("removing the address of the Service"))?;
        // The change of the Service triggers another reconcile.
        return Ok(Action::requeue(FALLBACK));
    }
    match operator::patch::object(&work.api(), work.service, &after).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        result => drop(result.map_err(Error::kubernetes("removing the finalizer of the Service"))?),
    }
    let note = "Deleted load balancer";
    work.ctx
        .recorder
        .normal(work.service, "DeletedLoadBalancer", "Delete", note)
        .await;
    Ok(Action::await_change())
}
