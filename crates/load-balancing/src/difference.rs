//! The changes of an existing listener, pool or health monitor.

use std::collections::BTreeSet;

use openstack::loadbalancer::{
    Listener, ListenerCreate, ListenerUpdate, Monitor, MonitorCreate, MonitorUpdate, Pool,
    PoolCreate, PoolUpdate,
};
use serde_json::Value;

use crate::desired::{Desired, Fields};

/// The header with the address of the client. Other headers of an existing listener stay.
pub const FORWARDED_FOR: &str = "X-Forwarded-For";

/// The ranges of all IPv4 and all IPv6 addresses.
const EVERYONE: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// True if the ranges allow all addresses of a family.
pub fn allows_everyone(cidrs: &[String]) -> bool {
    cidrs.iter().all(|cidr| EVERYONE.contains(&cidr.as_str()))
}

/// The differing fields of a [`Listener`].
pub(crate) fn of_listener(
    wanted: &ListenerCreate,
    known: &Listener,
    desired: &Desired<'_>,
) -> ListenerUpdate {
    let cidrs = wanted.allowed_cidrs.clone();
    let access = ListenerUpdate {
        allowed_cidrs: cidrs.filter(|cidrs| !same_cidrs(cidrs, &known.allowed_cidrs)),
        ..ListenerUpdate::default()
    };
    match desired.fields {
        Fields::Access => access,
        Fields::All => ListenerUpdate {
            name: (desired.names.renamed)(&wanted.name, &known.name),
            allowed_cidrs: access.allowed_cidrs,
            ..traffic(wanted, known)
        },
    }
}

fn same_cidrs(wanted: &[String], known: &[String]) -> bool {
    let set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    // Octavia has no ranges where everyone may connect.
    known.is_empty() && allows_everyone(wanted) || set(wanted) == set(known)
}

/// Limits, timeouts, headers and certificate; an absent limit is Octavia's default.
fn traffic(wanted: &ListenerCreate, known: &Listener) -> ListenerUpdate {
    let changed = |wanted: Option<i64>, known: Option<i64>, default: i64| {
        let wanted = wanted.unwrap_or(default);
        // An Octavia that does not return a setting does not have it.
        known.is_some_and(|known| known != wanted).then_some(wanted)
    };
    let inserts = |headers: &serde_json::Map<String, Value>| {
        let on = |value: &Value| value == "true" || value == true;
        headers.get(FORWARDED_FOR).is_some_and(on)
    };
    let same_headers = inserts(&known.insert_headers) != wanted.insert_headers.is_empty();
    ListenerUpdate {
        connection_limit: changed(wanted.connection_limit, known.connection_limit, -1),
        timeout_client_data: changed(
            wanted.timeout_client_data,
            known.timeout_client_data,
            50_000,
        ),
        timeout_member_connect: changed(
            wanted.timeout_member_connect,
            known.timeout_member_connect,
            5_000,
        ),
        timeout_member_data: changed(
            wanted.timeout_member_data,
            known.timeout_member_data,
            50_000,
        ),
        timeout_tcp_inspect: changed(wanted.timeout_tcp_inspect, known.timeout_tcp_inspect, 0),
        insert_headers: (!same_headers).then(|| wanted.insert_headers.clone()),
        default_tls_container_ref: wanted
            .default_tls_container_ref
            .clone()
            .filter(|wanted| known.default_tls_container_ref.as_ref() != Some(wanted)),
        ..ListenerUpdate::default()
    }
}

/// The differing fields of a [`Pool`]. The protocol cannot change.
pub(crate) fn of_pool(wanted: &PoolCreate, known: &Pool, desired: &Desired<'_>) -> PoolUpdate {
    if desired.fields == Fields::Access {
        return PoolUpdate::default();
    }
    let persistence = &wanted.session_persistence;
    PoolUpdate {
        name: (desired.names.renamed)(&wanted.name, &known.name),
        lb_algorithm: Some(wanted.lb_algorithm.clone())
            .filter(|method| *method != known.lb_algorithm),
        session_persistence: (*persistence != known.session_persistence)
            .then(|| persistence.clone()),
    }
}

/// The differing fields of a [`Monitor`]. The type cannot change.
pub(crate) fn of_monitor(
    wanted: &MonitorCreate,
    known: &Monitor,
    desired: &Desired<'_>,
) -> MonitorUpdate {
    let number = |wanted: i64, known: i64| Some(wanted).filter(|wanted| *wanted != known);
    // Monitors of other types have no such fields.
    let text = |wanted: &Option<String>, known: &Option<String>| {
        let wanted = wanted.clone()?;
        (Some(&wanted) != known.as_ref()).then_some(wanted)
    };
    let access = MonitorUpdate {
        delay: number(wanted.delay, known.delay),
        timeout: number(wanted.timeout, known.timeout),
        max_retries: number(wanted.max_retries, known.max_retries),
        max_retries_down: number(wanted.max_retries_down, known.max_retries_down),
        ..MonitorUpdate::default()
    };
    match desired.fields {
        Fields::Access => access,
        Fields::All => MonitorUpdate {
            name: (desired.names.renamed)(&wanted.name, &known.name),
            http_method: text(&wanted.http_method, &known.http_method),
            url_path: text(&wanted.url_path, &known.url_path),
            expected_codes: text(&wanted.expected_codes, &known.expected_codes),
            ..access
        },
    }
}
