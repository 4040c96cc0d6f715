//! How listeners forward traffic: PROXY protocol, X-Forwarded-For, limits. Pure functions.

use std::collections::BTreeMap;

use openstack::loadbalancer::{Listener, ListenerCreate, ListenerUpdate};
use serde_json::Value;

use super::Rejection;
use super::annotations::Given;

const FORWARDED_FOR: &str = "X-Forwarded-For";

/// The settings of listeners and of the protocol of pools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// The pool protocol that carries the address of the client.
    pub(crate) proxy: Option<&'static str>,
    /// Whether listeners are HTTP and add `X-Forwarded-For`.
    pub(crate) forwarded_for: bool,
    connection_limit: Option<i64>,
    timeout_client_data: Option<i64>,
    timeout_member_connect: Option<i64>,
    timeout_member_data: Option<i64>,
    timeout_tcp_inspect: Option<i64>,
}

impl Traffic {
    /// The settings of the annotations.
    ///
    /// # Errors
    /// Names the annotation that is invalid, contradicts another, or is not supported by the driver.
    pub(super) fn of(given: &Given<'_>, provider: &str) -> Result<Self, Rejection> {
        let proxy = match given.text("proxy-protocol") {
            None | Some("false") => None,
            Some("true" | "v1") => Some("PROXY"),
            Some("v2") => Some("PROXYV2"),
            Some(_) => return Err(given.wrong("proxy-protocol", "write true, false, v1 or v2")),
        };
        let traffic = Self {
            proxy,
            forwarded_for: given.truth("x-forwarded-for")?.unwrap_or(false),
            connection_limit: given.at_least("connection-limit", -1)?,
            timeout_client_data: given.at_least("timeout-client-data", 0)?,
            timeout_member_connect: given.at_least("timeout-member-connect", 0)?,
            timeout_member_data: given.at_least("timeout-member-data", 0)?,
            timeout_tcp_inspect: given.at_least("timeout-tcp-inspect", 0)?,
        };
        if proxy.is_some() && traffic.forwarded_for {
            return Err(given.wrong(
                "proxy-protocol",
                "x-forwarded-for is set, too, and a pool has one of them: remove one",
            ));
        }
        if provider == "ovn" && traffic != Self::default() {
            return Err(Rejection::new(
                "the driver ovn has neither the PROXY protocol nor X-Forwarded-For, timeouts and connection limits: \
                 remove the annotations proxy-protocol, x-forwarded-for, timeout-* and connection-limit",
            ));
        }
        Ok(traffic)
    }

    /// The protocols of the listener and the pool of a port.
    ///
    /// # Errors
    /// The setting is not supported for the protocol of the port.
    pub(super) fn protocols(&self, transport: &str) -> Result<(String, String), Rejection> {
        let asked = match (self.proxy, self.forwarded_for) {
            (None, false) => return Ok((transport.to_owned(), transport.to_owned())),
            (Some(_), _) => "proxy-protocol",
            (None, true) => "x-forwarded-for",
        };
        if transport != "TCP" {
            return Err(Rejection::new(format!(
                "annotation loadbalancer.openstack.org/{asked}: the Service has a port of protocol {transport}, and only \
                 TCP ports support it: remove the annotation, or put that port into another Service"
            )));
        }
        Ok(match self.proxy {
            Some(proxy) => ("TCP".to_owned(), proxy.to_owned()),
            None => ("HTTP".to_owned(), "HTTP".to_owned()),
        })
    }

    /// Sets the settings of a new listener.
    pub(super) fn set(&self, listener: &mut ListenerCreate) {
        listener.connection_limit = self.connection_limit;
        listener.timeout_client_data = self.timeout_client_data;
        listener.timeout_member_connect = self.timeout_member_connect;
        listener.timeout_member_data = self.timeout_member_data;
        listener.timeout_tcp_inspect = self.timeout_tcp_inspect;
        if self.forwarded_for {
            listener.insert_headers = headers();
        }
    }
}

fn headers() -> BTreeMap<String, String> {
    [(FORWARDED_FOR.to_owned(), "true".to_owned())].into()
}

/// The differences of a listener from the wanted one, where an absent setting is Octavia's default.
pub(super) fn difference(wanted: &ListenerCreate, known: &Listener) -> ListenerUpdate {
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
        ..ListenerUpdate::default()
    }
}
