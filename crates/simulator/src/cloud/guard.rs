//! Access to the operator's interface of a cloud on a socket.
//!
//! Any process of the machine reaches the socket, and so does a web page in a browser: by a script, or by a host name
//! that resolves to 127.0.0.1.

use std::net::IpAddr;

use axum::extract::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Method, Uri};

use super::fault::Fault;
use super::identity_hash;
use super::service::Service;

/// User of the operator's interface.
const USER: &str = "admin";

/// Refuses requests under `/_simulator/` from anybody but the operator: requests to a foreign host name, requests of
/// another site, and changes without the administrator's password (`Authorization: Basic`).
///
/// # Errors
/// 403 for the first two, 401 for the third.
pub(super) fn check(request: &Request, password: &str) -> Result<(), Fault> {
    let path = request.uri().path().trim_start_matches('/');
    let segment = path.split('/').next().unwrap_or_default();
    if Service::of_segment(segment) != Some(Service::Control) {
        return Ok(());
    }
    let headers = request.headers();
    let host = text(headers, &HOST).or_else(|| request.uri().authority().map(|it| it.as_str()));
    if !host.is_some_and(is_loopback) {
        return Err(Fault::forbidden(
            "the operator's interface answers to localhost, 127.0.0.0/8 and [::1] alone, whatever leads to it",
        ));
    }
    let is_foreign = |origin: &str| {
        let origin = origin.parse::<Uri>().ok();
        !origin.is_some_and(|it| it.authority().is_some_and(|it| is_loopback(it.as_str())))
    };
    if headers.contains_key(ORIGIN) && text(headers, &ORIGIN).is_none_or(is_foreign) {
        return Err(Fault::forbidden(
            "the operator's interface does not answer to pages of other hosts",
        ));
    }
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    if reads || is_operator(headers, password) {
        return Ok(());
    }
    Err(Fault::new(
        401,
        "Unauthorized",
        "changes want the password of the cloud simulated-admin in clouds.yaml: curl -u admin:PASSWORD",
    ))
}

fn is_operator(headers: &HeaderMap, password: &str) -> bool {
    let given = text(headers, &AUTHORIZATION)
        .and_then(|value| value.strip_prefix("Basic "))
        .and_then(|value| STANDARD.decode(value.trim()).ok());
    let wanted = identity_hash(&format!("{USER}:{password}"));
    // Hashes are compared, so the time of the comparison reveals nothing.
    given.is_some_and(|it| identity_hash(&String::from_utf8_lossy(&it)) == wanted)
}

/// True if `authority`, a host with or without a port, names this machine. A host name that resolves to this machine
/// does not.
fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(host, _)| host),
        None => authority.split(':').next(),
    };
    let host = host.unwrap_or_default();
    let is_address = host
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    is_address || host.eq_ignore_ascii_case("localhost")
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_this_machine() {
        for host in [
            "localhost",
            "LOCALHOST:8774",
            "127.0.0.1:1",
            "127.8.9.1",
            "[::1]:8774",
            "[::1]",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.test",
            "localhost.evil.test:8774",
            "127.0.0.1.evil.test",
            "10.0.0.1",
            "[::2]",
            "::1",
            "[::1",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
