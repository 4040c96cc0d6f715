//! Routes, address pairs and the record reach the needs of the nodes, also when a pass is cut off between any two
//! requests, and creations of others are kept.

use std::collections::BTreeMap;

use converging::System;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;

/// The router of cloud.conf, one that was named there before, the ports of servers, and the Nodes.
#[derive(Clone, Debug)]
struct Scene {
    model: Model,
    nodes: Vec<Arc<Node>>,
    knows_all_nodes: bool,
    /// True if the routers have `extraroute-atomic`; otherwise one request replaces all routes.
    is_atomic: bool,
}

#[derive(Debug)]
enum Step {
    Record(Record),
    Routes {
        router: String,
        add: BTreeSet<Route>,
        remove: BTreeSet<Route>,
    },
    Pairs {
        port: String,
        add: BTreeSet<Route>,
        remove: BTreeSet<Route>,
    },
}

impl Scene {
    /// Port and range of each leg for which nothing is in the way.
    fn needed(&self) -> BTreeSet<(String, Route)> {
        let (wanted, plan) = self.model.plan(&self.nodes, self.knows_all_nodes);
        let possible = wanted.iter();
        let possible = possible.filter(|wanted| !plan.problems.contains_key(&wanted.node));
        let legs = possible.flat_map(|wanted| &wanted.routes);
        legs.map(|leg| (leg.port.id.clone(), leg.route)).collect()
    }

    fn routes(&self, router: &str) -> BTreeSet<Route> {
        let mut routers = self.model.routers.iter();
        Route::of_router(routers.find(|known| known.id == router).unwrap())
    }

    fn change_routes(&mut self, router: &str, add: &BTreeSet<Route>, remove: &BTreeSet<Route>) {
        let (ours, present) = (self.model.record.of(router), self.routes(router));
        assert!(add.is_subset(&ours), "created before it is recorded");
        assert!(add.is_disjoint(&present), "created twice");
        assert!(remove.is_subset(&ours), "removed and not ours");
        let near = |route: &Route| route.next_hop.to_string().starts_with("10.0.0.");
        assert!(add.iter().all(near), "RouterInterfaceNotFoundForNexthop");
        let mut routers = self.model.routers.iter_mut();
        let known = routers.find(|known| known.id == router).unwrap();
        let is_removed = |known: &openstack::network::ExtraRoute| {
            remove.iter().any(|gone| *known == gone.into())
        };
        known.routes.retain(|route| !is_removed(route));
        known.routes.extend(add.iter().map(Into::into));
    }

    fn change_pairs(&mut self, id: &str, add: &BTreeSet<Route>, remove: &BTreeSet<Route>) {
        let needed = self.needed();
        let recorded: BTreeSet<_> = self.model.record.0.values().flatten().copied().collect();
        assert!(add.is_subset(&recorded), "opened before it is recorded");
        let mut ports = self.model.ports.iter_mut();
        let port = ports.find(|port| port.id == id).unwrap();
        assert_ne!(
            port.port_security_enabled,
            Some(false),
            "AddressPairAndPortSecurityRequired"
        );
        for gone in remove {
            let range = gone.destination.to_string();
            let mut needed = needed.iter();
            let is_needed = needed.any(|(of, it)| of == id && it.destination == gone.destination);
            assert!(!is_needed, "{range} of {id} is closed, which a node needs");
            port.allowed_address_pairs
                .retain(|pair| pair.ip_address != range);
        }
        for new in add {
            let new = pair(&new.destination.to_string());
            // As in `change_port_pairs`: Neutron rejects a pair that is listed twice.
            if !port.allowed_address_pairs.contains(&new) {
                port.allowed_address_pairs.push(new);
            }
        }
    }
}

impl System for Scene {
    type Step = Step;
    type State = (
        BTreeMap<String, BTreeSet<Route>>,
        BTreeMap<String, BTreeSet<String>>,
        BTreeMap<String, String>,
    );

    fn plan(&self) -> Vec<Step> {
        let (_, plan) = self.model.plan(&self.nodes, self.knows_all_nodes);
        let mut steps = Vec::new();
        if plan.record != self.model.record {
            steps.push(Step::Record(plan.record));
        }
        for (router, change) in plan.routers {
            let step = |add: &BTreeSet<Route>, remove: &BTreeSet<Route>| Step::Routes {
                router: router.clone(),
                add: add.clone(),
                remove: remove.clone(),
            };
            let none = BTreeSet::new();
            match self.is_atomic {
                true => steps.extend([step(&none, &change.remove), step(&change.add, &none)]),
                false => steps.push(step(&change.add, &change.remove)),
            }
        }
        steps.extend(plan.pairs.into_iter().map(|(port, pairs)| Step::Pairs {
            port,
            add: pairs.add,
            remove: pairs.remove,
        }));
        steps
    }

    fn take(&mut self, step: Step) {
        match step {
            // The record is read again as stored.
            Step::Record(record) => self.model.record = Record::parse(&record.texts()).unwrap(),
            Step::Routes {
                router,
                add,
                remove,
            } => self.change_routes(&router, &add, &remove),
            Step::Pairs { port, add, remove } => self.change_pairs(&port, &add, &remove),
        }
    }

    fn state(&self) -> Self::State {
        let routers = self.model.routers.iter();
        let pairs = |port: &Port| {
            let pairs = port.allowed_address_pairs.iter();
            let pairs = pairs.map(|pair| pair.ip_address.clone()).collect();
            (port.id.clone(), pairs)
        };
        (
            routers
                .map(|it| (it.id.clone(), Route::of_router(it)))
                .collect(),
            self.model.ports.iter().map(pairs).collect(),
            self.model.record.texts(),
        )
    }
}

/// Each port has two addresses.
fn hops() -> Vec<u8> {
    vec![2, 3, 4, 12, 13, 14]
}

fn some_routes() -> impl Strategy<Value = Vec<Route>> {
    let one = (1u8..5, select(hops())).prop_map(|(pods, hop)| route(pods, hop));
    proptest::collection::btree_set(one, 0..5).prop_map(|all| all.into_iter().collect())
}

/// Nodes with a range each, by the first or the second address of their port, or by an address without a port.
fn some_nodes() -> impl Strategy<Value = Vec<Arc<Node>>> {
    let pods = subsequence(vec![1u8, 2, 3, 4], 0..=3).prop_shuffle();
    let hops = proptest::collection::vec(select(vec![0u8, 10, 40]), 3);
    (pods, hops).prop_map(|(pods, offsets)| {
        let all = pods.iter().zip(offsets).zip(2u8..);
        let of = |((pods, offset), number): ((&u8, u8), u8)| {
            node(number + offset, &[&format!("10.244.{pods}.0/24")])
        };
        all.map(of).collect()
    })
}

fn some_ports() -> impl Strategy<Value = Vec<Port>> {
    let ranges = [
        "10.244.1.0/24",
        "10.244.2.0/24",
        "10.244.0.0/16",
        "192.168.0.0/24",
    ];
    let pairs = proptest::option::of(subsequence(ranges.to_vec(), 0..=3));
    let one = (pairs, any::<bool>(), proptest::bool::weighted(0.8));
    proptest::collection::vec(one, 3).prop_map(|all| {
        let mut ports = Vec::new();
        for ((pairs, has_second, is_there), number) in all.into_iter().zip(2u8..) {
            let mut port = port(number, pairs.as_deref().unwrap_or_default());
            port.port_security_enabled = Some(pairs.is_some());
            port.fixed_ips
                .extend(has_second.then(|| fixed(number + 10)));
            ports.extend(is_there.then_some(port));
        }
        ports
    })
}

prop_compose! {
    fn scene()(
        (present, recorded) in (some_routes(), some_routes()),
        former in proptest::option::of((some_routes(), some_routes())),
        ports in some_ports(),
        nodes in some_nodes(),
        (knows_all_nodes, is_atomic) in any::<(bool, bool)>(),
    ) -> Scene {
        let mut model = Model::with(&present, &recorded);
        model.ports.retain(|port| port.id == "interface");
        model.ports.extend(ports);
        if let Some((present, recorded)) = former {
            let Model { mut routers, ports, record } = Model::with(&present, &recorded);
            routers[0].id = "former".into();
            model.routers.extend(routers);
            let interface = ports.into_iter().find(|port| port.id == "interface").unwrap();
            model.ports.push(Port { id: "other-interface".into(), device_id: "former".into(), fixed_ips: vec![fixed(254)], ..interface });
            model.record.0.insert("former".into(), record.of("router"));
        }
        Scene { model, nodes, knows_all_nodes, is_atomic }
    }
}

/// The routers have the nodes' routes and the foreign ones; the ports let the traffic through, and have no other pair
/// of ours.
fn check_end(before: &Scene, end: &Scene) {
    let needed = end.needed();
    let routes: BTreeSet<Route> = needed.iter().map(|(_, route)| *route).collect();
    for router in before.model.routers.iter().map(|router| router.id.as_str()) {
        let ours = before.model.record.of(router);
        let theirs: BTreeSet<Route> = before.routes(router).difference(&ours).copied().collect();
        let there = end.routes(router);
        assert!(theirs.is_subset(&there), "{theirs:?} {there:?}");
        let is_of_router = router == "router";
        assert!(
            !is_of_router || routes.is_subset(&there),
            "{routes:?} {there:?}"
        );
        let (wanted, _) = end.model.plan(&end.nodes, end.knows_all_nodes);
        let unresolved: Vec<_> = wanted.iter().flat_map(|it| &it.unresolved).collect();
        for left in there.difference(&theirs) {
            let may_stay = !end.knows_all_nodes || unresolved.contains(&&left.destination);
            assert!(
                may_stay || is_of_router && routes.contains(left),
                "{left} is left over"
            );
        }
    }
    for port in &end.model.ports {
        let mut known = before
            .model
            .ports
            .iter()
            .filter(|known| known.id == port.id);
        let known = known.next().unwrap();
        for pair in &port.allowed_address_pairs {
            let mut needed = needed.iter().filter(|(id, _)| *id == port.id);
            let is_needed =
                needed.any(|(_, route)| route.destination.to_string() == pair.ip_address);
            assert!(
                is_needed || known.allowed_address_pairs.contains(pair),
                "{pair:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn from_any_state_and_each_cut_routes_come_to_be_those_of_the_nodes(scene in scene(), nodes in some_nodes()) {
        let mut next = converging::check(&scene);
        check_end(&scene, &next);
        // The nodes change, and all of them are known.
        (next.nodes, next.knows_all_nodes) = (nodes, true);
        let end = converging::check(&next);
        check_end(&next, &end);
        // The last node leaves: everything of ours goes with it.
        let mut last = end.clone();
        last.nodes.clear();
        let end = converging::check(&last);
        check_end(&last, &end);
        prop_assert_eq!(end.model.record.texts(), BTreeMap::new());
    }
}
