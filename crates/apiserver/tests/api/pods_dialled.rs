//! Kubelets in processes of their own: requests for logs, commands and ports are passed on over TLS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiserver::{ApiServer, KubeletClient, Options};
use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _, stream};
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::{PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::pods::PODS;
use crate::pods_forwarded::Site;
use crate::support::*;

const LIMIT: Duration = Duration::from_secs(30);

/// Requests to a kubelet.
#[derive(Clone, Debug)]
struct Asked {
    method: Method,
    target: String,
    headers: HeaderMap,
}

/// Kubelet that accepts clients with a certificate of its authority. A pod named after a status code gets this code
/// as the answer; upgraded connections are echoed.
struct Fake {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    authority: Authority,
}

struct Authority {
    pem: String,
    der: rustls_pki_types::CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "nodes");
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap();
        Self {
            pem: ca.pem(),
            der: ca.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    fn certify(
        &self,
        names: &[&str],
        purpose: ExtendedKeyUsagePurpose,
    ) -> (rcgen::Certificate, KeyPair) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// Client with a certificate of this authority, and with trust in `kubelets`.
    fn client(&self, kubelets: &Self) -> KubeletClient {
        let (certificate, key) = self.certify(&[], ExtendedKeyUsagePurpose::ClientAuth);
        let key = key.serialize_pem().into();
        let client = KubeletClient::new(&kubelets.pem, &certificate.pem(), &key).unwrap();
        client.preferring(vec!["InternalIP".to_owned()]).unwrap()
    }
}

impl Fake {
    async fn start() -> Self {
        let authority = Authority::new();
        let (certificate, key) =
            authority.certify(&["127.0.0.1"], ExtendedKeyUsagePurpose::ServerAuth);
        let mut roots = RootCertStore::empty();
        roots.add(authority.der.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request| {
                        let seen = Arc::clone(&seen);
                        async move { Ok::<_, std::convert::Infallible>(answer(&seen, request)) }
                    });
                    let serving = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    let _ = serving.with_upgrades().await;
                });
            }
        });
        Self {
            address,
            asked,
            authority,
        }
    }

    /// Options of a server that reaches this kubelet.
    fn reached(&self) -> Options {
        Options {
            kubelet_client: Some(self.authority.client(&self.authority)),
            ..Options::default()
        }
    }

    fn last(&self) -> Asked {
        self.asked.lock().unwrap().last().unwrap().clone()
    }

    /// A Node with this kubelet, and pods on it.
    async fn furnish(&self, server: &ApiServer) {
        let node = json!({"metadata": {"name": "real"}});
        assert_eq!(post(server, "/api/v1/nodes", &node).await.0, 201);
        let status = json!({"status": {
            "addresses": [
                {"type": "Hostname", "address": "host.invalid"},
                {"type": "InternalIP", "address": "127.0.0.1"},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.address.port()}},
        }});
        let path = "/api/v1/nodes/real/status";
        assert_eq!(patch(server, path, MERGE, &status).await.0, 200);
        for name in ["web", "400", "403", "404", "500"] {
            let pod = json!({
                "metadata": {"name": name},
                "spec": {"nodeName": "real", "containers": [{"name": "c", "image": "i"}]},
            });
            assert_eq!(post(server, PODS, &pod).await.0, 201);
        }
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, std::convert::Infallible>>;

fn answer(seen: &Mutex<Vec<Asked>>, mut request: Request<Incoming>) -> Answer {
    seen.lock().unwrap().push(Asked {
        method: request.method().clone(),
        target: request.uri().to_string(),
        headers: request.headers().clone(),
    });
    let pod = request.uri().path().split('/').nth(3).unwrap_or_default();
    let text = |code: u16, text: &str| -> Answer {
        let mut response = Response::new(Full::from(text.to_owned()).boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        response
    };
    if let Ok(code) = pod.parse() {
        return text(code, "why not");
    }
    let Some(protocol) = request.headers().get(UPGRADE).cloned() else {
        if request
            .uri()
            .query()
            .is_some_and(|query| query.contains("follow=true"))
        {
            let first = stream::iter([Ok(Frame::data(Bytes::from("first\n")))]);
            let body = StreamBody::new(first.chain(stream::pending()));
            return Response::new(body.boxed_unsync());
        }
        return text(200, &format!("{}\n", request.uri().path()));
    };
    let upgrading = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let connection = TokioIo::new(upgrading.await.unwrap());
        let (mut read, mut write) = tokio::io::split(connection);
        let _ = tokio::io::copy(&mut read, &mut write).await;
        let _ = write.shutdown().await;
    });
    let mut response = text(101, "");
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, protocol);
    headers.insert(
        "x-stream-protocol-version",
        HeaderValue::from_static("agreed"),
    );
    response
}

/// A TLS connection to the server of a site.
async fn connect(site: &Site) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(site.ca.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = site.url.strip_prefix("https://").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.unwrap()
}

async fn site(kubelet: &Fake) -> Site {
    let site = Site::with(kubelet.reached()).await;
    kubelet.furnish(&site.server).await;
    site
}

#[tokio::test]
async fn a_log_is_asked_of_the_kubelet_that_the_status_of_the_node_names() {
    let kubelet = Fake::start().await;
    let server = ApiServer::open(kubelet.reached()).await.unwrap();
    kubelet.furnish(&server).await;
    let query =
        "container=c&tailLines=3&timestamps=true&previous=true&limitBytes=10&sinceSeconds=60";
    let (code, text) = get(&server, &format!("{PODS}/web/log?{query}")).await;
    assert_eq!((code, text), (200, json!("/containerLogs/default/web/c\n")));
    let asked = kubelet.last();
    assert_eq!(asked.method, Method::GET);
    assert_eq!(
        asked.target,
        "/containerLogs/default/web/c?limitBytes=10&previous=true&sinceSeconds=60&tailLines=3&timestamps=true"
    );
    assert_eq!(asked.headers["host"], kubelet.address.to_string().as_str());
}

#[tokio::test]
async fn a_log_that_is_followed_comes_as_it_is_written_and_ends_with_the_server() {
    let kubelet = Fake::start().await;
    let server = ApiServer::open(kubelet.reached()).await.unwrap();
    kubelet.furnish(&server).await;
    let path = format!("{PODS}/web/log?follow=true");
    let mut body = send(&server, Method::GET, &path, &[], "").await.into_body();
    let first = tokio::time::timeout(LIMIT, body.frame()).await.unwrap();
    assert_eq!(first.unwrap().unwrap().into_data().unwrap(), "first\n");
    server.close().await;
    let end = tokio::time::timeout(LIMIT, body.frame()).await.unwrap();
    assert!(end.is_none());
}

#[tokio::test]
async fn what_a_kubelet_refuses_is_given_as_by_the_real_server() {
    let kubelet = Fake::start().await;
    let server = ApiServer::open(kubelet.reached()).await.unwrap();
    kubelet.furnish(&server).await;
    for (pod, reason, message) in [
        (400, "BadRequest", "why not"),
        (403, "Forbidden", "why not ( pods/log 403)"),
        (
            404,
            "NotFound",
            "the server could not find the requested resource ( pods/log 404)",
        ),
        (500, "InternalError", "Internal error occurred: why not"),
    ] {
        let (code, status) = get(&server, &format!("{PODS}/{pod}/log")).await;
        assert_eq!(code, pod);
        assert_eq!(
            (&status["reason"], &status["message"]),
            (&json!(reason), &json!(message))
        );
    }
}

#[tokio::test]
async fn a_kubelet_of_another_authority_is_not_trusted_and_one_that_does_not_trust_the_server_is_no_answer()
 {
    let kubelet = Fake::start().await;
    let stranger = Authority::new();
    for (client, words) in [
        (
            kubelet.authority.client(&stranger),
            "invalid peer certificate",
        ),
        (stranger.client(&kubelet.authority), ""),
    ] {
        let options = Options {
            kubelet_client: Some(client),
            ..Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        kubelet.furnish(&server).await;
        let (code, status) = get(&server, &format!("{PODS}/web/log")).await;
        assert_eq!(code, 500);
        let message = status["message"].as_str().unwrap();
        let begins = format!(
            "Get \"https://{}/containerLogs/default/web/c\": ",
            kubelet.address
        );
        assert!(message.starts_with(&begins), "{message}");
        assert!(message.contains(words), "{message}");
        assert!(kubelet.asked.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_command_is_passed_as_bytes_and_without_the_credentials_of_the_client() {
    let kubelet = Fake::start().await;
    let site = site(&kubelet).await;
    let mut stream = connect(&site).await;
    let request = format!(
        "POST {PODS}/web/exec?command=cat&command=-&stdin=true&stdout=true HTTP/1.1\r\nHost: api\r\n\
         Authorization: Bearer admin\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
         X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = tokio::time::timeout(LIMIT, stream.read_u8()).await.unwrap();
        head.push(byte.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(
        head.contains("x-stream-protocol-version: agreed\r\n"),
        "{head}"
    );
    stream.write_all(b"any bytes").await.unwrap();
    let mut heard = [0; 9];
    let reading = stream.read_exact(&mut heard);
    tokio::time::timeout(LIMIT, reading).await.unwrap().unwrap();
    assert_eq!(&heard, b"any bytes");

    let asked = kubelet.last();
    assert_eq!(asked.method, Method::POST);
    assert_eq!(
        asked.target,
        "/exec/default/web/c?command=cat&command=-&input=1&output=1"
    );
    assert_eq!(
        asked.headers["x-stream-protocol-version"],
        "v4.channel.k8s.io"
    );
    assert!(asked.headers.get("authorization").is_none());
}

#[tokio::test]
async fn what_a_kubelet_says_against_a_command_reaches_the_client() {
    let kubelet = Fake::start().await;
    let site = site(&kubelet).await;
    let upgrade = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    let path = format!("{PODS}/404/attach?stdout=true");
    let answer = send(&site.server, Method::POST, &path, &upgrade, "").await;
    assert_eq!(read(answer).await, (404, json!("why not")));
    assert_eq!(kubelet.last().target, "/attach/default/404/c?output=1");

    // Through a WebSocket it comes in the channel for errors, as the connection is one already.
    let mut client = websocket(
        &site,
        "404/exec?command=id&stdout=true",
        "v5.channel.k8s.io",
    )
    .await;
    let frame = tokio::time::timeout(LIMIT, client.next()).await.unwrap();
    let frame = frame.unwrap().unwrap().into_data();
    assert_eq!(frame[0], 3);
    let status: Value = serde_json::from_slice(&frame[1..]).unwrap();
    assert_eq!(
        status["message"],
        "Internal error occurred: unable to upgrade connection: why not"
    );
    let protocol = &kubelet.last().headers["x-stream-protocol-version"];
    assert_eq!(protocol, "v4.channel.k8s.io");
}

#[tokio::test]
async fn ports_are_forwarded_from_the_messages_of_a_websocket_to_the_kubelet() {
    let kubelet = Fake::start().await;
    let site = site(&kubelet).await;
    let protocol = "SPDY/3.1+portforward.k8s.io";
    let mut client = websocket(&site, "web/portforward", protocol).await;
    let sent = vec![7; 100_000];
    client.send(Message::binary(sent.clone())).await.unwrap();
    let mut heard = Vec::new();
    while heard.len() < sent.len() {
        let piece = tokio::time::timeout(LIMIT, client.next()).await.unwrap();
        heard.extend_from_slice(&piece.unwrap().unwrap().into_data());
    }
    assert!(heard == sent);
    let asked = kubelet.last();
    assert_eq!(asked.target, "/portForward/default/web");
    assert_eq!(asked.headers["upgrade"], "SPDY/3.1");
    assert_eq!(
        asked.headers["x-stream-protocol-version"],
        "portforward.k8s.io"
    );
}

async fn websocket(
    site: &Site,
    path: &str,
    protocol: &'static str,
) -> tokio_tungstenite::WebSocketStream<tokio_rustls::client::TlsStream<TcpStream>> {
    let url = format!("wss://api{PODS}/{path}");
    let mut request = url.into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("authorization", HeaderValue::from_static("Bearer admin"));
    headers.insert("sec-websocket-protocol", HeaderValue::from_static(protocol));
    let stream = connect(site).await;
    let (client, answer) = tokio_tungstenite::client_async(request, stream)
        .await
        .unwrap();
    assert_eq!(answer.headers()["sec-websocket-protocol"], protocol);
    client
}

#[tokio::test]
async fn a_nodes_proxy_leads_to_its_kubelet() {
    let kubelet = Fake::start().await;
    let server = ApiServer::open(kubelet.reached()).await.unwrap();
    kubelet.furnish(&server).await;
    let path = "/api/v1/nodes/real/proxy";
    let (code, text) = get(&server, &format!("{path}/stats/summary?only=c%2Fd")).await;
    assert_eq!((code, text), (200, json!("/stats/summary\n")));
    assert_eq!(kubelet.last().target, "/stats/summary?only=c%2Fd");
    let answer = send(&server, Method::GET, path, &[], "").await;
    assert_eq!(answer.status(), 301);
    assert_eq!(answer.headers()["location"], "/api/v1/nodes/real/proxy/");
    let (code, status) = get(&server, "/api/v1/nodes/absent/proxy/pods").await;
    assert_eq!(
        (code, &status["message"]),
        (404, &json!("nodes \"absent\" not found"))
    );
}
