use std::sync::Arc;

use openstack::compute::Flavor;
use openstack::image::Image;
use openstack::inventory::Table;
use openstack::network::{Network, Subnet};
use serde_json::{Value, json};

use super::*;
use crate::identity::Identity;

/// The facts of a machine with this port, in a cloud without extensions of Neutron.
fn resolved(port: Value) -> Result<Facts, Problem> {
    let machine = json!({"flavor": {"id": "f"}, "image": {"id": "i"}, "ports": [port]});
    let network = json!({"name": "n", "id": "net", "subnets":
        [{"name": "a", "id": "a", "cidr": "10.0.0.0/24"}, {"name": "b", "id": "b", "cidr": "10.0.1.0/24"}]});
    let cluster = json!({"metadata": {"name": "c"}, "status": {"network": network}, "spec": {
        "identityRef": {"name": "s", "cloudName": "c"}, "network": {"id": "net"},
        "subnets": [{"id": "a"}, {"id": "b"}]}});
    let subnet = |id: &str| Subnet {
        id: id.into(),
        network_id: "net".into(),
        ..Default::default()
    };
    let view = View {
        flavors: Arc::new(Table::from_items([Flavor {
            id: "f".into(),
            ..Default::default()
        }])),
        images: Arc::new(Table::from_items([Image {
            id: "i".into(),
            ..Default::default()
        }])),
        networks: Arc::new(Table::from_items([Network {
            id: "net".into(),
            ..Default::default()
        }])),
        subnets: Arc::new(Table::from_items([subnet("a"), subnet("b")])),
        ..View::default()
    };
    let scope = Scope {
        cluster_name: "c".into(),
        group: ManagedGroup::Worker,
        server_group: None,
        failure_domain: None,
        zone_field: "failureDomain",
        flavor_field: "flavor",
        project: "p".into(),
    };
    let mark = Mark::machine(Identity::new(), Identity::new());
    let (machine, cluster) = (
        serde_json::from_value(machine).unwrap(),
        serde_json::from_value(cluster).unwrap(),
    );
    facts(&machine, Some(&cluster), mark, &scope, &view)
}

/// The addresses in the request for the only port of a machine.
fn fixed_ips(port: Value) -> Vec<(String, String)> {
    let found = resolved(port).unwrap();
    assert_eq!(found.ports[0].network, "net");
    let ips = found.ports[0].fixed_ips.iter();
    ips.map(|ip| (ip.subnet_id.clone(), ip.ip_address.clone()))
        .collect()
}

#[test]
fn a_requested_address_without_network_or_subnet_is_kept() {
    let on = |subnet: &str, address: &str| (subnet.to_owned(), address.to_owned());
    assert_eq!(fixed_ips(json!({})), [on("a", ""), on("b", "")]);
    assert_eq!(
        fixed_ips(json!({"fixedIPs": [{"ipAddress": "10.0.0.7"}]})),
        [on("", "10.0.0.7")]
    );
    assert_eq!(
        fixed_ips(json!({"fixedIPs": [{"ipAddress": "10.0.1.7", "subnet": {"id": "b"}}]})),
        [on("b", "10.0.1.7")]
    );
}

#[test]
fn a_trunk_is_refused_where_neutron_has_none() {
    assert!(resolved(json!({"trunk": false})).is_ok());
    let problem = resolved(json!({"trunk": true})).unwrap_err();
    assert_eq!(problem.reason, Reason::InvalidMachineSpec);
    assert_eq!(problem.message, "ports[0].trunk: this cloud has no trunks");
}
