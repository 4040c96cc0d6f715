//! The two servers, each with fresh data and in processes of its own: the embedded one, and kube-apiserver with etcd.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use hyper::Method;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::client::Access;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server. Dropping it ends its processes.
pub(super) struct Server {
    pub(super) access: Access,
    /// From the start of the first process to the first 200 of `/readyz`.
    pub(super) start: Duration,
    processes: Vec<(&'static str, Child)>,
    directory: tempfile::TempDir,
}

/// Which server.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Embedded,
    /// With the directory of kube-apiserver and etcd.
    Real(PathBuf),
}

impl Kind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Real(_) => "kube-apiserver",
        }
    }
}

impl Server {
    pub(super) async fn start(kind: &Kind) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let tls = Arc::new(certificates(directory.path())?);
        let begun = Instant::now();
        let (address, processes) = match kind {
            Kind::Embedded => embedded(directory.path())?,
            Kind::Real(programs) => real(directory.path(), programs)?,
        };
        let access = Access { address, tls };
        let mut server = Self {
            access,
            start: Duration::ZERO,
            processes,
            directory,
        };
        server.answers("/readyz", begun).await?;
        server.start = begun.elapsed();
        server.answers("/api/v1/namespaces/default", begun).await?;
        Ok(server)
    }

    async fn answers(&mut self, path: &str, begun: Instant) -> anyhow::Result<()> {
        loop {
            let asked = async {
                let mut client = self.access.connect().await?;
                client.call(Method::GET, path, Bytes::new()).await
            };
            if asked.await.is_ok() {
                return Ok(());
            }
            for (name, process) in &mut self.processes {
                if let Some(status) = process.try_wait()? {
                    let log = self.directory.path().join(format!("{name}.log"));
                    let log = std::fs::read_to_string(log).unwrap_or_default();
                    let last: Vec<&str> = log.lines().rev().take(5).collect();
                    bail!("{name} ended: {status}\n{}", last.join("\n"));
                }
            }
            if begun.elapsed() > PATIENCE {
                bail!("{path} is not answered after {PATIENCE:?}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Resident memory of each process, in megabytes.
    pub(super) fn rss(&self) -> anyhow::Result<Vec<(&'static str, f64)>> {
        let all = self.processes.iter();
        all.map(|(name, process)| Ok((*name, rss(process.id())?)))
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for (_, process) in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Resident memory of a process now, in megabytes.
pub(super) fn rss(pid: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes: f64 = line
        .and_then(|line| line.split_whitespace().next())
        .context("VmRSS in /proc/PID/status")?
        .parse()?;
    Ok(kibibytes * 1024.0 / 1e6)
}

fn embedded(directory: &Path) -> anyhow::Result<(SocketAddr, Vec<(&'static str, Child)>)> {
    let mut process = Command::new(std::env::current_exe()?)
        .args(["bench", "apiserver", "--serve"])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let out = process.stdout.take().context("the output of the server")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    let address = line
        .trim()
        .parse()
        .with_context(|| format!("the server says `{}`", line.trim()))?;
    Ok((address, vec![("apiserver", process)]))
}

/// As `tests/kubernetes/up` starts them.
fn real(
    directory: &Path,
    programs: &Path,
) -> anyhow::Result<(SocketAddr, Vec<(&'static str, Child)>)> {
    let (api, etcd, peer) = (free()?, free()?, free()?);
    let log = |name: &str| std::fs::File::create(directory.join(name));
    let start = |name: &'static str, arguments: &[String]| -> anyhow::Result<Child> {
        Command::new(programs.join(name))
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(log(&format!("{name}.out"))?)
            .stderr(log(&format!("{name}.log"))?)
            .spawn()
            .with_context(|| name.to_owned())
    };
    let clients = format!("http://{etcd}");
    let first = start(
        "etcd",
        &[
            "--data-dir=etcd".to_owned(),
            "--log-level=warn".to_owned(),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls=http://{peer}"),
        ],
    )?;
    let flags = [
        "--bind-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/12",
        "--tls-cert-file=server.crt",
        "--tls-private-key-file=server.key",
        "--client-ca-file=ca.crt",
        "--service-account-key-file=server.pub",
        "--service-account-signing-key-file=server.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--authorization-mode=Node,RBAC",
    ];
    let mut arguments: Vec<String> = flags.map(str::to_owned).to_vec();
    arguments.push(format!("--etcd-servers={clients}"));
    arguments.push(format!("--secure-port={}", api.port()));
    let second = start("kube-apiserver", &arguments)?;
    Ok((api, vec![("etcd", first), ("kube-apiserver", second)]))
}

/// An address that was free a moment ago.
fn free() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Writes ca.crt, server.crt and server.key, and returns how an administrator connects.
fn certificates(directory: &Path) -> anyhow::Result<rustls::ClientConfig> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "bench");
    let key = KeyPair::generate()?;
    let ca = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    let server_key = KeyPair::generate()?;
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let server = CertificateParams::new(names)?.signed_by(&server_key, &issuer)?;
    let admin_key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "admin");
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let admin = params.signed_by(&admin_key, &issuer)?;
    for (name, text) in [
        ("ca.crt", ca.clone()),
        ("server.crt", server.pem()),
        ("server.key", server_key.serialize_pem()),
        ("server.pub", server_key.public_key_pem()),
    ] {
        std::fs::write(directory.join(name), text)?;
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes())?)?;
    let key = PrivateKeyDer::from_pem_slice(admin_key.serialize_pem().as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![admin.der().clone()], key)?)
}
