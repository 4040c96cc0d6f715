//! PENDING and ACTIVE: a load balancer and all its parts are locked during a change of any of them.

use std::sync::Arc;

use super::ovn;
use crate::cloud::call::Call;
use crate::cloud::clock::naive;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::network;
use crate::cloud::state::State;
use crate::machine::Member;

/// Kinds of a load balancer's parts, innermost first.
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

/// Returns the [`Doc`] of the load balancer, unless locked.
pub(crate) fn mutable(call: &Call<'_>, id: &str) -> Result<Arc<Doc>, Fault> {
    let balancer = call
        .accessible(Kind::LoadBalancer, id)
        .ok_or_else(|| Fault::missing(format!("Load Balancer {id} not found.")))?;
    match balancer.text("provisioning_status") {
        "ACTIVE" => Ok(balancer),
        _ => Err(immutable(id)),
    }
}

/// Puts a load balancer into ERROR, as when its amphorae cannot be reached; returns false for an unknown one.
pub(crate) fn fail(state: &mut State, id: &str) -> bool {
    let found = state.get(Kind::LoadBalancer, id).is_some();
    if found {
        state.edit(Kind::LoadBalancer, id, |doc| {
            doc.set("provisioning_status", "ERROR");
            doc.set("operating_status", "ERROR");
        });
    }
    found
}

/// Returns Octavia's [`Fault`] for a locked load balancer.
pub(crate) fn immutable(id: &str) -> Fault {
    Fault::conflict(format!(
        "Load Balancer {id} is immutable and cannot be updated."
    ))
}

/// Locks the load balancer for a change of one of its parts; a later [`Transition`] unlocks it.
pub(crate) fn lock(call: &mut Call<'_>, id: &str) {
    let now = naive(call.now());
    call.state.edit(Kind::LoadBalancer, id, |doc| {
        doc.set("provisioning_status", "PENDING_UPDATE");
        doc.set("updated_at", now);
    });
    let delay = call.settings.latency.transition(Transition::BalancerUpdate);
    call.state.schedule(delay, "settle", Kind::LoadBalancer, id);
}

/// Marks a part for removal when the load balancer is unlocked.
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
    if ovn::serves(state, id) {
        ovn::plug(state);
    }
    operate(state, id);
}

/// Records the health of a member; only health monitors use the record.
pub(crate) fn answers(state: &mut State, member: &Member) {
    let balancer = &member.load_balancer_id;
    let found = state.by(Kind::Member, "loadbalancer_id", balancer);
    let (address, port) = (
        member.address.ip().to_string(),
        i64::from(member.address.port()),
    );
    for doc in found {
        if doc.text("address") == address && doc.number("protocol_port") == port {
            state.edit(Kind::Member, doc.text("id"), |doc| {
                doc.set("_silent", !member.answers)
            });
        }
    }
    operate(state, balancer);
}

/// Sets operating states: everything enabled is ONLINE, and members without a monitor are NO_MONITOR. A member that
/// does not answer its monitor is in ERROR; its pool, and everything in front of the pool, is DEGRADED, or in ERROR if
/// no member answers.
fn operate(state: &mut State, id: &str) {
    for member in state.by(Kind::Member, "loadbalancer_id", id) {
        let monitored = state.count_by(Kind::HealthMonitor, "pool_id", member.text("pool_id")) > 0;
        let status = match (member.flag("admin_state_up"), monitored) {
            (false, _) => "OFFLINE",
            (true, true) if member.flag("_silent") => "ERROR",
            (true, true) => "ONLINE",
            (true, false) => "NO_MONITOR",
        };
        set_operating_status(state, Kind::Member, &member, status);
    }
    let mut worst = "ONLINE";
    for pool in state.by(Kind::Pool, "loadbalancer_id", id) {
        let status = match pool.flag("admin_state_up") {
            true => of_pool(state, pool.text("id")),
            false => "OFFLINE",
        };
        if matches!(
            (worst, status),
            ("ONLINE", "DEGRADED" | "ERROR") | ("DEGRADED", "ERROR")
        ) {
            worst = status;
        }
        set_operating_status(state, Kind::Pool, &pool, status);
    }
    for kind in PARTS {
        if matches!(kind, Kind::Member | Kind::Pool) {
            continue;
        }
        for part in state.by(kind, "loadbalancer_id", id) {
            let status = match (part.flag("admin_state_up"), kind) {
                (false, _) => "OFFLINE",
                (true, Kind::Listener) => state
                    .get(Kind::Pool, part.text("default_pool_id"))
                    .map_or("ONLINE", |pool| of_pool(state, pool.text("id"))),
                (true, _) => "ONLINE",
            };
            set_operating_status(state, kind, &part, status);
        }
    }
    if let Some(balancer) = state.get(Kind::LoadBalancer, id)
        && matches!(
            balancer.text("operating_status"),
            "ONLINE" | "DEGRADED" | "ERROR"
        )
    {
        set_operating_status(state, Kind::LoadBalancer, &balancer, worst);
    }
}

fn of_pool(state: &State, id: &str) -> &'static str {
    let members = state.by(Kind::Member, "pool_id", id);
    let enabled = members
        .iter()
        .filter(|member| member.flag("admin_state_up"));
    let silent = |member: &&Arc<Doc>| member.text("operating_status") == "ERROR";
    match (enabled.clone().count(), enabled.filter(silent).count()) {
        (_, 0) => "ONLINE",
        (all, silent) if all == silent => "ERROR",
        _ => "DEGRADED",
    }
}

fn set_operating_status(state: &mut State, kind: Kind, part: &Doc, status: &str) {
    if part.text("operating_status") != status {
        state.edit(kind, part.text("id"), |doc| {
            doc.set("operating_status", status)
        });
    }
}

fn gone(state: &mut State, id: &str) {
    for kind in PARTS {
        for part in state.by(kind, "loadbalancer_id", id) {
            state.remove(kind, part.text("id"));
        }
    }
    let is_of_ovn = ovn::serves(state, id);
    if let Some(balancer) = state.remove(Kind::LoadBalancer, id)
        && let Some(port) = state.get(Kind::Port, balancer.text("vip_port_id"))
    {
        // A port of the user is not deleted.
        if port.text("device_owner") == super::vip::OWNER && balancer.flag("_own_port") {
            network::remove_port(state, port.text("id"));
        } else {
            network::release(state, port.text("id"));
        }
    }
    if is_of_ovn {
        ovn::plug(state);
    }
}
