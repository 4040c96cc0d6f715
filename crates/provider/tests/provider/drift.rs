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
