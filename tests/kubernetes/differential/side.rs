//! One server that the scenario is played on.

use std::time::Duration;

use apiserver::{ApiServer, Options, Store, server_config};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use reqwest::{Certificate, Client, Identity};
use secrecy::SecretString;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::root;

/// A server with clients for it.
pub(crate) struct Side {
    pub(crate) url: String,
    /// Whose certificate makes them `system:admin`.
    pub(crate) admin: Client,
    /// Without a certificate.
    pub(crate) nobody: Client,
}

/// An embedded API server that can be opened again: its objects and its keys.
pub(crate) struct Embedded {
    ca: String,
    issuer: Issuer<'static, KeyPair>,
    options: Options,
}

impl Embedded {
    pub(crate) fn new(store: Store) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "ca");
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let tokens = KeyPair::generate().unwrap().serialize_pem();
        let options = Options {
            store,
            client_ca: Some(ca.clone()),
            root_ca: Some(ca.clone()),
            kubernetes_service_port: Some(16443),
            service_account_key: Some(SecretString::from(tokens)),
            kubernetes_version: "v1.34.2".to_owned(),
            ..Options::default()
        };
        Self {
            ca,
            issuer,
            options,
        }
    }

    /// Opens it in this process, over TLS.
    pub(crate) async fn open(&self) -> (Side, ApiServer) {
        let Self {
            ca,
            issuer,
            options,
        } = self;
        let (certificate, key) = {
            let key = KeyPair::generate().unwrap();
            let names = vec!["127.0.0.1".to_owned()];
            let params = CertificateParams::new(names).unwrap();
            (params.signed_by(&key, issuer).unwrap(), key)
        };
        let server = ApiServer::open(options.clone()).await.unwrap();
        let tls = server_config(&certificate.pem(), &key.serialize_pem(), Some(ca)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(listener, tls, CancellationToken::new()).await });

        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "system:admin");
        name.push(DnType::OrganizationName, "system:masters");
        let identity = params.signed_by(&key, issuer).unwrap().pem() + &key.serialize_pem();
        let side = Side {
            admin: client(ca, Some(&identity)),
            nobody: client(ca, None),
            url,
        };
        (side, server)
    }
}

impl Side {
    /// The kube-apiserver of `FERROSTACK_REAL_KUBECONFIG`, or that of `tests/kubernetes/up`.
    pub(crate) fn real() -> Result<Self, String> {
        let path = std::env::var_os("FERROSTACK_REAL_KUBECONFIG")
            .map_or_else(|| root().join("target/kubernetes/kubeconfig"), Into::into);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let config: Value = serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
        let cluster = &config["clusters"][0]["cluster"];
        let user = &config["users"][0]["user"];
        let ca = pem(cluster, "certificate-authority")?;
        let identity = pem(user, "client-certificate")? + &pem(user, "client-key")?;
        Ok(Self {
            url: cluster["server"].as_str().unwrap_or_default().to_owned(),
            admin: client(&ca, Some(&identity)),
            nobody: client(&ca, None),
        })
    }
}

/// PEM in a kubeconfig, or in the file that it names.
fn pem(fields: &Value, name: &str) -> Result<String, String> {
    if let Some(data) = fields[format!("{name}-data")].as_str() {
        let bytes = STANDARD.decode(data).map_err(|error| error.to_string())?;
        return String::from_utf8(bytes).map_err(|error| error.to_string());
    }
    let path = fields[name].as_str().ok_or(format!("no {name}"))?;
    std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

fn client(ca: &str, identity: Option<&str>) -> Client {
    // Another test may have been faster; either way it is there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ca = Certificate::from_pem(ca.as_bytes()).unwrap();
    let mut builder = Client::builder()
        .tls_certs_only([ca])
        .timeout(Duration::from_secs(60))
        .user_agent("differential/1.0");
    if let Some(identity) = identity {
        builder = builder.identity(Identity::from_pem(identity.as_bytes()).unwrap());
    }
    builder.build().unwrap()
}
