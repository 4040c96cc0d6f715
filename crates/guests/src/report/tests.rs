use std::collections::BTreeMap;

use simulator::data_plane::{Forward, Listener, Member};

use super::*;

fn instance(id: &str, fixed: &str) -> Instance {
    Instance {
        id: id.to_owned(),
        name: format!("node-{id}"),
        project_id: "p".to_owned(),
        user_data: None,
        fixed_ips: vec![fixed.parse().unwrap()],
        availability_zone: "az1".to_owned(),
        metadata: BTreeMap::new(),
        hostname: String::new(),
        running: true,
        boot: 0,
        disk: 0,
        vcpus: 1,
        memory_mib: 1,
        disk_gib: 1,
        image: String::new(),
    }
}

fn world(instances: Vec<Instance>, floating: &str) -> DataPlane {
    DataPlane {
        instances,
        addresses: vec![Forward {
            floating: floating.parse().unwrap(),
            fixed: "10.0.0.9".parse().unwrap(),
            port_id: "v".to_owned(),
            server: None,
        }],
        listeners: vec![Listener {
            id: "l".to_owned(),
            load_balancer_id: "lb".to_owned(),
            project_id: "p".to_owned(),
            vip: "10.0.0.9".parse().unwrap(),
            vip_port_id: "v".to_owned(),
            vip_network_id: "n".to_owned(),
            port: 6443,
            protocol: "TCP".to_owned(),
            members: vec![Member {
                at: "10.0.0.4:6443".parse().unwrap(),
                server: Some("s".to_owned()),
            }],
            allowed_cidrs: Vec::new(),
        }],
    }
}

fn report(before: &DataPlane, after: &DataPlane) -> Vec<String> {
    changes(before, after, &Outside::default())
}

#[test]
fn servers_and_addresses_that_come_and_go_are_told_once() {
    let up = world(vec![instance("a", "10.0.0.4")], "127.24.0.9");
    assert_eq!(
        report(&DataPlane::default(), &up),
        [
            "node-a: boots (server a, zone az1, 10.0.0.4)",
            "127.24.0.9:6443 leads to a load balancer of 10.0.0.4:6443",
        ]
    );
    assert_eq!(report(&up, &up), Vec::<String>::new());
    let mut off = up.clone();
    off.instances[0].running = false;
    assert_eq!(report(&up, &off), ["node-a: switched off"]);
    assert_eq!(
        report(&up, &DataPlane::default()),
        ["node-a: gone", "127.24.0.9:6443 no longer leads anywhere"]
    );
}

#[test]
fn a_floating_ip_that_cannot_be_bound_is_reported() {
    let lines = report(&DataPlane::default(), &world(Vec::new(), "172.24.0.9"));
    assert!(lines[0].contains("not a loopback address"), "{lines:?}");
    let outside = Outside::with(vec!["172.24.0.0/24".parse().unwrap()]);
    let lines = changes(
        &DataPlane::default(),
        &world(Vec::new(), "172.24.0.9"),
        &outside,
    );
    assert!(!lines[0].contains("not a loopback address"), "{lines:?}");
}

#[test]
fn the_end_of_a_boot_is_reported_once_and_again_for_a_new_server() {
    let world = world(vec![instance("a", "10.0.0.4")], "127.24.0.9");
    let failed = "[ 1.0] cloud-init[731]: error execution phase preflight: no API server\n\
                  [ 1.1] cloud-init[731]: bootstrap failed\n";
    let mut consoles = Consoles::default();
    assert!(consoles.outcomes(&world, |_| String::new()).is_empty());
    assert_eq!(
        consoles.outcomes(&world, |_| failed.to_owned()),
        ["node-a: bootstrap failed: error execution phase preflight: no API server"]
    );
    assert!(consoles.outcomes(&world, |_| failed.to_owned()).is_empty());
    consoles.outcomes(&DataPlane::default(), |_| String::new());
    let good = "success > /run/cluster-api/bootstrap-success.complete";
    assert_eq!(
        consoles.outcomes(&world, |_| good.to_owned()),
        ["node-a: is a node"]
    );
}
