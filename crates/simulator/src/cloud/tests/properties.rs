//! For any input, the answer is one of the service: never a panic, never 500.

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
    "/volume/v3/x/backups",
    "/volume/v3/x/attachments",
    "/volume/v3/x/messages",
    "/volume/v3/x/groups",
    "/volume/v3/x/group_types",
    "/volume/v3/x/group_snapshots",
    "/key-manager/v1/secrets",
    "/key-manager/v1/containers",
    "/identity/v3/OS-TRUST/trusts",
    "/load-balancer/v2.0/lbaas/loadbalancers",
    "/load-balancer/v2.0/lbaas/listeners",
    "/load-balancer/v2.0/lbaas/pools",
    "/load-balancer/v2.0/lbaas/healthmonitors",
    "/load-balancer/v2.0/lbaas/l7policies",
    "/identity/v3/auth/tokens",
    "/identity/v3/projects",
    "/_simulator/faults",
    "/_simulator/volume-faults",
    "/_simulator/settings",
    "/_simulator/clock",
];

/// The headers of a request: Cinder's newest version has the most operations.
fn headers(path: &str) -> &'static [(&'static str, &'static str)] {
    match path.starts_with("/volume/") {
        true => &[("openstack-api-version", "volume latest")],
        false => &[],
    }
}

/// Names known to the services, so that their values are validated.
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
    "backup",
    "volume_id",
    "snapshot_id",
    "source_volid",
    "backup_id",
    "force",
    "attachment",
    "volume_uuid",
    "instance_uuid",
    "connector",
    "group",
    "group_type",
    "group_snapshot",
    "volume_types",
    "extra_specs",
    "OS-SCH-HNT:scheduler_hints",
    "same_host",
    "fault",
    "count",
    "trust",
    "trustor_user_id",
    "expires_at",
    "payload",
    "payload_content_type",
    "secret_refs",
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

/// Valid bodies except for one random value, so that later checks are reached.
fn nearly() -> impl Strategy<Value = (&'static str, Value)> {
    let rows: Vec<(&str, Value)> = vec![
        (
            "/network/v2.0/subnets",
            json!({"subnet": {"network_id": "NETWORK", "ip_version": 4, "cidr": "10.1.0.0/24"}}),
        ),
        (
            "/network/v2.0/subnets",
            json!({"subnet": {"network_id": "NETWORK", "ip_version": 6, "cidr": "fd00::/64"}}),
        ),
        (
            "/network/v2.0/subnets",
            json!({"subnet": {"network_id": "NETWORK", "ip_version": 4, "cidr": "10.2.0.0/24",
            "gateway_ip": "10.2.0.1", "allocation_pools": [{"start": "10.2.0.5", "end": "10.2.0.9"}]}}),
        ),
        (
            "/network/v2.0/ports",
            json!({"port": {"network_id": "NETWORK", "mac_address": "fa:16:3e:00:00:01",
            "fixed_ips": [{"subnet_id": "SUBNET", "ip_address": "10.6.0.50"}],
            "allowed_address_pairs": [{"ip_address": "10.0.0.1"}], "security_groups": ["GROUP"]}}),
        ),
        (
            "/network/v2.0/routers",
            json!({"router": {"name": "r", "routes": [],
            "external_gateway_info": {"network_id": "EXTERNAL", "external_fixed_ips": [{"ip_address": "127.30.0.99"}]}}}),
        ),
        (
            "/network/v2.0/security-group-rules",
            json!({"security_group_rule": {"security_group_id": "GROUP", "direction": "ingress",
            "protocol": "tcp", "port_range_min": 1, "port_range_max": 2, "remote_ip_prefix": "10.0.0.0/8", "ethertype": "IPv4"}}),
        ),
        (
            "/network/v2.0/floatingips",
            json!({"floatingip": {"floating_network_id": "EXTERNAL", "port_id": "PORT",
            "fixed_ip_address": "10.6.0.3", "floating_ip_address": "127.30.0.77"}}),
        ),
        (
            "/network/v2.0/trunks",
            json!({"trunk": {"port_id": "PORT", "sub_ports": [{"port_id": "PORT", "segmentation_id": 5}]}}),
        ),
        (
            "/compute/v2.1/servers",
            json!({"server": {"name": "a", "flavorRef": "2", "imageRef": "IMAGE",
            "networks": [{"uuid": "NETWORK", "fixed_ip": "10.6.0.60"}, {"port": "PORT"}], "user_data": "QQ==", "metadata": {"a": "b"},
            "security_groups": [{"name": "default"}],
            "block_device_mapping_v2": [{"boot_index": 0, "uuid": "IMAGE", "source_type": "image",
                "destination_type": "volume", "volume_size": 1}]}, "os:scheduler_hints": {"group": "GROUP"}}),
        ),
        (
            "/load-balancer/v2.0/lbaas/loadbalancers",
            json!({"loadbalancer": {"vip_subnet_id": "SUBNET", "vip_address": "10.6.0.70",
            "listeners": [{"protocol": "TCP", "protocol_port": 1, "allowed_cidrs": ["10.0.0.0/8"],
                "default_pool": {"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
                    "members": [{"address": "10.0.0.1", "protocol_port": 1}],
                    "healthmonitor": {"type": "TCP", "delay": 2, "timeout": 1, "max_retries": 1}}}]}}),
        ),
        (
            "/volume/v3/x/volumes",
            json!({"volume": {"size": 1, "imageRef": "IMAGE", "metadata": {}}}),
        ),
        (
            "/volume/v3/x/backups",
            json!({"backup": {"volume_id": "VOLUME", "incremental": false, "force": true, "metadata": {}}}),
        ),
        (
            "/volume/v3/x/volumes",
            json!({"volume": {"size": 1, "source_volid": "VOLUME", "name": "v", "description": "d", "volume_type": "fast",
            "availability_zone": "nova", "metadata": {"a": "b"}, "group_id": null},
            "OS-SCH-HNT:scheduler_hints": {"same_host": "VOLUME", "different_host": ["PORT"]}}),
        ),
        (
            "/volume/v3/x/volumes/VOLUME/action",
            json!({"os-extend": {"new_size": 2}}),
        ),
        (
            "/volume/v3/x/volumes/VOLUME/action",
            json!({"os-retype": {"new_type": "fast", "migration_policy": "never"}}),
        ),
        (
            "/volume/v3/x/snapshots",
            json!({"snapshot": {"volume_id": "VOLUME", "name": "s", "force": true, "metadata": {"a": "b"}}}),
        ),
        (
            "/volume/v3/x/attachments",
            json!({"attachment": {"volume_uuid": "VOLUME", "instance_uuid": "PORT", "connector": {"host": "h",
            "mountpoint": "/dev/vdb"}}}),
        ),
        (
            "/volume/v3/x/groups",
            json!({"group": {"name": "g", "description": "d", "group_type": "PORT", "volume_types": ["fast"],
            "availability_zone": "nova"}}),
        ),
        (
            "/volume/v3/x/group_snapshots",
            json!({"group_snapshot": {"group_id": "PORT", "name": "s", "description": "d"}}),
        ),
        (
            "/_simulator/volume-faults",
            json!({"name_prefix": "v", "fault": "create-fails", "count": 1}),
        ),
        (
            "/identity/v3/OS-TRUST/trusts",
            json!({"trust": {"trustor_user_id": "USER", "trustee_user_id": "USER", "project_id": "PROJECT",
            "impersonation": true, "roles": [{"name": "member"}], "remaining_uses": 3,
            "expires_at": "2999-01-01T00:00:00.000000Z"}}),
        ),
        (
            "/key-manager/v1/secrets",
            json!({"name": "s", "payload": "aGk=", "payload_content_type": "application/octet-stream",
            "payload_content_encoding": "base64", "secret_type": "opaque", "bit_length": 8}),
        ),
        (
            "/key-manager/v1/containers",
            json!({"type": "certificate", "secret_refs": [{"name": "certificate", "secret_ref": "x"}]}),
        ),
    ];
    (
        proptest::sample::select(rows),
        any::<prop::sample::Index>(),
        leaf(),
        any::<bool>(),
    )
        .prop_map(|((path, mut body), index, value, nested)| {
            let mut places = Vec::new();
            pointers(&body, String::new(), &mut places);
            let place = &places[index.index(places.len())];
            if let Some(found) = body.pointer_mut(place) {
                *found = if nested { json!([value]) } else { value };
            }
            (path, body)
        })
}

/// JSON patches of images, some of them valid.
fn operations() -> impl Strategy<Value = Value> {
    let path = prop_oneof![
        proptest::sample::select(
            &[
                "/name",
                "/tags",
                "/visibility",
                "/min_disk",
                "/own",
                "/_data",
                "name",
                "",
                "/a~1b"
            ][..]
        )
        .prop_map(str::to_owned),
        ".{0,8}",
    ];
    let op = proptest::sample::select(&["add", "replace", "remove", "move", ""][..]);
    let one = (op, path, leaf())
        .prop_map(|(op, path, value)| json!({"op": op, "path": path, "value": value}));
    prop_oneof![
        4 => proptest::collection::vec(one, 0..4).prop_map(Value::from),
        1 => body(),
    ]
}

fn pointers(value: &Value, at: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                pointers(inner, format!("{at}/{key}"), out);
            }
        }
        Value::Array(list) => {
            for (index, inner) in list.iter().enumerate() {
                pointers(inner, format!("{at}/{index}"), out);
            }
        }
        _ => {}
    }
    out.push(at);
}

/// Replaces names by actual ids.
fn resolve(value: &mut Value, ids: &[(&str, String)]) {
    match value {
        Value::String(text) => {
            if let Some((_, id)) = ids.iter().find(|(name, _)| name == text) {
                text.clone_from(id);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| resolve(inner, ids)),
        Value::Object(map) => map.values_mut().for_each(|inner| resolve(inner, ids)),
        _ => {}
    }
}

fn run(test: impl AsyncFn(Client, Vec<(&'static str, String)>)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cloud = cloud().await;
        let client = Client::login(&cloud, "admin").await;
        let net = net(&client, "10.6.0.0/24").await;
        let port = client
            .make(
                "/network/v2.0/ports",
                json!({"port": {"network_id": net.network}}),
            )
            .await;
        let image = client.fetch("/image/v2/images?name=ubuntu-24.04").await;
        let balancer = client
            .make(
                "/load-balancer/v2.0/lbaas/loadbalancers",
                json!({"loadbalancer": {"vip_subnet_id": net.subnet,
                "pools": [{"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}]}}),
            )
            .await;
        let volume = client
            .make("/volume/v3/x/volumes", json!({"volume": {"size": 1}}))
            .await;
        let ids = vec![
            ("USER", client.user.clone()),
            ("PROJECT", client.project.clone()),
            ("VOLUME", id(&volume)),
            (
                "GROUP",
                port["security_groups"][0].as_str().unwrap().to_owned(),
            ),
            ("PORT", id(&port)),
            ("IMAGE", id(&image[0])),
            ("BALANCER", id(&balancer)),
            ("POOL", id(&balancer["pools"][0])),
            ("NETWORK", net.network),
            ("SUBNET", net.subnet),
            ("EXTERNAL", net.external),
        ];
        test(client, ids).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_body_gets_a_services_own_answer(bodies in proptest::collection::vec((any::<prop::sample::Index>(), body()), 40)) {
        run(async |client, _| {
            for (index, body) in &bodies {
                let path = PATHS[index.index(PATHS.len())];
                for method in [Method::POST, Method::PUT] {
                    let got = client.send(method, path, headers(path), body).await;
                    assert!(got.status < 500, "{path} {body}: {} {}", got.status, got.text);
                }
            }
        });
    }

    #[test]
    fn one_wrong_value_gets_a_services_own_answer(all in proptest::collection::vec(nearly(), 40)) {
        run(async |client, ids| {
            for (path, body) in &all {
                let mut body = body.clone();
                resolve(&mut body, &ids);
                let volume = ids.iter().find(|(name, _)| *name == "VOLUME").unwrap();
                let path = path.replace("VOLUME", &volume.1);
                let got = client.send(Method::POST, &path, headers(&path), &body).await;
                assert!(got.status < 500, "{path} {body}: {} {}", got.status, got.text);
            }
            for list in PATHS.iter().filter(|path| !path.starts_with("/_simulator") && !path.contains("auth")) {
                let got = client.send(Method::GET, list, headers(list), &Value::Null).await;
                assert_eq!(got.status, 200, "{list}: {}", got.text);
            }
        });
    }

    #[test]
    fn any_bytes_get_a_services_own_answer(all in proptest::collection::vec((any::<prop::sample::Index>(), proptest::collection::vec(any::<u8>(), 0..64)), 20)) {
        run(async |client, _| {
            for (index, bytes) in &all {
                let path = PATHS[index.index(PATHS.len())];
                let got = client.raw(Method::POST, path, &[], bytes.clone()).await;
                assert!(got.status < 500, "{path} {bytes:?}: {}", got.text);
            }
        });
    }

    #[test]
    fn any_patch_of_an_image_gets_glances_own_answer(patches in proptest::collection::vec(operations(), 20)) {
        run(async |client, ids| {
            let image = ids.iter().find(|(name, _)| *name == "IMAGE").unwrap();
            let path = format!("/image/v2/images/{}", image.1);
            let kind = [("content-type", "application/openstack-images-v2.1-json-patch")];
            for patch in &patches {
                let got = client.send(Method::PATCH, &path, &kind, patch).await;
                assert!(got.status < 500, "{patch}: {} {}", got.status, got.text);
                assert_eq!(client.get(&path).await.status, 200, "{patch}");
            }
            assert_eq!(client.get("/image/v2/images").await.status, 200);
        });
    }

    #[test]
    fn any_query_gets_a_services_own_answer(queries in proptest::collection::vec((any::<prop::sample::Index>(), "(limit|marker|offset|name|tags|fields|sort_key|sort|changes-since|created_at|id|fixed_ips|metadata)=[%a-z0-9=&,'{}:-]{0,20}"), 40)) {
        run(async |client, _| {
            for (index, query) in &queries {
                let path = PATHS[index.index(PATHS.len())];
                let at = format!("{path}?{query}&limit=3");
                let got = client.send(Method::GET, &at, headers(path), &Value::Null).await;
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
