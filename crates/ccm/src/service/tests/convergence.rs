//! From any Service and any state of the cloud, also one left by an interrupted manager, the load balancer reaches
//! the state that the Service asks for; resources of others stay unchanged.

use std::collections::BTreeMap;

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use openstack::loadbalancer::{ListenerCreate, LoadBalancer, PoolCreate};
use openstack::network::FloatingIp;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::super::identity::Identity;
use super::super::observed::Role;
use super::super::{annotations, sharing, weights};
use super::model::{Model, Scene, node};
use super::services::{any_service, any_weighting};

proptest! {
    #[test]
    fn from_any_service_to_any_other_the_plan_converges_and_is_then_empty(
        services in prop::collection::vec((any_service(), any::<bool>(), any_weighting()), 1..4)
    ) {
        let mut model = Model::default();
        for ((mut service, nodes), is_serial, weighting) in services {
            if weighting != weights::Weighting::Equal {
                let asked = ("loadbalancer.openstack.org/member-weights".to_owned(), "ready-endpoints".to_owned());
                service.annotations_mut().extend([asked]);
            }
            let nodes: Vec<_> = (1..=nodes).map(node).collect();
            let mut converge = || model.converge(&service, &nodes, is_serial, &weighting);
            match converge() {
                Ok(_) => prop_assert_eq!(converge(), Ok(0)),
                // All ports were UDP or SCTP.
                Err(problem) => prop_assert!(problem.contains("spec.ports is empty"), "{}", problem),
            }
        }
    }
}

/// Former owner of a load balancer.
#[derive(Clone, Copy, Debug)]
enum Before {
    Nobody,
    /// The Go manager, for this Service.
    GoManager,
    /// A cluster with the same name, for a Service with the same name.
    OtherCluster,
    /// A user, who shares the load balancer.
    User,
}

/// Change of a load balancer by a person.
#[derive(Clone, Copy, Debug)]
enum Deed {
    DeleteListener,
    DeletePool,
    DeleteMember,
    DeleteMonitor,
    DetachFloatingIp,
    DeleteFloatingIp,
    ChangeMethod,
    ChangeWeight,
    AddListener,
}

const DEEDS: [Deed; 9] = [
    Deed::DeleteListener,
    Deed::DeletePool,
    Deed::DeleteMember,
    Deed::DeleteMonitor,
    Deed::DetachFloatingIp,
    Deed::DeleteFloatingIp,
    Deed::ChangeMethod,
    Deed::ChangeWeight,
    Deed::AddListener,
];

fn some_key<T>(map: &BTreeMap<String, T>, which: Index) -> Option<String> {
    let keys: Vec<_> = map.keys().cloned().collect();
    (!keys.is_empty()).then(|| which.get(&keys).clone())
}

impl Model {
    fn suffer(&mut self, deed: Deed, which: Index) -> Option<()> {
        match deed {
            // Its pool stays.
            Deed::DeleteListener => drop(
                self.octavia
                    .listeners
                    .remove(&some_key(&self.octavia.listeners, which)?),
            ),
            Deed::DeletePool => self
                .octavia
                .delete_pool(&some_key(&self.octavia.pools, which)?),
            Deed::DeleteMember => drop(
                self.octavia
                    .members
                    .remove(&some_key(&self.octavia.members, which)?),
            ),
            Deed::DeleteMonitor => self
                .octavia
                .delete_monitor(&some_key(&self.octavia.monitors, which)?),
            Deed::DetachFloatingIp => {
                self.floating_ips
                    .get_mut(&some_key(&self.floating_ips, which)?)?
                    .port_id = None;
            }
            Deed::DeleteFloatingIp => drop(
                self.floating_ips
                    .remove(&some_key(&self.floating_ips, which)?),
            ),
            Deed::ChangeMethod => {
                self.octavia
                    .pools
                    .get_mut(&some_key(&self.octavia.pools, which)?)?
                    .lb_algorithm = "SOURCE_IP".to_owned();
            }
            Deed::ChangeWeight => {
                self.octavia
                    .members
                    .get_mut(&some_key(&self.octavia.members, which)?)?
                    .weight = 7;
            }
            Deed::AddListener => {
                let balancer = some_key(&self.octavia.balancers, which)?;
                let is_there = |it: &openstack::loadbalancer::Listener| {
                    it.loadbalancers[0].id == balancer && it.protocol_port == 443
                };
                if !self.octavia.listeners.values().any(is_there) {
                    self.octavia.listener(&balancer, foreign(443));
                }
            }
        }
        Some(())
    }

    /// Removes the marks of this manager, which the Go manager does not set.
    fn unmark(&mut self) {
        let unmark = |tags: &mut Vec<String>| tags.retain(|tag| !tag.starts_with("ferrostack-"));
        self.octavia
            .balancers
            .values_mut()
            .for_each(|it| unmark(&mut it.tags));
        self.octavia
            .listeners
            .values_mut()
            .for_each(|it| unmark(&mut it.tags));
        self.octavia
            .pools
            .values_mut()
            .for_each(|it| unmark(&mut it.tags));
    }
}

/// The listener of a user.
fn foreign(port: u16) -> ListenerCreate {
    ListenerCreate {
        name: "of-a-user".to_owned(),
        protocol: "TCP".to_owned(),
        protocol_port: port,
        default_pool: Some(PoolCreate {
            name: "of-a-user".to_owned(),
            protocol: "TCP".to_owned(),
            lb_algorithm: "ROUND_ROBIN".to_owned(),
            ..PoolCreate::default()
        }),
        ..ListenerCreate::default()
    }
}

/// Cloud with a load balancer from before; the Service names it where it is to use it.
fn begun(before: Before, scene: Scene, earlier: (Service, usize)) -> Scene {
    let mut scene = scene;
    let (service, nodes) = earlier;
    match before {
        Before::Nobody => {}
        Before::GoManager | Before::OtherCluster => {
            let mut other = Scene {
                service,
                nodes: (1..=nodes).map(node).collect(),
                is_serial: false,
                ..scene.clone()
            };
            converging::settle(&mut other);
            scene.model = other.model;
            match before {
                Before::GoManager => scene.model.unmark(),
                _ => scene.model.give_away(),
            }
        }
        Before::User => {
            let id = scene.model.octavia.id();
            let balancer = LoadBalancer {
                id: id.clone(),
                name: "of-a-user".to_owned(),
                provisioning_status: "ACTIVE".to_owned(),
                vip_port_id: "vip-of-a-user".to_owned(),
                vip_subnet_id: "subnet".to_owned(),
                ..LoadBalancer::default()
            };
            scene.model.octavia.balancers.insert(id.clone(), balancer);
            scene.model.octavia.listener(&id, foreign(2));
            let ip = FloatingIp {
                id: "ip-of-a-user".to_owned(),
                floating_ip_address: "203.0.113.9".to_owned(),
                port_id: Some("vip-of-a-user".to_owned()),
                ..FloatingIp::default()
            };
            scene.model.floating_ips.insert(ip.id.clone(), ip);
        }
    }
    if matches!(before, Before::GoManager | Before::User)
        && let Some(id) = scene.model.octavia.balancers.keys().next()
    {
        let named = (annotations::ID.to_owned(), id.clone());
        scene.service.annotations_mut().extend([named]);
    }
    scene
}

impl Model {
    /// Turns everything into the resources of a Service in another cluster, with the same names.
    fn give_away(&mut self) {
        let give = |tags: &mut Vec<String>| {
            for tag in tags {
                *tag = tag
                    .replace("=cluster", "=another")
                    .replace("=web", "=theirs");
            }
        };
        self.octavia
            .balancers
            .values_mut()
            .for_each(|it| give(&mut it.tags));
        self.octavia
            .listeners
            .values_mut()
            .for_each(|it| give(&mut it.tags));
        self.octavia
            .pools
            .values_mut()
            .for_each(|it| give(&mut it.tags));
        for ip in self.floating_ips.values_mut() {
            ip.description = ip.description.replace("=web", "=theirs");
        }
    }

    /// The load balancers of another cluster, the parts and floating IPs of users, without ids.
    fn of_others(&self, identity: &Identity) -> Vec<String> {
        let balancers = self.octavia.balancers.values();
        let is_theirs = |it: &&LoadBalancer| it.tags.iter().any(|tag| tag.ends_with("=another"));
        let mut all: Vec<_> = balancers
            .filter(is_theirs)
            .flat_map(|it| self.octavia.tree(&it.id))
            .collect();
        let parts = self
            .octavia
            .listeners
            .values()
            .filter(|it| it.name == "of-a-user");
        all.extend(parts.map(|it| format!("{it:?}")));
        let pools = self
            .octavia
            .pools
            .values()
            .filter(|it| it.name == "of-a-user");
        all.extend(pools.map(|it| format!("{it:?}")));
        let ips = self.floating_ips.values();
        let ips = ips.filter(|ip| !identity.owns_floating_ip(&ip.description));
        all.extend(ips.map(|it| format!("{it:?}")));
        all
    }
}

prop_compose! {
    fn scene()(
        before in select(vec![Before::Nobody, Before::GoManager, Before::OtherCluster, Before::User]),
        (service, nodes) in any_service(),
        earlier in any_service(),
        (is_serial, weighting, failures) in (any::<bool>(), any_weighting(), 0..3_usize),
    ) -> Scene {
        let model = Model::default();
        let nodes = (1..=nodes).map(node).collect();
        let scene = Scene { model, service, nodes, is_serial, weighting };
        let mut scene = begun(before, scene, earlier);
        scene.model.octavia.failures = failures;
        with_weights(&mut scene);
        scene
    }
}

fn with_weights(scene: &mut Scene) {
    if scene.weighting != weights::Weighting::Equal {
        let asked = "loadbalancer.openstack.org/member-weights".to_owned();
        let asked = (asked, "ready-endpoints".to_owned());
        scene.service.annotations_mut().extend([asked]);
    }
}

/// The load balancer has the state that the Service asks for, and nothing else of the Service.
fn check_end(scene: &Scene) {
    let (Ok(desired), Some(observed)) = (scene.desired(), scene.observed()) else {
        return;
    };
    if sharing::check(&desired, &observed, &scene.identity(), 2).is_err() {
        return;
    }
    assert!(observed.role != Role::Applicant, "not marked");
    assert_eq!(observed.balancer.provisioning_status, "ACTIVE");
    assert_eq!(observed.orphans, Vec::<String>::new());
    let wanted = &desired.tree.listeners;
    assert_eq!(observed.listeners.len(), wanted.len());
    for listener in wanted {
        let branch = &observed.listeners[&(listener.protocol.clone(), listener.protocol_port)];
        let (pool, known) = (
            listener.default_pool.as_ref().unwrap(),
            branch.pool.as_ref(),
        );
        assert_eq!(known.unwrap().protocol, pool.protocol);
        assert_eq!(known.unwrap().lb_algorithm, pool.lb_algorithm);
        assert_eq!(branch.members.len(), pool.members.len());
        let kind = branch.monitor.as_ref().map(|monitor| &monitor.kind);
        assert_eq!(
            kind,
            pool.healthmonitor.as_ref().map(|monitor| &monitor.kind)
        );
    }
    if observed.role == Role::Owner {
        let has_ip = observed.floating_ip.is_some();
        assert_eq!(has_ip, desired.floating.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn from_any_state_and_each_cut_a_load_balancer_comes_to_be_what_its_service_asks_for(
        mut scene in scene(),
        (next, nodes) in any_service(),
        deeds in prop::collection::vec((select(DEEDS.to_vec()), any::<Index>()), 0..4),
        cuts in prop::collection::vec(any::<usize>(), 3),
    ) {
        let others = scene.model.of_others(&scene.identity());
        let mut end = converging::check_at(&scene, &cuts);
        check_end(&end);
        prop_assert_eq!(end.model.of_others(&scene.identity()), others);
        // People change the load balancer, and the Service asks for something else.
        for (deed, which) in deeds {
            end.model.suffer(deed, which);
        }
        let named = end.service.annotations().get(annotations::ID).cloned();
        let named = named.map(|id| (annotations::ID.to_owned(), id));
        end.service = next;
        end.service.annotations_mut().extend(named);
        end.nodes = (1..=nodes).map(node).collect();
        with_weights(&mut end);
        scene = converging::check_at(&end, &cuts);
        check_end(&scene);
    }
}
