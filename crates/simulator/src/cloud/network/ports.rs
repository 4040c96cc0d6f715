//! Ports and their addresses.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::networks::NETWORK;
use super::resource::{
    Hooks, Resource, merge, owner_only, referenced, routes as standard, stamp, touch,
};
use super::{automatic, floating, security, subnets};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Call, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::state::State;

/// Device owner of OVN's metadata port, one for each network; deleted with the network.
pub(crate) const METADATA: &str = "network:distributed";
/// Device owner of a router's port on a subnet.
pub(crate) const ROUTER_INTERFACE: &str = "network:router_interface";
/// Device owner of a router's port on an external network.
pub(crate) const ROUTER_GATEWAY: &str = "network:router_gateway";
/// Device owner of the port for a floating address.
pub(crate) const FLOATING: &str = "network:floatingip";

const NUMA: &[&str] = &["required", "preferred", "legacy"];
const VNIC: &[&str] = &[
    "normal",
    "direct",
    "macvtap",
    "baremetal",
    "direct-physical",
    "virtio-forwarder",
    "smart-nic",
    "vdpa",
    "accelerator-direct",
    "accelerator-direct-physical",
    "remote-managed",
];

const ATTRIBUTES: &[Attribute] = &[
    attribute("network_id", Shape::Id, Preset::Required),
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("mac_address", Shape::Mac, Preset::Absent).editable(),
    attribute("fixed_ips", Shape::List, Preset::Absent).editable(),
    attribute("device_id", Shape::Text(255), Preset::Text("")).editable(),
    attribute("device_owner", Shape::Text(255), Preset::Text("")).editable(),
    attribute("security_groups", Shape::Texts, Preset::Absent)
        .editable()
        .nullable(),
    attribute("allowed_address_pairs", Shape::List, Preset::EmptyList)
        .editable()
        .nullable(),
    attribute("port_security_enabled", Shape::Flag, Preset::Absent).editable(),
    attribute("extra_dhcp_opts", Shape::List, Preset::EmptyList)
        .editable()
        .nullable(),
    attribute(
        "binding:vnic_type",
        Shape::OneOf(VNIC),
        Preset::Text("normal"),
    )
    .editable(),
    attribute("binding:host_id", Shape::Text(255), Preset::Absent)
        .editable()
        .admin()
        .nullable(),
    attribute("binding:profile", Shape::Object, Preset::Absent)
        .editable()
        .admin()
        .nullable(),
    attribute("qos_policy_id", Shape::Id, Preset::Absent)
        .editable()
        .nullable(),
    attribute("propagate_uplink_status", Shape::Flag, Preset::Absent).editable(),
    attribute("numa_affinity_policy", Shape::OneOf(NUMA), Preset::Absent)
        .editable()
        .nullable(),
    // Accepted and dropped, as by a Neutron without the extension tag-ports-during-bulk-creation.
    attribute("tags", Shape::Texts, Preset::Absent),
    fixed("id"),
    fixed("status"),
    fixed("qos_network_policy_id"),
    fixed("revision_number"),
];

/// Neutron's ports.
pub(crate) static PORT: Resource = Resource {
    collection: Collection {
        kind: Kind::Port,
        one: "port",
        many: "ports",
        attributes: ATTRIBUTES,
        across_projects: false,
        visible: owner_only,
        present,
        missing,
    },
    quota: "port",
    create,
    update,
    delete,
    hooks: Hooks::NONE,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    standard(table, "/v2.0/ports", "/v2.0/ports/{id}", &PORT);
}

/// Creates a validated port: allocates addresses, a hardware address and the default security group where none are
/// requested.
pub(crate) fn create(call: &mut Call<'_>, mut doc: Doc) -> Result<Doc, Fault> {
    doc.set("tags", json!([]));
    let network = referenced(call, &NETWORK, doc.text("network_id"))?;
    let shared = network.flag("shared") || call.may_access(&network);
    if !shared && doc.text("device_owner") != FLOATING {
        return Err(Fault::forbidden(
            "(rule:create_port and rule:network_owner) is disallowed by policy",
        ));
    }
    if !doc.contains_key("port_security_enabled") {
        doc.set(
            "port_security_enabled",
            network.flag("port_security_enabled"),
        );
    }
    secure(call, &mut doc, true)?;
    check_pairs(&doc)?;
    let wanted = doc.remove("fixed_ips");
    let fixed = allocate(call.state, network.text("id"), wanted.as_ref(), &[])?;
    doc.set("fixed_ips", fixed);
    if doc.given("mac_address") {
        check_mac(call.state, &doc)?;
    } else {
        let mac = call.state.new_mac();
        doc.set("mac_address", mac);
    }
    Ok(finish(call.state, doc))
}

/// Returns a [`Fault`] for a hardware address used by another port of the network.
fn check_mac(state: &State, doc: &Doc) -> Result<(), Fault> {
    let (network, mac) = (doc.text("network_id"), doc.text("mac_address"));
    let ports = state.by(Kind::Port, "network_id", network);
    let mut others = ports
        .iter()
        .filter(|port| port.text("id") != doc.text("id"));
    if others.any(|port| port.text("mac_address").eq_ignore_ascii_case(mac)) {
        return Err(Fault::new(
            409,
            "MacAddressInUse",
            format!(
                "Unable to complete operation for network {network}. The mac address {mac} is in use."
            ),
        ));
    }
    Ok(())
}

/// Creates a port of the cloud itself, without checks of quota or policy. `given` has `network_id` and further fields.
pub(crate) fn create_internal(state: &mut State, given: Value) -> Doc {
    let mut doc = to_doc(given);
    let project = doc.text("project_id").to_owned();
    let id = state.new_id();
    for (name, value) in [
        ("name", json!("")),
        ("admin_state_up", json!(true)),
        ("device_id", json!("")),
        ("device_owner", json!("")),
        ("security_groups", json!([])),
        ("allowed_address_pairs", json!([])),
        ("port_security_enabled", json!(false)),
        ("extra_dhcp_opts", json!([])),
        ("binding:vnic_type", json!("normal")),
        ("fixed_ips", json!([])),
    ] {
        if !doc.contains_key(name) {
            doc.set(name, value);
        }
    }
    let mac = state.new_mac();
    doc.set("mac_address", mac);
    stamp(&mut doc, id, &project, state);
    finish(state, doc)
}

/// Attaches a port to a device on a host. The port is ACTIVE once the device runs.
pub(crate) fn bind(
    state: &mut State,
    port: &str,
    device: &str,
    owner: &str,
    host: &str,
    active: bool,
) {
    let time = state.now();
    state.edit(Kind::Port, port, |doc| {
        doc.set("device_id", device);
        doc.set("device_owner", owner);
        doc.set("binding:host_id", host);
        doc.set(
            "binding:vif_type",
            if host.is_empty() { "unbound" } else { "ovs" },
        );
        doc.set(
            "binding:vif_details",
            if host.is_empty() {
                json!({})
            } else {
                json!({"port_filter": true, "connectivity": "l2", "bound_drivers": {"0": "ovn"}})
            },
        );
        doc.set("status", if active { "ACTIVE" } else { "DOWN" });
        doc.set("updated_at", crate::cloud::clock::zulu(time));
        doc.set("revision_number", doc.number("revision_number") + 1);
    });
}

/// Detaches a port from its device.
pub(crate) fn release(state: &mut State, port: &str) {
    bind(state, port, "", "", "", false);
}

/// Removes a port and frees its floating IP.
pub(crate) fn remove(state: &mut State, id: &str) {
    floating::release_port(state, id);
    state.remove(Kind::Port, id);
}

/// Allocates addresses: the requested ones, or one of each family of the network. Addresses in automatic subnets are
/// added when the hardware address is known ([`automatic::complete`]).
pub(crate) fn allocate(
    state: &mut State,
    network: &str,
    wanted: Option<&Value>,
    keep: &[Value],
) -> Result<Vec<Value>, Fault> {
    let subnets = state.by(Kind::Subnet, "network_id", network);
    let mut chosen: Vec<Value> = Vec::new();
    let mut addresses: Vec<IpAddr> = Vec::new();
    let Some(Value::Array(wanted)) = wanted else {
        for version in [4, 6] {
            let mut family = subnets
                .iter()
                .filter(|s| s.number("ip_version") == version && !automatic::is_automatic(s))
                .peekable();
            if family.peek().is_none() {
                continue;
            }
            let found = family.find_map(|subnet| {
                let id = subnet.text("id");
                state
                    .addresses
                    .free(id, &subnets::pools(subnet), &[])
                    .map(|a| (id.to_owned(), a))
            });
            let (subnet, address) = found.ok_or_else(|| exhausted(network))?;
            chosen.push(json!({"subnet_id": subnet, "ip_address": address.to_string()}));
        }
        return Ok(chosen);
    };
    for entry in wanted {
        let Some(entry) = entry.as_object() else {
            return Err(Fault::bad(format!(
                "Invalid input for fixed_ips. Reason: Invalid data format for fixed IP: '{entry}'."
            )));
        };
        if let Some(unknown) = entry
            .keys()
            .find(|key| !matches!(key.as_str(), "subnet_id" | "ip_address"))
        {
            return Err(Fault::bad(format!(
                "Invalid input for fixed_ips. Reason: Unexpected keys supplied: {unknown}."
            )));
        }
        let address = match entry.get("ip_address") {
            None | Some(Value::Null) => None,
            Some(value) => {
                let parsed = value.as_str().and_then(|text| text.parse::<IpAddr>().ok());
                Some(parsed.ok_or_else(|| {
                    Fault::bad(format!(
                        "Invalid input for fixed_ips. Reason: '{value}' is not a valid IP address."
                    ))
                })?)
            }
        };
        let subnet = match (entry.get("subnet_id").and_then(Value::as_str), address) {
            (Some(id), _) => {
                let subnet = state.get(Kind::Subnet, id).ok_or_else(|| {
                    Fault::new(
                        404,
                        "SubnetNotFound",
                        format!("Subnet {id} could not be found."),
                    )
                })?;
                if subnet.text("network_id") != network {
                    return Err(Fault::new(
                        400,
                        "InvalidInput",
                        format!(
                            "Invalid input for operation: Failed to create port on network {network}, \
                         because fixed_ips included invalid subnet {id}."
                        ),
                    ));
                }
                subnet
            }
            (None, Some(address)) => subnets
                .iter()
                .find(|subnet| prefix(subnet).is_some_and(|net| net.contains(&address)))
                .cloned()
                .ok_or_else(|| {
                    Fault::new(
                        400,
                        "InvalidIpForNetwork",
                        format!(
                            "IP address {address} is not a valid IP for any of the subnets on the \
                         specified network."
                        ),
                    )
                })?,
            (None, None) => {
                return Err(Fault::new(
                    400,
                    "InvalidInput",
                    "Invalid input for operation: IP allocation requires subnet_id or ip_address.",
                ));
            }
        };
        let id = subnet.text("id");
        let address = match address {
            Some(address) => {
                if !prefix(&subnet).is_some_and(|net| net.contains(&address)) {
                    return Err(Fault::new(
                        400,
                        "InvalidIpForSubnet",
                        format!("IP address {address} is not a valid IP for the specified subnet."),
                    ));
                }
                let kept = keep.iter().any(|fixed| {
                    fixed["ip_address"] == address.to_string() && fixed["subnet_id"] == id
                });
                if !kept && automatic::is_automatic(&subnet) {
                    return Err(automatic::chosen(&address.to_string(), id));
                }
                if !kept && (state.addresses.taken(id, address) || addresses.contains(&address)) {
                    return Err(Fault::new(
                        409,
                        "IpAddressAlreadyAllocated",
                        format!("IP address {address} already allocated in subnet {id}"),
                    ));
                }
                address
            }
            None if automatic::is_automatic(&subnet) => continue,
            None => {
                let free = state
                    .addresses
                    .free(id, &subnets::pools(&subnet), &addresses);
                free.ok_or_else(|| exhausted(network))?
            }
        };
        addresses.push(address);
        chosen.push(json!({"subnet_id": id, "ip_address": address.to_string()}));
    }
    Ok(chosen)
}

fn update(call: &mut Call<'_>, old: &Doc, new: &mut Doc, changes: &Doc) -> Result<(), Fault> {
    let of_router = old.text("device_owner").starts_with("network:router");
    if of_router
        && (changes.contains_key("device_id") || changes.contains_key("device_owner"))
        && !call.who.admin()
    {
        return Err(in_service(old));
    }
    merge(new, changes);
    if changes.contains_key("mac_address") {
        check_mac(call.state, new)?;
    }
    if changes.contains_key("fixed_ips") {
        let keep = old.list("fixed_ips").to_vec();
        let fixed = allocate(
            call.state,
            old.text("network_id"),
            changes.get("fixed_ips"),
            &keep,
        )?;
        new.set("fixed_ips", fixed);
        automatic::complete(call.state, new);
    }
    let secures = [
        "security_groups",
        "port_security_enabled",
        "allowed_address_pairs",
    ];
    if secures.iter().any(|name| changes.contains_key(*name)) {
        secure(call, new, false)?;
    }
    check_pairs(new)?;
    complete_pairs(new);
    Ok(())
}

fn delete(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    if doc.text("device_owner").starts_with("network:router")
        || doc.text("device_owner") == FLOATING
    {
        return Err(in_service(doc));
    }
    let id = doc.text("id");
    if let Some(trunk) = call.state.by(Kind::Trunk, "port_id", id).first() {
        return Err(Fault::new(
            409,
            "PortInUseAsTrunkParent",
            format!(
                "Port {id} is currently a parent port for trunk {}.",
                trunk.text("id")
            ),
        ));
    }
    if doc.text("device_owner") == "trunk:subport" {
        return Err(Fault::new(
            409,
            "PortInUseAsSubPort",
            format!(
                "Port {id} is currently a subport for trunk {}.",
                doc.text("device_id")
            ),
        ));
    }
    remove(call.state, id);
    Ok(())
}

fn in_service(doc: &Doc) -> Fault {
    Fault::new(
        409,
        "ServicePortInUse",
        format!(
            "Port {} cannot be deleted directly via the port API: has device owner {}.",
            doc.text("id"),
            doc.text("device_owner")
        ),
    )
}

fn exhausted(network: &str) -> Fault {
    Fault::new(
        409,
        "IpAddressGenerationFailure",
        format!("No more IP addresses available on network {network}."),
    )
}

fn prefix(subnet: &Doc) -> Option<IpNet> {
    subnet.text("cidr").parse().ok()
}

/// Sets security groups: the default group for a new port without any, and none without port security.
fn secure(call: &mut Call<'_>, doc: &mut Doc, new: bool) -> Result<(), Fault> {
    let project = doc.text("project_id").to_owned();
    let enabled = doc.flag("port_security_enabled");
    let named = doc.get("security_groups").is_some_and(Value::is_array);
    if !enabled {
        let pairs = !doc.list("allowed_address_pairs").is_empty();
        if !doc.list("security_groups").is_empty() || pairs {
            if pairs {
                return Err(Fault::new(
                    409,
                    "AddressPairAndPortSecurityRequired",
                    "Port Security must be enabled in order to have allowed address pairs on a port.",
                ));
            }
            return Err(Fault::new(
                400,
                "PortSecurityAndIPRequiredForSecurityGroups",
                "Port security must be enabled and port must have an IP address in order to use security groups.",
            ));
        }
        doc.set("security_groups", json!([]));
        return Ok(());
    }
    if !named {
        if new && !doc.text("device_owner").starts_with("network:") {
            let default = security::ensure_default_group(call.state, &project);
            doc.set("security_groups", json!([default]));
        } else {
            doc.set("security_groups", json!([]));
        }
        return Ok(());
    }
    for id in doc.texts("security_groups") {
        let known = call
            .state
            .get(Kind::SecurityGroup, id)
            .filter(|group| call.may_access(group));
        known.ok_or_else(|| {
            Fault::new(
                404,
                "SecurityGroupNotFound",
                format!("Security group {id} does not exist"),
            )
        })?;
    }
    Ok(())
}

/// Neutron's `max_allowed_address_pair`.
const MOST_PAIRS: usize = 10;

fn check_pairs(doc: &Doc) -> Result<(), Fault> {
    let pairs = doc.list("allowed_address_pairs");
    if pairs.len() > MOST_PAIRS {
        let message =
            format!("The number of allowed address pair exceeds the maximum {MOST_PAIRS}.");
        return Err(Fault::new(400, "AllowedAddressPairExhausted", message));
    }
    let of_port = doc.text("mac_address");
    let mut seen = std::collections::BTreeSet::new();
    for pair in pairs {
        let field = |name: &str| pair.get(name).and_then(Value::as_str);
        let address = field("ip_address").unwrap_or_default();
        let problem = match address.contains('/') {
            // Unlike that of a route, the address may have bits beyond the prefix.
            true => match address.parse::<IpNet>() {
                Ok(_) => None,
                Err(_) => Some(format!("'{address}' is not a valid IP subnet")),
            },
            false if address.parse::<IpAddr>().is_ok() => None,
            false => Some(format!("'{address}' is not a valid IP address")),
        };
        if let Some(problem) = problem {
            return Err(Fault::bad(format!(
                "Invalid input for allowed_address_pairs. Reason: {problem}."
            )));
        }
        let mac = field("mac_address").unwrap_or(of_port);
        if !seen.insert((address, mac)) {
            let message = format!(
                "Request contains duplicate address pair: mac_address {mac} ip_address {address}."
            );
            return Err(Fault::new(400, "DuplicateAddressPairInRequest", message));
        }
    }
    Ok(())
}

fn finish(state: &mut State, mut doc: Doc) -> Doc {
    for (name, value) in [
        ("binding:host_id", json!("")),
        ("binding:profile", json!({})),
        ("binding:vif_details", json!({})),
        ("binding:vif_type", json!("unbound")),
        ("qos_policy_id", Value::Null),
        ("status", json!("DOWN")),
        ("qos_network_policy_id", Value::Null),
        ("resource_request", Value::Null),
    ] {
        if !doc.contains_key(name) {
            doc.set(name, value);
        }
    }
    for list in ["allowed_address_pairs", "extra_dhcp_opts"] {
        if !doc.given(list) {
            doc.set(list, json!([]));
        }
    }
    automatic::complete(state, &mut doc);
    complete_pairs(&mut doc);
    state.put(Kind::Port, doc.clone());
    doc
}

/// A pair without a hardware address is one of the port's own.
fn complete_pairs(doc: &mut Doc) {
    let of_port = doc.text("mac_address").to_owned();
    let complete = |pair: &Value| {
        let mac = pair.get("mac_address").and_then(Value::as_str);
        json!({"ip_address": pair["ip_address"], "mac_address": mac.unwrap_or(&of_port)})
    };
    let pairs: Vec<Value> = doc
        .list("allowed_address_pairs")
        .iter()
        .map(complete)
        .collect();
    doc.set("allowed_address_pairs", pairs);
}

fn present(state: &State, who: &Who, doc: &mut Doc) {
    if let Some(trunk) = state.by(Kind::Trunk, "port_id", doc.text("id")).first() {
        let with_mac = |sub: &Value| {
            let mut sub = sub.clone();
            let port = sub["port_id"].as_str().unwrap_or_default();
            let port = state.get(Kind::Port, port).unwrap_or_default();
            sub["mac_address"] = json!(port.text("mac_address"));
            sub
        };
        let subs: Vec<Value> = trunk.list("sub_ports").iter().map(with_mac).collect();
        let details = json!({"trunk_id": trunk.text("id"), "sub_ports": subs});
        doc.set("trunk_details", details);
    }
    let project = doc.text("project_id").to_owned();
    doc.set("tenant_id", project);
    if !who.admin() {
        doc.retain(|name, _| !name.starts_with("binding:") || name == "binding:vnic_type");
        doc.remove("resource_request");
    }
}

fn missing(id: &str) -> Fault {
    Fault::new(
        404,
        "PortNotFound",
        format!("Port {id} could not be found."),
    )
}

/// Returns the [`Doc`]s of the ports of a device, in the order of attachment.
pub(crate) fn of_device(state: &State, device: &str) -> Vec<Arc<Doc>> {
    let mut ports = state.by(Kind::Port, "device_id", device);
    ports.sort_by_key(|port| port.number("_order"));
    ports
}

/// Returns the fixed addresses of a port.
pub(crate) fn addresses(port: &Doc) -> impl Iterator<Item = &str> {
    port.list("fixed_ips")
        .iter()
        .filter_map(|fixed| fixed["ip_address"].as_str())
}

/// Changes a stored port and its revision. Addresses in automatic subnets cannot be removed.
pub(crate) fn change(state: &mut State, id: &str, change: impl FnOnce(&mut Doc)) {
    if let Some(old) = state.get(Kind::Port, id) {
        let mut doc = (*old).clone();
        change(&mut doc);
        automatic::complete(state, &mut doc);
        touch(&mut doc, state);
        state.put(Kind::Port, doc);
    }
}
