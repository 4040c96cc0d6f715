//! Deletes the resources of a Service.

use kube::runtime::controller::Action;
use openstack::View;

use super::identity::Identity;
use super::{AT_REST, FALLBACK, FINALIZER, FRESH, Work, annotations, observed};
use crate::context::Error;

/// Deletes floating IP and load balancer, and removes the finalizer after both are deleted.
pub(crate) async fn run(work: &Work<'_>) -> Result<Action, Error> {
    let known = work.view(AT_REST).await?;
    if let Some(balancer) = find(work, &known)
        && balancer.balancer.provisioning_status == "PENDING_DELETE"
    {
        return Ok(Action::requeue(FALLBACK));
    }
    let view = work.view(FRESH).await?;
    let found = find(work, &view);
    floating_ips(work, found.as_ref(), &view).await?;
    let Some(found) = found else {
        return finish(work).await;
    };
    if matches!(
        found.balancer.provisioning_status.as_str(),
        "ACTIVE" | "ERROR"
    ) {
        let note = "Deleting load balancer";
        work.ctx
            .recorder
            .normal(work.service, "DeletingLoadBalancer", "Delete", note)
            .await;
        let deleted = work
            .cloud
            .inventory
            .delete_load_balancer(&found.balancer.id)
            .await;
        deleted.map_err(Error::cloud("deleting the load balancer"))?;
    }
    Ok(Action::requeue(FALLBACK))
}

/// The load balancer of the Service. One in the annotation that does not belong to the Service is ignored.
fn find(work: &Work<'_>, view: &View) -> Option<observed::Observed> {
    observed::find(work.service, work.identity, view)
        .ok()
        .flatten()
}

/// Deletes the floating IP of the load balancer, and floating IPs without a port that were created for the Service.
async fn floating_ips(
    work: &Work<'_>,
    found: Option<&observed::Observed>,
    view: &View,
) -> Result<(), Error> {
    let annotations = work
        .service
        .metadata
        .annotations
        .clone()
        .unwrap_or_default();
    if annotations::keeps_floating_ip(&annotations) {
        return Ok(());
    }
    let attached = found.and_then(|found| found.floating_ip.clone());
    let attached = attached.filter(|ip| Identity::is_managed_floating_ip(&ip.description));
    let lost = view
        .floating_ips
        .iter()
        .filter(|ip| ip.port_id.is_none() && work.identity.owns_floating_ip(&ip.description));
    for ip in attached.iter().chain(lost) {
        let deleted = work.cloud.inventory.delete_floating_ip(&ip.id).await;
        deleted.map_err(Error::cloud(format!(
            "deleting the floating IP {}",
            ip.floating_ip_address
        )))?;
    }
    Ok(())
}

/// Removes annotations, address and finalizer, after everything is deleted in the cloud.
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
    let note = "Deleted load balancer";
    work.ctx
        .recorder
        .normal(work.service, "DeletedLoadBalancer", "Delete", note)
        .await;
    match operator::patch::object(&work.api(), work.service, &after).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        result => drop(result.map_err(Error::kubernetes("removing the finalizer of the Service"))?),
    }
    Ok(Action::await_change())
}
