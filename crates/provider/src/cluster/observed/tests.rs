use serde_json::json;

use super::*;

/// The references of a cluster whose status names the resources `b` and whose endpoint is `host`.
fn named(host: &str) -> References {
    let object = json!({
        "metadata": {"name": "demo"},
        "spec": {"identityRef": {"name": "s", "cloudName": "c"},
            "controlPlaneEndpoint": {"host": host, "port": 6443}},
        "status": {
            "network": {"id": "net-b", "name": "n", "subnets": [{"id": "subnet-b", "name": "n", "cidr": "10.6.0.0/24"}]},
            "router": {"id": "router-b", "name": "n"},
            "controlPlaneSecurityGroup": {"id": "group-b", "name": "n"},
            "apiServerManagedLoadBalancer": {"id": "lb-b", "name": "n", "ip": "10.6.0.5", "internalIP": "10.6.0.5"},
        },
    });
    References::from_object(&serde_json::from_value(object).unwrap())
}

/// Two resources of each kind, `a` and `b`, with the mark of a cluster; both subnets are on `network`, and the load
/// balancers have these states.
fn twice(cluster: Identity, network: &str, balancers: [&str; 2]) -> Arc<View> {
    let home = network;
    let description = Mark::cluster(cluster).description("x");
    let both = ["a", "b"];
    let network = |name: &str| Network {
        id: format!("net-{name}"),
        description: description.clone(),
        ..Default::default()
    };
    let subnet = |name: &str| Subnet {
        id: format!("subnet-{name}"),
        network_id: home.into(),
        description: description.clone(),
        ..Default::default()
    };
    let router = |name: &str| Router {
        id: format!("router-{name}"),
        description: description.clone(),
        ..Default::default()
    };
    let group = |name: &str| SecurityGroup {
        id: format!("group-{name}"),
        description: description.clone(),
        ..Default::default()
    };
    let balancer = |(name, status): (&str, &str)| LoadBalancer {
        id: format!("lb-{name}"),
        description: description.clone(),
        provisioning_status: status.into(),
        ..Default::default()
    };
    let ip = |name: &str| FloatingIp {
        id: format!("ip-{name}"),
        floating_ip_address: format!("192.0.2.{}", if name == "a" { 1 } else { 2 }),
        description: description.clone(),
        ..Default::default()
    };
    Arc::new(View {
        networks: Arc::new(Table::from_items(both.map(network))),
        subnets: Arc::new(Table::from_items(both.map(subnet))),
        routers: Arc::new(Table::from_items(both.map(router))),
        security_groups: Arc::new(Table::from_items(both.map(group))),
        load_balancers: Arc::new(Table::from_items(
            [("a", balancers[0]), ("b", balancers[1])].map(balancer),
        )),
        floating_ips: Arc::new(Table::from_items(both.map(ip))),
        ..View::default()
    })
}

/// The ids of the resources that belong to the cluster.
fn first(observed: &Observed) -> [String; 6] {
    [
        observed.networks[0].id.clone(),
        observed.subnets[0].id.clone(),
        observed.routers[0].id.clone(),
        observed.groups[0].id.clone(),
        observed.balancers[0].id.clone(),
        observed.floating_ips[0].id.clone(),
    ]
}

#[test]
fn of_two_resources_with_one_mark_the_one_in_status_stays() {
    let cluster = Identity::new();
    let view = twice(cluster, "net-a", ["ACTIVE", "ERROR"]);
    let observed = Observed::new(view, cluster, &named("192.0.2.2"));
    assert_eq!(
        first(&observed),
        ["net-b", "subnet-b", "router-b", "group-b", "lb-b", "ip-b"]
    );
}

#[test]
fn without_a_status_what_is_in_use_stays_and_no_load_balancer_in_error() {
    let cluster = Identity::new();
    for (states, stays) in [
        (["ERROR", "ACTIVE"], "lb-b"),
        (["ACTIVE", "ERROR"], "lb-a"),
        (["ERROR", "PENDING_CREATE"], "lb-b"),
    ] {
        let view = twice(cluster, "net-b", states);
        let observed = Observed::new(view, cluster, &References::default());
        assert_eq!(observed.balancers[0].id, stays, "{states:?}");
        assert_eq!(observed.networks[0].id, "net-b");
    }
}
