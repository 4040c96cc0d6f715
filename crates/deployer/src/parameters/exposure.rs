//! Access of users outside of the cluster to the cloud.

use std::net::Ipv4Addr;

use serde::Deserialize;

/// Access of users outside of the cluster to the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exposure {
    /// [`Mode`] of the access.
    pub mode: Mode,
    /// Name or IPv4 address of the cloud, for its public URLs and its certificate. The ports of a loopback address are
    /// forwarded to `addresses`.
    #[serde(default)]
    pub host: String,
    /// IPv4 addresses of nodes for the cloud's ports; by default the host, if an address.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Certificate.
    #[serde(default)]
    pub tls: Tls,
}

/// Mode of access from outside of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Mode {
    /// No access.
    None,
    /// A proxy with TLS termination and the standard port of every API, on addresses of nodes.
    Edge,
}

/// Certificate of the edge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Tls {
    /// Secret in the namespace with `tls.crt`, `tls.key` and, for clients, `ca.crt`. If empty, the cloud has an
    /// authority of its own.
    pub secret_name: String,
}

impl Exposure {
    /// Name of the Secret with the certificate, if given.
    pub(crate) fn given(&self) -> Option<&str> {
        let name = self.tls.secret_name.as_str();
        (!name.is_empty()).then_some(name)
    }

    /// Addresses with the cloud's ports.
    pub(crate) fn nodes(&self) -> Vec<String> {
        if self.addresses.is_empty() && is_address(&self.host) {
            vec![self.host.clone()]
        } else {
            self.addresses.clone()
        }
    }

    /// First field with a senseless value, and the reason.
    pub(super) fn wrong(&self) -> Option<(String, &'static str)> {
        let wrong = |field: &str, problem| Some((format!("exposure.{field}"), problem));
        if self.mode == Mode::None {
            return None;
        }
        if !is_address(&self.host) && !is_loopback(&self.host) && !is_domain(&self.host) {
            return wrong(
                "host",
                "it has to be the IPv4 address of a host, or a domain name",
            );
        }
        for (index, address) in self.addresses.iter().enumerate() {
            if !is_address(address) {
                return wrong(
                    &format!("addresses[{index}]"),
                    "it has to be the IPv4 address of a node",
                );
            }
            if self.addresses.iter().take(index).any(|it| it == address) {
                return wrong(&format!("addresses[{index}]"), "it is there twice");
            }
        }
        if self.nodes().is_empty() {
            let problem =
                "it needs the addresses of nodes to which the name of exposure.host leads";
            return wrong("addresses", problem);
        }
        if !self.given().is_none_or(is_domain) {
            return wrong("tls.secretName", "it is not the name of a Secret");
        }
        None
    }
}

/// True for an IPv4 address of a host, reachable by others: neither multicast, broadcast nor reserved.
fn is_address(text: &str) -> bool {
    let reserved = |it: Ipv4Addr| it.octets()[0] == 0 || it.octets()[0] >= 240;
    text.parse::<Ipv4Addr>()
        .is_ok_and(|it| !it.is_loopback() && !it.is_multicast() && !reserved(it))
}

fn is_loopback(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok_and(|it| it.is_loopback())
}

/// True for a domain name in lower case. A name of numbers alone would be an address.
fn is_domain(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-')
    };
    let is_number = |label: &str| label.chars().all(|it| it.is_ascii_digit());
    text.len() <= 253
        && text.split('.').all(label)
        && !text.split('.').next_back().is_none_or(is_number)
}
