use std::sync::Arc;

use openstack::View;
use openstack::inventory::Table;
use serde_json::{Value, json};

use super::*;
use crate::identity::{Identity, Mark};
use crate::machine::observed::References;

const MAC: &str = "fa:16:3e:00:00:01";

fn pairs(texts: &[&str]) -> Vec<AddressPair> {
    let pair = |text: &&str| {
        let (ip, mac) = match text.split_once('@') {
            Some((ip, mac)) => (ip, Some(mac.to_owned())),
            None => (*text, None),
        };
        AddressPair {
            ip_address: ip.to_owned(),
            mac_address: mac,
        }
    };
    texts.iter().map(pair).collect()
}

fn port(present: &[&str]) -> Port {
    // As Neutron returns them: each with a hardware address.
    let present = pairs(present).into_iter().map(|pair| AddressPair {
        mac_address: pair.mac_address.or_else(|| Some(MAC.to_owned())),
        ..pair
    });
    Port {
        id: "p".into(),
        name: "m-0".into(),
        mac_address: MAC.into(),
        allowed_address_pairs: present.collect(),
        ..Port::default()
    }
}

fn observed(port: Port) -> Observed {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let port = Port {
        description: mark.description("x"),
        ..port
    };
    let view = View {
        ports: Arc::new(Table::from_items(vec![port])),
        ..View::default()
    };
    Observed::new(Arc::new(view), mark, References::default())
}

/// `add` and `remove` as addresses.
fn change_of(
    wanted: &[&str],
    recorded: &[&str],
    present: &[&str],
) -> Option<(Vec<String>, Vec<String>)> {
    let all = [PortPairs {
        port: "m-0".into(),
        wanted: pairs(wanted),
        recorded: pairs(recorded),
    }];
    let texts = |pairs: &[AddressPair]| pairs.iter().map(|pair| pair.ip_address.clone()).collect();
    let found = changes(&all, &observed(port(present)));
    assert!(found.len() < 2, "one change for each port");
    found
        .first()
        .map(|change| (texts(&change.add), texts(&change.remove)))
}

#[test]
fn what_the_spec_wants_is_added_and_only_what_was_added_is_removed() {
    let other_mac = "10.0.0.9@02:00:00:00:00:09";
    for (wanted, recorded, present, expected) in [
        // Nothing to do, in whatever form Neutron returns it.
        (&[][..], &[][..], &[][..], None),
        (&["10.0.0.9"], &["10.0.0.9"], &["10.0.0.9"], None),
        (&["10.0.0.9"], &["10.0.0.9"], &["10.0.0.9/32"], None),
        (&["10.0.0.1/24"], &["10.0.0.1/24"], &["10.0.0.0/24"], None),
        (&["FD00::1"], &["FD00::1"], &["fd00::1"], None),
        // Added, removed, exchanged.
        (
            &["10.0.0.9"],
            &["10.0.0.9"],
            &[],
            Some((vec!["10.0.0.9"], vec![])),
        ),
        (
            &[],
            &["10.0.0.9"],
            &["10.0.0.9"],
            Some((vec![], vec!["10.0.0.9"])),
        ),
        (
            &["10.0.0.8"],
            &["10.0.0.8", "10.0.0.9"],
            &["10.0.0.9"],
            Some((vec!["10.0.0.8"], vec!["10.0.0.9"])),
        ),
        // Those of others, such as a cloud controller manager, stay.
        (&[], &[], &["10.244.1.0/24"], None),
        (
            &[],
            &["10.0.0.9"],
            &["10.244.1.0/24", "10.0.0.9"],
            Some((vec![], vec!["10.0.0.9"])),
        ),
        // The same address with another hardware address is another pair.
        (
            &[other_mac],
            &[other_mac],
            &["10.0.0.9"],
            Some((vec!["10.0.0.9"], vec![])),
        ),
        (
            &["10.0.0.9"],
            &["10.0.0.9", other_mac],
            &["10.0.0.9", other_mac],
            Some((vec![], vec!["10.0.0.9"])),
        ),
    ] {
        let texts = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let expected = expected.map(|(add, remove)| (texts(add), texts(remove)));
        let found = change_of(wanted, recorded, present);
        assert_eq!(found, expected, "{wanted:?} {recorded:?} {present:?}");
    }
}

#[test]
fn before_a_server_uses_the_port_it_has_exactly_what_the_spec_wants() {
    let change = before_use(&pairs(&["10.0.0.8"]), &port(&["10.0.0.9"])).unwrap();
    assert_eq!(change.add, pairs(&["10.0.0.8"]));
    assert_eq!(change.remove[0].ip_address, "10.0.0.9");
    assert_eq!(
        before_use(&pairs(&["10.0.0.9"]), &port(&["10.0.0.9"])),
        None
    );
}

fn machine(ports: Value, status: Value) -> OpenStackMachine {
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachine",
        "metadata": {"name": "m"},
        "spec": {"flavor": {"filter": {"name": "f"}}, "image": {"filter": {"name": "i"}}, "ports": ports},
        "status": status,
    });
    serde_json::from_value(object).unwrap()
}

#[test]
fn the_record_names_a_pair_before_it_is_added_and_until_it_is_removed() {
    let spec = json!([{"allowedAddressPairs": [{"ipAddress": "10.0.0.8"}]}]);
    let recorded = json!({"resolved": {"ports": [{"name": "m-0", "description": "", "networkID": "n",
        "allowedAddressPairs": [{"ipAddress": "10.0.0.9"}]}]}});
    let mut object = machine(spec.clone(), recorded);
    let observed = observed(port(&["10.0.0.9"]));
    let before = of(&object);
    assert!(announce(&mut object, &before, &observed));
    let both = of(&object);
    assert_eq!(both[0].recorded, pairs(&["10.0.0.9", "10.0.0.8"]));
    // It is announced once.
    assert!(!announce(&mut object, &both, &observed));
    assert_eq!(changes(&both, &observed).len(), 1);
    record(&mut object, &both, &observed);
    assert_eq!(of(&object)[0].recorded, pairs(&["10.0.0.8"]));

    // Without a status there is a record again, of what the spec wants.
    let mut object = machine(spec, json!({}));
    let before = of(&object);
    assert!(announce(&mut object, &before, &observed));
    assert_eq!(of(&object)[0].recorded, pairs(&["10.0.0.8"]));
}

#[test]
fn a_port_without_port_security_or_pairs_is_not_changed() {
    let insecure =
        json!([{"enablePortSecurity": false, "allowedAddressPairs": [{"ipAddress": "10.0.0.8"}]}]);
    assert_eq!(of(&machine(insecure, json!({}))), []);
    let mut object = machine(json!([]), json!({}));
    let all = of(&object);
    assert_eq!(all.len(), 1, "the port of a machine that names none");
    let observed = observed(port(&["10.244.1.0/24"]));
    assert!(!announce(&mut object, &all, &observed));
    assert_eq!(changes(&all, &observed), []);
    record(&mut object, &all, &observed);
    assert_eq!(object.status.unwrap_or_default().resolved, None);
}
