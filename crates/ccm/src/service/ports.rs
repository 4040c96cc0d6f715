//! Protocol of a load balancer for each port: connections, HTTP, or TLS (pure).

use std::collections::BTreeMap;

use api::k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};

use super::Rejection;
use super::annotations::Given;

/// Annotation with the protocols of single ports, unknown to the Go manager.
pub(super) const ANNOTATION: &str = "port-protocols";

/// Protocol that a listener understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Connections, passed on unchanged.
    Tcp,
    Http,
    /// HTTP over TLS that ends at the listener.
    Terminated,
}

impl Layer {
    const ALL: [Self; 3] = [Self::Tcp, Self::Http, Self::Terminated];

    /// Protocol of the listener.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Http => "HTTP",
            Self::Terminated => "TERMINATED_HTTPS",
        }
    }
}

/// The annotation [`ANNOTATION`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// All ports have the same protocol, set by the other annotations.
    #[default]
    Same,
    /// Each port has the protocol of its `appProtocol`.
    AppProtocol,
    /// Each port has the listed protocol; others pass connections on.
    Listed(BTreeMap<i32, Layer>),
}

impl Protocols {
    /// Value of the annotation: `app-protocol`, or `80=HTTP,443=TERMINATED_HTTPS`.
    pub(super) fn from_given(given: &Given<'_>) -> Result<Self, Rejection> {
        let Some(text) = given.text(ANNOTATION) else {
            return Ok(Self::Same);
        };
        if text == "app-protocol" {
            return Ok(Self::AppProtocol);
        }
        let wrong = || {
            given.wrong(
                ANNOTATION,
                "write app-protocol, or a list such as 80=HTTP,443=TERMINATED_HTTPS,22=TCP",
            )
        };
        let mut listed = BTreeMap::new();
        for part in text.split(',') {
            let (port, name) = part.split_once('=').ok_or_else(wrong)?;
            let port: u16 = port.trim().parse().map_err(|_| wrong())?;
            let layer = Layer::ALL
                .into_iter()
                .find(|layer| layer.name() == name.trim());
            let is_new = listed
                .insert(port.into(), layer.ok_or_else(wrong)?)
                .is_none();
            if !is_new {
                return Err(given.wrong(ANNOTATION, &format!("port {port} is listed twice")));
            }
        }
        Ok(Self::Listed(listed))
    }

    /// Protocol of the listener of a TCP port; `same` is the protocol of all ports without the annotation.
    pub(super) fn layer(&self, port: &ServicePort, same: Layer, has_certificate: bool) -> Layer {
        match self {
            Self::Same => same,
            Self::Listed(listed) => listed.get(&port.port).copied().unwrap_or(Layer::Tcp),
            Self::AppProtocol => match port.app_protocol.as_deref() {
                Some("http" | "kubernetes.io/ws") => Layer::Http,
                // Without a certificate, TLS is between clients and Pods.
                Some("https" | "kubernetes.io/wss") if has_certificate => Layer::Terminated,
                _ => Layer::Tcp,
            },
        }
    }

    /// Checks the annotation against the ports of the Service.
    ///
    /// # Errors
    /// Names a port that is missing in the Service, is no TCP port, or lacks a certificate.
    pub(super) fn check(&self, spec: &ServiceSpec, has_certificate: bool) -> Result<(), Rejection> {
        let Self::Listed(listed) = self else {
            return Ok(());
        };
        let is_tcp = |port: &ServicePort| port.protocol.as_deref().unwrap_or("TCP") == "TCP";
        for (number, layer) in listed {
            let mut ports = spec.ports.iter().flatten();
            let problem = if !ports.any(|port| port.port == *number && is_tcp(port)) {
                "the Service has no such port of TCP: correct the annotation"
            } else if *layer == Layer::Terminated && !has_certificate {
                "TLS needs a certificate: set the annotation default-tls-container-ref"
            } else {
                continue;
            };
            return Err(Rejection::new(format!(
                "annotation loadbalancer.openstack.org/{ANNOTATION}: port {number}: {problem}"
            )));
        }
        Ok(())
    }
}
