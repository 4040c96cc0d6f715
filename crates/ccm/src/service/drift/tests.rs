use std::sync::Arc;

use openstack::loadbalancer::{Listener, ListenerUpdate, Pool, PoolUpdate};

use super::*;

#[test]
fn a_change_is_told_with_the_values_before_and_after_it() {
    let known = Listener {
        name: "listener_0_web".to_owned(),
        connection_limit: Some(7),
        ..Listener::default()
    };
    let change = ListenerUpdate {
        connection_limit: Some(-1),
        allowed_cidrs: Some(vec!["10.0.0.0/8".to_owned()]),
        ..ListenerUpdate::default()
    };
    assert_eq!(
        fields("listener", &known.name, &known, &change),
        "listener `listener_0_web`: allowed_cidrs was [], and is set to [\"10.0.0.0/8\"]; connection_limit was 7, and is \
         set to -1"
    );
    let change = PoolUpdate {
        session_persistence: Some(None),
        ..PoolUpdate::default()
    };
    let text = fields("pool", "p", &Pool::default(), &change);
    assert_eq!(
        text,
        "pool `p`: session_persistence was not set, and is removed"
    );
}

#[test]
fn members_that_differ_are_named_and_many_are_counted() {
    let member = |address: &str, weight: i64| {
        Arc::new(Member {
            address: address.to_owned(),
            protocol_port: 80,
            weight,
            ..Member::default()
        })
    };
    let branch = Branch {
        listener: Arc::default(),
        pool: Some(Arc::new(Pool {
            name: "pool_0_web".to_owned(),
            ..Pool::default()
        })),
        members: vec![member("10.0.0.1", 5), member("10.0.0.9", 1)],
        monitor: None,
    };
    let wanted = |address: &str| MemberCreate {
        address: address.to_owned(),
        protocol_port: 80,
        weight: Some(1),
        ..MemberCreate::default()
    };
    assert_eq!(
        of_members(&branch, &[wanted("10.0.0.1"), wanted("10.0.0.2")]),
        "pool `pool_0_web`: member 10.0.0.1:80: weight was 5, and is set to 1; member 10.0.0.2:80 was missing, and is \
         added; member 10.0.0.9:80 is not wanted, and is removed"
    );
    let all: Vec<_> = (2..8)
        .map(|last| wanted(&format!("10.0.0.{last}")))
        .collect();
    assert!(of_members(&branch, &all).ends_with("; and 5 more"));
}
