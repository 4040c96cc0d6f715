use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::desired::desired;
use crate::desired::tests::{cloud, full, held};
use crate::release::Release;

/// Of each policy, the programs that may connect; none when everybody may.
fn callers(release: Release) -> BTreeMap<String, Option<BTreeSet<String>>> {
    let graph = desired(&cloud(&full(release)), &held());
    let policies = graph.objects().filter_map(|(_, object)| {
        let reference = object.reference();
        (reference.kind == ObjectKind::NetworkPolicy).then(|| {
            let rules = object.public()["spec"]["ingress"]
                .as_array()
                .unwrap()
                .clone();
            (reference.name.clone(), rules)
        })
    });
    let program = |peer: &Json| {
        let labels = &peer["podSelector"]["matchLabels"];
        assert_eq!(labels[crate::held::UID], held().uid());
        labels["app.kubernetes.io/name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let from = |rule: &Json| Some(rule.get("from")?.as_array()?.iter().map(program).collect());
    policies
        .map(|(name, rules)| (name, rules.first().map_or(Some(BTreeSet::new()), from)))
        .collect()
}

#[test]
fn what_holds_data_is_reached_by_the_programs_that_use_it_alone() {
    for release in Release::ALL {
        let callers = callers(release);
        let of = |name: &str| callers[name].clone().unwrap();
        let list = |names: &[&str]| -> BTreeSet<String> {
            names.iter().map(|it| (*it).to_owned()).collect()
        };
        // Every Pod that no other policy opens.
        assert_eq!(of(CLOSED), list(&[]));
        let cache = [
            "glance-api",
            "horizon",
            "keystone-api",
            "neutron-api",
            "nova-api",
            "placement-api",
        ];
        let others: Vec<String> = of("memcached").difference(&list(&cache)).cloned().collect();
        assert!(
            list(&cache).is_subset(&of("memcached")),
            "{:?}",
            of("memcached")
        );
        assert!(
            !others
                .iter()
                .any(|it| it.starts_with("ovn") || it == "edge" || it == "mariadb"),
            "{others:?}"
        );
        assert!(of("ovn-nb").is_superset(&list(&["neutron-api", "ovn-northd"])));
        for store in ["mariadb", "rabbitmq", "memcached", "ovn-nb", "ovn-sb"] {
            let names = of(store);
            assert!(!names.contains("edge"), "{store}: {names:?}");
            assert!(!names.is_empty(), "{store}");
        }
        assert!(!of("mariadb").contains("horizon"));
        assert!(!of("rabbitmq").contains("keystone-api"));
        for api in [
            "keystone",
            "glance",
            "placement",
            "nova",
            "neutron",
            "horizon",
            "edge",
        ] {
            assert_eq!(callers[api], None, "{api}");
        }
    }
}

#[test]
fn a_host_is_named_with_its_port_as_a_whole_word() {
    let address = Address {
        name: "ovn-nb",
        workload: "ovn-nb",
        ports: &[("ovsdb", 6641)],
        replicas: false,
        callers: Callers::Readers,
    };
    for (text, named) in [
        (
            "connection = tcp:ovn-nb.openstack.svc.cluster.local:6641",
            true,
        ),
        ("tcp:ovn-nb:6641,tcp:x:1", true),
        ("tcp:my-ovn-nb:6641", false),
        ("tcp:ovn-nb-other:6641", false),
        ("tcp:ovn-nb:6642", false),
        ("tcp:ovn-nb:66410", false),
        ("ovn-nb", false),
    ] {
        assert_eq!(names_host(text, &address), named, "{text}");
    }
}
