//! Services of any kind.

use std::collections::BTreeMap;

use api::k8s_openapi::api::core::v1::Service;
use proptest::prelude::*;
use serde_json::json;

use super::super::{annotations, weights};

fn some<T: Clone + std::fmt::Debug + 'static>(
    values: &'static [T],
) -> impl Strategy<Value = Option<T>> {
    prop::option::of(prop::sample::select(values))
}

prop_compose! {
    /// A Service of any kind, and the number of nodes.
    pub(super) fn any_service()(
        ports in prop::collection::btree_set((prop::sample::select(vec!["TCP", "UDP", "SCTP"]), 1..5_u16), 1..5),
        forwarding in some(&[("proxy-protocol", "true"), ("proxy-protocol", "v2"), ("x-forwarded-for", "true")]),
        method in some(&["LEAST_CONNECTIONS", "SOURCE_IP"]),
        timeout in some(&["0", "1000", "50000"]),
        limit in some(&["-1", "7"]),
        monitor in some(&["true", "false"]),
        delay in some(&["4", "9"]),
        ranges in some(&["10.0.0.0/8", "0.0.0.0/0", "10.1.0.0/16,10.2.0.0/16"]),
        affinity in some(&[10_800, 60]),
        local in any::<bool>(),
        internal in any::<bool>(),
        nodes in 1..4_usize,
    ) -> (Service, usize) {
        let mut annotations = BTreeMap::new();
        let set = [
            forwarding,
            method.map(|value| ("lb-method", value)),
            timeout.map(|value| ("timeout-client-data", value)),
            limit.map(|value| ("connection-limit", value)),
            monitor.map(|value| ("enable-health-monitor", value)),
            delay.map(|value| ("health-monitor-delay", value)),
        ];
        for (name, value) in set.into_iter().flatten() {
            annotations.insert(format!("loadbalancer.openstack.org/{name}"), value.to_owned());
        }
        if internal {
            annotations.insert(annotations::INTERNAL.to_owned(), "true".to_owned());
        }
        // Only TCP ports can be forwarded otherwise.
        let ports: Vec<_> = ports
            .into_iter()
            .filter(|(protocol, _)| forwarding.is_none() || *protocol == "TCP")
            .map(|(protocol, port)| json!({"protocol": protocol, "port": port, "nodePort": 30_000 + port}))
            .collect();
        let mut spec = json!({"type": "LoadBalancer", "ports": ports,
            "loadBalancerSourceRanges": ranges.map(|list| list.split(',').collect::<Vec<_>>())});
        if let Some(seconds) = affinity {
            spec["sessionAffinity"] = json!("ClientIP");
            spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": seconds}});
        }
        if local {
            spec["externalTrafficPolicy"] = json!("Local");
            spec["healthCheckNodePort"] = json!(32_000);
        }
        let service = json!({"metadata": {"namespace": "default", "name": "web", "uid": "web",
            "annotations": annotations}, "spec": spec});
        (serde_json::from_value(service).unwrap(), nodes)
    }
}

pub(super) fn any_weighting() -> impl Strategy<Value = weights::Weighting> {
    let counts = prop::collection::btree_map("node-[1-4]", 0..400_u32, 0..4);
    prop_oneof![
        Just(weights::Weighting::Equal),
        Just(weights::Weighting::Kept),
        counts.prop_map(weights::Weighting::By),
    ]
}
