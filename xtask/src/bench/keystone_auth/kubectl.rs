//! kubectl with the exec plugin: milliseconds of a call, beside a call with a token in the kubeconfig.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::bench::csi::percentile;
use crate::keystone::webhook::Program;
use crate::keystone::world::World;
use crate::simulated::PASSWORD;

/// Number of calls of each kind.
const CALLS: usize = 30;
const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// Medians in milliseconds. The three kinds take turns, for equal conditions.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figures {
    /// Call with a token in the kubeconfig.
    pub(super) token: f64,
    /// Additional time of a login by the plugin.
    pub(super) login: f64,
    /// Additional time with a token from the plugin's cache; `None` for the Go one, which has no cache.
    pub(super) kept: Option<f64>,
}

/// Measures; `None` without a kubectl in the directory.
pub(super) async fn measure(
    program: &Program,
    world: &World,
    tools: &Path,
) -> anyhow::Result<Option<Figures>> {
    let kubectl = std::path::absolute(tools)?.join("kubectl");
    if !kubectl.exists() {
        return Ok(None);
    }
    crate::report(&format!("{}: kubectl with the exec plugin", program.name));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = format!("https://{}", listener.local_addr()?);
    let serving = tokio::spawn(serve(listener, acceptor(world.directory())?));
    let home = tempfile::tempdir()?;
    let mut kinds = vec![("token", json!({"token": "gAAAA"}))];
    kinds.push(("login", exec(program, &[])));
    if program.name == "here" {
        kinds.push(("kept", exec(program, &["--cache"])));
    }
    for (name, user) in &kinds {
        let config = kubeconfig(&server, world.directory(), user);
        std::fs::write(home.path().join(name), config)?;
    }
    let mut times = vec![Vec::new(); kinds.len()];
    // The first calls fill caches of the machine and of the plugin.
    for round in 0..=CALLS {
        for ((name, _), times) in kinds.iter().zip(&mut times) {
            let mut command = Command::new(&kubectl);
            command
                .args(["get", "--raw", "/readyz", "--kubeconfig"])
                .arg(home.path().join(name))
                .env_clear()
                .env("HOME", home.path())
                .env("OS_AUTH_URL", world.keystone())
                .env("OS_USERNAME", "demo")
                .env("OS_PASSWORD", PASSWORD)
                .env("OS_PROJECT_NAME", "demo")
                .env("OS_DOMAIN_NAME", "Default");
            let (time, ended) = tokio::task::spawn_blocking(move || {
                let begun = Instant::now();
                let ended = command.stdin(Stdio::null()).output();
                (begun.elapsed(), ended)
            })
            .await?;
            let ended = ended?;
            if !ended.status.success() {
                let words = String::from_utf8_lossy(&ended.stderr).into_owned();
                bail!("{}: kubectl: {words}", program.name);
            }
            if round > 0 {
                times.push(time.as_secs_f64() * 1000.0);
            }
        }
    }
    serving.abort();
    let medians: Vec<f64> = times.iter_mut().map(|it| percentile(it, 0.5)).collect();
    let token = medians[0];
    Ok(Some(Figures {
        token,
        login: medians[1] - token,
        kept: medians.get(2).map(|it| it - token),
    }))
}

fn exec(program: &Program, arguments: &[&str]) -> serde_json::Value {
    let plugin = program.plugin();
    let before = plugin.get_args().map(|it| it.to_string_lossy());
    let all: Vec<String> = before
        .chain(arguments.iter().map(|it| (*it).into()))
        .map(Into::into)
        .collect();
    json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "interactiveMode": "Never",
        "command": plugin.get_program().to_string_lossy(), "args": all}})
}

/// Kubeconfig, as JSON.
fn kubeconfig(server: &str, directory: &Path, user: &serde_json::Value) -> String {
    json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": directory.join("ca.crt")}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]})
    .to_string()
}

fn acceptor(directory: &Path) -> anyhow::Result<TlsAcceptor> {
    let certificate = CertificateDer::from_pem_file(directory.join("server.crt"))?;
    let key = PrivateKeyDer::from_pem_file(directory.join("server.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .context("the certificate of the server")?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// API server that answers every request with `ok`.
async fn serve(listener: TcpListener, acceptor: TlsAcceptor) {
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        // A client may close the connection; kubectl would report a real failure.
        tokio::spawn(async move { answer(stream, &acceptor).await.ok() });
    }
}

async fn answer(stream: TcpStream, acceptor: &TlsAcceptor) -> anyhow::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut request = Vec::new();
    while !request.windows(4).any(|it| it == b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    stream.write_all(ANSWER.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(())
}
