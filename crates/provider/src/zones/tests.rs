use std::sync::Arc;

use openstack::inventory::Table;
use openstack::network::Subnet;
use serde_json::{Value, json};

use super::*;

fn view() -> View {
    let subnet = |id: &str, network: &str, cidr: &str| Subnet {
        id: id.into(),
        name: id.into(),
        network_id: network.into(),
        cidr: cidr.into(),
        ..Default::default()
    };
    View {
        subnets: Arc::new(Table::from_items([
            subnet("a", "net", "10.1.0.0/24"),
            subnet("a6", "net", "fd00:1::/64"),
            subnet("b", "net", "10.2.0.0/24"),
            subnet("other", "elsewhere", "10.3.0.0/24"),
        ])),
        ..View::default()
    }
}

fn spec(zones: Value, more: Value) -> OpenStackClusterSpec {
    let mut spec =
        json!({"identityRef": {"name": "s", "cloudName": "c"}, "failureDomainSubnets": zones});
    for (name, value) in more.as_object().unwrap() {
        spec[name] = value.clone();
    }
    serde_json::from_value(spec).unwrap()
}

fn zones() -> Value {
    json!([
        {"failureDomain": "az1", "subnets": [{"id": "a"}, {"filter": {"name": "a6"}}]},
        {"failureDomain": "az2", "subnets": [{"id": "b"}]},
    ])
}

/// Ids of the subnets for a zone.
fn placed(spec: &OpenStackClusterSpec, zone: Option<&str>) -> Result<Option<Vec<String>>, String> {
    let found = of_zone(spec, &view(), "net", zone).map_err(|why| why.text)?;
    Ok(found.map(|ips| ips.into_iter().map(|ip| ip.subnet_id).collect()))
}

#[test]
fn a_port_is_on_the_subnets_of_its_zone() {
    let spec = spec(zones(), json!({}));
    let on = |ids: &[&str]| Ok(Some(ids.iter().map(|id| (*id).to_owned()).collect()));
    assert_eq!(placed(&spec, Some("az1")), on(&["a", "a6"]));
    assert_eq!(placed(&spec, Some("az2")), on(&["b"]));
    assert_eq!(placed(&spec, Some("az2:host-7")), on(&["b"]));
    let found = all(&spec, &view(), Some("net"));
    assert_eq!(found.unwrap(), ["a", "a6", "b"]);
}

#[test]
fn a_zone_without_subnets_is_refused_unless_the_cluster_has_subnets_for_it() {
    let alone = spec(zones(), json!({}));
    for (zone, words) in [
        (Some("az3"), "failure domain az3 has no subnets"),
        (None, "the machine has no failure domain"),
    ] {
        let why = placed(&alone, zone).unwrap_err();
        assert!(why.contains(words), "{why}");
        assert!(why.contains("those of az1, az2"), "{why}");
    }
    for more in [
        json!({"subnets": [{"id": "b"}]}),
        json!({"primarySubnet": {"id": "b"}}),
    ] {
        assert_eq!(placed(&spec(zones(), more), Some("az3")), Ok(None));
    }
    assert_eq!(placed(&spec(json!([]), json!({})), Some("az3")), Ok(None));
}

#[test]
fn subnets_that_cannot_be_those_of_a_zone_are_named_by_field() {
    let of = |subnets: Value| {
        spec(
            json!([{"failureDomain": "az1", "subnets": subnets}]),
            json!({}),
        )
    };
    for (subnets, words) in [
        (
            json!([{"id": "none"}]),
            "failureDomainSubnets[0]: subnets[0]: subnet `none` does not exist",
        ),
        (
            json!([{"id": "other"}]),
            "subnet other is in network elsewhere, not in net",
        ),
        (json!([{"filter": {"name": "other"}}]), "does not exist"),
        (
            json!([{"id": "a"}, {"id": "b"}]),
            "subnets[1]: subnet b is of the same family",
        ),
        (json!([{"filter": {"ipVersion": 4}}]), "does not exist"),
    ] {
        let why = all(&of(subnets.clone()), &view(), Some("net"))
            .unwrap_err()
            .text;
        assert!(why.contains(words), "{subnets}: {why}");
    }
    let why = all(&of(json!([{"id": "a"}])), &view(), None)
        .unwrap_err()
        .text;
    assert!(why.contains("the cluster has no network"), "{why}");
}
