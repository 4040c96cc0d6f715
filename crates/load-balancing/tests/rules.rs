//! Rules of Octavia, one by one.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use load_balancing::{Branch, Desired, Fields, Key, Names, Observed, Status, Step};
use openstack::loadbalancer::{
    Listener, ListenerCreate, LoadBalancer, LoadBalancerCreate, Member, MemberCreate, MemberUpdate,
    Monitor, MonitorCreate, Pool, PoolCreate,
};

fn listener(protocol: &str, port: u16) -> ListenerCreate {
    ListenerCreate {
        protocol: protocol.to_owned(),
        protocol_port: port,
        default_pool: Some(PoolCreate {
            protocol: protocol.to_owned(),
            members: vec![member("10.0.0.1")],
            healthmonitor: Some(MonitorCreate {
                kind: "TCP".to_owned(),
                ..MonitorCreate::default()
            }),
            ..PoolCreate::default()
        }),
        ..ListenerCreate::default()
    }
}

fn member(address: &str) -> MemberCreate {
    MemberCreate {
        address: address.to_owned(),
        protocol_port: 80,
        ..MemberCreate::default()
    }
}

fn tree(listeners: impl IntoIterator<Item = ListenerCreate>) -> LoadBalancerCreate {
    LoadBalancerCreate {
        listeners: listeners.into_iter().collect(),
        ..LoadBalancerCreate::default()
    }
}

/// The existing parts of `wanted`, each with an id.
fn there(wanted: &ListenerCreate) -> (Key, Branch) {
    let key = (wanted.protocol.clone(), wanted.protocol_port);
    let pool = wanted.default_pool.clone().unwrap();
    let members = pool.members.iter().map(|member| {
        Arc::new(Member {
            id: format!("member-{}", member.address),
            address: member.address.clone(),
            protocol_port: member.protocol_port,
            weight: 1,
            ..Member::default()
        })
    });
    let branch = Branch {
        listener: Arc::new(Listener {
            id: "listener".to_owned(),
            protocol: key.0.clone(),
            protocol_port: key.1,
            ..Listener::default()
        }),
        members: members.collect(),
        monitor: pool.healthmonitor.map(|monitor| {
            Arc::new(Monitor {
                id: "monitor".to_owned(),
                kind: monitor.kind,
                ..Monitor::default()
            })
        }),
        pool: Some(Arc::new(Pool {
            id: "pool".to_owned(),
            protocol: pool.protocol,
            ..Pool::default()
        })),
    };
    (key, branch)
}

fn steps(
    tree: &LoadBalancerCreate,
    fields: Fields,
    branches: impl IntoIterator<Item = (Key, Branch)>,
) -> Vec<Step> {
    let desired = Desired {
        tree,
        fields,
        names: Names::KEPT,
        is_serial: false,
        keeps_weights: false,
        keeps_members: false,
    };
    let listeners: BTreeMap<_, _> = branches.into_iter().collect();
    let balancer = LoadBalancer {
        id: "lb".to_owned(),
        provisioning_status: "ACTIVE".to_owned(),
        ..LoadBalancer::default()
    };
    let observed = Observed {
        balancer: &balancer,
        listeners: &listeners,
        orphans: &[],
    };
    load_balancing::steps(&desired, Some(&observed))
}

#[test]
fn a_later_listener_comes_without_its_pool_and_a_later_pool_without_members_and_monitor() {
    let wanted = listener("TCP", 80);
    let steps_to =
        |branches: Vec<(Key, Branch)>| steps(&tree([wanted.clone()]), Fields::All, branches);
    let [Step::CreateListener(new)] = &steps_to(Vec::new())[..] else {
        panic!("no listener")
    };
    assert_eq!(
        (&new.default_pool, new.loadbalancer_id.as_deref()),
        (&None, Some("lb"))
    );
    let (key, mut branch) = there(&wanted);
    (branch.pool, branch.members, branch.monitor) = (None, Vec::new(), None);
    let [Step::CreatePool(new)] = &steps_to(vec![(key, branch)])[..] else {
        panic!("no pool")
    };
    assert_eq!((new.members.len(), &new.healthmonitor), (0, &None));
    assert_eq!(new.listener_id.as_deref(), Some("listener"));
    assert_eq!(steps_to(vec![there(&wanted)]), []);
}

#[test]
fn a_listener_in_the_way_is_deleted_before_the_new_one_of_the_port() {
    let found = steps(
        &tree([listener("HTTP", 80)]),
        Fields::All,
        [there(&listener("TCP", 80))],
    );
    assert_eq!(found[0], Step::DeleteListener("listener".to_owned()));
    assert!(
        matches!(&found[1..], [Step::CreateListener(_)]),
        "{found:?}"
    );
    // UDP is another transport.
    let found = steps(
        &tree([listener("UDP", 80)]),
        Fields::All,
        [there(&listener("TCP", 80))],
    );
    assert!(
        matches!(
            &found[..],
            [Step::CreateListener(_), Step::DeleteListener(_)]
        ),
        "{found:?}"
    );
}

#[test]
fn the_protocol_of_a_pool_and_the_type_of_a_monitor_are_replaced_where_all_fields_are_managed() {
    let mut wanted = listener("TCP", 80);
    let known = there(&wanted);
    let pool = wanted.default_pool.as_mut().unwrap();
    pool.healthmonitor.as_mut().unwrap().kind = "HTTP".to_owned();
    let of =
        |wanted: &ListenerCreate, fields| steps(&tree([wanted.clone()]), fields, [known.clone()]);
    assert_eq!(
        of(&wanted, Fields::All),
        [Step::DeleteMonitor("monitor".to_owned())]
    );
    assert_eq!(of(&wanted, Fields::Access), []);
    wanted.default_pool.as_mut().unwrap().protocol = "PROXY".to_owned();
    assert_eq!(
        of(&wanted, Fields::All),
        [Step::DeletePool("pool".to_owned())]
    );
    assert_eq!(of(&wanted, Fields::Access), []);
}

#[test]
fn no_ranges_and_those_of_everyone_are_the_same_and_an_empty_list_is_sent_in_a_change_alone() {
    let with = |cidrs: &[&str]| {
        let mut wanted = listener("TCP", 80);
        wanted.allowed_cidrs = Some(cidrs.iter().map(|it| (*it).to_owned()).collect());
        wanted
    };
    let known = |cidrs: &[&str]| {
        let (key, mut branch) = there(&listener("TCP", 80));
        let cidrs = cidrs.iter().map(|it| (*it).to_owned()).collect();
        Arc::make_mut(&mut branch.listener).allowed_cidrs = cidrs;
        (key, branch)
    };
    for fields in [Fields::All, Fields::Access] {
        let of = |wanted: &[&str], there: &[&str]| {
            let steps = steps(&tree([with(wanted)]), fields, [known(there)]);
            match &steps[..] {
                [] => None,
                [Step::UpdateListener { change, .. }] => change.allowed_cidrs.clone(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of(&["0.0.0.0/0", "::/0"], &[]), None);
        assert_eq!(
            of(
                &["10.0.0.0/8", "192.0.2.0/24"],
                &["192.0.2.0/24", "10.0.0.0/8"]
            ),
            None
        );
        assert_eq!(of(&[], &["10.0.0.0/8"]), Some(Vec::new()));
        assert_eq!(
            of(&["10.0.0.0/8"], &[]),
            Some(vec!["10.0.0.0/8".to_owned()])
        );
        let created = steps(&tree([with(&[])]), fields, []);
        let [Step::CreateListener(new)] = &created[..] else {
            panic!("{created:?}")
        };
        assert_eq!(new.allowed_cidrs, None);
    }
}

#[test]
fn a_monitor_port_that_is_not_wanted_is_taken_off_by_a_request_of_its_own() {
    let wanted = listener("TCP", 80);
    let (key, mut branch) = there(&wanted);
    Arc::make_mut(&mut branch.members[0]).monitor_port = Some(10_256);
    let found = steps(
        &tree([wanted.clone()]),
        Fields::All,
        [(key.clone(), branch.clone())],
    );
    let first = Step::UpdateMember {
        pool: "pool".to_owned(),
        id: "member-10.0.0.1".to_owned(),
        change: MemberUpdate {
            monitor_port: Some(None),
            ..MemberUpdate::default()
        },
    };
    assert_eq!(found[0], first);
    assert!(
        matches!(&found[1..], [Step::SetMembers { .. }]),
        "{found:?}"
    );
    assert_eq!(steps(&tree([wanted]), Fields::Access, [(key, branch)]), []);
}

#[test]
fn a_status_that_is_not_known_is_pending() {
    let of = |status: &str| {
        Status::from_balancer(&LoadBalancer {
            provisioning_status: status.to_owned(),
            ..LoadBalancer::default()
        })
    };
    let all = ["ACTIVE", "ERROR", "PENDING_UPDATE", "PENDING_DELETE", "NEW"].map(of);
    let expected = [
        Status::Active,
        Status::Error,
        Status::Pending,
        Status::Deleting,
        Status::Pending,
    ];
    assert_eq!(all, expected);
    assert_eq!(
        all.map(Status::can_be_deleted),
        [true, true, false, false, false]
    );
}
