//! Each annotation beside each other one, on and off in any order.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Service;
use serde_json::json;

use super::super::annotations::Wishes;
use super::super::{annotations, weights};
use super::model::{Model, conf, node};
use kube::ResourceExt;

/// Each annotation, with a value other than its default.
const CHANGEABLE: &[(&str, &str)] = &[
    ("proxy-protocol", "true"),
    ("x-forwarded-for", "true"),
    ("port-protocols", "80=HTTP"),
    (
        "default-tls-container-ref",
        "https://barbican/v1/containers/6f1c",
    ),
    ("lb-method", "SOURCE_IP"),
    ("connection-limit", "7"),
    ("timeout-client-data", "1000"),
    ("timeout-member-connect", "1000"),
    ("timeout-member-data", "1000"),
    ("timeout-tcp-inspect", "1000"),
    ("enable-health-monitor", "true"),
    ("health-monitor-delay", "9"),
    ("health-monitor-timeout", "2"),
    ("health-monitor-max-retries", "2"),
    ("health-monitor-max-retries-down", "2"),
    ("node-selector", "pool=fast"),
    ("hostname", "web.example.net"),
    ("keep-floatingip", "true"),
    ("member-weights", "ready-endpoints"),
    ("class", "west"),
    ("subnet-id", "other"),
    ("network-id", "nodes"),
    ("member-subnet-id", "other"),
    ("port-id", "port-1"),
    ("flavor-id", "large"),
    ("availability-zone", "az2"),
    ("floating-network-id", "public"),
    ("floating-subnet-id", "outside"),
    ("floating-subnet", "out*"),
    ("floating-subnet-tags", "outside-tag"),
    // As written back: the first id of the model is the load balancer's.
    (annotations::ID, "id-1"),
    (annotations::ADDRESS, "203.0.113.1"),
    (annotations::INTERNAL, "true"),
    (annotations::SOURCE_RANGES, "10.0.0.0/8"),
];

fn full(name: &str) -> String {
    match name.contains('/') {
        true => name.to_owned(),
        false => format!("loadbalancer.openstack.org/{name}"),
    }
}

impl Model {
    /// The content without ids, which differ after something was created again.
    fn content(&self) -> Vec<String> {
        let mut all: Vec<String> = self
            .octavia
            .listeners
            .values()
            .map(|l| {
                let pool = l.default_pool_id.as_ref().map(|id| &self.octavia.pools[id]);
                let pool = pool.map(|pool| json!([pool.protocol, pool.lb_algorithm]));
                let limits = [
                    l.connection_limit,
                    l.timeout_client_data,
                    l.timeout_member_connect,
                    l.timeout_member_data,
                    l.timeout_tcp_inspect,
                ];
                let cidrs = &l.allowed_cidrs;
                json!([
                    l.protocol,
                    l.protocol_port,
                    cidrs,
                    limits,
                    l.insert_headers,
                    l.default_tls_container_ref,
                    pool
                ])
                .to_string()
            })
            .collect();
        let members = self.octavia.members.values();
        all.extend(members.map(|m| format!("{} {} {}", m.address, m.protocol_port, m.weight)));
        all.extend(self.octavia.monitors.values().map(|m| {
            format!(
                "{} {} {} {} {}",
                m.kind, m.delay, m.timeout, m.max_retries, m.max_retries_down
            )
        }));
        // One that is kept without a port is no part of the load balancer.
        let mut floating = self.floating_ips.values();
        let is_attached = floating.any(|ip| ip.port_id.is_some());
        all.push(format!("floating IP: {is_attached}"));
        all.sort();
        all
    }
}

#[test]
fn annotations_go_on_and_off_pairwise_in_any_order_and_leave_what_was_there_before() {
    let nodes: Vec<_> = (1..=2)
        .map(|index| {
            let mut node = (*node(index)).clone();
            let labels = node.metadata.labels.get_or_insert_default();
            let pool = if index == 1 { "fast" } else { "slow" };
            labels.insert("pool".to_owned(), pool.to_owned());
            Arc::new(node)
        })
        .collect();
    let service = |set: &[(&str, &str)]| -> Service {
        let pair = |(name, value): &(&str, &str)| (full(name), (*value).to_owned());
        let annotations: BTreeMap<_, _> = set.iter().map(pair).collect();
        let service = json!({"metadata": {"namespace": "default", "name": "web", "uid": "web", "annotations": annotations},
            "spec": {"type": "LoadBalancer", "ports": [{"protocol": "TCP", "port": 80, "nodePort": 30_080}]}});
        serde_json::from_value(service).unwrap()
    };
    let mut pairs = 0;
    for one in CHANGEABLE {
        for other in CHANGEABLE.iter().filter(|other| *other != one) {
            let mut model = Model::default();
            let mut go = |set: &[(&str, &str)]| {
                let service = service(set);
                let counts = [("node-1".to_owned(), 3), ("node-2".to_owned(), 1)].into();
                let weighting = match weights::are_asked(&service) {
                    true => weights::Weighting::By(counts),
                    false => weights::Weighting::Equal,
                };
                let taken = model.converge(&service, &nodes, false, &weighting);
                if taken.is_ok() {
                    assert_eq!(model.converge(&service, &nodes, false, &weighting), Ok(0));
                }
                model.content()
            };
            let before = go(&[]);
            go(&[*one]);
            let both = go(&[*one, *other]);
            go(&[*other]);
            // In either order, both together have the same effect; a contradiction changes nothing.
            let swapped = go(&[*other, *one]);
            let rejects = Wishes::new(service(&[*one, *other]).annotations(), conf(false)).is_err();
            assert!(rejects || both == swapped, "{one:?} {other:?}");
            go(&[*one]);
            assert_eq!(go(&[]), before, "{one:?} {other:?}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, CHANGEABLE.len() * (CHANGEABLE.len() - 1));
}

#[test]
fn no_annotation_is_missing_in_the_pairs() {
    let listed: Vec<_> = CHANGEABLE.iter().map(|(name, _)| full(name)).collect();
    for annotation in annotations::ANNOTATIONS {
        assert!(
            listed.contains(&annotation.name.to_owned()),
            "{}",
            annotation.name
        );
    }
    assert_eq!(listed.len(), annotations::ANNOTATIONS.len());
}
