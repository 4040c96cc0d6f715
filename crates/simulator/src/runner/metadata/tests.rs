use std::collections::BTreeMap;

use super::*;
use crate::machine::Key;

fn server() -> (Instance, Machine) {
    let instance = Instance {
        id: "3f2b8a54-0000-4000-8000-000000000001".to_owned(),
        name: "Node 1".to_owned(),
        project_id: "p".to_owned(),
        user_data: None,
        fixed_ips: vec![[10, 6, 0, 9].into()],
        availability_zone: "az1".to_owned(),
        metadata: BTreeMap::new(),
        hostname: "node-1".to_owned(),
        running: true,
        boot: 1,
        disk: 0,
        vcpus: 1,
        memory_mib: 512,
        disk_gib: 1,
        image: String::new(),
    };
    let address = |dhcp| Address {
        address: [10, 6, 0, 9].into(),
        subnet_id: "s".to_owned(),
        cidr: "10.6.0.0/24".parse().unwrap(),
        gateway: Some([10, 6, 0, 1].into()),
        dns_nameservers: vec!["9.9.9.9".to_owned()],
        routes: vec![crate::machine::Route {
            destination: "10.9.0.0/16".to_owned(),
            nexthop: "10.6.0.2".to_owned(),
        }],
        dhcp,
    };
    let machine = Machine {
        flavor: "m1.tiny".to_owned(),
        key: Some(Key {
            name: "mine".to_owned(),
            public: "ssh-ed25519 AAAA".to_owned(),
        }),
        ports: vec![Port {
            id: "0123456789abcdef".to_owned(),
            mac_address: "fa:16:3e:00:00:01".to_owned(),
            network_id: "n".to_owned(),
            network_name: "net".to_owned(),
            mtu: 1450,
            addresses: vec![address(true), address(false)],
            open: Vec::new(),
        }],
        ..Machine::default()
    };
    (instance, machine)
}

fn text(path: &str) -> Option<String> {
    let (instance, machine) = server();
    content(&instance, &machine, path).map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn metadata_has_novas_form() {
    let data: Value =
        serde_json::from_str(&text("openstack/latest/meta_data.json").unwrap()).unwrap();
    assert_eq!(data["name"], "Node 1");
    assert_eq!(data["keys"][0]["data"], "ssh-ed25519 AAAA");
    assert_eq!(data["public_keys"]["mine"], "ssh-ed25519 AAAA");
    assert!(data.get("meta").is_none(), "Nova leaves out what is empty");
    let network: Value =
        serde_json::from_str(&text("openstack/latest/network_data.json").unwrap()).unwrap();
    assert_eq!(
        network,
        json!({
            "links": [{"id": "tap0123456789a", "vif_id": "0123456789abcdef", "type": "ovs", "mtu": 1450,
                "ethernet_mac_address": "fa:16:3e:00:00:01"}],
            "networks": [
                {"id": "network0", "type": "ipv4_dhcp", "link": "tap0123456789a", "network_id": "n"},
                {"id": "network1", "type": "ipv4", "link": "tap0123456789a", "network_id": "n",
                    "ip_address": "10.6.0.9", "netmask": "255.255.255.0",
                    "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.6.0.1"},
                        {"network": "10.9.0.0", "netmask": "255.255.0.0", "gateway": "10.6.0.2"}],
                    "services": [{"type": "dns", "address": "9.9.9.9"}]},
            ],
            "services": [{"type": "dns", "address": "9.9.9.9"}],
        })
    );
}

#[test]
fn every_path_that_cloud_init_asks_for_has_an_answer_or_none() {
    for (path, answer) in [
        ("latest/meta-data/local-ipv4", Some("10.6.0.9")),
        (
            "2009-04-04/meta-data/placement/availability-zone",
            Some("az1"),
        ),
        ("latest/meta-data/placement/", Some("availability-zone")),
        ("latest/meta-data/public-keys/", Some("0=mine")),
        ("latest/meta-data/public-keys/0/", Some("openssh-key")),
        (
            "latest/meta-data/public-keys/0/openssh-key",
            Some("ssh-ed25519 AAAA"),
        ),
        ("latest/meta-data/instance-type", Some("m1.tiny")),
        ("openstack/latest/vendor_data.json", Some("{}")),
        ("latest", Some("meta-data/\nuser-data")),
        ("openstack/latest/user_data", None),
        ("latest/user-data", None),
        ("latest/meta-data/nothing", None),
        ("openstack/2011-01-01/meta_data.json", None),
        ("latest/meta-data/placement/availability-zone/more", None),
    ] {
        assert_eq!(text(path).as_deref(), answer, "{path}");
    }
    assert!(
        text("openstack")
            .unwrap()
            .lines()
            .any(|line| line == "latest")
    );
    assert!(
        text("latest/meta-data/")
            .unwrap()
            .lines()
            .any(|line| line == "public-keys/")
    );
    assert!(text("").unwrap().lines().any(|line| line == "openstack"));
}
