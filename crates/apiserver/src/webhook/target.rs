//! Address of a webhook: `clientConfig` of a webhook configuration or a definition.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::service;
use crate::store::Store;

/// Address of a webhook, and the authorities of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    at: At,
    /// PEM of the authorities; empty for the authorities of the machine.
    pub(super) ca: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum At {
    /// Host and port, and the path.
    Url { authority: String, path: String },
    Service {
        namespace: String,
        name: String,
        port: u16,
        path: String,
    },
}

/// Destination of a connection.
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
    /// Required name in the certificate.
    pub(super) name: String,
    /// Value of the header `Host`.
    pub(super) authority: String,
}

impl Target {
    /// Reads a validated `clientConfig`; `None` without a URL or a Service.
    pub(crate) fn read(config: &Value) -> Option<Self> {
        let ca = config["caBundle"].as_str().unwrap_or_default();
        let ca = STANDARD.decode(ca).unwrap_or_default();
        // A bundle of white space counts as empty.
        let ca = if ca.iter().all(u8::is_ascii_whitespace) {
            Vec::new()
        } else {
            ca
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let at = match (config["url"].as_str(), &config["service"]) {
            (Some(url), _) => {
                let rest = url.strip_prefix("https://")?;
                let (authority, path) = match rest.find('/') {
                    Some(at) => (&rest[..at], &rest[at..]),
                    None => (rest, ""),
                };
                At::Url {
                    authority: authority.to_owned(),
                    path: path.to_owned(),
                }
            }
            (None, service) if service.is_object() => At::Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                port: service["port"]
                    .as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .unwrap_or(443),
                path: text(&service["path"]),
            },
            _ => return None,
        };
        Some(Self { at, ca })
    }

    /// URL in messages.
    pub(super) fn url(&self, timeout: Duration) -> String {
        let (authority, path) = match &self.at {
            At::Url { authority, path } => (authority.clone(), path),
            At::Service {
                namespace,
                name,
                port,
                path,
            } => (format!("{name}.{namespace}.svc:{port}"), path),
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!(
            "https://{authority}{slash}{path}?timeout={}s",
            timeout.as_secs()
        )
    }

    /// Resolves the destination.
    pub(super) fn place(&self, store: &Store) -> Result<Endpoint, String> {
        match &self.at {
            At::Url { authority, .. } => {
                let (host, port) = split(authority)?;
                Ok(Endpoint {
                    name: host.clone(),
                    host,
                    port,
                    authority: authority.clone(),
                })
            }
            At::Service {
                namespace,
                name,
                port,
                ..
            } => {
                let (host, to) = service::resolve(store, namespace, name, *port)?;
                Ok(Endpoint {
                    host,
                    port: to,
                    name: format!("{name}.{namespace}.svc"),
                    authority: format!("{name}.{namespace}.svc:{port}"),
                })
            }
        }
    }
}

/// Host and port, with brackets of IPv6 addresses removed.
fn split(authority: &str) -> Result<(String, u16), String> {
    let bare = |host: &str| host.trim_matches(['[', ']']).to_owned();
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let number = port
                .parse()
                .map_err(|_| format!("dial tcp: lookup tcp/{port}: unknown port"))?;
            Ok((bare(host), number))
        }
        _ => Ok((bare(authority), 443)),
    }
}

#[cfg(test)]
mod tests;
