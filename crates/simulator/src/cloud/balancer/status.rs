//! PENDING and ACTIVE: a load balancer and all its parts are locked together while anything of it changes.

use std::sync::Arc;

use crate::cloud::call::Call;
use crate::cloud::clock::naive;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::network;
use crate::cloud::state::State;

/// The kinds of a load balancer's parts, innermost first.
pub(crate) const PARTS: [Kind; 6] = [
    Kind::L7Rule,
    Kind::L7Policy,
    Kind::Member,
    Kind::HealthMonitor,
    Kind::Listener,
    Kind::Pool,
];

/// Applies a due transition to a load balancer.
pub(crate) fn transition(state: &mut State, action: &str, id: &str) {
    match action {
        "settle" => settle(state, id),
        "gone" => gone(state, id),
        _ => tracing::warn!(action, "unknown load balancer transition dropped"),
    }
}

/// The load balancer, if it may be changed now.
pub(crate) fn mutable(call: &Call<'_>, id: &str) -> Result<Arc<Doc>, Fault> {
    let balancer = call
        .own(Kind::LoadBalancer, id)
        .ok_or_else(|| Fault::missing(format!("Load Balancer {id} not found.")))?;
    match balancer.text("provisioning_status") {
        "ACTIVE" => Ok(balancer),
        _ => Err(immutable(id)),
    }
}

/// Octavia's error while something is pending.
pub(crate) fn immutable(id: &str) -> Fault {
    Fault::conflict(format!(
        "Load Balancer {id} is immutable and cannot be updated."
    ))
}

/// Locks the load balancer for a change of one of its parts; a later transition unlocks it.
pub(crate) fn lock(call: &mut Call<'_>, id: &str) {
    let now = naive(call.now());
    call.state.edit(Kind::LoadBalancer, id, |doc| {
        doc.set("provisioning_status", "PENDING_UPDATE");
        doc.set("updated_at", now);
    });
    let delay = call.settings.latency.transition(Transition::BalancerUpdate);
    call.state.schedule(delay, "settle", Kind::LoadBalancer, id);
}

/// Marks a part for removal when the load balancer settles.
pub(crate) fn doom(state: &mut State, kind: Kind, id: &str) {
    state.edit(kind, id, |doc| {
        doc.set("provisioning_status", "PENDING_DELETE")
    });
}

fn settle(state: &mut State, id: &str) {
    let now = naive(state.now());
    let pending = |doc: &Doc| doc.text("provisioning_status").starts_with("PENDING_");
    for kind in PARTS {
        for part in state.by(kind, "loadbalancer_id", id) {
            if part.text("provisioning_status") == "PENDING_DELETE" {
                state.remove(kind, part.text("id"));
            } else if pending(&part) {
                let now = now.clone();
                state.edit(kind, part.text("id"), |doc| {
                    doc.set("provisioning_status", "ACTIVE");
                    doc.set("updated_at", now);
                });
            }
        }
    }
    if let Some(balancer) = state.get(Kind::LoadBalancer, id)
        && balancer.text("provisioning_status") != "PENDING_DELETE"
        && pending(&balancer)
    {
        state.edit(Kind::LoadBalancer, id, |doc| {
            doc.set("provisioning_status", "ACTIVE");
            doc.set("updated_at", now);
            doc.set(
                "operating_status",
                if doc.flag("admin_state_up") {
                    "ONLINE"
                } else {
                    "OFFLINE"
                },
            );
        });
    }
    operate(state, id);
}

/// Operating states: everything enabled is ONLINE; members without a monitor are NO_MONITOR.
fn operate(state: &mut State, id: &str) {
    for kind in PARTS {
        for part in state.by(kind, "loadbalancer_id", id) {
            let monitored = kind != Kind::Member
                || state.count_by(Kind::HealthMonitor, "pool_id", part.text("pool_id")) > 0;
            let status = match (part.flag("admin_state_up"), monitored) {
                (false, _) => "OFFLINE",
                (true, true) => "ONLINE",
                (true, false) => "NO_MONITOR",
            };
            if part.text("operating_status") != status {
                state.edit(kind, part.text("id"), |doc| {
                    doc.set("operating_status", status)
                });
            }
        }
    }
}

fn gone(state: &mut State, id: &str) {
    for kind in PARTS {
        for part in state.by(kind, "loadbalancer_id", id) {
            state.remove(kind, part.text("id"));
        }
    }
    if let Some(balancer) = state.remove(Kind::LoadBalancer, id)
        && let Some(port) = state.get(Kind::Port, balancer.text("vip_port_id"))
    {
        // A port that the user brought stays.
        if port.text("device_owner") == super::vip::OWNER && balancer.flag("_own_port") {
            network::remove_port(state, port.text("id"));
        } else {
            network::release(state, port.text("id"));
        }
    }
}
