//! Status of a pool: a function of its existing parts and of the problem of the reconcile.

use api::conditions::{Reason, Status, Type};
use api::infra::v1alpha1::OpenStackFloatingIPPool;
use api::infra::v1beta2::NetworkStatus;
use api::k8s_openapi::jiff::Timestamp;
use openstack::network::Network;

use super::plan::{Wanted, shares};
use super::work::Outcome;
use crate::context::kept::condition;

/// Sets a condition to false, and with it the summaries.
pub(super) fn not_ready(
    object: &mut OpenStackFloatingIPPool,
    now: Timestamp,
    type_: Type,
    reason: Reason,
    message: &str,
) {
    for type_ in [
        type_,
        Type::OpenstackFloatingIPPoolReadyCondition,
        Type::Ready,
    ] {
        condition(object, now, type_, (Status::False, reason, message));
    }
}

/// Writes the addresses, and the condition about claims.
pub(super) fn show(
    object: &mut OpenStackFloatingIPPool,
    network: &Network,
    wanted: &Wanted,
    outcome: &Outcome,
    now: Timestamp,
) {
    let shares = shares(wanted, &outcome.observed);
    let status = object.status.get_or_insert_default();
    let mut available = shares.available;
    available.sort();
    let (failed, why): (Vec<_>, Vec<_>) = shares.failed.into_iter().unzip();
    status.claimed_ips = shares.claimed;
    status.available_ips = available;
    status.failed_ips = failed;
    status.floating_ip_network = Some(NetworkStatus {
        name: network.name.clone(),
        id: network.id.clone(),
        tags: network.tags.clone(),
    });
    match outcome.plan.refused.len() {
        0 => {
            for type_ in [Type::OpenstackFloatingIPPoolReadyCondition, Type::Ready] {
                let verdict = (Status::True, Reason::Ready, why.join("; "));
                condition(object, now, type_, (verdict.0, verdict.1, &verdict.2));
            }
        }
        number => {
            let text = format!(
                "{number} IPAddressClaims wait: the pool has given out as many addresses as maxIPs says, {}",
                wanted.most
            );
            not_ready(
                object,
                now,
                Type::OpenstackFloatingIPPoolReadyCondition,
                Reason::MaxIPsReached,
                &text,
            );
        }
    }
}
