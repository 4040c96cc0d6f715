//! Network and router of a cluster that were changed by hand are put back.

use api::infra::v1beta2::OpenStackCluster;
use openstack::Service;
use serde_json::{Value, json};

use crate::world::{World, eventually};

async fn item(world: &World, path: &str, one: &str) -> Value {
    world
        .request(Service::Network, "GET", path, json!({}))
        .await[one]
        .clone()
}

#[tokio::test(start_paused = true)]
async fn mtu_port_security_and_admin_state_that_were_changed_by_hand_are_put_back_with_an_event() {
    let world = World::start().await;
    let managed = json!({"mtu": 1400, "enablePortSecurity": true});
    world.cluster(json!({"managedNetwork": managed})).await;
    let cluster = world.cluster_ready().await;
    let status = cluster.status.unwrap();
    let network = format!("/networks/{}", status.network.unwrap().id);
    let router = format!("/routers/{}", status.router.unwrap().id);
    let by_hand =
        json!({"network": {"mtu": 1300, "port_security_enabled": false, "admin_state_up": false}});
    world
        .request(Service::Network, "PUT", &network, by_hand)
        .await;
    let by_hand = json!({"router": {"admin_state_up": false}});
    world
        .request(Service::Network, "PUT", &router, by_hand)
        .await;
    eventually("what the spec says", || async {
        let known = item(&world, &network, "network").await;
        let is_up = item(&world, &router, "router").await["admin_state_up"] == true;
        let is_back = known["mtu"] == 1400
            && known["port_security_enabled"] == true
            && known["admin_state_up"] == true;
        (is_back && is_up).then_some(()).ok_or(known.to_string())
    })
    .await;
    let notes = world.notes("demo", "Normal").await;
    let is_noted = |words: &str| notes.iter().any(|note| note.contains(words));
    assert!(
        is_noted("Changed the MTU and port security and the admin state of the network back"),
        "{notes:#?}"
    );
    assert!(
        is_noted("Enabled the router, which was switched off"),
        "{notes:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_spec_leaves_to_the_cloud_is_left_to_whoever_changes_it() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    let cluster = world.cluster_ready().await;
    let network = cluster.status.unwrap().network.unwrap().id;
    let network = format!("/networks/{network}");
    let by_hand = json!({"network": {"mtu": 1300}});
    world
        .request(Service::Network, "PUT", &network, by_hand)
        .await;
    tokio::time::sleep(crate::world::MINUTE).await;
    assert_eq!(item(&world, &network, "network").await["mtu"], 1300);
}

#[tokio::test(start_paused = true)]
async fn rules_that_the_spec_leaves_out_go_from_groups_that_exist_and_come_back() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let rules = async |group: &str| {
        let session = world.session().await;
        let all = session.network().security_groups(&[]).await.unwrap();
        let of = all.iter().find(|it| it.name.ends_with(group)).unwrap();
        let is_open = |rule: &&openstack::network::SecurityGroupRule| {
            rule.remote_ip_prefix.is_none() && rule.remote_group_id.is_none()
        };
        of.rules.iter().filter(is_open).count()
    };
    // Egress of both families, and the API server.
    assert_eq!((rules("controlplane").await, rules("worker").await), (3, 2));
    let narrowed = json!([{"name": "Egress"}, {"name": "APIServer", "cidrs": ["192.0.2.0/24"]}]);
    let change = |rules: Value| json!({"spec": {"managedSecurityGroups": {"defaultRules": rules}}});
    world
        .merge::<OpenStackCluster>("demo", change(narrowed))
        .await;
    eventually("no open rule", || async {
        let open = (rules("controlplane").await, rules("worker").await);
        (open == (0, 0)).then_some(()).ok_or(format!("{open:?}"))
    })
    .await;
    world.cluster_ready().await;
    world
        .merge::<OpenStackCluster>("demo", change(Value::Null))
        .await;
    eventually("the rules of before", || async {
        let open = (rules("controlplane").await, rules("worker").await);
        (open == (3, 2)).then_some(()).ok_or(format!("{open:?}"))
    })
    .await;
}

/// A worker whose ports are those of `ports`; returns the paths of the ports.
async fn worker(world: &World, ports: Value) -> Vec<String> {
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, json!({"ports": ports})).await;
    let machine = world.machine_ready("md-0").await;
    let ports = machine.status.unwrap().resources.unwrap().ports;
    ports
        .iter()
        .map(|port| format!("/ports/{}", port.id))
        .collect()
}

async fn by_hand(world: &World, path: &str, change: Value) {
    let body = json!({"port": change});
    world.request(Service::Network, "PUT", path, body).await;
}

#[tokio::test(start_paused = true)]
async fn ports_of_a_machine_that_were_changed_by_hand_are_put_back_with_an_event() {
    let world = World::start().await;
    let secure =
        json!({"enablePortSecurity": true, "allowedAddressPairs": [{"ipAddress": "10.6.0.100"}]});
    let open = json!({"enablePortSecurity": false, "adminStateUp": false});
    let ports = worker(&world, json!([secure, open])).await;
    let before = item(&world, &ports[0], "port").await;
    assert_ne!(before["security_groups"], json!([]));
    let opened = json!({"admin_state_up": false, "port_security_enabled": false, "security_groups": [],
        "allowed_address_pairs": []});
    by_hand(&world, &ports[0], opened).await;
    let closed = json!({"admin_state_up": true, "port_security_enabled": true,
        "security_groups": before["security_groups"], "allowed_address_pairs": [{"ip_address": "10.6.0.101"}]});
    by_hand(&world, &ports[1], closed).await;
    eventually("ports as the spec has them", || async {
        let first = item(&world, &ports[0], "port").await;
        let second = item(&world, &ports[1], "port").await;
        let same = |field: &str| first[field] == before[field];
        let fields = [
            "admin_state_up",
            "port_security_enabled",
            "security_groups",
            "allowed_address_pairs",
        ];
        let is_off = second["admin_state_up"] == false && second["port_security_enabled"] == false;
        (fields.iter().all(|field| same(field)) && is_off)
            .then_some(())
            .ok_or(format!("{first}\n{second}"))
    })
    .await;
    world.machine_ready("md-0").await;
    let notes = world.notes("md-0", "Normal").await;
    for name in ["md-0-0", "md-0-1"] {
        let words = format!("Changed the admin state and port security of port {name} back");
        assert!(notes.iter().any(|note| note.contains(&words)), "{notes:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn port_security_that_the_spec_leaves_to_the_network_is_left_to_whoever_changes_it() {
    let world = World::start().await;
    let ports = worker(&world, json!([{}])).await;
    let opened = json!({"port_security_enabled": false, "security_groups": []});
    by_hand(&world, &ports[0], opened).await;
    let writes = world.writes();
    tokio::time::sleep(crate::world::MINUTE).await;
    let known = item(&world, &ports[0], "port").await;
    assert_eq!(known["port_security_enabled"], false);
    assert_eq!(world.writes(), writes);
}

/// Ids of the load balancers, and of all that Neutron has in the project.
async fn ids(world: &World) -> Vec<(Service, String)> {
    let mut all = Vec::new();
    for (service, path) in [
        (Service::Network, "networks"),
        (Service::Network, "subnets"),
        (Service::Network, "routers"),
        (Service::Network, "security-groups"),
        (Service::Network, "floatingips"),
        (Service::Network, "ports"),
        (Service::LoadBalancer, "lbaas/loadbalancers"),
    ] {
        let path = format!("/{path}");
        let found = world.request(service, "GET", &path, json!({})).await;
        for (_, items) in found.as_object().unwrap() {
            for item in items.as_array().into_iter().flatten() {
                let is_ours = item["description"]
                    .as_str()
                    .is_some_and(|it| it.ends_with(']'));
                let id = item["id"].as_str().unwrap();
                all.extend(is_ours.then(|| (service, format!("{path}/{id}"))));
            }
        }
    }
    all.sort_by(|a, b| a.1.cmp(&b.1));
    all
}

#[tokio::test(start_paused = true)]
async fn what_has_another_description_is_still_the_clusters_and_nothing_is_made_twice() {
    let world = World::start().await;
    worker(&world, json!([{}])).await;
    let before = ids(&world).await;
    let kinds: std::collections::BTreeSet<_> = before
        .iter()
        .filter_map(|(_, path)| path.rsplit_once('/'))
        .map(|(kind, _)| kind)
        .collect();
    assert_eq!(kinds.len(), 7, "{kinds:?}");
    let resources = world.cloud.resources();
    for (service, path) in &before {
        let kind = path.rsplit('/').nth(1).unwrap();
        let one = kind.strip_suffix('s').unwrap().replace('-', "_");
        let change = json!({one: {"description": "changed"}});
        world.request(*service, "PUT", path, change).await;
    }
    tokio::time::sleep(crate::world::MINUTE).await;
    assert_eq!(world.cloud.resources(), resources);
    world.cluster_ready().await;
    world.machine_ready("md-0").await;
    world.delete_machine("md-0").await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), std::collections::BTreeMap::default());
}
