//! Two clusters in one project: whatever one of them names, what was created for the other stays as it is, and is not
//! cut off by the deletion of what it uses.

use crate::family::Family;
use std::fmt::Debug;

use super::*;

/// How the second cluster names what belongs to the first.
#[derive(Clone, Copy, Debug)]
enum Named {
    Network,
    Subnet,
    PrimarySubnet,
    Router,
    BalancerNetwork,
    BalancerSubnet,
    ExternalNetwork,
    RouterAddress,
    FloatingIp,
    FixedIp,
    Endpoint,
    RemoteGroup,
    Tags,
    Status,
}

fn named() -> impl Strategy<Value = Vec<Named>> {
    use Named::*;
    let all = vec![
        Network,
        Subnet,
        PrimarySubnet,
        Router,
        BalancerNetwork,
        BalancerSubnet,
        ExternalNetwork,
        RouterAddress,
        FloatingIp,
        FixedIp,
        Endpoint,
        RemoteGroup,
        Tags,
        Status,
    ];
    proptest::sample::subsequence(all, 1..4)
}

/// Writes names of what belongs to `first` into the spec and the status of another cluster.
fn write(names: &[Named], document: &mut Value, known: &mut References, first: &Observed) {
    let network = first.network().map(|network| json!({"id": network.id}));
    let subnet = first
        .subnet(Family::Four)
        .map(|subnet| json!({"id": subnet.id}));
    let router = first.router().map(|router| json!({"id": router.id}));
    let ip = first.floating_ips.first();
    let ip = ip.map(|ip| json!(ip.floating_ip_address));
    let vip = first.balancer().map(|known| json!(known.vip_address));
    let group = first.groups.first().map(|group| json!(group.id));
    for name in names {
        let (pointer, value) = match name {
            Named::Network | Named::Subnet | Named::PrimarySubnet => {
                document["managedSubnets"] = Value::Null;
                document["router"] = Value::Null;
                match name {
                    Named::Network => ("network", network.clone()),
                    Named::Subnet => ("subnets", subnet.clone().map(|id| json!([id]))),
                    _ => ("primarySubnet", subnet.clone()),
                }
            }
            Named::Router => ("router", router.clone()),
            Named::BalancerNetwork => ("apiServer/managedLoadBalancer/network", network.clone()),
            Named::BalancerSubnet => {
                let subnets = subnet.clone().map(|id| json!([id]));
                ("apiServer/managedLoadBalancer/subnets", subnets)
            }
            Named::ExternalNetwork => ("externalNetwork", network.clone()),
            Named::RouterAddress => {
                let ips = ip
                    .clone()
                    .map(|ip| json!([{"fixedIP": ip, "subnet": {"id": "ext-subnet"}}]));
                ("managedRouter", ips.map(|ips| json!({"externalIPs": ips})))
            }
            Named::FloatingIp => ("apiServer/floatingIP", ip.clone()),
            Named::FixedIp => ("apiServer/fixedIP", vip.clone()),
            Named::Endpoint => {
                known.host = ip.as_ref().and_then(Value::as_str).map(str::to_owned);
                (
                    "controlPlaneEndpoint",
                    ip.clone().map(|ip| json!({"host": ip, "port": 6443})),
                )
            }
            Named::RemoteGroup => {
                let rule =
                    |group| json!({"name": "r", "direction": "ingress", "remoteGroupID": group});
                let rules = group.clone().map(|group| json!([rule(group)]));
                let rules = rules.map(|rules| json!({"clusterNodesSecurityGroupRules": rules}));
                ("managedSecurityGroups", rules)
            }
            Named::Tags => ("tags", Some(json!(Mark::cluster(first.cluster).tags()))),
            Named::Status => {
                known.ids.extend(belongings_ids(first));
                continue;
            }
        };
        let (parent, field) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        let parent = parent.split('/').filter(|part| !part.is_empty());
        let object = parent.fold(&mut *document, |object, part| &mut object[part]);
        object[field] = value.unwrap_or_default();
    }
}

fn belongings_ids(of: &Observed) -> Vec<String> {
    let mut ids: Vec<String> = of.networks.iter().map(|it| it.id.clone()).collect();
    ids.extend(of.subnets.iter().map(|it| it.id.clone()));
    ids.extend(of.routers.iter().map(|it| it.id.clone()));
    ids.extend(of.groups.iter().map(|it| it.id.clone()));
    ids.extend(of.balancers.iter().map(|it| it.id.clone()));
    ids.extend(of.floating_ips.iter().map(|it| it.id.clone()));
    ids
}

/// Everything that was created for a cluster, and what hangs on it, in words.
fn belongings(scene: &Scene) -> Vec<String> {
    fn words<T: Debug>(items: impl IntoIterator<Item = T>) -> Vec<String> {
        items.into_iter().map(|item| format!("{item:?}")).collect()
    }
    let (model, of) = (&scene.model, scene.observed());
    let ids = belongings_ids(&of);
    let has = |references: &[openstack::loadbalancer::Reference]| {
        references.iter().any(|one| ids.contains(&one.id))
    };
    let is_on = |port: &&net::Port| {
        let mut ips = port.fixed_ips.iter();
        let marked = of.ports.iter().any(|known| known.id == port.id);
        // A port in a network does not change the network; one that connects a router or a load balancer does.
        let connects = port.device_owner == "network:router_interface";
        let device = ids.contains(&port.device_id);
        marked || device || (connects && ips.any(|ip| ids.contains(&ip.subnet_id)))
    };
    let pools: Vec<_> = model
        .octavia
        .pools
        .values()
        .filter(|it| has(&it.loadbalancers))
        .collect();
    let of_pool = |id: &str| pools.iter().any(|pool| pool.id == id);
    let monitors = pools
        .iter()
        .filter_map(|pool| pool.healthmonitor_id.clone());
    let monitors: BTreeSet<_> = monitors.collect();
    [
        words(&of.networks),
        words(&of.subnets),
        words(&of.routers),
        words(&of.groups),
        words(&of.balancers),
        words(&of.floating_ips),
        words(model.ports.iter().filter(is_on)),
        words(
            model
                .octavia
                .listeners
                .values()
                .filter(|it| has(&it.loadbalancers)),
        ),
        words(&pools),
        words(
            model
                .octavia
                .members
                .values()
                .filter(|it| of_pool(&it.pool_id)),
        ),
        words(
            model
                .octavia
                .monitors
                .values()
                .filter(|it| monitors.contains(&it.id)),
        ),
    ]
    .concat()
}

/// Plans and applies until nothing is left to do, or the cluster waits. A spec that is refused changes nothing.
fn work(scene: &mut Scene) {
    for _ in 0..12 {
        let Ok(desired) = scene.resolved() else {
            return;
        };
        for step in &plan(&desired, &scene.observed()).steps {
            if let Some(request) = request(step, &desired, &scene.observed()) {
                scene.perform(&request);
            }
        }
        scene.model.tick();
    }
}

/// The same for a deletion.
fn take_down(scene: &mut Scene) {
    for _ in 0..12 {
        let observed = scene.observed();
        let router = scene.spec.router.as_ref();
        let router = router.and_then(|param| crate::resolve::router(&observed.view, param).ok());
        let existing = router.map(|router| router.id.as_str());
        for step in &plan_deletion(&observed, existing).steps {
            if let Some(request) = deletion(step, &scene.observed()) {
                scene.model.perform(&request);
            }
        }
        scene.model.tick();
    }
}

/// A machine's port of `scene` in the network and the first security group of `first`, and an interface of the router of
/// `first` to the subnet of `scene`, as somebody connects it by hand.
fn move_in(scene: &mut Scene, first: &Observed) {
    if let (Some(network), Some(subnet)) = (first.network(), first.subnet(Family::Four)) {
        let mark = Mark::machine(scene.cluster, Identity::new());
        let groups = first.groups.first().map(|group| group.id.clone());
        scene.model.ports.push(net::Port {
            id: "guest".into(),
            name: "md-0-0".into(),
            network_id: network.id.clone(),
            device_id: "server".into(),
            device_owner: "compute:nova".into(),
            description: mark.description("node"),
            security_groups: groups.into_iter().collect(),
            fixed_ips: vec![net::FixedIp {
                subnet_id: subnet.id.clone(),
                ip_address: "10.6.0.99".into(),
            }],
            ..Default::default()
        });
    }
    let subnet = scene
        .observed()
        .subnet(Family::Four)
        .map(|subnet| subnet.id.clone());
    if let (Some(router), Some(subnet_id)) = (first.router(), subnet) {
        scene.model.ports.push(net::Port {
            id: "by-hand".into(),
            device_id: router.id.clone(),
            device_owner: "network:router_interface".into(),
            fixed_ips: vec![net::FixedIp {
                subnet_id,
                ip_address: "10.6.0.98".into(),
            }],
            ..Default::default()
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_a_cluster_names_what_was_created_for_another_stays_as_it_is(
        mut first in scene(),
        document in spec_document(),
        names in named(),
    ) {
        first.machines = Vec::new();
        let before = first.model.inventory();
        first.converge(&mut usize::MAX.clone());
        let (mut document, mut known) = (document, References::default());
        write(&names, &mut document, &mut known, &first.observed());
        let spec = decoded(&document);
        let mut second = Scene { spec, known, cluster: Identity::new(), ..first.clone() };
        let of_first = belongings(&first);
        let with_model = |of: &Scene, model: &Model| Scene { model: model.clone(), ..of.clone() };

        work(&mut second);
        first = with_model(&first, &second.model);
        prop_assert_eq!(&belongings(&first), &of_first, "created, {:?}", names);
        let mut gone = second.clone();
        take_down(&mut gone);
        prop_assert_eq!(&belongings(&with_model(&first, &gone.model)), &of_first, "deleted, {:?}", names);
        prop_assert!(gone.observed().is_empty());

        // The first goes while the second uses what it has made.
        move_in(&mut second, &first.observed());
        let of_second = belongings(&second);
        first = with_model(&first, &second.model);
        take_down(&mut first);
        second = with_model(&second, &first.model);
        prop_assert_eq!(belongings(&second), of_second, "the first is deleted, {:?}", names);
        second.model.ports.retain(|port| port.id != "by-hand");
        take_down(&mut second);
        first = with_model(&first, &second.model);
        take_down(&mut first);
        prop_assert_eq!(first.model.inventory(), before);
    }
}
