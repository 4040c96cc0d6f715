use serde_json::json;

use super::*;

/// The message for a spec with these fields beside those that the driver needs.
fn message(fields: &serde_json::Value) -> String {
    let mut spec = json!({"release": "2026.1", "nodes": {"compute": {"openstack-compute-node": "enabled"}},
        "compute": {"driver": "Libvirt"}});
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    match Parameters::read(&spec) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_does_not_go_with_the_driver_is_refused_with_its_field() {
    assert_eq!(message(&json!({})), "");
    for (fields, expected) in [
        (
            json!({"release": "2025.1"}),
            "compute.driver: Libvirt needs release 2026.1: the images of other releases have no libvirt",
        ),
        (
            json!({"nodes": {}}),
            "nodes.compute: Libvirt needs a label of the nodes that run guests, such as openstack-compute-node: enabled",
        ),
        (
            json!({"compute": {"driver": "Libvirt", "fake": {"hypervisors": 3}}}),
            "compute.fake: it is for the driver Fake",
        ),
        (
            json!({"compute": {"driver": "Fake", "libvirt": {"reservedCpus": 1}}}),
            "compute.libvirt: it is for the driver Libvirt",
        ),
        (
            json!({"compute": {"driver": "Libvirt", "libvirt": {"cpuMode": "Custom"}}}),
            "compute.libvirt.cpuModels: the mode Custom needs a model, such as Nehalem",
        ),
        (
            json!({"compute": {"driver": "Libvirt", "libvirt": {"cpuModels": ["Nehalem"]}}}),
            "compute.libvirt.cpuModels: they are for the mode Custom",
        ),
        (
            json!({"compute": {"driver": "Libvirt", "libvirt": {"hugePages": 1}}}),
            "compute.libvirt.hugePages: unknown field `hugePages`, expected one of `reservedCpus`, `reservedMemoryMib`, `cpuMode`, `cpuModels`",
        ),
        (
            json!({"network": {"physical": [{"name": "public-network"}]}}),
            "network.physical[0].name: with Libvirt it has at most 12 characters: the bridge of each node is `br-` and the name",
        ),
        (
            json!({"network": {"physical": [{"name": "int"}]}}),
            "network.physical[0].name: with Libvirt it cannot be `int`: br-int is the bridge of OVN, which has the ports of all servers",
        ),
        (
            json!({"network": {"physical": [{"name": "public", "interface": "eth 1"}]}}),
            "network.physical[0].interface: it has to be the name of an interface, such as eth1",
        ),
        (
            json!({"network": {"physical": [{"name": "a", "interface": "eth1"}, {"name": "b", "interface": "eth1"}]}}),
            "network.physical[1].interface: another physical network has it",
        ),
        (
            json!({"compute": {"driver": "Fake"}, "network": {"datapath": "Userspace"}}),
            "network.datapath: it is for compute.driver: Libvirt; without, no packet flows",
        ),
        (
            json!({"compute": {"driver": "Fake"}, "network": {"physical": [{"name": "a", "interface": "eth1"}]}}),
            "network.physical[0].interface: it is for compute.driver: Libvirt; without, no packet flows",
        ),
    ] {
        assert_eq!(message(&fields), expected);
    }
}

#[test]
fn what_an_api_server_fills_in_is_what_is_left_out() {
    let filled = json!({"compute": {"driver": "Libvirt", "fake": {"hypervisors": 2, "zones": []}},
        "network": {"mtu": 1500, "datapath": "Auto"}});
    assert_eq!(message(&filled), "");
}
