use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use grpc::{Client, Code, Context, Limits, Services};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::sync::CancellationToken;

use crate::endpoint::{Endpoint, Error};
use crate::*;

const LIMIT: Duration = Duration::from_secs(60);

struct Driver;

impl Identity for Driver {
    fn get_plugin_info(
        &self,
        _: Context,
        _: GetPluginInfoRequest,
    ) -> Reply<'_, GetPluginInfoResponse> {
        Box::pin(ready(Ok(GetPluginInfoResponse {
            name: "cinder.csi.openstack.org".to_owned(),
            ..GetPluginInfoResponse::default()
        })))
    }
}

impl Controller for Driver {}

fn services() -> Arc<Services> {
    let driver = Arc::new(Driver);
    let services = Services::default().with(IdentityService(Arc::clone(&driver)));
    Arc::new(services.with(ControllerService(driver)))
}

fn parsed(text: &str) -> Result<Endpoint, String> {
    text.parse().map_err(|problem: Error| problem.to_string())
}

#[test]
fn an_endpoint_is_read_as_by_the_go_driver() {
    let unix = |path: &str| Endpoint::Unix(path.into());
    for (text, expected) in [
        ("unix://csi/csi.sock", unix("/csi/csi.sock")),
        ("unix:///csi/csi.sock", unix("/csi/csi.sock")),
        ("UNIX:////tmp/a b", unix("/tmp/a b")),
        ("tcp://127.0.0.1:0", Endpoint::Tcp("127.0.0.1:0".to_owned())),
        ("TCP://:10000", Endpoint::Tcp(":10000".to_owned())),
        ("tcp://[::1]:1", Endpoint::Tcp("[::1]:1".to_owned())),
    ] {
        assert_eq!(parsed(text), Ok(expected), "{text}");
    }
    for text in [
        "",
        "unix",
        "unix://",
        "unix:///",
        "unix:/csi.sock",
        "/csi/csi.sock",
        "http://a:1",
        "tcp://a",
        "tcp://a:70000",
        "tcp://a:port",
    ] {
        let problem = parsed(text).unwrap_err();
        assert!(problem.contains("is neither unix://"), "{text}: {problem}");
    }
}

#[tokio::test]
async fn a_driver_answers_on_its_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("csi.sock");
    let endpoint = Endpoint::Unix(path.clone());
    let stop = CancellationToken::new();
    for _ in 0..2 {
        // The second one finds the socket of the first.
        let listening = endpoint.listen().await.unwrap();
        tokio::spawn(listening.serve(services(), Limits::default(), stop.clone()));
    }
    let stream = UnixStream::connect(&path).await.unwrap();
    let client = Client::connect(stream, "http://csi", LIMIT, 1 << 20)
        .await
        .unwrap();
    let info = client.call(&GetPluginInfoRequest {}).await.unwrap();
    assert_eq!(info.name, "cinder.csi.openstack.org");
    let refused = client.call(&GetCapacityRequest::default()).await;
    let grpc::Error::Status(status) = refused.unwrap_err() else {
        panic!("no status");
    };
    assert_eq!(status.code, Code::Unimplemented);
    let refused = client.call(&NodeGetInfoRequest {}).await.unwrap_err();
    let words = "unknown method NodeGetInfo for service csi.v1.Node";
    assert_eq!(refused.to_string(), words);
    stop.cancel();
}

#[tokio::test]
async fn a_driver_that_stops_removes_its_socket_and_not_that_of_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("csi.sock");
    let endpoint = Endpoint::Unix(path.clone());
    let start = async || {
        let stop = CancellationToken::new();
        let listening = endpoint.listen().await.unwrap();
        let serving = listening.serve(services(), Limits::default(), stop.clone());
        (tokio::spawn(serving), stop)
    };
    let (old, new) = (start().await, start().await);
    old.1.cancel();
    old.0.await.unwrap();
    assert!(UnixStream::connect(&path).await.is_ok());
    new.1.cancel();
    new.0.await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn port_0_is_a_free_port() {
    let endpoint = parsed("tcp://127.0.0.1:0").unwrap();
    let listening = endpoint.listen().await.unwrap();
    let Endpoint::Tcp(address) = listening.endpoint().clone() else {
        panic!("no port");
    };
    let stop = CancellationToken::new();
    let serving = tokio::spawn(listening.serve(services(), Limits::default(), stop.clone()));
    let stream = TcpStream::connect(&address).await.unwrap();
    let client = Client::connect(stream, "http://csi", LIMIT, 1 << 20)
        .await
        .unwrap();
    client.call(&GetPluginInfoRequest {}).await.unwrap();
    stop.cancel();
    serving.await.unwrap();
    assert!(TcpStream::connect(&address).await.is_err());
}

/// The pods of nodes have the network of the host, which may have no IPv4.
#[tokio::test]
async fn a_port_alone_is_that_of_all_addresses() {
    let endpoint = parsed("tcp://:0").unwrap();
    let listening = endpoint.listen().await.unwrap();
    let Endpoint::Tcp(address) = listening.endpoint().clone() else {
        panic!("no port");
    };
    let port = address.rsplit(':').next().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(listening.serve(services(), Limits::default(), stop.clone()));
    let has_v6 = std::net::UdpSocket::bind("[::1]:0").is_ok();
    let hosts = ["127.0.0.1", "[::1]"];
    for host in &hosts[..if has_v6 { 2 } else { 1 }] {
        let stream = TcpStream::connect(format!("{host}:{port}")).await.unwrap();
        let client = Client::connect(stream, "http://csi", LIMIT, 1 << 20).await;
        let client = client.unwrap();
        client.call(&GetPluginInfoRequest {}).await.unwrap();
    }
    stop.cancel();
    serving.await.unwrap();
}

#[tokio::test]
async fn a_place_that_cannot_be_had_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let problem = Endpoint::Unix(file.clone()).listen().await.unwrap_err();
    assert!(problem.to_string().contains("is not a socket"), "{problem}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    let absent = directory.path().join("absent/csi.sock");
    let problem = Endpoint::Unix(absent).listen().await.unwrap_err();
    assert!(problem.to_string().contains("absent/csi.sock"), "{problem}");
}

#[test]
fn secrets_are_not_printed() {
    let request = CreateVolumeRequest {
        name: "pvc-1".to_owned(),
        secrets: BTreeMap::from([("password".to_owned(), "canary".to_owned())]),
        ..CreateVolumeRequest::default()
    };
    let printed = format!("{request:?}");
    assert!(
        printed.contains("pvc-1") && !printed.contains("canary"),
        "{printed}"
    );
    assert!(printed.contains("secrets: (1 hidden)"), "{printed}");
}
