//! Ports of pods, forwarded over TLS to the clients that there are: kube-rs and kubectl.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use apiserver::{ApiServer, Options, UserInfo, server_config};
use base64::Engine as _;
use k8s_openapi::api::core::v1::Pod;
use kube::config::{AuthInfo, Config};
use kube::{Api, Client};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::pods::{furnish, simulated};

const LIMIT: Duration = Duration::from_secs(30);

/// A server over TLS with pods, whose administrator has the token `admin`.
pub(crate) struct Site {
    pub(crate) server: ApiServer,
    pub(crate) url: String,
    pub(crate) ca: rcgen::Certificate,
    stop: CancellationToken,
}

impl Site {
    async fn start() -> Self {
        Self::with(simulated()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let serving_key = KeyPair::generate().unwrap();
        let names = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = names.signed_by(&serving_key, &issuer).unwrap();
        let tls = server_config(&certificate.pem(), &serving_key.serialize_pem(), None).unwrap();
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
        furnish(&server).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let (serving, until) = (server.clone(), stop.clone());
        tokio::spawn(async move { serving.serve(listener, tls, until).await });
        Self {
            server,
            url,
            ca,
            stop,
        }
    }

    fn pods(&self) -> Api<Pod> {
        // A second installation is refused, and the first one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::new(self.url.parse().unwrap());
        config.root_cert = Some(vec![self.ca.der().to_vec()]);
        config.auth_info = AuthInfo {
            token: Some("admin".to_owned().into()),
            ..AuthInfo::default()
        };
        Api::namespaced(Client::try_from(config).unwrap(), "default")
    }

    /// A kubeconfig of the administrator, in a directory of its own.
    fn kubeconfig(&self) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        let ca = base64::engine::general_purpose::STANDARD.encode(self.ca.pem());
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: c,\
             clusters: [{{name: c, cluster: {{server: '{}', certificate-authority-data: {ca}}}}}],\
             users: [{{name: c, user: {{token: admin}}}}],\
             contexts: [{{name: c, context: {{cluster: c, user: c}}}}]}}",
            self.url
        );
        std::fs::write(&path, text).unwrap();
        (directory, path)
    }
}

/// kubectl as built by `tests/kubernetes/kubectl`; `None`, with a notice, if not built.
fn kubectl(kubeconfig: &Path) -> Option<Command> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/kubectl");
    if !path.exists() {
        skipped::because("no kubectl; build it with tests/kubernetes/kubectl");
        return None;
    }
    let mut command = Command::new(path);
    command.arg("--kubeconfig").arg(kubeconfig);
    command.env("HOME", kubeconfig.parent().unwrap());
    command.stdin(Stdio::null()).kill_on_drop(true);
    Some(command)
}

/// The local port of a `kubectl port-forward` that has begun.
async fn local_port(child: &mut Child) -> u16 {
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let line = tokio::time::timeout(LIMIT, lines.next_line()).await;
    let line = line.unwrap().unwrap().expect("kubectl says where");
    let port = line
        .strip_prefix("Forwarding from 127.0.0.1:")
        .expect(&line);
    port.split(' ').next().unwrap().parse().unwrap()
}

/// Echo of `sent`, until the end.
async fn echo<S>(mut stream: S, sent: &[u8]) -> Vec<u8>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut heard = vec![0; sent.len()];
    let (mut read, mut write) = tokio::io::split(&mut stream);
    let both = async {
        tokio::join!(async { write.write_all(sent).await.unwrap() }, async {
            read.read_exact(&mut heard).await.unwrap();
        })
    };
    tokio::time::timeout(LIMIT, both).await.unwrap();
    heard
}

/// More than any buffer on the way holds.
fn much() -> Vec<u8> {
    (0..3_000_000u32).map(|n| (n % 251) as u8).collect()
}

#[tokio::test]
async fn kube_rs_forwards_ports_and_is_told_which_one_refuses() {
    let site = Site::start().await;
    let pods = site.pods();
    let mut forwarder = pods.portforward("p", &[7, 9]).await.unwrap();
    let refused = forwarder.take_error(9).unwrap();
    let words = tokio::time::timeout(LIMIT, refused).await.unwrap().unwrap();
    let (before, after) = words.split_once("uid ").unwrap();
    assert_eq!(before, "error forwarding port 9 to pod p, ");
    assert!(after.ends_with(": dial tcp4 127.0.0.1:9: connect: connection refused"));
    let stream = forwarder.take_stream(7).unwrap();
    assert!(echo(stream, &much()).await == much());
    forwarder.abort();

    let mut lines = pods.log_stream("p", &Default::default()).await.unwrap();
    let mut text = String::new();
    futures::AsyncReadExt::read_to_string(&mut lines, &mut text)
        .await
        .unwrap();
    assert_eq!(text, "p/c starts\nit runs\n");
    let problem = pods.portforward("free", &[7]).await.err().unwrap();
    let words = "pod free does not have a host assigned";
    assert!(problem.to_string().contains(words), "{problem}");
    site.stop.cancel();
}

#[tokio::test]
async fn a_forwarded_port_ends_with_the_server() {
    let site = Site::start().await;
    let mut forwarder = site.pods().portforward("p", &[7]).await.unwrap();
    let mut stream = forwarder.take_stream(7).unwrap();
    stream.write_all(b"x").await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'x');
    site.server.clone().close().await;
    let end = tokio::time::timeout(LIMIT, stream.read_u8()).await.unwrap();
    assert!(end.is_err(), "the connection is over");
}

#[tokio::test]
async fn kubectl_forwards_ports_through_a_websocket_and_through_spdy() {
    let site = Site::start().await;
    let (_directory, kubeconfig) = site.kubeconfig();
    let sent = much();
    for websockets in ["true", "false"] {
        let Some(mut command) = kubectl(&kubeconfig) else {
            return;
        };
        command.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets);
        command.args(["port-forward", "pod/p", ":7", "--address=127.0.0.1"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let port = local_port(&mut child).await;
        // One connection after the other, and two at once.
        for _ in 0..2 {
            let first = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let second = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let (one, two) = tokio::join!(echo(first, &sent), echo(second, b"short"));
            assert!(one == sent, "websockets: {websockets}");
            assert_eq!(two, b"short");
        }
        child.kill().await.unwrap();
    }
    site.stop.cancel();
}

#[tokio::test]
async fn kubectl_shows_why_a_port_refuses() {
    let site = Site::start().await;
    let (_directory, kubeconfig) = site.kubeconfig();
    let Some(mut command) = kubectl(&kubeconfig) else {
        return;
    };
    command.args(["port-forward", "pod/p", ":9", "--address=127.0.0.1"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let port = local_port(&mut child).await;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let mut heard = Vec::new();
    let _ = tokio::time::timeout(LIMIT, stream.read_to_end(&mut heard)).await;
    assert!(heard.is_empty());
    // kubectl ends when a connection to the pod fails.
    let output = tokio::time::timeout(LIMIT, child.wait_with_output()).await;
    let output = output.unwrap().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        printed.contains("error forwarding port 9 to pod p, uid "),
        "{printed}"
    );
    assert!(printed.contains("connect: connection refused"), "{printed}");
}

#[tokio::test]
async fn kubectl_reads_logs_and_is_told_that_nothing_runs() {
    let site = Site::start().await;
    let (_directory, kubeconfig) = site.kubeconfig();
    for (arguments, printed, complained) in [
        (&["logs", "p"][..], "p/c starts\nit runs\n", ""),
        (
            &["logs", "p", "--tail=1", "--follow"],
            "it runs\nit ends\n",
            "",
        ),
        (
            &["logs", "p", "--timestamps", "--tail=1"],
            "1970-01-01T00:00:02.000000000Z it runs\n",
            "",
        ),
        (
            &["logs", "two", "--container=b"],
            "two/b starts\nit runs\n",
            "",
        ),
        (
            &["logs", "p", "--previous"],
            "",
            "Error from server (BadRequest): previous terminated container \"c\" in pod \"p\" not found\n",
        ),
        (&["logs", "free"], "", ""),
        (
            &["exec", "p", "--", "id"],
            "",
            "the server does not allow exec on pods: its pods are objects without processes, in which nothing can be run\n",
        ),
    ] {
        let Some(mut command) = kubectl(&kubeconfig) else {
            return;
        };
        let output = command.args(arguments).output().await.unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert_eq!(out, printed, "{arguments:?}: {err}");
        assert!(err.ends_with(complained), "{arguments:?}: {err}");
        assert_eq!(
            output.status.success(),
            complained.is_empty(),
            "{arguments:?}: {err}"
        );
    }
}
