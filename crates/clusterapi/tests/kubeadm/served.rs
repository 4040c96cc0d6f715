//! API servers behind TLS, as real ones, and their certificates.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::kube::client::{ClientBuilder, ConfigExt as _};
use api::kube::{Client, Config};
use apiserver::{ApiServer, Options, UserInfo, server_config};
use futures::FutureExt as _;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, ServiceBuilder, service_fn};

use crate::world::NS;

/// The name of the API servers, and their version.
const HOST: &str = "127.0.0.1";
const VERSION: &str = "v1.34.1";

/// Serves until `stop`. The client has all permissions.
///
/// Connections are pipes of this process, with TLS: a runtime with paused time regards a task that waits for a socket
/// as idle, and advances to the timeout of the answer that the kernel is about to deliver.
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
    let (certificate, key) = certificate(&ca, &key, HOST);
    let serving = server_config(&certificate, &key, None).unwrap();
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(ca.as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let trusting = ClientConfig::builder().with_root_certificates(roots);
    let connector = TlsConnector::from(Arc::new(trusting.with_no_client_auth()));
    let wire = service_fn(move |_: http::Uri| {
        let (here, there) = tokio::io::duplex(1 << 16);
        let (server, tls) = (server.clone(), Arc::clone(&serving));
        let served = async move { server.serve_stream(there, tls, VERSION.into()).await };
        tokio::spawn(stop.clone().run_until_cancelled_owned(served));
        let opening = connector.connect(ServerName::try_from(HOST).unwrap(), here);
        async { opening.await.map(|stream| TokioIo::new(Pipe(stream))) }.boxed()
    });
    let mut config = Config::new(format!("http://{HOST}").parse().unwrap());
    config.auth_info.token = Some("admin".to_owned().into());
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().unwrap())
        .map_err(BoxError::from)
        .service(legacy::Client::builder(TokioExecutor::new()).build(wire));
    ClientBuilder::new(service, NS).build()
}

/// One end of a connection.
struct Pipe(TlsStream<DuplexStream>);

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
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

/// Certificate for `name` that expires in this many days, and its key, in PEM.
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
