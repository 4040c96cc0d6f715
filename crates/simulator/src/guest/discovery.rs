//! Discovery by bootstrap token of `kubeadm join`, which establishes the joining node's trust in the cluster.
//!
//! Reference: kubeadm's token-based discovery. `cluster-info` is read over unverified TLS, the signature is verified
//! with the token, the CA is compared with the pinned hashes, and `cluster-info` is read again over TLS verified with
//! this CA.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::kubeadm::{Join, Token};
use super::outside::Outside;
use super::{jws, pki};

/// Path of `cluster-info`.
pub(crate) const CLUSTER_INFO: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

/// Timeout of a request, as in kubeadm's clients.
const REQUEST: Duration = Duration::from_secs(10);
/// Limit of a response body in bytes; no ConfigMap is larger.
const LIMIT: usize = 2 << 20;

/// Verification of server certificates.
#[derive(Clone, Debug)]
pub(crate) enum Trust {
    /// No verification.
    Anybody,
    /// Certificate issued by this authority, for the host of the endpoint.
    Authority(CertificateDer<'static>),
}

/// Why discovery failed, with kubeadm's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Failure that may be temporary: kubeadm retries until its timeout.
    NotYet(String),
    /// The failure is permanent.
    Never(String),
}

/// Verified content of `cluster-info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterInfo {
    /// Kubeconfig, verbatim.
    pub(crate) kubeconfig: String,
    /// Authority of the cluster.
    pub(crate) authority: CertificateDer<'static>,
}

/// Makes one attempt of discovery.
pub(crate) async fn discover(
    join: &Join,
    endpoint: &(String, u16),
    outside: &Outside,
) -> Result<ClusterInfo, Refusal> {
    let first = fetch(endpoint, outside, &Trust::Anybody, None, CLUSTER_INFO)
        .await
        .map_err(|problem| not_yet("failed to request the cluster-info ConfigMap", &problem))?;
    let believed = believe(&first, join)?;
    let trust = Trust::Authority(believed.authority.clone());
    let second = fetch(endpoint, outside, &trust, None, CLUSTER_INFO)
        .await
        .map_err(|problem| {
            not_yet(
                "failed to request the cluster-info ConfigMap with TLS verification",
                &problem,
            )
        })?;
    if kubeconfig_of(&second) != Some(believed.kubeconfig.as_str()) {
        return Err(Refusal::NotYet(
            "the second kubeconfig from the cluster-info ConfigMap (using validated TLS) was different from the first"
                .to_owned(),
        ));
    }
    Ok(believed)
}

fn not_yet(what: &str, problem: &str) -> Refusal {
    Refusal::NotYet(format!("{what}: {problem}"))
}

/// Verifies the signature and the CA of `cluster-info`.
pub(crate) fn believe(config_map: &Value, join: &Join) -> Result<ClusterInfo, Refusal> {
    let token = &join.discovery_token;
    let signature = config_map
        .get("data")
        .and_then(|data| data.get(format!("jws-kubeconfig-{}", token.id))?.as_str())
        .ok_or_else(|| {
            Refusal::NotYet(format!(
                "could not find a JWS signature in the cluster-info ConfigMap for token ID {:?}",
                token.id
            ))
        })?;
    let kubeconfig = kubeconfig_of(config_map).ok_or_else(|| {
        Refusal::Never("there is no kubeconfig key in the cluster-info ConfigMap. This API Server isn't set up for token bootstrapping, can't connect".to_owned())
    })?;
    if !jws::verify(signature, kubeconfig, &token.id, &token.secret) {
        return Err(Refusal::Never(
            "failed to verify JWS signature of received cluster info object, can't trust this API Server"
                .to_owned(),
        ));
    }
    let authorities = authorities(kubeconfig).ok_or_else(|| {
        Refusal::Never(
            "couldn't parse the kubeconfig file in the cluster-info ConfigMap".to_owned(),
        )
    })?;
    let pinned = authorities.iter().find(|authority| {
        let hash = pki::spki_hash(authority);
        join.ca_hashes.is_empty() || hash.is_some_and(|hash| join.ca_hashes.contains(&hash))
    });
    match pinned {
        Some(authority) => Ok(ClusterInfo {
            kubeconfig: kubeconfig.to_owned(),
            authority: authority.clone(),
        }),
        None => {
            let presented = authorities
                .first()
                .and_then(|it| pki::spki_hash(it))
                .unwrap_or_default();
            Err(Refusal::Never(format!(
                "cluster CA found in cluster-info ConfigMap is invalid: none of the public keys \"{presented}\" are pinned"
            )))
        }
    }
}

fn kubeconfig_of(config_map: &Value) -> Option<&str> {
    config_map.get("data")?.get("kubeconfig")?.as_str()
}

/// Returns the certificates of the authority in a kubeconfig with a single cluster.
fn authorities(kubeconfig: &str) -> Option<Vec<CertificateDer<'static>>> {
    let kubeconfig: Value = serde_saphyr::from_str(kubeconfig).ok()?;
    let [cluster] = kubeconfig.get("clusters")?.as_array()?.as_slice() else {
        return None;
    };
    let data = cluster
        .get("cluster")?
        .get("certificate-authority-data")?
        .as_str()?;
    let authorities = pki::certificates(&STANDARD.decode(data).ok()?);
    (!authorities.is_empty()).then_some(authorities)
}

/// GET over a new TLS connection. Returns the JSON of a 200; any other response is an error.
pub(crate) async fn fetch(
    endpoint: &(String, u16),
    outside: &Outside,
    trust: &Trust,
    token: Option<&Token>,
    path: &str,
) -> Result<Value, String> {
    let (host, port) = endpoint;
    let url = format!("Get \"https://{host}:{port}{path}\"");
    let (status, body) =
        match tokio::time::timeout(REQUEST, get(endpoint, outside, trust, token, path)).await {
            Err(_) => return Err(format!("{url}: context deadline exceeded")),
            Ok(Err(problem)) => return Err(format!("{url}: {problem}")),
            Ok(Ok(answer)) => answer,
        };
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    if status == StatusCode::OK {
        return Ok(answer);
    }
    let message = answer
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Err(if message.is_empty() {
        format!("{url}: {status}")
    } else {
        message.to_owned()
    })
}

/// Checks that an API server with a certificate valid for `trust` responds, with any status.
pub(crate) async fn answers(
    endpoint: &(String, u16),
    outside: &Outside,
    trust: &Trust,
) -> Result<(), String> {
    match tokio::time::timeout(REQUEST, get(endpoint, outside, trust, None, "/livez")).await {
        Err(_) => Err("context deadline exceeded".to_owned()),
        Ok(answer) => answer.map(drop),
    }
}

async fn get(
    (host, port): &(String, u16),
    outside: &Outside,
    trust: &Trust,
    token: Option<&Token>,
    path: &str,
) -> Result<(StatusCode, Bytes), String> {
    let stream = connect(host, *port, outside).await?;
    let name = ServerName::try_from(host.clone()).map_err(|error| error.to_string())?;
    let config = client_config(trust).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| format!("tls: failed to verify certificate: {error}"))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let mut request = Request::get(path)
        .header(header::HOST, format!("{host}:{port}"))
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, "kubeadm (simulated)");
    if let Some(token) = token {
        let value = format!("Bearer {}.{}", token.id, token.secret.expose_secret());
        request = request.header(header::AUTHORIZATION, value);
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let exchange = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())?;
        let status = response.status();
        let body = Limited::new(response.into_body(), LIMIT);
        let body = body.collect().await.map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes()))
    };
    // The connection is polled here, not in a separate task, so that it ends with the request.
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        ended = connection => match ended {
            Ok(()) => exchange.await,
            Err(error) => Err(error.to_string()),
        },
    }
}

async fn connect(host: &str, port: u16, outside: &Outside) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = match tokio::net::lookup_host((host, port)).await {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Err(format!("dial tcp: lookup {host}: {error}")),
    };
    let mut problem = format!("dial tcp: lookup {host}: no such host");
    for address in addresses {
        // Other addresses might be those of real machines.
        if !outside.contains(address.ip()) {
            problem = format!("dial tcp {address}: connect: no route to host");
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                problem = format!("dial tcp {address}: connect: connection refused");
            }
            Err(error) => problem = format!("dial tcp {address}: {error}"),
        }
    }
    Err(problem)
}

fn client_config(trust: &Trust) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    Ok(match trust {
        Trust::Anybody => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth(),
        Trust::Authority(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.clone())?;
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    })
}

/// Accepts any certificate; only the proof of the key is verified. The token's signature verifies the content, not the
/// connection.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
