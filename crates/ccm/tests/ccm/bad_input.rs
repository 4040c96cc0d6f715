//! Mistakes of users and clouds: each ends in an event with a remedy, and nothing is doubled or leaked.

use api::k8s_openapi::api::core::v1::Service;
use openstack::CloudConfig;
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::families::{families, furnished};
use crate::services::{NAME, octavia_where, world};
use crate::world::{World, eventually, ip, ports_of};

const NOWHERE: &str = "8d1c1a94-0000-4000-8000-000000000000";

fn annotated(name: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {format!("loadbalancer.openstack.org/{name}"): value}}})
}

#[tokio::test(start_paused = true)]
async fn networks_and_subnets_that_do_not_exist_are_rejected_with_the_setting() {
    let world = world(&["worker-1"]).await;
    for setting in [
        "subnet-id",
        "network-id",
        "member-subnet-id",
        "floating-network-id",
    ] {
        world
            .service(setting, &[("TCP", 80)], annotated(setting, NOWHERE))
            .await;
        let note = world.event(setting, "SyncLoadBalancerFailed").await;
        assert!(
            note.contains(&format!("annotation loadbalancer.openstack.org/{setting}")),
            "{note}"
        );
        assert!(note.contains(NOWHERE), "{note}");
    }
    assert!(world.octavia("loadbalancers").await.is_empty());
    let change = annotated("subnet-id", &world.subnet);
    world.cluster.merge::<Service>("subnet-id", change).await;
    world.published("subnet-id").await;
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_used_up_is_an_event_and_the_service_is_served_when_there_is_room() {
    let mut options = CloudOptions::default();
    options.quotas.insert("load_balancer".to_owned(), 1);
    let mut world = World::open_on(options, "").await;
    world.run();
    world.route_out().await;
    world.worker("worker-1").await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.service("api", &[("TCP", 80)], json!({})).await;
    let note = world.event("api", "SyncLoadBalancerFailed").await;
    assert!(note.contains("ask for more quota"), "{note}");
    world.delete_service("web").await;
    world.published("api").await;
    assert_eq!(world.octavia("loadbalancers").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_no_longer_right_are_an_event_and_nothing_is_lost() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let address = ip(&world.published("web").await);
    let right = world.settings.borrow().clone();
    let mut wrong = (*right).clone();
    let clouds = world.cloud.clouds_yaml("http://cloud");
    let clouds = clouds.replace("password: secret", "password: revoked");
    wrong.cloud = CloudConfig::parse(&clouds, "simulated").unwrap();
    world.settings.send_replace(wrong.into());
    let note = world.event("web", "SyncLoadBalancerFailed").await;
    assert!(note.contains("Check [Global] in cloud.conf"), "{note}");
    assert_eq!(ip(&world.published("web").await), address);
    world.settings.send_replace(right);
    world.worker("worker-2").await;
    world.members_are(&["worker-1", "worker-2"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_is_deleted_by_hand_is_created_again_with_its_floating_ip() {
    let world = world(&["worker-1"]).await;
    let before = world.cloud.resources();
    world.service("web", &[("TCP", 80)], json!({})).await;
    let address = ip(&world.published("web").await);
    let id = world.octavia("loadbalancers").await[0]["id"].clone();
    let path = format!(
        "/load-balancer/v2.0/lbaas/loadbalancers/{}?cascade=true",
        id.as_str().unwrap()
    );
    world.request("DELETE", &path, Value::Null).await;
    octavia_where(&world, "loadbalancers", |list| {
        list.len() == 1 && list[0]["id"] != id
    })
    .await;
    eventually("the floating IP on the new port", || async {
        let ips = world.floating_ips().await;
        let port = world.octavia("loadbalancers").await[0]["vip_port_id"].clone();
        let is = ips.len() == 1 && ips[0]["port_id"] == port;
        is.then_some(()).ok_or_else(|| format!("{ips:?}"))
    })
    .await;
    assert_eq!(ip(&world.published("web").await), address);
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_another_service_has_is_rejected_with_its_port() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let address = ip(&world.published("web").await);
    let asked = json!({"spec": {"loadBalancerIP": address}});
    world.service("api", &[("TCP", 80)], asked).await;
    let words = format!("loadBalancerIP: the floating IP {address} is on port");
    world
        .event_with("api", "SyncLoadBalancerFailed", &words)
        .await;
    assert_eq!(world.octavia("loadbalancers").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_ip_that_is_no_floating_ip_of_the_project_is_an_event_that_says_so() {
    let world = world(&["worker-1"]).await;
    let asked = json!({"spec": {"loadBalancerIP": "127.176.9.9"}});
    world.service("nx", &[("TCP", 9202)], asked).await;
    let note = world.event("nx", "SyncLoadBalancerFailed").await;
    let network = world.external_network().await;
    let words = format!(
        "spec.loadBalancerIP: the project has no floating IP 127.176.9.9: allocate one (`openstack floating ip create {}`) \
         and write its address; only administrators may choose one",
        network.as_str().unwrap()
    );
    assert_eq!(note.trim_end_matches('.'), words);
    // The valid part is ready, and follows the nodes.
    world.worker("worker-2").await;
    world.members_are(&["worker-1", "worker-2"]).await;
    let floating = json!({"floatingip": {"floating_network_id": network}});
    let path = "/network/v2.0/floatingips";
    let floating = world.request("POST", path, floating).await["floatingip"].clone();
    let asked = json!({"spec": {"loadBalancerIP": floating["floating_ip_address"]}});
    world.cluster.merge::<Service>("nx", asked).await;
    let service = world.published("nx").await;
    assert_eq!(
        ip(&service),
        floating["floating_ip_address"].as_str().unwrap()
    );
}

/// Values that no load balancer of the Service could have: nothing is created for them.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_ip_that_cannot_be_is_rejected_with_field_value_and_what_to_do() {
    let world = furnished(World::start("").await, &["worker-1"]).await;
    let internal = |address: &str| {
        let internal = "service.beta.kubernetes.io/openstack-internal-load-balancer";
        json!({"metadata": {"annotations": {internal: "true"}}, "spec": {"loadBalancerIP": address}})
    };
    let external = |address: &str| json!({"spec": {"loadBalancerIP": address}});
    let mut only_6 = families(&["IPv6"], "SingleStack");
    only_6["spec"]["loadBalancerIP"] = json!("10.0.0.77");
    let outside = format!("`203.0.113.9` is outside of the subnet {}", world.subnet);
    for (name, fields, words) in [
        (
            "word",
            external("not-an-address"),
            "`not-an-address` is no IP address: correct or remove it",
        ),
        (
            "inner-word",
            internal("10.0.0.300"),
            "`10.0.0.300` is no IP address: correct or remove it",
        ),
        (
            "six",
            external("2001:db8::9"),
            "`2001:db8::9` is of IPv6, and the Service has IPv4 alone (spec.ipFamilies)",
        ),
        (
            "inner-six",
            internal("2001:db8::9"),
            "`2001:db8::9` is of IPv6, and the Service has IPv4 alone",
        ),
        (
            "four",
            only_6,
            "`10.0.0.77` is of IPv4, and the Service has IPv6 alone",
        ),
        ("elsewhere", internal("203.0.113.9"), &outside),
    ] {
        world.service(name, &[("TCP", 80)], fields).await;
        let note = world.event(name, "SyncLoadBalancerFailed").await;
        assert!(
            note.contains(&format!("spec.loadBalancerIP: {words}")),
            "{name}: {note}"
        );
        assert_eq!(world.count_events(name, "LoadBalancerImmutable").await, 0);
    }
    assert!(world.octavia("loadbalancers").await.is_empty());
    assert!(world.floating_ips().await.is_empty());
    let asked = internal("10.0.0.77");
    world.cluster.merge::<Service>("elsewhere", asked).await;
    assert_eq!(ip(&world.published("elsewhere").await), "10.0.0.77");
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_ip_that_is_taken_or_of_no_external_subnet_is_an_event_that_names_it() {
    let world = world(&["worker-1"]).await;
    let internal = "service.beta.kubernetes.io/openstack-internal-load-balancer";
    let node = world.nodes().get("worker-1").await.unwrap();
    let taken = crate::world::addresses(&node)[0].replace("InternalIP ", "");
    let asked =
        json!({"metadata": {"annotations": {internal: "true"}}, "spec": {"loadBalancerIP": taken}});
    world.service("taken", &[("TCP", 80)], asked).await;
    let words = format!("spec.loadBalancerIP `{taken}`: Octavia refuses it (");
    let failed = "SyncLoadBalancerFailed";
    let note = world.event_with("taken", failed, &words).await;
    assert!(note.contains("choose a free address"), "{note}");
    let asked = json!({"spec": {"loadBalancerIP": "203.0.113.9"}});
    world.service("outside", &[("TCP", 80)], asked).await;
    let words = "spec.loadBalancerIP: the project has no floating IP 203.0.113.9: allocate one";
    world.event_with("outside", failed, words).await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_of_another_family_is_an_event_that_names_both() {
    let world = furnished(World::start("").await, &["worker-1"]).await;
    let created =
        json!({"loadbalancer": {"name": NAME, "vip_subnet_id": world.subnet, "tags": [NAME]}});
    let path = "/load-balancer/v2.0/lbaas/loadbalancers";
    let created = world.request("POST", path, created).await;
    let mut fields = families(&["IPv6"], "SingleStack");
    fields["metadata"] = annotated(
        "load-balancer-id",
        created["loadbalancer"]["id"].as_str().unwrap(),
    )["metadata"]
        .clone();
    world.service("web", &[("TCP", 80)], fields).await;
    let words = "ipFamilies: `IPv6` has no effect";
    let note = world
        .event_with("web", "LoadBalancerImmutable", words)
        .await;
    assert!(note.contains("was created with 10.0."), "{note}");
}

#[tokio::test(start_paused = true)]
async fn services_that_change_while_something_is_pending_end_as_they_were_last_asked_for() {
    let world = furnished(World::start("").await, &["worker-1"]).await;
    let before = world.cloud.resources();
    let change = async |fields: Value| {
        world.cluster.merge::<Service>("web", fields).await;
    };
    world.service("web", &[("TCP", 80)], json!({})).await;
    for round in 0..4_u64 {
        let pause = || tokio::time::sleep(std::time::Duration::from_millis(round * 40));
        change(json!({"spec": {"ports": ports_of(&[("TCP", 443), ("UDP", 53)])}})).await;
        pause().await;
        change(json!({"spec": {"type": "ClusterIP"}})).await;
        pause().await;
        change(json!({"spec": {"type": "LoadBalancer"}})).await;
        pause().await;
        change(families(&["IPv4", "IPv6"], "RequireDualStack")).await;
        pause().await;
        change(annotated("x-forwarded-for", "true")).await;
        pause().await;
        change(json!({"metadata": {"annotations": {"loadbalancer.openstack.org/x-forwarded-for": null}}})).await;
        change(families(&["IPv4"], "SingleStack")).await;
        pause().await;
        change(json!({"spec": {"ports": ports_of(&[("TCP", 80)])}})).await;
    }
    octavia_where(&world, "loadbalancers", |list| list.len() == 1).await;
    octavia_where(&world, "listeners", |list| {
        list.len() == 1 && list[0]["protocol"] == "TCP" && list[0]["protocol_port"] == 80
    })
    .await;
    octavia_where(&world, "pools", |list| list.len() == 1).await;
    world.published("web").await;
    assert_eq!(world.floating_ips().await.len(), 1);
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn members_of_a_served_service_follow_the_nodes_whatever_its_annotations_become() {
    for (name, value, reason) in [
        (
            "load-balancer-tags",
            "team-a",
            "LoadBalancerAnnotationIgnored",
        ),
        ("class", "removed", "SyncLoadBalancerFailed"),
        ("proxy-protocol", "v3", "SyncLoadBalancerFailed"),
        ("node-selector", "a b=c", "SyncLoadBalancerFailed"),
        ("member-subnet-id", NOWHERE, "SyncLoadBalancerFailed"),
    ] {
        let world = world(&["worker-1"]).await;
        world.service("web", &[("TCP", 80)], json!({})).await;
        let address = ip(&world.published("web").await);
        world
            .cluster
            .merge::<Service>("web", annotated(name, value))
            .await;
        let annotation = format!("loadbalancer.openstack.org/{name}");
        world.event_with("web", reason, &annotation).await;
        world.worker("worker-2").await;
        world.members_are(&["worker-1", "worker-2"]).await;
        world.exclude("worker-1").await;
        world.members_are(&["worker-2"]).await;
        assert_eq!(ip(&world.published("web").await), address);
        let pools = world.octavia("pools").await;
        assert_eq!(pools[0]["protocol"], "TCP");
        world.delete_service("web").await;
        assert!(world.octavia("loadbalancers").await.is_empty());
        assert!(world.floating_ips().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_is_kept_stays_when_the_service_becomes_internal() {
    let world = world(&["worker-1"]).await;
    world
        .service("web", &[("TCP", 80)], annotated("keep-floatingip", "true"))
        .await;
    world.published("web").await;
    let known = world.floating_ips().await[0]["id"].clone();
    let internal = "service.beta.kubernetes.io/openstack-internal-load-balancer";
    let change = json!({"metadata": {"annotations": {internal: "true"}}});
    world.cluster.merge::<Service>("web", change).await;
    eventually("the address to be taken off", || async {
        let all = world.floating_ips().await;
        let is_free = all.len() == 1 && all[0]["id"] == known && all[0]["port_id"].is_null();
        is_free.then_some(()).ok_or_else(|| format!("{all:?}"))
    })
    .await;
}

/// The API server refuses what would be refused by Octavia for ever.
#[tokio::test(start_paused = true)]
async fn a_service_with_the_same_port_twice_is_refused_by_the_api_server_and_nothing_is_made() {
    let world = world(&["worker-1"]).await;
    let api = world.cluster.api::<Service>();
    let service = |name: &str, ports: Value| -> Service {
        let service =
            json!({"metadata": {"name": name}, "spec": {"type": "LoadBalancer", "ports": ports}});
        serde_json::from_value(service).unwrap()
    };
    let port = |name: &str| json!({"name": name, "port": 53, "protocol": "TCP"});
    let refused = async |service: &Service, words: &str| {
        let error = api.create(&Default::default(), service).await.unwrap_err();
        let kube::Error::Api(status) = error else {
            panic!("{error}");
        };
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
        assert!(status.message.contains(words), "{}", status.message);
    };
    let twice = service("dup", json!([port("a"), port("b")]));
    refused(&twice, "spec.ports[1]: Duplicate value").await;
    let unnamed = json!([{"port": 80}, {"port": 443}]);
    let unnamed = service("unnamed", unnamed);
    refused(&unnamed, "spec.ports[0].name: Required value").await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    let change = json!({"spec": {"clusterIP": "10.96.77.77", "clusterIPs": ["10.96.77.77"]}});
    let change = kube::api::Patch::Merge(change);
    let error = api.patch("web", &Default::default(), &change).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("spec.clusterIP"), "{error}");
    assert_eq!(world.octavia("loadbalancers").await.len(), 1);
}
