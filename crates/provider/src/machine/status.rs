//! The status of a machine: a function of the observed state and of the problem of the reconcile.

use api::conditions::{Reason, Status, Type};
use api::infra::v1beta2::{
    Initialization, MachineAddress, MachineResources, OpenStackMachine, PortStatus,
    ResolvedFixedIp, ResolvedMachine, ResolvedPortSpec,
};
use api::k8s_openapi::jiff::Timestamp;
use openstack::compute::Server;

use super::desired::Desired;
use super::facts::Facts;
use super::observed::Observed;
use super::pairs;
use crate::context::kept::condition;

/// Sets a condition to false, and Ready, too.
pub(crate) fn not_ready(
    object: &mut OpenStackMachine,
    now: Timestamp,
    type_: Type,
    reason: Reason,
    message: &str,
) {
    condition(object, now, type_, (Status::False, reason, message));
    if type_ != Type::Ready {
        let message = match message.is_empty() {
            true => type_.as_str().to_owned(),
            false => format!("{}: {message}", type_.as_str()),
        };
        condition(object, now, Type::Ready, (Status::False, reason, &message));
    }
}

/// Writes the resolved references of the spec, and the created resources.
pub(crate) fn resources(
    facts: &Facts,
    desired: &Desired,
    observed: &Observed,
) -> (ResolvedMachine, Option<MachineResources>) {
    let ports = desired.ports.iter().map(|port| ResolvedPortSpec {
        name: port.create.name.clone(),
        description: port.create.description.clone().unwrap_or_default(),
        network_id: port.create.network_id.clone(),
        tags: port.tags.clone(),
        trunk: port.trunk.then_some(true),
        fixed_ips: port
            .create
            .fixed_ips
            .iter()
            .map(|ip| ResolvedFixedIp {
                subnet: Some(ip.subnet_id.clone()).filter(|id| !id.is_empty()),
                ip_address: Some(ip.ip_address.clone()).filter(|ip| !ip.is_empty()),
            })
            .collect(),
        security_groups: port.create.security_groups.clone().unwrap_or_default(),
        fields: pairs::fields(&port.create.allowed_address_pairs),
    });
    let resolved = ResolvedMachine {
        server_group_id: facts.server_group.clone(),
        image_id: Some(facts.image.clone()),
        flavor_id: Some(facts.flavor.clone()),
        ports: ports.collect(),
    };
    let port_statuses = desired
        .ports
        .iter()
        .filter_map(|port| observed.port(&port.create.name));
    let port_statuses: Vec<_> = port_statuses
        .map(|port| PortStatus {
            id: port.id.clone(),
        })
        .collect();
    let resources = (!port_statuses.is_empty()).then_some(MachineResources {
        ports: port_statuses,
    });
    (resolved, resources)
}

/// Sets the conditions for the status of the [`Server`]. Returns true for a running one.
pub(crate) fn server(object: &mut OpenStackMachine, server: &Server, now: Timestamp) -> bool {
    let status = object.status.get_or_insert_default();
    status.instance_id = Some(server.id.clone());
    status.instance_state = Some(server.status.clone());
    let zone = &server.availability_zone;
    if !zone.is_empty() {
        status.failure_domain = Some(zone.clone());
    }
    match server.status.as_str() {
        _ if server.is_deleting() => {
            let text = format!("server {} is being deleted by somebody else", server.id);
            not_ready(
                object,
                now,
                Type::InstanceReady,
                Reason::InstanceDeleted,
                &text,
            );
        }
        "ACTIVE" => {
            status.addresses = addresses(server);
            status.initialization = Some(Initialization {
                provisioned: Some(true),
            });
            condition(
                object,
                now,
                Type::InstanceReady,
                (Status::True, Reason::Ready, ""),
            );
            return true;
        }
        "ERROR" => {
            let text = fault(server, "Machine");
            not_ready(
                object,
                now,
                Type::InstanceReady,
                Reason::InstanceStateError,
                &text,
            );
        }
        "" | "BUILD" => {
            let text = format!("creating server {}", server.id);
            not_ready(
                object,
                now,
                Type::InstanceReady,
                Reason::InstanceNotReady,
                &text,
            );
        }
        other => {
            let text = format!("server {} is {other}", server.id);
            let verdict = (Status::Unknown, Reason::InstanceNotReady, text.as_str());
            condition(object, now, Type::InstanceReady, verdict);
            condition(object, now, Type::Ready, verdict);
        }
    }
    false
}

/// Reason why a [`Server`] is in ERROR, with the message of Nova, and what to do.
pub(crate) fn fault(server: &Server, kind: &str) -> String {
    format!(
        "server {} is in ERROR: {}. Delete the {kind} to get another server",
        server.id,
        fault_message(server)
    )
}

/// Message of Nova about a [`Server`] in ERROR, without the full stop and the space that it may end with.
pub(crate) fn fault_message(server: &Server) -> &str {
    let fault = server.fault.as_ref();
    let message = fault.map_or("", |fault| fault.message.as_str());
    match message.trim_end_matches(['.', ' ']) {
        "" => "Nova gives no reason",
        message => message,
    }
}

/// Addresses as in the Go provider: by network, IPv4 first, then the name of the server.
pub(crate) fn addresses(server: &Server) -> Vec<MachineAddress> {
    let mut found = Vec::new();
    for addresses in server.addresses.values() {
        let mut addresses: Vec<_> = addresses.iter().collect();
        addresses.sort_by_key(|address| address.version);
        for address in addresses {
            let type_ = if address.kind == "floating" {
                "ExternalIP"
            } else {
                "InternalIP"
            };
            found.push(MachineAddress {
                type_: type_.to_owned(),
                address: address.addr.clone(),
            });
        }
    }
    found.push(MachineAddress {
        type_: "InternalDNS".to_owned(),
        address: server.name.clone(),
    });
    found
}
