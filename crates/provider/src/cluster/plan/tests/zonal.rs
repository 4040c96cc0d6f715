//! Load balancers of availability zones.

use super::*;
use crate::family::Family;

/// A cluster in a network of others with load balancers in these zones and machines in these.
fn scene(zones: &[(&str, &str)], machines: &[&str]) -> Scene {
    let mut scene = Scene {
        model: Model::new(true),
        spec: spec(json!({})),
        cluster: Identity::new(),
        known: References::default(),
        machines: super::machines(machines.len()),
        lost: BTreeSet::new(),
        server_groups: Policies::new(),
        sent: 0,
    };
    for (machine, zone) in scene.machines.iter_mut().zip(machines) {
        machine.zone = (*zone).to_owned();
    }
    given(&mut scene, zones);
    scene
}

fn spec(balancer: Value) -> OpenStackClusterSpec {
    let mut all = json!({"provider": "amphora"});
    for (name, value) in balancer.as_object().unwrap() {
        all[name] = value.clone();
    }
    serde_json::from_value(json!({"identityRef": {"name": "s", "cloudName": "c"},
        "network": {"id": "theirs"}, "subnets": [{"id": "four"}],
        "controlPlaneEndpoint": {"host": "api.example.com", "port": 6443},
        "apiServer": {"managedLoadBalancer": all}}))
    .unwrap()
}

fn given(scene: &mut Scene, zones: &[(&str, &str)]) {
    let zones: Vec<_> = zones
        .iter()
        .map(|(zone, subnet)| json!({"availabilityZone": zone, "subnet": {"id": subnet}}))
        .collect();
    scene.spec = spec(json!({"availabilityZoneSubnets": zones}));
}

fn run(scene: &mut Scene) {
    let mut budget = usize::MAX;
    assert!(scene.converge(&mut budget));
}

fn end(scene: &mut Scene) {
    let mut budget = usize::MAX;
    assert!(scene.take_down(&mut budget));
}

const BOTH: [(&str, &str); 2] = [("az1", "four"), ("az2", "six")];

/// The addresses of the members of a zone.
fn members(scene: &Scene, zone: Option<&str>) -> Vec<String> {
    let observed = scene.observed().in_zone(zone);
    assert_eq!(observed.balancers.len(), 1, "{zone:?}");
    let pool = observed.pool(6443).unwrap();
    let members = observed.members(pool).iter();
    let mut found: Vec<_> = members.map(|member| member.address.clone()).collect();
    found.sort();
    found
}

fn is_whole(scene: &Scene) {
    let observed = scene.observed();
    assert_eq!(observed.balancers.len(), 2);
    assert_eq!(members(scene, Some("az1")), ["10.6.0.10", "10.6.0.12"]);
    assert_eq!(members(scene, Some("az2")), ["10.6.0.11", "10.6.0.12"]);
    // One of IPv6 has no floating IP.
    let ips: Vec<_> = observed.floating_ips.iter().collect();
    assert_eq!(ips.len(), 1);
    let first = observed.in_zone(Some("az1"));
    let balancer = first.balancer().unwrap();
    assert_eq!(ips[0].port_id.as_ref(), Some(&balancer.vip_port_id));
    assert_eq!(balancer.vip_subnet_id, "four");
    assert_eq!(balancer.name, "k8s-clusterapi-cluster-ns-demo-az1-kubeapi");
    let machine = &scene.desired().in_zone(&scene.desired().zones[1]);
    assert!(machine.floating_ip.is_none());
}

#[test]
fn each_zone_has_a_load_balancer_with_the_machines_of_the_zone_and_of_zones_without_one() {
    let mut scene = scene(&BOTH, &["az1", "az2", "other"]);
    run(&mut scene);
    is_whole(&scene);
    assert_eq!(scene.desired().zones[1].family, Family::Six);
    end(&mut scene);
}

#[test]
fn cut_at_any_request_or_with_any_response_lost_each_zone_has_one_load_balancer() {
    let begun = scene(&BOTH, &["az1", "az2", "other"]);
    let mut all = usize::MAX;
    let mut whole = begun.clone();
    whole.converge(&mut all);
    for nth in 0..usize::MAX - all {
        let (mut cut, mut budget) = (begun.clone(), nth);
        assert!(!cut.converge(&mut budget), "{nth}");
        run(&mut cut);
        is_whole(&cut);
        let mut doubled = begun.clone();
        doubled.lost.insert(nth);
        run(&mut doubled);
        is_whole(&doubled);
        let mut budget = nth;
        if !doubled.take_down(&mut budget) {
            end(&mut doubled);
        }
    }
}

#[test]
fn a_zone_without_machines_leads_to_all_and_members_cross_zones_on_request() {
    let mut scene = scene(&BOTH, &["az1", "az1"]);
    run(&mut scene);
    let all = ["10.6.0.10", "10.6.0.11"];
    assert_eq!(members(&scene, Some("az1")), all);
    assert_eq!(members(&scene, Some("az2")), all);
    scene.machines[1].zone = "az2".into();
    run(&mut scene);
    assert_eq!(members(&scene, Some("az1")), all[..1]);
    assert_eq!(members(&scene, Some("az2")), all[1..]);
    let balancer = scene.spec.api_server.as_mut().unwrap();
    let balancer = balancer.managed_load_balancer.as_mut().unwrap();
    balancer.allow_cross_az_members = Some(true);
    run(&mut scene);
    assert_eq!(members(&scene, Some("az1")), all);
    assert_eq!(members(&scene, Some("az2")), all);
}

#[test]
fn a_zone_that_is_removed_goes_with_its_load_balancer_and_floating_ip() {
    let mut scene = scene(&BOTH, &["az1", "az2"]);
    run(&mut scene);
    given(&mut scene, &BOTH[1..]);
    run(&mut scene);
    let observed = scene.observed();
    assert_eq!(observed.balancers.len(), 1);
    assert!(observed.floating_ips.is_empty());
    assert_eq!(members(&scene, Some("az2")), ["10.6.0.10", "10.6.0.11"]);
    given(&mut scene, &BOTH);
    run(&mut scene);
    assert_eq!(scene.observed().balancers.len(), 2);
}

#[test]
fn one_zone_takes_the_place_of_another_with_its_subnet() {
    let mut scene = scene(&BOTH[..1], &["az1", "az2"]);
    run(&mut scene);
    let before = scene.observed().balancer().unwrap().id.clone();
    given(&mut scene, &[("az2", "four")]);
    run(&mut scene);
    assert_eq!(members(&scene, Some("az2")), ["10.6.0.10", "10.6.0.11"]);
    let observed = scene.observed();
    assert_eq!(observed.balancers.len(), 1);
    assert_ne!(observed.balancers[0].id, before);
    assert_eq!(observed.floating_ips.len(), 1);
}

#[test]
fn a_former_load_balancer_goes_on_serving_until_somebody_deletes_it() {
    let mut scene = scene(&[], &["az1", "az2"]);
    run(&mut scene);
    let former = scene.observed().balancer().unwrap().id.clone();
    given(&mut scene, &BOTH);
    run(&mut scene);
    let all = ["10.6.0.10", "10.6.0.11"];
    assert_eq!(scene.observed().balancers.len(), 3);
    assert_eq!(scene.observed().floating_ips.len(), 2);
    assert_eq!(members(&scene, None), all);
    scene.machines.pop();
    run(&mut scene);
    assert_eq!(members(&scene, None), all[..1]);
    scene.model.perform(&Request::DeleteBalancer(former));
    scene.model.tick();
    run(&mut scene);
    assert_eq!(scene.observed().balancers.len(), 2);
    assert_eq!(scene.observed().floating_ips.len(), 1);
}

#[test]
fn zones_that_octavia_has_not_and_an_endpoint_without_a_name_are_refused() {
    let why = |scene: &Scene| scene.resolved().unwrap_err().message;
    let text = why(&scene(&[("az1", "four"), ("off", "six")], &[]));
    let field = "apiServer.managedLoadBalancer.availabilityZoneSubnets";
    assert!(
        text.starts_with(&format!(
            "{field}[1].availabilityZone: Octavia has no availability zone off"
        )),
        "{text}"
    );
    assert!(text.contains("there are: az1, az2"), "{text}");
    let text = why(&scene(&[("az1", "four"), ("az2", "four")], &[]));
    assert!(
        text.contains("[1].subnet: subnet four is that of zone az1, too"),
        "{text}"
    );
    let text = why(&scene(&[("az1", "ext-subnet")], &[]));
    assert!(
        text.contains("[0].subnet: subnet ext-subnet is in network ext"),
        "{text}"
    );
    let mut nameless = scene(&BOTH, &[]);
    nameless.spec.control_plane_endpoint = None;
    assert!(why(&nameless).starts_with("controlPlaneEndpoint.host is missing"));
    // OVN has no zones, and its load balancers are everywhere.
    let mut ovn = scene(&BOTH, &[]);
    ovn.model.octavia.default_driver = "ovn".to_owned();
    run(&mut ovn);
}
