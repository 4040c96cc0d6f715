//! Routers: gateways and interfaces.

use std::net::IpAddr;
use std::sync::Arc;

use http::Method;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::extra_routes;
use super::networks::NETWORK;
use super::ports::{self, ROUTER_GATEWAY, ROUTER_INTERFACE};
use super::resource::{
    Hooks, Resource, bump, merge, owner_only, referenced, routes as standard, with_tenant,
};
use super::subnets::SUBNET;
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};
use crate::cloud::state::State;

const ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("external_gateway_info", Shape::Object, Preset::Null).editable(),
    attribute("routes", Shape::List, Preset::Absent)
        .editable()
        .nullable(),
    attribute("availability_zone_hints", Shape::Texts, Preset::EmptyList),
    attribute("distributed", Shape::Flag, Preset::Absent)
        .editable()
        .admin(),
    attribute("ha", Shape::Flag, Preset::Absent)
        .editable()
        .admin(),
    fixed("id"),
    fixed("status"),
    fixed("tags"),
    fixed("revision_number"),
];

/// Neutron's routers.
pub(crate) static ROUTER: Resource = Resource {
    collection: Collection {
        kind: Kind::Router,
        one: "router",
        many: "routers",
        attributes: ATTRIBUTES,
        across_projects: false,
        visible: owner_only,
        present: with_tenant,
        missing,
    },
    quota: "router",
    create,
    update,
    delete,
    hooks: Hooks::NONE,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    standard(table, "/v2.0/routers", "/v2.0/routers/{id}", &ROUTER);
    table
        .on(
            Method::PUT,
            "/v2.0/routers/{id}/add_router_interface",
            Access::Member,
            add_interface,
        )
        .on(
            Method::PUT,
            "/v2.0/routers/{id}/remove_router_interface",
            Access::Member,
            remove_interface,
        )
        .on(
            Method::PUT,
            "/v2.0/routers/{id}/add_extraroutes",
            Access::Member,
            |call| extra_routes::change(call, true),
        )
        .on(
            Method::PUT,
            "/v2.0/routers/{id}/remove_extraroutes",
            Access::Member,
            |call| extra_routes::change(call, false),
        );
}

/// Returns the router through which a subnet reaches an external network, if there is one.
pub(crate) fn between(state: &State, subnet: &str, external: &str) -> Option<String> {
    state
        .by(Kind::Port, "subnet_id", subnet)
        .iter()
        .filter(|port| port.text("device_owner") == ROUTER_INTERFACE)
        .map(|port| port.text("device_id").to_owned())
        .find(|router| {
            state
                .get(Kind::Router, router)
                .and_then(|doc| {
                    let info = doc.get("external_gateway_info")?.as_object()?;
                    Some(info.text("network_id") == external)
                })
                .unwrap_or(false)
        })
}

fn create(call: &mut Call<'_>, mut doc: Doc) -> Result<Doc, Fault> {
    let wanted = doc.remove("external_gateway_info").unwrap_or_default();
    doc.set("status", "ACTIVE");
    doc.set("external_gateway_info", Value::Null);
    doc.set("availability_zones", json!([]));
    if !doc.given("routes") {
        doc.set("routes", json!([]));
    }
    extra_routes::check(call, doc.text("id"), doc.list("routes"))?;
    if let Some(info) = wanted.as_object().filter(|info| !info.is_empty()) {
        let gateway = open_gateway(call, doc.text("id"), info)?;
        doc.set("external_gateway_info", gateway);
    }
    call.state.put(Kind::Router, doc.clone());
    Ok(doc)
}

fn update(call: &mut Call<'_>, old: &Doc, new: &mut Doc, changes: &Doc) -> Result<(), Fault> {
    let mut changes = changes.clone();
    if let Some(wanted) = changes.remove("external_gateway_info") {
        let current = old.get("external_gateway_info").and_then(Value::as_object);
        let wanted = wanted.as_object().filter(|info| !info.is_empty());
        let same_network = match (current, wanted) {
            (Some(current), Some(wanted)) => {
                current.text("network_id") == wanted.text("network_id")
            }
            _ => false,
        };
        if same_network && wanted.is_some_and(|wanted| !wanted.contains_key("external_fixed_ips")) {
            let mut info = current.cloned().unwrap_or_default();
            if let Some(snat) = wanted.and_then(|wanted| wanted.get("enable_snat")) {
                info.set("enable_snat", snat.clone());
            }
            new.set("external_gateway_info", info);
        } else {
            if !same_network && current.is_some() {
                no_floating(call.state, old)?;
            }
            close_gateway(call.state, old.text("id"));
            let info = match wanted {
                Some(wanted) => open_gateway(call, old.text("id"), wanted)?,
                None => Value::Null,
            };
            new.set("external_gateway_info", info);
        }
    }
    merge(new, &changes);
    if !new.given("routes") {
        new.set("routes", json!([]));
    }
    if changes.contains_key("routes") {
        extra_routes::check(call, old.text("id"), new.list("routes"))?;
    }
    Ok(())
}

fn delete(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    let id = doc.text("id");
    no_floating(call.state, doc)?;
    if !interfaces(call.state, id).is_empty() {
        return Err(Fault::new(
            409,
            "RouterInUse",
            format!("Router {id} still has ports"),
        ));
    }
    close_gateway(call.state, id);
    call.state.remove(Kind::Router, id);
    Ok(())
}

fn add_interface(call: &mut Call<'_>) -> Answer {
    let router = ROUTER
        .collection
        .find_writable(call, call.parameter("id"))?;
    let id = router.text("id").to_owned();
    let body = interface_body(call)?;
    let port = match (body.text("subnet_id"), body.text("port_id")) {
        ("", "") => return Err(bad("Either subnet_id or port_id must be specified")),
        (subnet, "") => {
            let subnet = referenced(call, &SUBNET, subnet)?;
            by_subnet(call, &router, &subnet)?
        }
        ("", port) => by_port(call, &router, port)?,
        _ => return Err(bad("Cannot specify both subnet-id and port-id")),
    };
    bump(call.state, Kind::Router, &id);
    Ok(Reply::ok(interface(&router, &port)))
}

fn remove_interface(call: &mut Call<'_>) -> Answer {
    let router = ROUTER
        .collection
        .find_writable(call, call.parameter("id"))?;
    let id = router.text("id").to_owned();
    let body = interface_body(call)?;
    let attached = interfaces(call.state, &id);
    let (subnet, port) = (body.text("subnet_id"), body.text("port_id"));
    if subnet.is_empty() && port.is_empty() {
        return Err(bad("Either subnet_id or port_id must be specified"));
    }
    let found = attached.iter().find(|candidate| {
        (port.is_empty() || candidate.text("id") == port)
            && (subnet.is_empty() || first_subnet(candidate) == subnet)
    });
    let Some(found) = found else {
        if port.is_empty() {
            referenced(call, &SUBNET, subnet)?;
            return Err(Fault::new(
                404,
                "RouterInterfaceNotFoundForSubnet",
                format!("Router {id} has no interface on subnet {subnet}"),
            ));
        }
        return Err(Fault::new(
            404,
            "RouterInterfaceNotFound",
            format!("Router {id} does not have an interface with id {port}"),
        ));
    };
    let subnet = first_subnet(found).to_owned();
    if routed(call.state, &router, &subnet) {
        return Err(Fault::new(
            409,
            "RouterInterfaceInUseByRoute",
            format!(
                "Router interface for subnet {subnet} on router {id} cannot be deleted, as it is \
                 required by one or more routes."
            ),
        ));
    }
    let used = call.state.by(Kind::FloatingIp, "router_id", &id);
    let needed = used.iter().any(|floating| {
        call.state
            .get(Kind::Port, floating.text("port_id"))
            .is_some_and(|port| {
                port.list("fixed_ips")
                    .iter()
                    .any(|fixed| fixed["subnet_id"] == subnet)
            })
    });
    if needed {
        return Err(Fault::new(
            409,
            "RouterInterfaceInUseByFloatingIP",
            format!(
                "Router interface for subnet {subnet} on router {id} cannot be deleted, as it is \
             required by one or more floating IPs."
            ),
        ));
    }
    call.state.remove(Kind::Port, found.text("id"));
    bump(call.state, Kind::Router, &id);
    Ok(Reply::ok(interface(&router, found)))
}

/// True if a route of the router has its next hop in a subnet.
fn routed(state: &State, router: &Doc, subnet: &str) -> bool {
    let net = state.get(Kind::Subnet, subnet);
    let net = net.and_then(|subnet| subnet.text("cidr").parse::<IpNet>().ok());
    router.list("routes").iter().any(|route| {
        let hop = route["nexthop"]
            .as_str()
            .and_then(|hop| hop.parse::<IpAddr>().ok());
        matches!((&net, hop), (Some(net), Some(hop)) if net.contains(&hop))
    })
}

fn by_subnet(call: &mut Call<'_>, router: &Doc, subnet: &Doc) -> Result<Doc, Fault> {
    let (id, subnet_id) = (router.text("id"), subnet.text("id"));
    let Ok(gateway) = subnet.text("gateway_ip").parse::<IpAddr>() else {
        return Err(bad("Subnet for router interface must have a gateway IP"));
    };
    no_clash(call.state, id, subnet)?;
    if call.state.addresses.taken(subnet_id, gateway) {
        return Err(Fault::new(
            409,
            "IpAddressAlreadyAllocated",
            format!("IP address {gateway} already allocated in subnet {subnet_id}"),
        ));
    }
    let fixed = json!([{"subnet_id": subnet_id, "ip_address": gateway.to_string()}]);
    Ok(ports::create_internal(
        call.state,
        json!({"network_id": subnet.text("network_id"), "project_id": router.text("project_id"),
            "device_owner": ROUTER_INTERFACE, "device_id": id, "status": "ACTIVE", "fixed_ips": fixed}),
    ))
}

fn by_port(call: &mut Call<'_>, router: &Doc, port: &str) -> Result<Doc, Fault> {
    let id = router.text("id");
    let found = referenced(call, &ports::PORT, port)?;
    if !found.text("device_id").is_empty() {
        return Err(Fault::new(
            409,
            "PortInUse",
            format!(
                "Unable to complete operation on port {port} for network {}. Port already has an \
             attached device {}.",
                found.text("network_id"),
                found.text("device_id")
            ),
        ));
    }
    if found.list("fixed_ips").is_empty() {
        return Err(bad("Router port must have at least one fixed IP"));
    }
    if let Some(subnet) = call.state.get(Kind::Subnet, first_subnet(&found)) {
        no_clash(call.state, id, &subnet)?;
    }
    ports::change(call.state, port, |doc| {
        doc.set("device_id", id);
        doc.set("device_owner", ROUTER_INTERFACE);
        doc.set("status", "ACTIVE");
    });
    Ok((*call.state.get(Kind::Port, port).unwrap_or_default()).clone())
}

/// Returns a [`Fault`] if the router has a port in the subnet already, or another of its subnets overlaps.
fn no_clash(state: &State, router: &str, subnet: &Doc) -> Result<(), Fault> {
    let Ok(net) = subnet.text("cidr").parse::<IpNet>() else {
        return Ok(());
    };
    for port in interfaces(state, router) {
        for fixed in port.list("fixed_ips") {
            let other = fixed["subnet_id"].as_str().unwrap_or_default();
            if other == subnet.text("id") {
                return Err(bad(&format!("Router already has a port on subnet {other}")));
            }
            let Some(doc) = state.get(Kind::Subnet, other) else {
                continue;
            };
            let Ok(taken) = doc.text("cidr").parse::<IpNet>() else {
                continue;
            };
            if taken.contains(&net) || net.contains(&taken) {
                return Err(bad(&format!(
                    "Cidr {net} of subnet {} overlaps with cidr {taken} of subnet {other}",
                    subnet.text("id")
                )));
            }
        }
    }
    Ok(())
}

fn open_gateway(call: &mut Call<'_>, router: &str, wanted: &Doc) -> Result<Value, Fault> {
    let network = referenced(call, &NETWORK, wanted.text("network_id"))?;
    let id = network.text("id");
    if !network.flag("router:external") {
        return Err(bad(&format!("Network {id} is not an external network")));
    }
    let fixed = wanted
        .get("external_fixed_ips")
        .filter(|value| !value.is_null());
    let fixed = ports::allocate(call.state, id, fixed, &[])?;
    let port = ports::create_internal(
        call.state,
        json!({"network_id": id, "project_id": "", "device_owner": ROUTER_GATEWAY,
            "device_id": router, "status": "ACTIVE", "fixed_ips": fixed}),
    );
    let fixed = port.list("fixed_ips");
    if fixed.is_empty() {
        return Err(bad(&format!(
            "No IPs assigned to the gateway port for router {router}"
        )));
    }
    let snat = wanted
        .get("enable_snat")
        .and_then(Value::as_bool)
        .unwrap_or(true);
    Ok(json!({"network_id": id, "external_fixed_ips": fixed, "enable_snat": snat}))
}

fn close_gateway(state: &mut State, router: &str) {
    for port in state.by(Kind::Port, "device_id", router) {
        if port.text("device_owner") == ROUTER_GATEWAY {
            state.remove(Kind::Port, port.text("id"));
        }
    }
}

fn no_floating(state: &State, router: &Doc) -> Result<(), Fault> {
    let id = router.text("id");
    if state.count_by(Kind::FloatingIp, "router_id", id) == 0 {
        return Ok(());
    }
    let network = router
        .get("external_gateway_info")
        .and_then(Value::as_object);
    let network = network.map_or("", |info| info.text("network_id"));
    Err(Fault::new(
        409,
        "RouterExternalGatewayInUseByFloatingIp",
        format!(
            "Gateway cannot be updated for router {id}, since a gateway to external network {network} \
         is required by one or more floating IPs."
        ),
    ))
}

fn interfaces(state: &State, router: &str) -> Vec<Arc<Doc>> {
    let mut ports = state.by(Kind::Port, "device_id", router);
    ports.retain(|port| port.text("device_owner") == ROUTER_INTERFACE);
    ports
}

fn interface(router: &Doc, port: &Doc) -> Value {
    let subnets: Vec<&Value> = port
        .list("fixed_ips")
        .iter()
        .map(|fixed| &fixed["subnet_id"])
        .collect();
    json!({"id": router.text("id"), "tenant_id": router.text("project_id"), "network_id": port.text("network_id"),
        "port_id": port.text("id"), "subnet_id": first_subnet(port), "subnet_ids": subnets})
}

fn interface_body(call: &Call<'_>) -> Result<Doc, Fault> {
    call.body
        .as_object()
        .cloned()
        .ok_or_else(|| bad("Either subnet_id or port_id must be specified"))
}

fn first_subnet(port: &Doc) -> &str {
    port.list("fixed_ips")
        .first()
        .and_then(|fixed| fixed["subnet_id"].as_str())
        .unwrap_or_default()
}

fn bad(why: &str) -> Fault {
    Fault::new(400, "BadRequest", format!("Bad router request: {why}."))
}

fn missing(id: &str) -> Fault {
    Fault::new(
        404,
        "RouterNotFound",
        format!("Router {id} could not be found"),
    )
}
