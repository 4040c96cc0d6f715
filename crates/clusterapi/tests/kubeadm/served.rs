//! API servers behind TLS, as real ones, and their certificates.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::kube::{Client, Config};
use apiserver::{ApiServer, Options, UserInfo, server_config};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::world::NS;

/// Serves until `stop`. The client has all permissions.
pub(crate) async fn serve(options: Options, stop: CancellationToken) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let admin = UserInfo {
        name: "admin".to_owned(),
        groups: vec!["system:masters".to_owned()],
        ..UserInfo::default()
    };
    let options = Options {
        tokens: vec![("admin".to_owned().into(), admin)],
        ..options
    };
    let server = ApiServer::open(options).await.unwrap();
    let (ca, key) = authority();
    let (certificate, key) = certificate(&ca, &key, "127.0.0.1");
    let tls = server_config(&certificate, &key, None).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { server.serve(listener, tls, stop).await });
    let mut config = Config::new(url.parse().unwrap());
    let ca = CertificateDer::from_pem_slice(ca.as_bytes()).unwrap();
    config.root_cert = Some(vec![ca.to_vec()]);
    config.auth_info.token = Some("admin".to_owned().into());
    config.default_namespace = NS.to_owned();
    Client::try_from(config).unwrap()
}

/// A CA certificate and its key, in PEM.
pub(crate) fn authority() -> (String, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// A certificate for `name` and its key, in PEM.
pub(crate) fn certificate(ca: &str, key: &str, name: &str) -> (String, String) {
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    issue(ca, key, params)
}

/// A certificate for `name` that expires in this many days, and its key, in PEM.
pub(crate) fn expiring(ca: &str, key: &str, name: &str, days: u64) -> (String, String) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let left = Duration::from_secs(days * 86_400);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + now + left;
    issue(ca, key, params)
}

fn issue(ca: &str, key: &str, params: CertificateParams) -> (String, String) {
    let issuer = Issuer::from_ca_cert_pem(ca, KeyPair::from_pem(key).unwrap()).unwrap();
    let serving_key = KeyPair::generate().unwrap();
    (
        params.signed_by(&serving_key, &issuer).unwrap().pem(),
        serving_key.serialize_pem(),
    )
}
