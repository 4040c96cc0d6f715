//! Routes to the pods of nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::{ConfigMap, Node};
use ccm::{Controllers, Routes};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::world::{World, eventually, settings};

const ATOMIC: &str = "extraroute-atomic";

/// A cluster with the route controller alone, and a router.
pub(crate) struct Routed {
    pub(crate) world: World,
    pub(crate) router: String,
}

impl Routed {
    pub(crate) async fn open(options: CloudOptions) -> Self {
        let mut world = World::open_on(options, "").await;
        world.options(|options| {
            options.controllers = Controllers {
                node: false,
                node_lifecycle: false,
                service: false,
                route: true,
            };
            let cidrs = ["10.244.0.0/16", "fd00:244::/48"];
            options.routes = Routes {
                cluster_cidrs: cidrs.map(|cidr| cidr.parse().unwrap()).into(),
                period: Duration::from_secs(5),
            };
        });
        let router = world.route_out().await;
        let conf = settings(&world.cloud, &format!("[Route]\nrouter-id = {router}\n"));
        world.settings.send_replace(conf.into());
        Self { world, router }
    }

    pub(crate) async fn start(options: CloudOptions) -> Self {
        let mut routed = Self::open(options).await;
        routed.world.run();
        routed
    }

    /// The ports of a server.
    async fn ports(&self, server: &str) -> Vec<Value> {
        let path = format!("/network/v2.0/ports?device_id={server}");
        let all = self.world.request("GET", &path, Value::Null).await;
        all["ports"].as_array().unwrap().clone()
    }

    /// The Node of a server, with its addresses and ranges of pods.
    pub(crate) async fn node(&self, name: &str, server: &str, cidrs: &[&str]) {
        let node = json!({"metadata": {"name": name},
            "spec": {"podCIDR": cidrs.first(), "podCIDRs": cidrs}});
        let node: Node = serde_json::from_value(node).unwrap();
        let nodes = self.world.nodes();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let ports = self.ports(server).await;
        let fixed = ports
            .iter()
            .flat_map(|port| port["fixed_ips"].as_array().unwrap());
        let addresses: Vec<Value> = fixed
            .map(|fixed| json!({"type": "InternalIP", "address": fixed["ip_address"]}))
            .collect();
        self.patch_status(name, json!({"addresses": addresses}))
            .await;
    }

    async fn patch_status(&self, name: &str, status: Value) {
        let (params, patch) = (
            PatchParams::default(),
            Patch::Merge(json!({"status": status})),
        );
        let nodes = self.world.nodes();
        nodes.patch_status(name, &params, &patch).await.unwrap();
    }

    /// A server with its Node; returns the address of the server.
    async fn worker(&self, name: &str, cidr: &str) -> String {
        let server = self.world.server(name).await;
        self.node(name, &server, &[cidr]).await;
        let ports = self.ports(&server).await;
        ports[0]["fixed_ips"][0]["ip_address"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The routes of the router, as `10.244.1.0/24 via 10.0.0.5`.
    pub(crate) async fn routes(&self) -> Vec<String> {
        let path = format!("/network/v2.0/routers/{}", self.router);
        let router = self.world.request("GET", &path, Value::Null).await;
        let routes = router["router"]["routes"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut routes: Vec<_> = routes
            .map(|route| {
                format!(
                    "{} via {}",
                    text(&route["destination"]),
                    text(&route["nexthop"])
                )
            })
            .collect();
        routes.sort();
        routes
    }

    /// The ranges from which ports may send, all ports together.
    pub(crate) async fn pairs(&self) -> Vec<String> {
        let all = self
            .world
            .request("GET", "/network/v2.0/ports", Value::Null)
            .await;
        let ports = all["ports"].as_array().unwrap().iter();
        let pairs = ports.flat_map(|port| port["allowed_address_pairs"].as_array().unwrap());
        let mut ranges: Vec<_> = pairs
            .map(|pair| pair["ip_address"].as_str().unwrap().to_owned())
            .collect();
        ranges.sort();
        ranges
    }

    /// The recorded routes.
    pub(crate) async fn record(&self) -> Vec<String> {
        let map = self
            .record_map()
            .get_opt("ferrostack-routes")
            .await
            .unwrap();
        let data = map.and_then(|map| map.data).unwrap_or_default();
        let text = data.get(&self.router).cloned().unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn record_map(&self) -> Api<ConfigMap> {
        Api::namespaced(self.world.cluster.client.clone(), "kube-system")
    }

    /// Waits until router, ports and record have exactly these routes.
    pub(crate) async fn settled(&self, routes: &[String]) {
        let mut ranges: Vec<_> = routes
            .iter()
            .map(|route| route.split(' ').next().unwrap().to_owned())
            .collect();
        ranges.sort();
        let mut wanted = routes.to_vec();
        wanted.sort();
        eventually("the routes", || async {
            let (found, pairs) = (self.routes().await, self.pairs().await);
            let mut record = self.record().await;
            record.sort();
            match found == wanted && pairs == ranges && record == wanted {
                true => Ok(()),
                false => Err(format!("{found:?}, {pairs:?}, recorded {record:?}")),
            }
        })
        .await;
    }

    /// Waits until the condition NetworkUnavailable of a Node has this reason.
    async fn condition(&self, name: &str, reason: &str) {
        let is = |node: &Node| {
            let status = node.status.as_ref();
            let conditions = status.and_then(|status| status.conditions.as_ref());
            conditions.into_iter().flatten().any(|condition| {
                condition.type_ == "NetworkUnavailable"
                    && condition.reason.as_deref() == Some(reason)
                    && condition.status
                        == if reason == "RouteCreated" {
                            "False"
                        } else {
                            "True"
                        }
            })
        };
        self.world.node_where(name, is).await;
    }

    /// Changes the routes of the router, as another user does.
    async fn by_hand(&self, verb: &str, destination: &str, hop: &str) {
        let path = format!("/network/v2.0/routers/{}/{verb}_extraroutes", self.router);
        let body = json!({"router": {"routes": [{"destination": destination, "nexthop": hop}]}});
        self.world.request("PUT", &path, body).await;
    }

    async fn delete_node(&self, name: &str) {
        let nodes = self.world.nodes();
        nodes.delete(name, &Default::default()).await.unwrap();
    }
}

pub(crate) fn atomic() -> CloudOptions {
    CloudOptions {
        extensions: vec![ATOMIC.to_owned()],
        ..CloudOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_a_route_an_address_pair_and_the_condition_until_it_is_deleted() {
    for options in [CloudOptions::default(), atomic()] {
        let routed = Routed::start(options).await;
        let a = routed.worker("a", "10.244.1.0/24").await;
        let b = routed.worker("b", "10.244.2.0/24").await;
        let (a, b) = (
            format!("10.244.1.0/24 via {a}"),
            format!("10.244.2.0/24 via {b}"),
        );
        routed.settled(&[a, b.clone()]).await;
        for name in ["a", "b"] {
            routed.condition(name, "RouteCreated").await;
        }
        routed.delete_node("a").await;
        routed.settled(&[b]).await;
        routed.delete_node("b").await;
        routed.settled(&[]).await;
    }
}

/// The requests to Neutron besides its lists.
fn requests(routed: &Routed) -> BTreeMap<String, u64> {
    let mut all = routed.world.requests();
    let is_list = |request: &str| {
        ["ports", "routers", "subnets", "extensions"]
            .iter()
            .any(|kind| request == format!("GET network /v2.0/{kind}"))
    };
    all.retain(|request, _| request.contains(" network ") && !is_list(request));
    all
}

#[tokio::test(start_paused = true)]
async fn all_nodes_get_their_routes_in_one_request_and_none_is_made_when_all_is_in_order() {
    let expect = |requests: &[(&str, u64)]| -> BTreeMap<String, u64> {
        let requests = requests.iter();
        requests
            .map(|(request, count)| ((*request).to_owned(), *count))
            .collect()
    };
    let ports = [
        ("GET network /v2.0/ports/{id}", 20),
        ("PUT network /v2.0/ports/{id}", 20),
    ];
    let bulk = [("PUT network /v2.0/routers/{id}/add_extraroutes", 1)];
    let whole = [
        ("GET network /v2.0/routers/{id}", 1),
        ("PUT network /v2.0/routers/{id}", 1),
    ];
    for (options, router) in [(atomic(), &bulk[..]), (CloudOptions::default(), &whole[..])] {
        let mut routed = Routed::open(options).await;
        routed
            .world
            .options(|options| options.clouds.intervals = Default::default());
        for number in 0..20 {
            let cidr = format!("10.244.{number}.0/24");
            routed.worker(&format!("w{number}"), &cidr).await;
        }
        routed.world.cloud.reset_requests();
        routed.world.run();
        for number in 0..20 {
            routed
                .condition(&format!("w{number}"), "RouteCreated")
                .await;
        }
        assert_eq!(requests(&routed), expect(&[&ports, router].concat()));
        let lists = routed.world.requests();
        for kind in ["ports", "routers", "subnets"] {
            let count = lists[&format!("GET network /v2.0/{kind}")];
            assert!(count <= 2, "{count} lists of {kind}");
        }

        // Passes in which all is in order: after a Node without pods, and after another address of one.
        routed.world.cloud.reset_requests();
        let other = json!({"metadata": {"name": "other"}});
        let other: Node = serde_json::from_value(other).unwrap();
        let nodes = routed.world.nodes();
        nodes.create(&PostParams::default(), &other).await.unwrap();
        routed.condition("other", "NoRouteCreated").await;
        assert_eq!(routed.world.requests(), BTreeMap::new());
    }
}

#[tokio::test(start_paused = true)]
async fn routes_of_others_stay_and_one_to_the_same_range_is_reported() {
    let routed = Routed::start(atomic()).await;
    routed.by_hand("add", "10.244.9.0/24", "10.0.200.9").await;
    routed.by_hand("add", "10.244.1.0/24", "10.0.200.1").await;
    let a = routed.worker("a", "10.244.1.0/24").await;
    // Before, the node may have been seen without an address.
    let words = "has the route 10.244.1.0/24 via 10.0.200.1";
    let events = &routed.world;
    events.event_with("a", "FailedToCreateRoute", words).await;
    routed.condition("a", "NoRouteCreated").await;
    routed
        .by_hand("remove", "10.244.1.0/24", "10.0.200.1")
        .await;
    routed.condition("a", "RouteCreated").await;
    let theirs = "10.244.9.0/24 via 10.0.200.9".to_owned();
    assert_eq!(
        routed.routes().await,
        [format!("10.244.1.0/24 via {a}"), theirs.clone()]
    );
    routed.delete_node("a").await;
    eventually("the route to go", || async {
        let routes = routed.routes().await;
        (routes == [theirs.clone()])
            .then_some(())
            .ok_or(routes.join("; "))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_route_that_the_go_manager_created_is_adopted_without_a_change() {
    let mut routed = Routed::open(atomic()).await;
    let a = routed.worker("a", "10.244.1.0/24").await;
    routed.by_hand("add", "10.244.1.0/24", &a).await;
    let port = routed
        .world
        .request("GET", "/network/v2.0/ports", Value::Null)
        .await;
    let ports = port["ports"].as_array().unwrap().clone();
    let is = |port: &&Value| port["fixed_ips"][0]["ip_address"] == json!(a);
    let port = ports.iter().find(is).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let pairs = json!({"port": {"allowed_address_pairs": [{"ip_address": "10.244.1.0/24"}]}});
    let path = format!("/network/v2.0/ports/{port}");
    routed.world.request("PUT", &path, pairs).await;
    routed.world.cloud.reset_requests();
    routed.world.run();
    routed.condition("a", "RouteCreated").await;
    assert_eq!(routed.world.writes(), BTreeMap::new());
    routed.settled(&[format!("10.244.1.0/24 via {a}")]).await;
    routed.delete_node("a").await;
    routed.settled(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_of_two_families_gets_a_route_of_each() {
    let routed = Routed::start(atomic()).await;
    let world = &routed.world;
    let subnet =
        json!({"subnet": {"network_id": world.network, "cidr": "fd00:10::/64", "ip_version": 6}});
    let subnet = world.request("POST", "/network/v2.0/subnets", subnet).await;
    let path = format!(
        "/network/v2.0/routers/{}/add_router_interface",
        routed.router
    );
    world
        .request("PUT", &path, json!({"subnet_id": subnet["subnet"]["id"]}))
        .await;
    let fixed = json!([{"subnet_id": world.subnet}, {"subnet_id": subnet["subnet"]["id"]}]);
    let port = json!({"port": {"network_id": world.network, "fixed_ips": fixed}});
    let port = world.request("POST", "/network/v2.0/ports", port).await;
    let networks = json!({"networks": [{"port": port["port"]["id"]}]});
    let server = world.server_with("a", networks).await;
    let cidrs = ["10.244.1.0/24", "fd00:244:0:1::/64"];
    routed.node("a", &server, &cidrs).await;
    let hop = |index: usize| {
        let address = &port["port"]["fixed_ips"][index]["ip_address"];
        address.as_str().unwrap().to_owned()
    };
    let (four, six) = match hop(0).contains(':') {
        true => (hop(1), hop(0)),
        false => (hop(0), hop(1)),
    };
    let routes = [
        format!("{} via {four}", cidrs[0]),
        format!("{} via {six}", cidrs[1]),
    ];
    routed.settled(&routes).await;
    routed.condition("a", "RouteCreated").await;
    // Both pairs in one change of the port.
    let writes = routed.world.writes();
    assert_eq!(writes["PUT network /v2.0/ports/{id}"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_router_serves_as_many_nodes_as_it_can_and_the_others_when_there_is_room() {
    let mut options = atomic();
    options.quotas.insert("router_route".to_owned(), 3);
    let mut routed = Routed::open(options).await;
    for number in 1..=5 {
        let cidr = format!("10.244.{number}.0/24");
        routed.worker(&format!("w{number}"), &cidr).await;
    }
    routed.world.run();
    for number in 1..=3 {
        routed
            .condition(&format!("w{number}"), "RouteCreated")
            .await;
    }
    for name in ["w4", "w5"] {
        let note = routed.world.event(name, "FailedToCreateRoute").await;
        assert!(note.contains("exceeds the maximum 3"), "{note}");
        routed.condition(name, "NoRouteCreated").await;
    }
    assert_eq!(routed.routes().await.len(), 3);
    routed.delete_node("w2").await;
    routed.condition("w4", "RouteCreated").await;
    assert_eq!(routed.routes().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_node_lacks_for_a_route_is_reported() {
    let routed = Routed::start(atomic()).await;
    let server = routed.world.server("a").await;
    for (name, cidr, words) in [
        (
            "outside",
            "192.168.0.0/24",
            "not within --cluster-cidr (10.244.0.0/16,fd00:244::/48)",
        ),
        ("family", "fd00:244:0:1::/64", "needs an InternalIP of IPv6"),
    ] {
        routed.node(name, &server, &[cidr]).await;
        let note = routed.world.event(name, "FailedToCreateRoute").await;
        assert!(note.contains(words), "{note}");
        routed.condition(name, "NoRouteCreated").await;
    }
    for (name, cidr, address, words) in [
        (
            "far",
            "10.244.3.0/24",
            "172.16.0.4",
            "172.16.0.4 is in none of them",
        ),
        (
            "near",
            "10.244.4.0/24",
            "10.0.77.4",
            "no port with 10.0.77.4",
        ),
    ] {
        routed.node(name, &server, &[cidr]).await;
        let addresses = json!([{"type": "InternalIP", "address": address}]);
        routed
            .patch_status(name, json!({"addresses": addresses}))
            .await;
        eventually(&format!("the event of {name}"), || async {
            let note = routed.world.event(name, "FailedToCreateRoute").await;
            note.contains(words).then_some(()).ok_or(note)
        })
        .await;
    }
}

/// The address of a Node can be missing for a moment, for example while another manager initialises it.
#[tokio::test(start_paused = true)]
async fn a_recorded_route_stays_while_the_address_of_its_node_is_unknown() {
    let routed = Routed::start(atomic()).await;
    let a = routed.worker("a", "10.244.1.0/24").await;
    let route = format!("10.244.1.0/24 via {a}");
    routed.settled(std::slice::from_ref(&route)).await;
    routed.patch_status("a", json!({"addresses": null})).await;
    routed.condition("a", "NoRouteCreated").await;
    let b = routed.worker("b", "10.244.2.0/24").await;
    routed
        .settled(&[route, format!("10.244.2.0/24 via {b}")])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_record_of_another_cluster_is_not_used_and_an_invalid_one_is_reported() {
    let mut routed = Routed::open(atomic()).await;
    routed.by_hand("add", "10.244.9.0/24", "10.0.200.9").await;
    let line = |line: &str| {
        let map = json!({"metadata": {"name": "ferrostack-routes",
            "annotations": {"ferrostack.io/cluster-uid": "another"}}, "data": {&routed.router: line}});
        serde_json::from_value::<ConfigMap>(map).unwrap()
    };
    let map = line("10.244.9.0/24 via 10.0.200.9\n");
    let maps = routed.record_map();
    maps.create(&PostParams::default(), &map).await.unwrap();
    routed.world.run();
    let a = routed.worker("a", "10.244.1.0/24").await;
    routed.condition("a", "RouteCreated").await;
    let ours = format!("10.244.1.0/24 via {a}");
    assert_eq!(
        routed.routes().await,
        [ours.clone(), "10.244.9.0/24 via 10.0.200.9".to_owned()]
    );
    assert_eq!(routed.record().await, [ours]);

    routed.world.kill().await;
    let broken = json!({"data": {&routed.router: "10.244.1.0/24 to somewhere\n"}});
    let patch = Patch::Merge(broken);
    maps.patch("ferrostack-routes", &PatchParams::default(), &patch)
        .await
        .unwrap();
    routed.world.run();
    let note = routed
        .world
        .event("ferrostack-routes", "FailedToCreateRoute")
        .await;
    assert!(
        note.contains("`10.244.1.0/24 to somewhere` is not of the form"),
        "{note}"
    );
    assert_eq!(routed.routes().await.len(), 2);
}
