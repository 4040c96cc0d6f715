use std::sync::Arc;

use openstack::View;
use openstack::inventory::Table;
use openstack::loadbalancer::LoadBalancer;

use super::*;
use crate::cluster::observed::References;
use crate::identity::Identity;

const ADDRESS: &str = "198.51.100.7";

/// The use of a floating IP with this description on this port.
fn use_of(ours: Identity, description: &str, port: Option<&Port>, balanced: bool) -> Use {
    let ip = FloatingIp {
        id: "ip".into(),
        floating_ip_address: ADDRESS.into(),
        description: description.into(),
        port_id: port.map(|port| port.id.clone()),
        ..Default::default()
    };
    let balancer = LoadBalancer {
        id: "lb".into(),
        description: Mark::cluster(ours).description("ours"),
        vip_port_id: "vip".into(),
        ..Default::default()
    };
    let view = View {
        floating_ips: Arc::new(Table::from_items([ip])),
        ports: Arc::new(Table::from_items(port.cloned())),
        load_balancers: Arc::new(Table::from_items([balancer])),
        ..View::default()
    };
    of(
        ADDRESS,
        &Observed::new(Arc::new(view), ours, &References::default()),
        balanced,
    )
}

fn port(id: &str, owner: &str, description: &str) -> Port {
    Port {
        id: id.into(),
        device_owner: owner.into(),
        device_id: if owner.is_empty() { "" } else { "device" }.into(),
        description: description.into(),
        ..Default::default()
    }
}

#[test]
fn a_floating_ip_is_used_only_if_nothing_else_has_it() {
    let (ours, other) = (Identity::new(), Identity::new());
    let of_other = Mark::cluster(other).description("theirs");
    let of_us = Mark::machine(ours, Identity::new()).description("node");
    let of_machine = Mark::machine(other, Identity::new()).description("node");
    let taken = |port: Option<&Port>, description: &str, balanced: bool| {
        let use_ = use_of(ours, description, port, balanced);
        matches!(use_, Use::Taken(_))
    };
    assert_eq!(use_of(ours, "", None, true), Use::Free);
    assert!(taken(None, &of_other, true));
    assert!(taken(Some(&port("p", "compute:nova", "")), "", true));
    assert!(taken(
        Some(&port("p", "compute:nova", &of_machine)),
        "",
        false
    ));
    assert!(taken(Some(&port("p", "Octavia", "")), "", true));
    assert!(taken(Some(&port("p", "", &of_machine)), "", false));
    let node = port("p", "compute:nova", &of_us);
    assert_eq!(use_of(ours, "", Some(&node), false), Use::Ours);
    let vip = port("vip", "Octavia", "");
    assert_eq!(use_of(ours, "", Some(&vip), true), Use::Ours);
    // A virtual address of the user, such as that of kube-vip, keeps it unless it is to go to a load balancer.
    let virtual_ = port("p", "", "");
    assert_eq!(use_of(ours, "", Some(&virtual_), false), Use::LeftInPlace);
    assert!(taken(Some(&virtual_), "", true));
}
