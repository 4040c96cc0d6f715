//! `ports[].allowedAddressPairs`, which may change as long as the machine exists.
//!
//! Others add pairs to the same ports: a cloud controller manager adds the ranges of pods. From a port in use by a
//! server, only pairs added by this provider are removed, as recorded in `status.resolved.ports`. The record is written
//! before a port is changed, so that the record has at least the pairs of an interrupted reconcile.

use std::net::IpAddr;

use api::infra::v1beta2::{
    AddressPair as SpecPair, OpenStackMachine, PortOpts, ResolvedPortFields, ResolvedPortSpec,
};
use ipnet::IpNet;
use kube::ResourceExt;
use openstack::network::{AddressPair, Port};

use super::desired::port_name;
use super::facts::ports;
use super::observed::Observed;

/// The pairs of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPairs {
    /// The name of the port.
    pub port: String,
    /// [`AddressPair`]s in the spec.
    pub wanted: Vec<AddressPair>,
    /// [`AddressPair`]s that this provider may have added.
    pub recorded: Vec<AddressPair>,
}

/// A change of the pairs of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The name of the port.
    pub port: String,
    /// Id.
    pub id: String,
    /// Pairs to add.
    pub add: Vec<AddressPair>,
    /// [`AddressPair`]s to remove, in the form of the port.
    pub remove: Vec<AddressPair>,
}

/// [`PortPairs`] of a machine; none of ports without port security, which have no pairs.
pub fn of(object: &OpenStackMachine) -> Vec<PortPairs> {
    let name = object.name_any();
    let all = ports(&object.spec);
    let secure = all
        .iter()
        .enumerate()
        .filter(|(_, opts)| opts.fields.enable_port_security != Some(false));
    secure
        .map(|(index, opts)| {
            let port = port_name(&name, index, opts);
            let recorded = recorded(object, &port).map_or(&[][..], |entry| {
                entry.fields.allowed_address_pairs.as_slice()
            });
            PortPairs {
                wanted: in_spec(opts),
                recorded: recorded.iter().map(pair).collect(),
                port,
            }
        })
        .collect()
}

/// [`AddressPair`]s of a port in the spec; none without port security, with which Neutron rejects pairs.
pub(super) fn in_spec(opts: &PortOpts) -> Vec<AddressPair> {
    let secure = opts.fields.enable_port_security != Some(false);
    let pairs = opts.fields.allowed_address_pairs.iter();
    pairs.filter(|_| secure).map(pair).collect()
}

fn pair(pair: &SpecPair) -> AddressPair {
    AddressPair {
        ip_address: pair.ip_address.clone(),
        mac_address: pair.mac_address.clone(),
    }
}

fn recorded<'a>(object: &'a OpenStackMachine, port: &str) -> Option<&'a ResolvedPortSpec> {
    let resolved = object.status.as_ref()?.resolved.as_ref()?;
    resolved.ports.iter().find(|entry| entry.name == port)
}

/// [`Change`]s of ports in use by a server. Pairs of others stay.
pub fn changes(all: &[PortPairs], observed: &Observed) -> Vec<Change> {
    let changes = all.iter().filter_map(|pairs| {
        let port = observed.port(&pairs.port)?;
        let ours = |pair: &AddressPair| has(&pairs.recorded, pair, &port.mac_address);
        change(&pairs.wanted, port, ours)
    });
    changes.collect()
}

/// [`Change`] of a port without a server yet, so without pairs of others.
pub(super) fn before_use(wanted: &[AddressPair], port: &Port) -> Option<Change> {
    change(wanted, port, |_| true)
}

fn change(
    wanted: &[AddressPair],
    port: &Port,
    is_ours: impl Fn(&AddressPair) -> bool,
) -> Option<Change> {
    let (mac, present) = (&port.mac_address, &port.allowed_address_pairs);
    let surplus = |pair: &&AddressPair| is_ours(pair) && !has(wanted, pair, mac);
    let change = Change {
        port: port.name.clone(),
        id: port.id.clone(),
        add: wanted
            .iter()
            .filter(|pair| !has(present, pair, mac))
            .cloned()
            .collect(),
        remove: present.iter().filter(surplus).cloned().collect(),
    };
    (!change.add.is_empty() || !change.remove.is_empty()).then_some(change)
}

/// True if one of the [`AddressPair`]s of a port with this hardware address is equivalent to `pair`.
fn has(pairs: &[AddressPair], pair: &AddressPair, mac: &str) -> bool {
    let network = |pair: &AddressPair| {
        let text = &pair.ip_address;
        let address = text.parse::<IpAddr>().map(IpNet::from).ok();
        let net = address.or_else(|| text.parse::<IpNet>().ok());
        net.map(|net| net.trunc())
    };
    let hardware = |pair: &AddressPair| {
        let address = pair.mac_address.as_deref().unwrap_or(mac);
        address.to_ascii_lowercase()
    };
    pairs.iter().any(|other| {
        let same_network = match (network(pair), network(other)) {
            (Some(one), Some(two)) => one == two,
            _ => pair.ip_address == other.ip_address,
        };
        same_network && hardware(pair) == hardware(other)
    })
}

/// Adds the pairs of the spec to the record. Returns true for a changed record.
pub(super) fn announce(
    object: &mut OpenStackMachine,
    all: &[PortPairs],
    observed: &Observed,
) -> bool {
    let mut changed = false;
    for pairs in all {
        let missing = pairs
            .wanted
            .iter()
            .filter(|pair| !pairs.recorded.contains(pair));
        let missing: Vec<_> = missing.cloned().collect();
        if !missing.is_empty() {
            let all = [pairs.recorded.as_slice(), missing.as_slice()].concat();
            changed |= write(object, &pairs.port, &all, observed);
        }
    }
    changed
}

/// Records exactly the pairs of the spec, which the ports have now.
pub(super) fn record(object: &mut OpenStackMachine, all: &[PortPairs], observed: &Observed) {
    for pairs in all {
        if pairs.wanted != pairs.recorded {
            write(object, &pairs.port, &pairs.wanted, observed);
        }
    }
}

/// Writes the record of an existing port.
fn write(
    object: &mut OpenStackMachine,
    name: &str,
    pairs: &[AddressPair],
    observed: &Observed,
) -> bool {
    let Some(port) = observed.port(name) else {
        return false;
    };
    let status = object.status.get_or_insert_default();
    let ports = &mut status.resolved.get_or_insert_default().ports;
    let known = ports.iter().position(|entry| entry.name == name);
    let at = known.unwrap_or_else(|| {
        // A status that was lost, as in a move to another management cluster.
        ports.push(ResolvedPortSpec {
            name: name.to_owned(),
            description: port.description.clone(),
            network_id: port.network_id.clone(),
            ..ResolvedPortSpec::default()
        });
        ports.len() - 1
    });
    ports[at].fields = fields(pairs);
    true
}

/// The recorded fields of a port.
pub(super) fn fields(pairs: &[AddressPair]) -> ResolvedPortFields {
    let pairs = pairs.iter().map(|pair| SpecPair {
        ip_address: pair.ip_address.clone(),
        mac_address: pair.mac_address.clone(),
    });
    ResolvedPortFields {
        allowed_address_pairs: pairs.collect(),
        ..ResolvedPortFields::default()
    }
}

#[cfg(test)]
mod tests;
