use serde_json::{Value, json};

use super::*;

/// A pool of IPv4 with subnets from /24 to /28, /26 by default.
fn pool() -> SubnetPool {
    SubnetPool {
        id: "p".into(),
        name: "pool".into(),
        ip_version: 4,
        prefixes: vec!["10.10.0.0/20".into(), "10.30.0.0/24".into()],
        default_prefixlen: 26,
        min_prefixlen: 24,
        max_prefixlen: 28,
        ..SubnetPool::default()
    }
}

fn verdict(subnet: Value, pool: &SubnetPool) -> Option<String> {
    let subnet: SubnetSpec = serde_json::from_value(subnet).unwrap();
    unsuitable(&subnet, Family::of_subnet(&subnet), pool)
}

#[test]
fn a_pool_that_can_have_the_subnet_is_taken() {
    for subnet in [
        json!({}),
        json!({"prefixLength": 24}),
        json!({"prefixLength": 28, "ipVersion": 4}),
        json!({"cidr": "10.10.15.0/24"}),
        json!({"cidr": "10.30.0.64/28"}),
    ] {
        assert_eq!(verdict(subnet.clone(), &pool()), None, "{subnet}");
    }
}

#[test]
fn a_pool_that_cannot_have_the_subnet_is_refused_with_what_to_change() {
    let wide = SubnetPool {
        default_prefixlen: 8,
        min_prefixlen: 8,
        max_prefixlen: 32,
        ..pool()
    };
    let narrow = SubnetPool {
        default_prefixlen: 32,
        ..wide.clone()
    };
    let six = SubnetPool {
        ip_version: 6,
        prefixes: vec!["fd00::/48".into()],
        default_prefixlen: 56,
        min_prefixlen: 48,
        max_prefixlen: 64,
        ..pool()
    };
    let rows = [
        (
            json!({"ipVersion": 6}),
            pool(),
            "is one of IPv4, and the subnet one of IPv6",
        ),
        (json!({}), six.clone(), "or ipVersion: 6"),
        (
            json!({"prefixLength": 23}),
            pool(),
            "from /24 to /28, and a /23 is asked for",
        ),
        (
            json!({"prefixLength": 29}),
            pool(),
            "from /24 to /28, and a /29 is asked for",
        ),
        (
            json!({"cidr": "10.10.0.0/29"}),
            pool(),
            "a /29 is asked for",
        ),
        (
            json!({"cidr": "10.20.0.0/24"}),
            pool(),
            "which are 10.10.0.0/20, 10.30.0.0/24",
        ),
        (
            json!({"cidr": "10.30.0.0/23"}),
            wide.clone(),
            "10.30.0.0/23 is in no prefix",
        ),
        (
            json!({}),
            wide.clone(),
            "its default is a /8: give a greater prefixLength",
        ),
        (
            json!({"prefixLength": 16}),
            wide,
            "a /16 is asked for: give a greater prefixLength",
        ),
        (
            json!({}),
            narrow,
            "its default is a /32, which has no room for servers",
        ),
        (
            json!({"ipVersion": 6, "ipv6RAMode": "slaac"}),
            six.clone(),
            "its default is a /56, and addresses that follow from hardware addresses",
        ),
    ];
    for (subnet, pool, words) in rows {
        let why = verdict(subnet.clone(), &pool).unwrap_or_default();
        assert!(why.contains(words), "{subnet}: {why}");
    }
    let derived = json!({"ipVersion": 6, "ipv6RAMode": "slaac", "prefixLength": 64});
    assert_eq!(verdict(derived, &six), None);
}

proptest::proptest! {
    #[test]
    fn whatever_a_cloud_says_of_a_pool_is_judged(
        version in 0u8..8, prefixes in proptest::collection::vec("[0-9a-f:./]{0,12}", 0..3),
        lengths in proptest::array::uniform3(0u8..=255), given in proptest::option::of(-5i32..200),
    ) {
        let pool = SubnetPool {
            ip_version: version,
            prefixes,
            default_prefixlen: lengths[0],
            min_prefixlen: lengths[1],
            max_prefixlen: lengths[2],
            ..SubnetPool::default()
        };
        for ip_version in [4, 6] {
            let _ = verdict(json!({"ipVersion": ip_version, "prefixLength": given}), &pool);
        }
    }
}
