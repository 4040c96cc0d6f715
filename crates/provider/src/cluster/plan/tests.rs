//! Two properties of plans, against a cloud in memory: applying a plan and planning again leaves nothing to do, and
//! after an interruption at any request the result is the same, without duplicates or leftovers.

mod model;
mod others;
mod zonal;

use std::collections::BTreeSet;

use api::admission::{Review, validate};
use api::infra::v1beta2::{ManagedGroup, OpenStackClusterSpec};
use openstack::network as net;
use proptest::prelude::*;
use serde_json::{Value, json};

use self::model::Model;
use super::{Plan, plan, plan_deletion};
use crate::cluster::desired::{ControlPlaneMachine, Desired, desired};
use crate::cluster::facts::{Inside, facts};
use crate::cluster::observed::{Observed, References};
use crate::cluster::request::{Request, deletion, request};
use crate::identity::{Identity, Mark};
use crate::names::Names;
use crate::placement::{Policies, Policy};
use crate::problem::Problem;

/// A cluster and its cloud.
#[derive(Clone, Debug)]
struct Scene {
    model: Model,
    spec: OpenStackClusterSpec,
    cluster: Identity,
    /// What the status names, and the endpoint.
    known: References,
    machines: Vec<ControlPlaneMachine>,
    /// The requests that are executed twice, since the response to the first one was lost.
    lost: BTreeSet<usize>,
    server_groups: Policies,
    sent: usize,
}

impl Scene {
    fn observed(&self) -> Observed {
        Observed::new(self.model.view(), self.cluster, &self.known)
    }

    fn desired(&self) -> Desired {
        self.resolved().unwrap()
    }

    fn resolved(&self) -> Result<Desired, Problem> {
        let names = Names::new("ns", "demo");
        let mark = Mark::cluster(self.cluster);
        let inside = Inside {
            control_plane: self.machines.clone(),
            cidrs: Vec::new(),
            is_adopted: false,
            octavia_without_cidrs: None,
            server_groups: self.server_groups.clone(),
        };
        let facts = facts(&self.spec, mark, names, &self.observed(), inside)?;
        Ok(desired(&self.spec, &facts))
    }

    fn plan(&self) -> Plan {
        plan(&self.desired(), &self.observed())
    }

    fn perform(&mut self, request: &Request) {
        self.model.perform(request);
        if self.lost.contains(&self.sent) && Model::creates(request) {
            self.model.perform(request);
        }
        self.sent += 1;
    }

    /// Plans and applies until nothing is left, or until `budget` requests were sent.
    fn converge(&mut self, budget: &mut usize) -> bool {
        for _ in 0..30 {
            let plan = self.plan();
            if plan.is_empty() {
                return true;
            }
            for step in &plan.steps {
                if let Some(request) = request(step, &self.desired(), &self.observed()) {
                    if *budget == 0 {
                        return false;
                    }
                    *budget -= 1;
                    self.perform(&request);
                }
            }
            self.model.tick();
        }
        panic!("no end: {:?}", self.plan());
    }

    fn take_down(&mut self, budget: &mut usize) -> bool {
        for _ in 0..30 {
            let observed = self.observed();
            let existing = self.spec.router.is_some().then_some("their-router");
            let plan = plan_deletion(&observed, existing);
            if plan.is_empty() {
                assert!(observed.is_empty());
                return true;
            }
            for step in &plan.steps {
                if let Some(request) = deletion(step, &self.observed()) {
                    if *budget == 0 {
                        return false;
                    }
                    *budget -= 1;
                    self.model.perform(&request);
                }
            }
            self.model.tick();
        }
        panic!("no end: {:?}", plan_deletion(&self.observed(), None));
    }
}

/// The network of a cluster: managed, of both families, existing, selected by a filter, or IPv6.
fn network() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => Just(json!({"managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["8.8.8.8"]}]})),
        1 => Just(json!({"managedSubnets": [{"cidr": "10.6.0.0/24"}], "router": {"id": "their-router"}})),
        1 => Just(json!({"managedSubnets": [{"cidr": "10.6.0.0/24"}], "managedRouter": {"externalIPs":
            [{"fixedIP": "127.30.0.8", "subnet": {"id": "ext-subnet"}}]}})),
        1 => Just(json!({"managedSubnets": [{"cidr": "10.6.0.0/24"}, {"cidr": "fd00:6::/64", "dnsNameservers": ["fd00::1"]}]})),
        1 => Just(json!({"managedSubnets": [{"subnetPool": {"id": "pool-four"}, "dnsNameservers": ["8.8.8.8"]}]})),
        1 => Just(json!({"managedSubnets": [{"subnetPool": {"id": "pool-four"}},
            {"subnetPool": {"filter": {"name": "pool-six"}}, "ipVersion": 6, "prefixLength": 64}]})),
        1 => Just(json!({"network": {"id": "theirs"}})),
        1 => Just(json!({"network": {"filter": {"name": "theirs"}}, "subnets": [{"filter": {"name": "four"}}]})),
        1 => Just(json!({"subnets": [{"id": "six"}]})),
        1 => Just(json!({"network": {"id": "theirs"}, "primarySubnet": {"id": "six"}})),
    ]
}

/// Allowed CIDRs and health monitor of a load balancer.
fn balancer() -> impl Strategy<Value = Value> {
    let cidrs = [
        "192.0.2.0/24",
        "198.51.100.7",
        "2001:db8:1::/48",
        "2001:db8::7",
    ];
    let cidrs = proptest::sample::subsequence(cidrs.to_vec(), 0..4);
    (
        any::<bool>(),
        proptest::collection::btree_set(8000..8010i32, 0..3),
        cidrs,
        3..30i32,
    )
        .prop_map(|(enabled, ports, cidrs, delay)| {
            json!({"enabled": enabled, "additionalPorts": ports, "allowedCIDRs": cidrs,
                "monitor": {"delay": delay, "timeout": 2, "maxRetries": 3, "maxRetriesDown": 3}})
        })
}

/// Managed security groups with additional rules, or none.
fn groups() -> impl Strategy<Value = Value> {
    let rules = ["tcp", "udp", "icmp"].map(|protocol| {
        json!({"name": protocol, "direction": "ingress", "protocol": protocol,
            "remoteManagedGroups": ["worker", "controlplane"]})
    });
    let rules = proptest::sample::subsequence(rules.to_vec(), 0..3);
    proptest::option::of((any::<bool>(), rules)).prop_map(|given| match given {
        None => Value::Null,
        Some((all, rules)) => json!({"allowAllInClusterTraffic": all,
            "clusterNodesSecurityGroupRules": rules}),
    })
}

prop_compose! {
    fn spec_document()(
        network in network(),
        balancer in balancer(),
        groups in groups(),
        floating in any::<bool>(),
        external in any::<bool>(),
        fixed in proptest::option::of(Just("10.6.0.9")),
        port in proptest::option::of(Just(7443)),
        tags in proptest::collection::btree_set("[a-z]{3}", 0..2),
    ) -> Value {
        let mut spec = network;
        // The address of a load balancer is on its subnet.
        let four = spec.get("managedSubnets").is_some();
        spec["identityRef"] = json!({"type": "Secret", "name": "s", "cloudName": "c"});
        spec["enableExternalNetwork"] = json!(external);
        let six = spec.get("primarySubnet").is_some() || spec.pointer("/subnets/0/id").is_some();
        // A floating IP that is asked for before an address of IPv6 is refused.
        let floating = (!six || !floating).then_some(floating);
        spec["apiServer"] = json!({"enableFloatingIP": floating, "managedLoadBalancer": balancer,
            "fixedIP": fixed.filter(|_| four), "port": port});
        spec["managedSecurityGroups"] = groups;
        spec["tags"] = json!(tags);
        spec
    }
}

/// Decodes the spec in a document, without its null members.
fn decoded(document: &Value) -> OpenStackClusterSpec {
    serde_json::from_value(without_null(document)).unwrap()
}

fn without_null(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), without_null(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_null).collect(),
        other => other.clone(),
    }
}

fn spec() -> impl Strategy<Value = OpenStackClusterSpec> {
    spec_document().prop_map(|document| decoded(&document))
}

/// A spec, and a change of it that admission accepts: some of its members are replaced by those of another spec.
fn change() -> impl Strategy<Value = (OpenStackClusterSpec, OpenStackClusterSpec)> {
    let which = proptest::collection::vec(any::<bool>(), CHANGES.len());
    (spec_document(), spec_document(), which).prop_map(|(before, other, which)| {
        let before = without_null(&before);
        let mut after = before.clone();
        for (pointer, _) in CHANGES.iter().zip(which).filter(|(_, chosen)| *chosen) {
            let mut trial = after.clone();
            replace(&mut trial, &other, pointer);
            let trial = without_null(&trial);
            if may_follow(&before, &trial) {
                after = trial;
            }
        }
        (decoded(&before), decoded(&after))
    })
}

/// The members that may change, if admission accepts it.
const CHANGES: [&str; 11] = [
    "/managedSubnets/0/dnsNameservers",
    "/subnets",
    "/primarySubnet",
    "/network",
    "/apiServer/port",
    "/apiServer/fixedIP",
    "/apiServer/managedLoadBalancer/allowedCIDRs",
    "/apiServer/managedLoadBalancer/monitor",
    "/managedSecurityGroups",
    "/apiServer/managedLoadBalancer/enabled",
    "/tags",
];

fn replace(document: &mut Value, other: &Value, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let value = other.pointer(pointer).cloned().unwrap_or_default();
    if let Some(parent) = document.pointer_mut(parent).and_then(Value::as_object_mut) {
        parent.insert(name.to_owned(), value);
    }
}

fn may_follow(before: &Value, after: &Value) -> bool {
    // The primary subnet, which is `six` here, is one of the subnets.
    let four = after.pointer("/subnets/0/filter/name").is_some();
    if four && after.get("primarySubnet").is_some() {
        return false;
    }
    let object = |spec: &Value| {
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "OpenStackCluster", "metadata": {"name": "demo"}, "spec": spec})
    };
    let (before, after) = (object(before), object(after));
    let (object, old, dry_run) = (&after, Some(&before), false);
    validate(Review {
        object,
        old,
        dry_run,
    })
    .is_ok()
}

fn machines(count: usize) -> Vec<ControlPlaneMachine> {
    (0..count)
        .map(|i| ControlPlaneMachine {
            zone: String::new(),
            name: format!("cp-{i}"),
            address: format!("10.6.0.1{i}"),
            port_id: format!("cp-port-{i}"),
            subnet_id: "subnet".into(),
        })
        .collect()
}

/// Policies of none, one or both roles.
fn server_groups() -> impl Strategy<Value = Policies> {
    let policy = || {
        proptest::option::of(prop_oneof![
            Just(Policy::AntiAffinity),
            Just(Policy::SoftAntiAffinity)
        ])
    };
    (policy(), policy()).prop_map(|(control_plane, worker)| {
        let roles = [
            (ManagedGroup::ControlPlane, control_plane),
            (ManagedGroup::Worker, worker),
        ];
        roles
            .into_iter()
            .filter_map(|(role, policy)| Some((role, policy?)))
            .collect()
    })
}

prop_compose! {
    fn scene()(spec in spec(), tagging in any::<bool>(), machines in 0..3usize, foreign in any::<bool>(), ovn in any::<bool>(), server_groups in server_groups()) -> Scene {
        let mut model = Model::new(tagging);
        model.octavia.default_driver = if ovn { "ovn".to_owned() } else { String::new() };
        if foreign {
            // The same names with the mark of another cluster: these resources must not be touched.
            let other = Mark::cluster(Identity::new());
            let names = Names::new("ns", "demo");
            model.networks.push(net::Network { id: "a-net".into(), name: names.network(), description: other.description("x"), ..Default::default() });
            model.ips.push(net::FloatingIp { id: "a-fip".into(), floating_ip_address: "127.30.0.9".into(), ..Default::default() });
        }
        let machines = self::machines(machines);
        Scene { model, spec, cluster: Identity::new(), known: References::default(), machines, lost: BTreeSet::new(), server_groups, sent: 0 }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_plan_that_was_applied_leaves_nothing_to_do(mut scene in scene()) {
        prop_assert!(scene.converge(&mut usize::MAX.clone()));
        prop_assert!(scene.plan().is_empty());
    }

    #[test]
    fn from_any_spec_to_any_that_may_follow_it_the_plan_converges_and_is_then_empty(
        mut scene in scene(),
        (before, after) in change(),
        machines in 0..3usize,
    ) {
        scene.spec = before;
        scene.converge(&mut usize::MAX.clone());
        scene.spec = after;
        scene.machines = self::machines(machines);
        scene.converge(&mut usize::MAX.clone());
        prop_assert_eq!(scene.plan(), Plan::default());
        // An empty plan alone could miss a stale listener: its CIDRs must be those of the new spec.
        let listener = scene.observed().listener(6443).map(|l| l.allowed_cidrs.clone());
        let desired = scene.desired();
        if let (Some(known), Some(_)) = (listener, desired.balancer.as_ref().filter(|b| b.ports[0] == 6443)) {
            let wanted = crate::cluster::balancer::allowed_cidrs(&desired, &scene.observed());
            prop_assert_eq!(known, wanted.unwrap_or_default());
        }
    }

    #[test]
    fn what_was_created_twice_is_there_once_in_the_end(scene in scene(), lost in proptest::collection::btree_set(0..12usize, 1..4)) {
        let mut straight = scene.clone();
        straight.converge(&mut usize::MAX.clone());
        let mut scene = scene;
        scene.lost = lost;
        scene.converge(&mut usize::MAX.clone());
        prop_assert_eq!(scene.model.inventory(), straight.model.inventory());
        prop_assert_eq!(scene.plan(), Plan::default());
    }

    #[test]
    fn a_plan_cut_off_anywhere_converges_to_the_same_end(scene in scene(), cuts in proptest::collection::vec(0..12usize, 0..6)) {
        let mut straight = scene.clone();
        let before = scene.model.inventory();
        straight.converge(&mut usize::MAX.clone());
        let mut scene = scene;
        for mut budget in cuts.clone() {
            scene.converge(&mut budget);
        }
        scene.converge(&mut usize::MAX.clone());
        prop_assert_eq!(scene.model.inventory(), straight.model.inventory());
        for mut budget in cuts {
            scene.take_down(&mut budget);
        }
        scene.take_down(&mut usize::MAX.clone());
        prop_assert_eq!(scene.model.inventory(), before);
    }

    #[test]
    fn a_half_made_cluster_can_be_taken_down(mut scene in scene(), budget in 0..40usize) {
        let before = scene.model.inventory();
        scene.converge(&mut budget.clone());
        // As a cloud controller manager leaves them.
        let ours = |router: &&mut net::Router| router.id != "their-router";
        for router in scene.model.routers.iter_mut().filter(ours) {
            router.routes = vec![net::ExtraRoute {
                destination: "10.244.0.0/24".into(),
                nexthop: "10.6.0.10".into(),
            }];
        }
        scene.take_down(&mut usize::MAX.clone());
        prop_assert_eq!(scene.model.inventory(), before);
    }
}

#[test]
fn a_primary_subnet_that_is_none_of_the_subnets_is_refused() {
    let resolved = |subnet: &str| {
        let spec = json!({"identityRef": {"name": "s", "cloudName": "c"}, "apiServer": {"fixedIP": "10.6.0.9"},
            "subnets": [{"id": "four"}], "primarySubnet": {"id": subnet}});
        let scene = Scene {
            model: Model::new(true),
            spec: decoded(&spec),
            cluster: Identity::new(),
            known: References::default(),
            machines: Vec::new(),
            lost: BTreeSet::new(),
            server_groups: Policies::new(),
            sent: 0,
        };
        scene.resolved()
    };
    assert!(resolved("four").is_ok());
    let problem = resolved("six").unwrap_err();
    let words = "primarySubnet: subnet six is none of subnets";
    assert!(problem.message.starts_with(words), "{problem}");
}
