//! Whatever comes in, the answer is a service's own: never a panic, never 500.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::cloud::query::{Query, matches};

const PATHS: &[&str] = &[
    "/network/v2.0/networks",
    "/network/v2.0/subnets",
    "/network/v2.0/ports",
    "/network/v2.0/routers",
    "/network/v2.0/security-groups",
    "/network/v2.0/security-group-rules",
    "/network/v2.0/floatingips",
    "/network/v2.0/trunks",
    "/compute/v2.1/servers",
    "/compute/v2.1/servers/detail",
    "/compute/v2.1/os-keypairs",
    "/compute/v2.1/os-server-groups",
    "/compute/v2.1/flavors/detail",
    "/image/v2/images",
    "/volume/v3/x/volumes",
    "/volume/v3/x/snapshots",
    "/volume/v3/x/types",
    "/load-balancer/v2.0/lbaas/loadbalancers",
    "/load-balancer/v2.0/lbaas/listeners",
    "/load-balancer/v2.0/lbaas/pools",
    "/load-balancer/v2.0/lbaas/healthmonitors",
    "/load-balancer/v2.0/lbaas/l7policies",
    "/identity/v3/auth/tokens",
    "/identity/v3/projects",
    "/_simulator/faults",
    "/_simulator/clock",
];

/// Names that the services know, so that the values behind them are looked at.
const KEYS: &[&str] = &[
    "network",
    "networks",
    "subnet",
    "port",
    "ports",
    "router",
    "security_group",
    "security_group_rule",
    "floatingip",
    "trunk",
    "server",
    "keypair",
    "server_group",
    "volume",
    "snapshot",
    "volume_type",
    "loadbalancer",
    "listener",
    "pool",
    "healthmonitor",
    "l7policy",
    "auth",
    "identity",
    "methods",
    "password",
    "user",
    "name",
    "network_id",
    "fixed_ips",
    "ip_address",
    "subnet_id",
    "cidr",
    "ip_version",
    "gateway_ip",
    "allocation_pools",
    "start",
    "end",
    "allowed_address_pairs",
    "external_gateway_info",
    "external_fixed_ips",
    "protocol",
    "port_range_min",
    "remote_ip_prefix",
    "sub_ports",
    "flavorRef",
    "imageRef",
    "block_device_mapping_v2",
    "user_data",
    "metadata",
    "tags",
    "size",
    "listeners",
    "pools",
    "members",
    "default_pool",
    "protocol_port",
    "address",
    "vip_subnet_id",
    "delay",
    "timeout",
    "advance_seconds",
    "direction",
    "security_group_id",
    "public_key",
];

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => proptest::sample::select(KEYS).prop_map(str::to_owned),
        1 => ".{0,12}",
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,20}".prop_map(Value::from),
        proptest::sample::select(
            &[
                "10.0.0.0/24",
                "10.0.0.0/33",
                "0.0.0.0/0",
                "::/0",
                "fd00::/127",
                "255.255.255.255/32",
                "10.0.0.1",
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                "00000000-0000-4000-8000-000000000000",
                "password",
                "tcp",
                "TCP",
                "ingress",
                "2",
                "ssh-rsa AAAA",
            ][..]
        )
        .prop_map(Value::from),
    ]
}

fn body() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => proptest::collection::btree_map(key(), inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

fn run(test: impl AsyncFn(Client)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cloud = cloud().await;
        let client = Client::login(&cloud, "admin").await;
        test(client).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_body_gets_a_services_own_answer(bodies in proptest::collection::vec((any::<prop::sample::Index>(), body()), 40)) {
        run(async |client| {
            for (index, body) in &bodies {
                let path = PATHS[index.index(PATHS.len())];
                for method in [Method::POST, Method::PUT] {
                    let got = client.send(method, path, &[], body).await;
                    assert!(got.status < 500, "{path} {body}: {} {}", got.status, got.text);
                }
            }
        });
    }

    #[test]
    fn any_bytes_get_a_services_own_answer(all in proptest::collection::vec((any::<prop::sample::Index>(), proptest::collection::vec(any::<u8>(), 0..64)), 20)) {
        run(async |client| {
            for (index, bytes) in &all {
                let path = PATHS[index.index(PATHS.len())];
                let got = client.raw(Method::POST, path, &[], bytes.clone()).await;
                assert!(got.status < 500, "{path} {bytes:?}: {}", got.text);
            }
        });
    }

    #[test]
    fn any_query_gets_a_services_own_answer(queries in proptest::collection::vec((any::<prop::sample::Index>(), "(limit|marker|name|tags|fields|sort_key|sort|changes-since|id|fixed_ips|metadata)=[%a-z0-9=&,'{}:-]{0,20}"), 40)) {
        run(async |client| {
            for (index, query) in &queries {
                let path = PATHS[index.index(PATHS.len())];
                let got = client.get(&format!("{path}?{query}&limit=3")).await;
                assert!(got.status < 500, "{path}?{query}: {}", got.text);
            }
        });
    }

    #[test]
    fn parsing_a_query_never_panics(text in ".{0,200}") {
        let query = Query::parse(&text);
        let _ = query.limit();
        for name in query.names() {
            let wanted: Vec<&str> = query.all(name).collect();
            matches(Some(&json!({"a": [1, "b"]})), &wanted);
        }
    }
}
