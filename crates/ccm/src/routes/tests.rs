use std::collections::BTreeSet;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, NodeAddress, NodeSpec, NodeStatus};
use openstack::View;
use openstack::inventory::Table;
use openstack::network::{AddressPair, FixedIp, Port, Router, Subnet};
use proptest::prelude::*;

use super::desired::{self, Reach, Wanted};
use super::plan::{self, Facts, Plan};
use super::route::{Record, Route};

/// Routers with routes, ports with pairs, and a record.
#[derive(Clone, Debug, Default)]
struct Model {
    routers: Vec<Router>,
    ports: Vec<Port>,
    record: Record,
}

fn port(number: u8, pairs: &[&str]) -> Port {
    Port {
        id: format!("port-{number}"),
        device_owner: "compute:nova".into(),
        mac_address: format!("fa:16:3e:00:00:{number:02x}"),
        fixed_ips: vec![fixed(number)],
        allowed_address_pairs: pairs.iter().map(|range| pair(range)).collect(),
        ..Port::default()
    }
}

fn pair(range: &str) -> AddressPair {
    AddressPair {
        ip_address: range.to_owned(),
        mac_address: None,
    }
}

fn fixed(number: u8) -> FixedIp {
    FixedIp {
        subnet_id: "nodes".into(),
        ip_address: format!("10.0.0.{number}"),
    }
}

fn route(pods: u8, hop: u8) -> Route {
    Route {
        destination: format!("10.244.{pods}.0/24").parse().unwrap(),
        next_hop: format!("10.0.0.{hop}").parse().unwrap(),
    }
}

fn node(number: u8, cidrs: &[&str]) -> Arc<Node> {
    let mut node = Node::default();
    node.metadata.name = Some(format!("node-{number}"));
    node.spec = Some(NodeSpec {
        pod_cidrs: Some(cidrs.iter().map(|cidr| (*cidr).to_owned()).collect()),
        ..NodeSpec::default()
    });
    node.status = Some(NodeStatus {
        addresses: Some(vec![NodeAddress {
            type_: "InternalIP".into(),
            address: format!("10.0.0.{number}"),
        }]),
        ..NodeStatus::default()
    });
    Arc::new(node)
}

impl Model {
    fn with(routes: &[Route], recorded: &[Route]) -> Self {
        let interface = Port {
            id: "interface".into(),
            device_id: "router".into(),
            device_owner: "network:router_interface".into(),
            fixed_ips: vec![fixed(1)],
            ..Port::default()
        };
        let router = Router {
            id: "router".into(),
            routes: routes.iter().map(Into::into).collect(),
            ..Router::default()
        };
        let mut model = Self {
            routers: vec![router],
            ports: (2..6).map(|number| port(number, &[])).collect(),
            ..Self::default()
        };
        model.ports.push(interface);
        let recorded: BTreeSet<Route> = recorded.iter().copied().collect();
        model.record.0.insert("router".into(), recorded);
        model
    }

    fn view(&self) -> View {
        let subnet = Subnet {
            id: "nodes".into(),
            cidr: "10.0.0.0/24".into(),
            ..Subnet::default()
        };
        View {
            routers: Arc::new(Table::of(self.routers.clone())),
            ports: Arc::new(Table::of(self.ports.clone())),
            subnets: Arc::new(Table::of([subnet])),
            ..View::default()
        }
    }

    fn plan(&self, nodes: &[Arc<Node>], knows_all_nodes: bool) -> (Vec<Wanted>, Plan) {
        let view = self.view();
        let reach = Reach::of("router", &view);
        let cidrs = ["10.244.0.0/16".parse().unwrap()];
        let wanted = desired::of(nodes, "router", &reach, &cidrs);
        let facts = Facts {
            router: "router",
            record: &self.record,
            view: &view,
            knows_all_nodes,
        };
        let plan = plan::of(&wanted, &reach, &facts);
        (wanted, plan)
    }

    /// Applies the first `steps` steps of a plan: the record, routes that go, routes that come, ports.
    fn apply(&mut self, plan: &Plan, steps: usize) {
        let mut left = steps;
        let mut step = || {
            left = left.saturating_sub(1);
            left > 0
        };
        self.record = plan.record.clone();
        for (id, change) in &plan.routers {
            let router = self.routers.iter_mut().find(|r| r.id == *id).unwrap();
            if step() {
                router
                    .routes
                    .retain(|route| !change.remove.iter().any(|gone| *route == gone.into()));
            }
            if step() {
                router.routes.extend(change.add.iter().map(Into::into));
            }
        }
        for (id, pairs) in &plan.pairs {
            if step() {
                let port = self.ports.iter_mut().find(|port| port.id == *id).unwrap();
                let gone: Vec<_> = pairs
                    .remove
                    .iter()
                    .map(|r| r.destination.to_string())
                    .collect();
                port.allowed_address_pairs
                    .retain(|pair| !gone.contains(&pair.ip_address));
                let new = pairs.add.iter().map(|r| pair(&r.destination.to_string()));
                port.allowed_address_pairs.extend(new);
            }
        }
    }

    fn routes(&self) -> BTreeSet<Route> {
        Route::of_router(&self.routers[0])
    }
}

#[test]
fn nothing_is_planned_when_routes_and_pairs_are_in_order() {
    let mut model = Model::with(&[route(1, 2)], &[route(1, 2)]);
    let nodes = [node(2, &["10.244.1.0/24"])];
    model.ports[0] = port(2, &["10.244.1.0/24"]);
    assert!(model.plan(&nodes, true).1.is_settled());
    // A wider range, and a port without port security, allow the route, too.
    model.ports[0] = port(2, &["10.244.0.0/16"]);
    assert!(model.plan(&nodes, true).1.is_settled());
    model.ports[0] = port(2, &[]);
    assert!(!model.plan(&nodes, true).1.is_settled());
    model.ports[0].port_security_enabled = Some(false);
    assert!(model.plan(&nodes, true).1.is_settled());
}

#[test]
fn only_recorded_routes_are_removed_and_none_while_a_node_cannot_be_decoded() {
    let model = Model::with(&[route(1, 2), route(2, 3)], &[route(1, 2)]);
    let (_, plan) = model.plan(&[], true);
    assert_eq!(plan.routers["router"].remove, [route(1, 2)].into());
    assert_eq!(plan.routers["router"].add, BTreeSet::new());
    let (_, plan) = model.plan(&[], false);
    assert!(plan.is_settled());
    assert_eq!(plan.record, model.record);
}

#[test]
fn a_range_that_moves_to_another_node_takes_its_route_along() {
    let model = Model::with(&[route(1, 2)], &[route(1, 2)]);
    let (_, plan) = model.plan(&[node(3, &["10.244.1.0/24"])], true);
    assert_eq!(plan.problems.len(), 0);
    assert_eq!(plan.routers["router"].remove, [route(1, 2)].into());
    assert_eq!(plan.routers["router"].add, [route(1, 3)].into());
}

#[test]
fn the_record_of_a_router_that_is_not_listed_stays() {
    let mut model = Model::with(&[], &[route(1, 2)]);
    model.routers.clear();
    let (_, plan) = model.plan(&[node(2, &["10.244.1.0/24"])], true);
    assert_eq!(plan.record, model.record);
    // Without the router, its subnets are known by its ports.
    let problem = &plan.problems["node-2"];
    assert!(
        problem.contains("router router is not one of this project"),
        "{problem}"
    );
}

#[test]
fn routes_leave_the_router_that_cloud_conf_named_before() {
    let mut model = Model::with(&[], &[]);
    let mut before = model.routers[0].clone();
    before.id = "before".into();
    before.routes = vec![(&route(1, 2)).into()];
    model.routers.push(before);
    model.record.0.insert("before".into(), [route(1, 2)].into());
    let (_, plan) = model.plan(&[node(2, &["10.244.1.0/24"])], true);
    assert_eq!(plan.routers["before"].remove, [route(1, 2)].into());
    assert_eq!(plan.routers["router"].add, [route(1, 2)].into());
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let mut record = Record::default();
    let six = Route {
        destination: "fd00:244:0:1::/64".parse().unwrap(),
        next_hop: "fd00::5".parse().unwrap(),
    };
    record.0.insert("router".into(), [route(1, 2), six].into());
    assert_eq!(Record::parse(&record.texts()), Ok(record));
    let wrong = [("router".to_owned(), "10.244.1.0/24\n".to_owned())].into();
    let wrong: std::collections::BTreeMap<String, String> = wrong;
    assert!(
        Record::parse(&wrong)
            .unwrap_err()
            .contains("`10.244.1.0/24`")
    );
}

fn some_routes() -> impl Strategy<Value = Vec<Route>> {
    let one = (1u8..5, 2u8..6).prop_map(|(pods, hop)| route(pods, hop));
    proptest::collection::vec(one, 0..6)
}

proptest! {
    /// From any state, a plan that is cut off after any step and then carried out leads to the routes of the nodes, and
    /// what was not recorded is still there.
    #[test]
    fn cut_off_after_any_step_the_plan_converges(
        present in some_routes(),
        recorded in some_routes(),
        pods in proptest::collection::vec(1u8..5, 0..4),
        steps in 0usize..8,
    ) {
        let present: BTreeSet<Route> = present.into_iter().collect();
        let mut model = Model::with(&present.iter().copied().collect::<Vec<_>>(), &recorded);
        let pods: BTreeSet<u8> = pods.into_iter().collect();
        let nodes: Vec<_> = pods
            .iter()
            .zip(2u8..)
            .map(|(pods, number)| node(number, &[&format!("10.244.{pods}.0/24")]))
            .collect();
        let ours = model.record.of("router");
        model.apply(&model.plan(&nodes, true).1, steps);
        for _ in 0..2 {
            model.apply(&model.plan(&nodes, true).1, usize::MAX);
        }
        let (wanted, plan) = model.plan(&nodes, true);
        prop_assert!(plan.is_settled());
        prop_assert_eq!(&plan.record.texts(), &model.record.texts());
        let theirs: BTreeSet<Route> = present.difference(&ours).copied().collect();
        let legs = wanted.iter().filter(|wanted| !plan.problems.contains_key(&wanted.node));
        let mut end: BTreeSet<Route> = legs.flat_map(|w| &w.routes).map(|leg| leg.route).collect();
        end.extend(&theirs);
        prop_assert_eq!(model.routes(), end);
    }
}
