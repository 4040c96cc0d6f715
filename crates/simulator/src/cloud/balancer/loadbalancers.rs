//! Load balancers.

use http::Method;
use serde_json::{Value, json};

use super::part::{fresh, owner_only, references};
use super::{listeners, offers, ovn, part, pools, status, tree, vip};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Answer, Call, Reply, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::query;
use crate::cloud::route::{Access, Table};
use crate::cloud::state::State;

const ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("vip_address", Shape::Address, Preset::Absent).nullable(),
    attribute("vip_port_id", Shape::Id, Preset::Absent).nullable(),
    attribute("vip_subnet_id", Shape::Id, Preset::Absent).nullable(),
    attribute("vip_network_id", Shape::Id, Preset::Absent).nullable(),
    attribute("vip_qos_policy_id", Shape::Id, Preset::Null).editable(),
    attribute("additional_vips", Shape::List, Preset::EmptyList),
    attribute("provider", Shape::Text(64), Preset::Absent).nullable(),
    attribute("flavor_id", Shape::Id, Preset::Null),
    attribute("availability_zone", Shape::Text(255), Preset::Null),
    attribute("listeners", Shape::List, Preset::EmptyList),
    attribute("pools", Shape::List, Preset::EmptyList),
    attribute("tags", Shape::Texts, Preset::EmptyList).editable(),
    fixed("provisioning_status"),
    fixed("operating_status"),
];

/// Octavia's load balancers.
pub(crate) static LOAD_BALANCER: Collection = Collection {
    kind: Kind::LoadBalancer,
    one: "loadbalancer",
    many: "loadbalancers",
    attributes: ATTRIBUTES,
    across_projects: false,
    visible: owner_only,
    present,
    missing,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.0/lbaas/loadbalancers", |call| LOAD_BALANCER.list(call))
        .post("/v2.0/lbaas/loadbalancers", create)
        .get("/v2.0/lbaas/loadbalancers/{id}", |call| {
            LOAD_BALANCER.get(call)
        })
        .put("/v2.0/lbaas/loadbalancers/{id}", |call| {
            let id = call.parameter("id").to_owned();
            part::update(call, &LOAD_BALANCER, &id)
        })
        .delete("/v2.0/lbaas/loadbalancers/{id}", delete)
        .on(
            Method::PUT,
            "/v2.0/lbaas/loadbalancers/{id}/failover",
            Access::Admin,
            |call| {
                let id = call.parameter("id").to_owned();
                let doc = LOAD_BALANCER.find(call, &id)?;
                if ovn::serves(call.state, &id) {
                    return Err(ovn::action(
                        "OVN provider does not support loadbalancer failover",
                    ));
                }
                // A failover also repairs a load balancer in ERROR.
                if doc.text("provisioning_status") != "ERROR" {
                    status::mutable(call, &id)?;
                }
                status::lock(call, &id);
                Ok(Reply::empty(202))
            },
        )
        .get("/v2.0/lbaas/loadbalancers/{id}/status", |call| {
            statuses(call)
        })
        .get("/v2.0/lbaas/loadbalancers/{id}/statuses", |call| {
            statuses(call)
        })
        .get("/v2.0/lbaas/loadbalancers/{id}/stats", |call| {
            LOAD_BALANCER.find(call, call.parameter("id"))?;
            Ok(Reply::ok(
                json!({"stats": {"active_connections": 0, "bytes_in": 0, "bytes_out": 0,
                "request_errors": 0, "total_connections": 0}}),
            ))
        });
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("loadbalancer")?;
    let mut doc = fresh(call, ATTRIBUTES, &given, ("load_balancer", "Load Balancer"))?;
    offers::choose(call, &mut doc)?;
    vip::plug(call, &mut doc)?;
    offers::allowed_network(call, &doc)?;
    let new_listeners = take(&mut doc, "listeners");
    let new_pools = take(&mut doc, "pools");
    let id = doc.text("id").to_owned();
    call.state.put(Kind::LoadBalancer, doc);
    let whole = !new_listeners.is_empty() || !new_pools.is_empty();
    let parts = create_parts(call, &id, &new_pools, &new_listeners);
    if let Err(fault) = parts {
        return refused(call, &id, fault);
    }
    let delay = call.settings.latency.transition(Transition::BalancerCreate);
    call.state
        .schedule(delay, "settle", Kind::LoadBalancer, &id);
    let doc = LOAD_BALANCER.find(call, &id)?;
    let mut body = LOAD_BALANCER.show(call, &doc);
    if whole {
        tree::fill(call, &mut body);
    }
    Ok(Reply::with(201, json!({"loadbalancer": body})))
}

fn create_parts(
    call: &mut Call<'_>,
    id: &str,
    new_pools: &[Doc],
    new_listeners: &[Doc],
) -> Result<(), Fault> {
    for pool in new_pools {
        pools::create_in(call, id, pool)?;
    }
    for listener in new_listeners {
        listeners::create_in(call, id, listener)?;
    }
    Ok(())
}

/// The answer to a tree that Octavia or the driver refuses. When the driver is asked, the port of the address exists already,
/// and Octavia forgets it.
fn refused(call: &mut Call<'_>, id: &str, fault: Fault) -> Answer {
    if fault.status != 501 || !ovn::serves(call.state, id) {
        return Err(fault);
    }
    for kind in status::PARTS {
        for part in call.state.by(kind, "loadbalancer_id", id) {
            call.state.remove(kind, part.text("id"));
        }
    }
    call.state.remove(Kind::LoadBalancer, id);
    let body = json!({"faultcode": "Server", "faultstring": fault.message, "debuginfo": null});
    Ok(Reply::with(501, body))
}

fn delete(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let doc = LOAD_BALANCER.find_writable(call, &id)?;
    if !matches!(doc.text("provisioning_status"), "ACTIVE" | "ERROR") {
        return Err(status::immutable(&id));
    }
    let cascade = call.query.get("cascade").and_then(query::truth) == Some(true);
    let parts = status::PARTS
        .iter()
        .any(|kind| call.state.count_by(*kind, "loadbalancer_id", &id) > 0);
    if parts && !cascade {
        return Err(Fault::bad(format!(
            "Validation failure: Cannot delete Load Balancer {id} - it has children"
        )));
    }
    status::doom(call.state, Kind::LoadBalancer, &id);
    for kind in status::PARTS {
        for part in call.state.by(kind, "loadbalancer_id", &id) {
            status::doom(call.state, kind, part.text("id"));
        }
    }
    let delay = call.settings.latency.transition(Transition::BalancerDelete);
    call.state.schedule(delay, "gone", Kind::LoadBalancer, &id);
    Ok(Reply::empty(204))
}

fn statuses(call: &mut Call<'_>) -> Answer {
    let doc = LOAD_BALANCER.find(call, call.parameter("id"))?;
    Ok(Reply::ok(
        json!({"statuses": {"loadbalancer": tree::statuses(call.state, &doc)}}),
    ))
}

fn take(doc: &mut Doc, field: &str) -> Vec<Doc> {
    match doc.remove(field) {
        Some(Value::Array(list)) => list.into_iter().map(crate::cloud::document::doc).collect(),
        _ => Vec::new(),
    }
}

fn present(state: &State, _: &Who, doc: &mut Doc) {
    let id = doc.text("id").to_owned();
    doc.set(
        "listeners",
        references(state, Kind::Listener, "loadbalancer_id", &id),
    );
    doc.set(
        "pools",
        references(state, Kind::Pool, "loadbalancer_id", &id),
    );
}

fn missing(id: &str) -> Fault {
    Fault::missing(format!("Load Balancer {id} not found."))
}
