mod convergence;

use std::collections::BTreeSet;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, NodeAddress, NodeSpec, NodeStatus};
use openstack::View;
use openstack::inventory::Table;
use openstack::network::{AddressPair, FixedIp, Port, Router, Subnet};

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
            routers: Arc::new(Table::from_items(self.routers.clone())),
            ports: Arc::new(Table::from_items(self.ports.clone())),
            subnets: Arc::new(Table::from_items([subnet])),
            ..View::default()
        }
    }

    fn plan(&self, nodes: &[Arc<Node>], knows_all_nodes: bool) -> (Vec<Wanted>, Plan) {
        let view = self.view();
        let reach = Reach::new("router", &view);
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
fn the_range_of_a_node_whose_address_moves_to_another_of_its_port_stays_open() {
    let mut model = Model::with(&[route(1, 2)], &[route(1, 2)]);
    model.ports[0] = port(2, &["10.244.1.0/24"]);
    model.ports[0].fixed_ips.push(fixed(12));
    let mut moved = (*node(2, &["10.244.1.0/24"])).clone();
    let status = moved.status.as_mut().unwrap();
    status.addresses.as_mut().unwrap()[0].address = "10.0.0.12".into();
    let (_, plan) = model.plan(&[Arc::new(moved)], true);
    assert_eq!(plan.routers["router"].remove, [route(1, 2)].into());
    assert_eq!(plan.routers["router"].add, [route(1, 12)].into());
    assert!(plan.pairs.is_empty(), "{:?}", plan.pairs);
}

#[test]
fn the_record_of_a_router_that_is_not_listed_stays() {
    let mut model = Model::with(&[], &[route(1, 2)]);
    model.routers.clear();
    let (_, plan) = model.plan(&[node(2, &["10.244.1.0/24"])], true);
    assert_eq!(plan.record, model.record);
    // Without the router, its ports tell its subnets.
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
