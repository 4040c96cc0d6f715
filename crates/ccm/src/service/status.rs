//! Publishes the address of a load balancer in the Service.

use api::k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus};
use openstack::View;

use super::desired::Desired;
use super::observed::Observed;
use super::round::Rounds;
use super::vip::Family;
use super::{Work, annotations, observed};
use crate::context::Error;

/// Publishes the address of an active load balancer, and then the address of a second load balancer. Returns true if
/// all addresses are published.
pub(super) async fn publish(work: &Work<'_>, rounds: &Rounds, view: &View) -> Result<bool, Error> {
    let desired = &rounds.first.desired;
    let known = work.cloud.inventory.known();
    let Ok(Some(observed)) = observed::find(work.service, work.identity, &known) else {
        return Ok(false);
    };
    let balancer = &observed.balancer;
    if record(work, &balancer.id, None).await? {
        // The change of the Service triggers another reconcile.
        return Ok(false);
    }
    let Some(mut addresses) = addresses(desired, &observed) else {
        return Ok(false);
    };
    let mut is_complete = true;
    if let Some((second, round)) = &rounds.second {
        let found = observed::find(&second.service, &second.identity, &known).ok();
        let found = found.flatten();
        let further = found.and_then(|found| self::addresses(&round.desired, &found));
        is_complete = further.is_some();
        addresses.extend(further.unwrap_or_default());
    }
    if desired.floating.is_none() && !desired.is_internal && !observed.is_published {
        forced(work, view).await;
    }
    let ingress = match &desired.hostname {
        Some(name) => vec![hostname(name.clone())],
        None => addresses
            .iter()
            .map(|address| ingress(work, desired, address))
            .collect(),
    };
    let mut after = work.service.clone();
    after.status.get_or_insert_default().load_balancer = Some(LoadBalancerStatus {
        ingress: Some(ingress),
    });
    let written = operator::patch::status(&work.api(), work.service, &after).await;
    if written
        .map_err(Error::kubernetes("writing the address of the Service"))?
        .is_some()
    {
        let note = "Ensured load balancer";
        work.ctx
            .recorder
            .normal(work.service, "EnsuredLoadBalancer", "Ensure", note)
            .await;
        // The write triggers another reconcile, which writes the annotations.
        return Ok(is_complete);
    }
    record(work, &balancer.id, addresses.first().map(String::as_str)).await?;
    Ok(is_complete)
}

/// Published form of an address. With the PROXY protocol, nodes must not deliver traffic for the address themselves,
/// since the header would be missing.
fn ingress(work: &Work<'_>, desired: &Desired, address: &str) -> LoadBalancerIngress {
    let conf = &work.settings.conf.load_balancer;
    if desired.is_proxied && conf.enable_ingress_hostname {
        // A label of a name has no colons.
        let label = address.replace(':', "-");
        return hostname(format!("{label}.{}", conf.ingress_hostname_suffix));
    }
    LoadBalancerIngress {
        ip: Some(address.to_owned()),
        ip_mode: Some(if desired.is_proxied { "Proxy" } else { "VIP" }.to_owned()),
        ..LoadBalancerIngress::default()
    }
}

fn hostname(name: String) -> LoadBalancerIngress {
    LoadBalancerIngress {
        hostname: Some(name),
        ..LoadBalancerIngress::default()
    }
}

/// Addresses of the families, in their order, once the load balancer is active, has all of them, and has a member.
fn addresses(desired: &Desired, observed: &Observed) -> Option<Vec<String>> {
    let balancer = &observed.balancer;
    let serves = balancer.provisioning_status == "ACTIVE" && observed.has_members();
    // A published address stays, in any state of the load balancer in Octavia.
    if !serves && !observed.is_published {
        return None;
    }
    let others = balancer.additional_vips.iter().map(|vip| &vip.ip_address);
    let address = |family: &Family| {
        if *family == Family::V4 && desired.floating.is_some() {
            let floating = observed.floating_ip.as_ref()?;
            return Some(floating.floating_ip_address.clone());
        }
        let mut all = std::iter::once(&balancer.vip_address).chain(others.clone());
        all.find(|address| family.has(address)).cloned()
    };
    desired.families.iter().map(address).collect()
}

/// Writes the annotations with id and address, as the Go manager does. Returns true if the Service was changed.
async fn record(work: &Work<'_>, id: &str, address: Option<&str>) -> Result<bool, Error> {
    let mut after = work.service.clone();
    let list = after.metadata.annotations.get_or_insert_default();
    list.insert(annotations::ID.to_owned(), id.to_owned());
    if let Some(address) = address {
        list.insert(annotations::ADDRESS.to_owned(), address.to_owned());
    }
    let written = operator::patch::object(&work.api(), work.service, &after).await;
    written
        .map(|written| written.is_some())
        .map_err(Error::kubernetes("writing the annotations of the Service"))
}

/// Reports the reason for a missing floating IP of a load balancer.
async fn forced(work: &Work<'_>, view: &View) {
    if view.external_networks().next().is_none() {
        let note = "Failed to find floating-network-id: the project sees no external network";
        work.warn("LoadBalancerExternalNetworkSearchFailed", note)
            .await;
    }
    let (reason, note) = match view.external_networks().next() {
        Some(_) => (
            "LoadBalancerFloatingIPSkipped",
            "An address of IPv6 needs no floating IP",
        ),
        None => (
            "LoadBalancerForcedInternal",
            "The cloud has no external network, so that the load balancer is internal; set floating-network-id in cloud.conf",
        ),
    };
    work.ctx
        .recorder
        .normal(work.service, reason, "Ensure", note)
        .await;
}
