//! How users outside of the cluster reach the cloud.

use std::net::Ipv4Addr;

use serde::Deserialize;

/// How users outside of the cluster reach the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exposure {
    /// By what.
    pub mode: Mode,
    /// The name or IPv4 address of the cloud, as in its public URLs and its certificate. A loopback address is one whose
    /// ports are forwarded to `addresses`.
    #[serde(default)]
    pub host: String,
    /// IPv4 addresses of nodes on which the cloud answers; the host, if it is one, by default.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// The certificate.
    #[serde(default)]
    pub tls: Tls,
}

/// By what a cloud is reached from outside of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Mode {
    /// By nothing.
    None,
    /// A proxy that ends TLS, with the standard port of every API on addresses of nodes.
    Edge,
}

/// The certificate of the edge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Tls {
    /// A Secret in the namespace with `tls.crt`, `tls.key` and, for clients, `ca.crt`. When it is empty, the cloud has an
    /// authority of its own.
    pub secret_name: String,
}

impl Exposure {
    /// The name of the Secret with the certificate, if one is given.
    pub(crate) fn given(&self) -> Option<&str> {
        let name = self.tls.secret_name.as_str();
        (!name.is_empty()).then_some(name)
    }

    /// The addresses on which the cloud answers.
    pub(crate) fn nodes(&self) -> Vec<String> {
        if self.addresses.is_empty() && is_address(&self.host) {
            vec![self.host.clone()]
        } else {
            self.addresses.clone()
        }
    }

    /// The first field with a value that makes no sense, and the reason.
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

/// True if a text is an IPv4 address that a host can have and others reach: of no group, no broadcast, not reserved.
fn is_address(text: &str) -> bool {
    let reserved = |it: Ipv4Addr| it.octets()[0] == 0 || it.octets()[0] >= 240;
    text.parse::<Ipv4Addr>()
        .is_ok_and(|it| !it.is_loopback() && !it.is_multicast() && !reserved(it))
}

fn is_loopback(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok_and(|it| it.is_loopback())
}

/// True if a text is a domain name in lower case. One of numbers alone would be an address.
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
