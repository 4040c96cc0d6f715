//! From any load balancer to any other, also after a cut and after a person has changed parts, the plan leads to the desired
//! one and is then empty.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use load_balancing::{Branch, Desired, Fields, Key, Names, Observed, Status, Step};
use octavia_model::Octavia;
use openstack::loadbalancer::{
    ListenerCreate, LoadBalancerCreate, MemberCreate, MonitorCreate, PoolCreate, SessionPersistence,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Tag of the parts of the controller.
const OURS: &str = "ours";

/// A wish, and Octavia.
#[derive(Clone, Debug)]
struct Scene {
    octavia: Octavia,
    tree: LoadBalancerCreate,
    fields: Fields,
    is_serial: bool,
    keeps_weights: bool,
}

impl Scene {
    fn desired(&self) -> Desired<'_> {
        Desired {
            tree: &self.tree,
            fields: self.fields,
            names: Names::KEPT,
            is_serial: self.is_serial,
            keeps_weights: self.keeps_weights,
            keeps_members: false,
        }
    }

    fn balancer(&self) -> Option<String> {
        self.octavia.balancers.keys().next().cloned()
    }

    fn branches(&self) -> BTreeMap<Key, Branch> {
        let ours = self.octavia.listeners.values();
        let ours = ours.filter(|it| it.tags == [OURS]);
        ours.map(|listener| {
            let pool = listener.default_pool_id.as_ref();
            let pool = pool.map(|id| self.octavia.pools[id].clone());
            let id = pool.as_ref().map_or("", |pool| &pool.id);
            let members = self.octavia.members.values();
            let members = members.filter(|it| &*it.pool_id == id);
            let mut monitors = self.octavia.monitors.values();
            let branch = Branch {
                members: members.cloned().map(Into::into).collect(),
                monitor: monitors
                    .find(|it| it.pools[0].id == id)
                    .cloned()
                    .map(Into::into),
                listener: listener.clone().into(),
                pool: pool.clone().map(Into::into),
            };
            ((listener.protocol.clone(), listener.protocol_port), branch)
        })
        .collect()
    }

    fn orphans(&self) -> Vec<String> {
        let is_used = |id: &String| {
            let mut listeners = self.octavia.listeners.values();
            listeners.any(|it| it.default_pool_id.as_ref() == Some(id))
        };
        let pools = self.octavia.pools.values();
        let orphans = pools.filter(|it| it.tags == [OURS] && !is_used(&it.id));
        orphans.map(|it| it.id.clone()).collect()
    }

    fn steps(&self) -> Vec<Step> {
        let (branches, orphans) = (self.branches(), self.orphans());
        let id = self.balancer();
        let observed = id.as_ref().map(|id| Observed {
            balancer: &self.octavia.balancers[id],
            listeners: &branches,
            orphans: &orphans,
        });
        let steps = load_balancing::steps(&self.desired(), observed.as_ref());
        for step in steps.iter().filter(|_| self.is_serial) {
            assert!(!is_bulk(step), "{step:?}");
        }
        steps
    }

    /// The load balancer has each wanted part as it is managed, and no other part of the controller.
    fn check(&self) {
        let branches = self.branches();
        assert_eq!(self.orphans(), Vec::<String>::new());
        assert_eq!(branches.len(), self.tree.listeners.len());
        for wanted in &self.tree.listeners {
            let branch = &branches[&(wanted.protocol.clone(), wanted.protocol_port)];
            let wanted_pool = wanted.default_pool.as_ref().unwrap();
            let pool = branch.pool.as_ref().unwrap();
            let mut known: Vec<_> = branch.members.iter().map(|it| &it.address).collect();
            let mut members: Vec<_> = wanted_pool.members.iter().map(|it| &it.address).collect();
            known.sort();
            members.sort();
            assert_eq!(known, members);
            let delay = branch.monitor.as_ref().map(|it| it.delay);
            let wanted_delay = wanted_pool.healthmonitor.as_ref().map(|it| it.delay);
            if self.fields == Fields::Access {
                assert!(wanted_delay.is_none() || delay == wanted_delay);
                continue;
            }
            assert_eq!(delay, wanted_delay);
            assert_eq!(pool.protocol, wanted_pool.protocol);
            assert_eq!(pool.lb_algorithm, wanted_pool.lb_algorithm);
            assert_eq!(pool.session_persistence, wanted_pool.session_persistence);
            let kind = branch.monitor.as_ref().map(|it| &it.kind);
            let wanted_kind = wanted_pool.healthmonitor.as_ref().map(|it| &it.kind);
            assert_eq!(kind, wanted_kind);
            let limit = wanted.connection_limit.unwrap_or(-1);
            assert_eq!(branch.listener.connection_limit, Some(limit));
            for member in &branch.members {
                let wanted = wanted_pool.members.iter();
                let mut wanted = wanted.filter(|it| it.address == member.address);
                let wanted = wanted.next().unwrap();
                assert_eq!(member.monitor_port, wanted.monitor_port);
                let is_kept = wanted.weight.is_none() && self.keeps_weights;
                assert!(is_kept || member.weight == wanted.weight.unwrap_or(1));
            }
        }
    }
}

impl converging::System for Scene {
    type Step = Step;
    type State = Vec<String>;

    fn plan(&self) -> Vec<Step> {
        let status = self
            .balancer()
            .map(|id| Status::from_balancer(&self.octavia.balancers[&id]));
        match status {
            None | Some(Status::Active) => self.steps().into_iter().take(1).collect(),
            Some(_) => Vec::new(),
        }
    }

    fn take(&mut self, step: Step) {
        let balancer = self.balancer().unwrap_or_default();
        let is_second = matches!(step, Step::Create(_)) && !balancer.is_empty();
        assert!(!is_second, "a second load balancer");
        self.octavia.take(&balancer, step);
    }

    fn pass(&mut self) -> bool {
        self.octavia.pass()
    }

    fn state(&self) -> Vec<String> {
        let balancers = self.octavia.balancers.keys();
        let mut all: Vec<_> = balancers.flat_map(|id| self.octavia.tree(id)).collect();
        all.sort();
        all
    }
}

/// True if a step creates or changes several objects.
fn is_bulk(step: &Step) -> bool {
    match step {
        Step::Create(tree) => !tree.listeners.is_empty(),
        Step::SetMembers { .. } => true,
        _ => false,
    }
}

prop_compose! {
    fn any_listener()(
        (protocol, pool) in select(vec![("TCP", "TCP"), ("TCP", "PROXY"), ("UDP", "UDP"), ("HTTP", "HTTP")]),
        port in 1..4_u16,
        cidrs in prop::option::of(select(vec![vec![], vec!["0.0.0.0/0"], vec!["10.0.0.0/8", "192.0.2.0/24"]])),
        limit in prop::option::of(7..9_i64),
        algorithm in select(vec!["ROUND_ROBIN", "SOURCE_IP"]),
        sticky in any::<bool>(),
        monitor in prop::option::of((select(vec!["TCP", "HTTP"]), 3..5_i64)),
        members in prop::collection::btree_map(1..5_u8, (prop::option::of(1..3_i64), prop::option::of(8080..8082_u16)), 0..4),
    ) -> ListenerCreate {
        let tags = vec![OURS.to_owned()];
        let members = members.into_iter().map(|(last, (weight, monitor_port))| MemberCreate {
            name: format!("member-{last}"),
            address: format!("10.0.0.{last}"),
            protocol_port: 30_000 + port,
            weight,
            monitor_port,
            ..MemberCreate::default()
        });
        let pool = PoolCreate {
            name: format!("pool-{port}"),
            protocol: pool.to_owned(),
            lb_algorithm: algorithm.to_owned(),
            session_persistence: sticky.then(|| SessionPersistence { kind: "SOURCE_IP".to_owned(), persistence_timeout: None }),
            members: members.collect(),
            healthmonitor: monitor.map(|(kind, delay)| MonitorCreate {
                name: format!("monitor-{port}"),
                kind: kind.to_owned(),
                delay,
                timeout: 2,
                max_retries: 3,
                max_retries_down: 3,
                ..MonitorCreate::default()
            }),
            tags: tags.clone(),
            ..PoolCreate::default()
        };
        ListenerCreate {
            name: format!("listener-{port}"),
            protocol: protocol.to_owned(),
            protocol_port: port,
            allowed_cidrs: cidrs.map(|all| all.into_iter().map(str::to_owned).collect()),
            connection_limit: limit,
            default_pool: Some(pool),
            tags,
            ..ListenerCreate::default()
        }
    }
}

/// A tree in which no two listeners of a transport have a port.
fn any_tree() -> impl Strategy<Value = LoadBalancerCreate> {
    prop::collection::vec(any_listener(), 1..4).prop_map(|listeners| {
        let mut ports = Vec::new();
        let is_first = |it: &ListenerCreate| {
            let port = (
                load_balancing::transport(&it.protocol).to_owned(),
                it.protocol_port,
            );
            let is_first = !ports.contains(&port);
            ports.push(port);
            is_first
        };
        LoadBalancerCreate {
            name: "lb".to_owned(),
            listeners: listeners.into_iter().filter(is_first).collect(),
            ..LoadBalancerCreate::default()
        }
    })
}

/// A tree with the listeners and pools of another one, which [`Fields::Access`] does not change: other members, other
/// intervals, other ranges, further ports.
fn access_of(tree: &LoadBalancerCreate, of: &LoadBalancerCreate) -> LoadBalancerCreate {
    let listeners = of.listeners.iter().map(|known| {
        let mut next = known.clone();
        let mut others = tree.listeners.iter();
        let other = others.find(|it| it.protocol_port == known.protocol_port);
        if let (Some(other), Some(pool)) = (other, &mut next.default_pool) {
            next.allowed_cidrs = other.allowed_cidrs.clone();
            let with = other.default_pool.clone().unwrap_or_default();
            pool.members = with.members;
            if let (Some(known), Some(with)) = (&mut pool.healthmonitor, with.healthmonitor) {
                known.delay = with.delay;
            }
        }
        next
    });
    LoadBalancerCreate {
        listeners: listeners.collect(),
        ..tree.clone()
    }
}

/// Something that a person does.
#[derive(Clone, Copy, Debug)]
enum Deed {
    DeleteListener,
    DeletePool,
    DeleteMember,
    DeleteMonitor,
    ChangeWeight,
    ChangeMethod,
}

fn some_key<T>(map: &BTreeMap<String, T>, which: Index) -> Option<String> {
    let keys: Vec<_> = map.keys().cloned().collect();
    (!keys.is_empty()).then(|| which.get(&keys).clone())
}

fn suffer(octavia: &mut Octavia, deed: Deed, which: Index) -> Option<()> {
    match deed {
        Deed::DeleteListener => {
            let id = some_key(&octavia.listeners, which)?;
            octavia.listeners.remove(&id)?;
        }
        Deed::DeletePool => octavia.delete_pool(&some_key(&octavia.pools, which)?),
        Deed::DeleteMember => {
            let id = some_key(&octavia.members, which)?;
            octavia.members.remove(&id)?;
        }
        Deed::DeleteMonitor => octavia.delete_monitor(&some_key(&octavia.monitors, which)?),
        Deed::ChangeWeight => {
            let id = some_key(&octavia.members, which)?;
            octavia.members.get_mut(&id)?.weight = 9;
        }
        Deed::ChangeMethod => {
            let id = some_key(&octavia.pools, which)?;
            octavia.pools.get_mut(&id)?.lb_algorithm = "LEAST_CONNECTIONS".to_owned();
        }
    }
    Some(())
}

const DEEDS: [Deed; 6] = [
    Deed::DeleteListener,
    Deed::DeletePool,
    Deed::DeleteMember,
    Deed::DeleteMonitor,
    Deed::ChangeWeight,
    Deed::ChangeMethod,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn from_any_tree_to_any_other_and_each_cut_the_plan_converges_and_is_then_empty(
        (before, after) in (any_tree(), any_tree()),
        fields in select(vec![Fields::All, Fields::Access]),
        (is_serial, keeps_weights) in (any::<bool>(), any::<bool>()),
        deeds in prop::collection::vec((select(DEEDS.to_vec()), any::<Index>()), 0..4),
    ) {
        // The Go provider's fields are never those of a serial driver, and never leave a listener behind.
        let is_serial = is_serial && fields == Fields::All;
        let after = match fields {
            Fields::All => after,
            Fields::Access => access_of(&after, &before),
        };
        let scene = Scene { octavia: Octavia::default(), tree: before, fields, is_serial, keeps_weights };
        let mut scene = converging::check(&scene);
        scene.check();
        for (deed, which) in deeds {
            // A pool without a listener is found by a controller that manages all fields.
            let is_kept = fields == Fields::Access && matches!(deed, Deed::DeleteListener);
            if !is_kept {
                suffer(&mut scene.octavia, deed, which);
            }
        }
        scene.tree = after;
        let mut end = converging::check(&scene);
        end.check();
        prop_assert_eq!(converging::settle(&mut end), 0);
    }

    #[test]
    fn upkeep_changes_members_alone(before in any_tree(), after in any_tree(), is_serial in any::<bool>()) {
        let mut scene = Scene { octavia: Octavia::default(), tree: before, fields: Fields::All, is_serial, keeps_weights: false };
        converging::settle(&mut scene);
        scene.tree = after;
        let (branches, id) = (scene.branches(), scene.balancer().unwrap());
        let observed = Observed { balancer: &scene.octavia.balancers[&id], listeners: &branches, orphans: &[] };
        let upkeep = load_balancing::upkeep(&scene.desired(), &observed);
        prop_assert!(upkeep.iter().all(|step| step.action().is_of_members()), "{:?}", upkeep);
        let leftovers = load_balancing::leftovers(&scene.desired(), &observed);
        prop_assert!(leftovers.iter().all(|step| matches!(step, Step::DeleteListener(_))), "{:?}", leftovers);
        for step in upkeep.iter().chain(&leftovers) {
            prop_assert!(observed.listener_of(step).is_some_and(|key| branches.contains_key(&key)), "{:?}", step);
        }
    }
}
