//! The door of a control plane guest: TLS, who is it, may they.
//!
//! The API server behind trusts whoever comes in process, so this decides first, as kube-apiserver does
//! with kubeadm's flags and RBAC: client certificates of the cluster's authority, bootstrap tokens (for
//! what a joining node reads), and anonymous users (for discovery and health).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use apiserver::Body;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use secrecy::ExposeSecret as _;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tower::Service as _;
use tracing::debug;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::cluster::{Cluster, Member, stored_token};
use super::objects::kubeadm::SECRETS;

/// How long a client may take for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Who a request comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    /// A client certificate: CN and O.
    Certificate { name: String, groups: Vec<String> },
    /// The bearer of a valid bootstrap token with this id.
    BootstrapToken(String),
    /// Nobody in particular.
    Anonymous,
}

/// Serves one connection of `member`, from the handshake to its end.
pub(crate) async fn serve<S>(stream: S, member: Arc<Member>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let acceptor = TlsAcceptor::from(Arc::clone(&member.tls));
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!("TLS handshake with a workload API server: {error}"),
        Err(_) => return,
    };
    let (_, session) = stream.get_ref();
    let certificate = session
        .peer_certificates()
        .and_then(<[_]>::first)
        .and_then(identity);
    let cluster = Arc::clone(&member.cluster);
    let service =
        service_fn(move |request| answer(Arc::clone(&cluster), certificate.clone(), request));
    let server = auto::Builder::new(TokioExecutor::new());
    if let Err(error) = server
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await
    {
        debug!("connection to a workload API server: {error}");
    }
}

/// The user that a verified client certificate stands for.
fn identity(certificate: &CertificateDer<'_>) -> Option<Who> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject
        .iter_organization()
        .filter_map(|group| group.as_str().ok())
        .map(str::to_owned)
        .collect();
    Some(Who::Certificate { name, groups })
}

async fn answer(
    cluster: Arc<Cluster>,
    certificate: Option<Who>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let who = match certificate {
        Some(who) => who,
        None => match bearer(&request) {
            None => Who::Anonymous,
            Some(token) => match bootstrap_token(&cluster, token).await {
                Some(who) => who,
                None => {
                    return Ok(refusal(
                        StatusCode::UNAUTHORIZED,
                        "Unauthorized",
                        "Unauthorized",
                    ));
                }
            },
        },
    };
    if !may(&who, request.method(), request.uri().path()) {
        let user = match &who {
            Who::Certificate { name, .. } => name.clone(),
            Who::BootstrapToken(id) => format!("system:bootstrap:{id}"),
            Who::Anonymous => "system:anonymous".to_owned(),
        };
        let message = format!(
            "forbidden: User {user:?} cannot {} path {:?}",
            request.method().as_str().to_lowercase(),
            request.uri().path()
        );
        return Ok(refusal(StatusCode::FORBIDDEN, "Forbidden", &message));
    }
    cluster.service().call(request).await
}

fn bearer<B>(request: &Request<B>) -> Option<&str> {
    let value = request
        .headers()
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Looks a bootstrap token up among the Secrets, as kube-apiserver's authenticator does.
async fn bootstrap_token(cluster: &Cluster, token: &str) -> Option<Who> {
    let (id, secret) = token.split_once('.')?;
    let plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (id.len() == 6 && plain(id)).then_some(())?;
    let path = format!("{SECRETS}/bootstrap-token-{id}");
    let stored = stored_token(&cluster.api.get(&path).await.ok()??)?;
    let known = ring::hmac::Key::new(
        ring::hmac::HMAC_SHA256,
        stored.secret.expose_secret().as_bytes(),
    );
    let given = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    // Comparing authentication codes takes the same time wherever the secrets differ.
    let tag = ring::hmac::sign(&given, id.as_bytes());
    let same = ring::hmac::verify(&known, id.as_bytes(), tag.as_ref()).is_ok();
    (same && stored.id == id && stored.authentication && stored.is_valid(Timestamp::now()))
        .then(|| Who::BootstrapToken(id.to_owned()))
}

/// What each may do. Certificates need a group of administrators: other roles are not simulated.
fn may(who: &Who, method: &Method, path: &str) -> bool {
    let discovery = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
    let public = *method == Method::GET
        && (matches!(path, "/healthz" | "/livez" | "/readyz" | "/version")
            || path == discovery
            || ["/healthz/", "/livez/", "/readyz/"]
                .iter()
                .any(|prefix| path.starts_with(prefix)));
    match who {
        Who::Certificate { groups, .. } => {
            public
                || groups.iter().any(|group| {
                    matches!(group.as_str(), "system:masters" | "kubeadm:cluster-admins")
                })
        }
        Who::BootstrapToken(_) => {
            let configs = "/api/v1/namespaces/kube-system/configmaps/";
            let config = path.strip_prefix(configs).is_some_and(|name| {
                matches!(name, "kubeadm-config" | "kubelet-config" | "kube-proxy")
            });
            let node = path
                .strip_prefix("/api/v1/nodes/")
                .is_some_and(|name| !name.is_empty() && !name.contains('/'));
            public || (*method == Method::GET && (config || node))
        }
        Who::Anonymous => public,
    }
}

fn refusal(status: StatusCode, reason: &str, message: &str) -> Response<Body> {
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": status.as_u16(),
    });
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())).boxed_unsync());
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests;
