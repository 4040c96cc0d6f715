use openstack::What;
use openstack::inventory::Table;
use openstack::loadbalancer::{LoadBalancer, Pool, Reference};
use serde_json::json;

use super::*;

fn service(name: &str, address: &str) -> Service {
    serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}")},
        "spec": {"type": "LoadBalancer"},
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
    }))
    .unwrap()
}

#[test]
fn a_change_concerns_the_services_that_name_the_load_balancer() {
    let mut marks = Marks::default();
    marks.add(
        &change(Kind::FloatingIps, "203.0.113.9", Some("vip"), ""),
        &view(),
    );
    let mut named = service("named", "203.0.113.3");
    assert!(!marks.concern(&named, "kubernetes"));
    let id = service::annotations::ID.to_owned();
    named.annotations_mut().insert(id, "lb".to_owned());
    assert!(marks.concern(&named, "kubernetes"));
}

/// A load balancer with a pool, of Service `web`.
fn view() -> View {
    let balancer = LoadBalancer {
        id: "lb".to_owned(),
        name: "by-hand".to_owned(),
        vip_port_id: "vip".to_owned(),
        tags: vec!["ferrostack-service=uid-web".to_owned()],
        ..LoadBalancer::default()
    };
    let pool = Pool {
        id: "pool".to_owned(),
        loadbalancers: vec![Reference {
            id: "lb".to_owned(),
        }],
        ..Pool::default()
    };
    View {
        load_balancers: Arc::new(Table::from_items([balancer])),
        pools: Arc::new(Table::from_items([pool])),
        ..View::default()
    }
}

fn change(kind: Kind, name: &str, parent: Option<&str>, description: &str) -> Change {
    Change {
        scope: "scope".into(),
        kind,
        id: "id".to_owned(),
        name: name.to_owned(),
        tags: Vec::new(),
        description: description.to_owned(),
        parent: parent.map(str::to_owned),
        what: What::Changed,
    }
}

/// The Services of `web` and `other` that a change concerns.
fn concerned(kind: Kind, name: &str, parent: Option<&str>, description: &str) -> Vec<&'static str> {
    let mut marks = Marks::default();
    marks.add(&change(kind, name, parent, description), &view());
    let all = [("web", "203.0.113.1"), ("other", "203.0.113.2")];
    let found = all
        .iter()
        .filter(|(name, address)| marks.concern(&service(name, address), "kubernetes"));
    found.map(|(name, _)| *name).collect()
}

#[test]
fn a_change_of_a_part_concerns_the_service_of_the_load_balancer() {
    assert_eq!(concerned(Kind::Members, "node", Some("pool"), ""), ["web"]);
    assert_eq!(concerned(Kind::Monitors, "m", Some("pool"), ""), ["web"]);
    assert_eq!(concerned(Kind::Listeners, "l", Some("lb"), ""), ["web"]);
    assert_eq!(concerned(Kind::Pools, "p", Some("lb"), ""), ["web"]);
    assert!(concerned(Kind::Members, "node", Some("another"), "").is_empty());
}

#[test]
fn a_change_of_a_floating_ip_concerns_its_service_alone() {
    let of = |address, port, description| concerned(Kind::FloatingIps, address, port, description);
    assert!(of("203.0.113.9", None, "").is_empty());
    assert!(of("203.0.113.9", Some("another"), "by hand").is_empty());
    // The published address, the port of the load balancer, and the mark in the description.
    assert_eq!(of("203.0.113.2", None, ""), ["other"]);
    assert_eq!(of("203.0.113.9", Some("vip"), ""), ["web"]);
    let described = "Floating IP for x (ferrostack-service=uid-other)";
    assert_eq!(of("203.0.113.9", None, described), ["other"]);
}
