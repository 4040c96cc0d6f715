//! Forwarding of traffic by listeners: TLS, PROXY protocol, X-Forwarded-For, limits (pure).

use std::collections::BTreeMap;

use api::k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};
use load_balancing::FORWARDED_FOR;
use openstack::loadbalancer::ListenerCreate;

use super::annotations::Given;
use super::ports::{Layer, Protocols};
use super::{Rejection, certificate};
use cloud_conf::LoadBalancer;

/// Settings of listeners, and the protocol of pools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Pool protocol that carries the address of the client.
    pub(crate) proxy: Option<&'static str>,
    /// True if listeners are HTTP and add `X-Forwarded-For`.
    pub(crate) forwarded_for: bool,
    /// Certificate of TLS listeners, as Octavia takes it.
    pub(crate) certificate: Option<String>,
    /// True if the certificate comes from an annotation, and not from cloud.conf.
    has_own_certificate: bool,
    protocols: Protocols,
    connection_limit: Option<i64>,
    timeout_client_data: Option<i64>,
    timeout_member_connect: Option<i64>,
    timeout_member_data: Option<i64>,
    timeout_tcp_inspect: Option<i64>,
}

impl Traffic {
    /// Settings from the annotations.
    ///
    /// # Errors
    /// Names an annotation that is invalid, contradicts another, or is not supported by the driver.
    pub(super) fn new(given: &Given<'_>, defaults: &LoadBalancer) -> Result<Self, Rejection> {
        let proxy = match given.text("proxy-protocol") {
            None | Some("false") => None,
            Some("true" | "v1") => Some("PROXY"),
            Some("v2") => Some("PROXYV2"),
            Some(_) => return Err(given.wrong("proxy-protocol", "write true, false, v1 or v2")),
        };
        let traffic = Self {
            proxy,
            forwarded_for: given.truth("x-forwarded-for")?.unwrap_or(false),
            certificate: certificate::of(given, defaults)?,
            has_own_certificate: given.text(certificate::ANNOTATION).is_some(),
            protocols: Protocols::from_given(given)?,
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
        if defaults.provider == "ovn" && traffic != Self::default() {
            return Err(Rejection::new(
                "the driver ovn has neither TLS, HTTP, the PROXY protocol nor X-Forwarded-For, timeouts and connection \
                 limits: remove the annotations default-tls-container-ref, port-protocols, proxy-protocol, \
                 x-forwarded-for, timeout-* and connection-limit",
            ));
        }
        Ok(traffic)
    }

    /// Checks the settings against the ports of the Service.
    ///
    /// # Errors
    /// Names an annotation without a fitting port.
    pub(super) fn check(&self, spec: &ServiceSpec) -> Result<(), Rejection> {
        self.protocols.check(spec, self.certificate.is_some())?;
        self.check_datagrams(spec)?;
        let mut layers = spec.ports.iter().flatten().map(|port| self.layer(port));
        let inserts = self.protocols == Protocols::Same || layers.any(|layer| layer != Layer::Tcp);
        match self.forwarded_for && !inserts {
            false => Ok(()),
            true => Err(Rejection::new(
                "annotation loadbalancer.openstack.org/x-forwarded-for: port-protocols makes no port HTTP or \
                 TERMINATED_HTTPS: correct it, or remove this annotation",
            )),
        }
    }

    fn layer(&self, port: &ServicePort) -> Layer {
        let same = match (&self.certificate, self.forwarded_for) {
            (Some(_), _) => Layer::Terminated,
            (None, true) => Layer::Http,
            (None, false) => Layer::Tcp,
        };
        self.protocols.layer(port, same, self.certificate.is_some())
    }

    /// Protocols of the listener and the pool of a port.
    pub(super) fn protocols(&self, port: &ServicePort) -> (String, String) {
        let transport = transport(port);
        if transport != "TCP" {
            return (transport.to_owned(), transport.to_owned());
        }
        let layer = self.layer(port);
        let pool = match (self.proxy, layer) {
            (Some(proxy), _) => proxy,
            (None, Layer::Tcp) => "TCP",
            (None, Layer::Http | Layer::Terminated) => "HTTP",
        };
        (layer.name().to_owned(), pool.to_owned())
    }

    /// Rejects annotations for all ports that a port other than TCP cannot follow. The message names the annotation
    /// that restricts them to the other ports.
    fn check_datagrams(&self, spec: &ServiceSpec) -> Result<(), Rejection> {
        let ports = spec.ports.iter().flatten();
        let mut transports = ports.map(transport);
        let Some(transport) = transports.find(|transport| *transport != "TCP") else {
            return Ok(());
        };
        let asked = match (self.proxy, self.forwarded_for, self.has_own_certificate) {
            _ if self.protocols != Protocols::Same => return Ok(()),
            (Some(_), _, _) => "proxy-protocol",
            (None, true, _) => "x-forwarded-for",
            (None, false, true) => certificate::ANNOTATION,
            (None, false, false) => return Ok(()),
        };
        let tcp = spec.ports.iter().flatten();
        let tcp = tcp.filter(|port| self::transport(port) == "TCP");
        let listed: Vec<_> = tcp
            .map(|port| format!("{}={}", port.port, self.layer(port).name()))
            .collect();
        let cure = match listed.is_empty() {
            true => "remove the annotation".to_owned(),
            false => format!(
                "set the annotation loadbalancer.openstack.org/{}: \"{}\", with which it is for the TCP ports alone and \
                 others stay as they are, or remove it",
                super::ports::ANNOTATION,
                listed.join(",")
            ),
        };
        Err(Rejection::new(format!(
            "annotation loadbalancer.openstack.org/{asked}: the Service has a port of protocol {transport}, and only \
             TCP ports support it: {cure}"
        )))
    }

    /// Sets the settings of a new listener.
    pub(super) fn set(&self, listener: &mut ListenerCreate) {
        listener.connection_limit = self.connection_limit;
        listener.timeout_client_data = self.timeout_client_data;
        listener.timeout_member_connect = self.timeout_member_connect;
        listener.timeout_member_data = self.timeout_member_data;
        listener.timeout_tcp_inspect = self.timeout_tcp_inspect;
        let is_tls = listener.protocol == Layer::Terminated.name();
        if self.forwarded_for && (is_tls || listener.protocol == Layer::Http.name()) {
            listener.insert_headers = headers();
        }
        listener.default_tls_container_ref = self.certificate.clone().filter(|_| is_tls);
    }
}

fn transport(port: &ServicePort) -> &str {
    port.protocol.as_deref().unwrap_or("TCP")
}

fn headers() -> BTreeMap<String, String> {
    [(FORWARDED_FOR.to_owned(), "true".to_owned())].into()
}
