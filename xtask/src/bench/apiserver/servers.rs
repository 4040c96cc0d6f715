//! Both servers, each with fresh data in separate processes: the embedded one, and kube-apiserver with etcd.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use hyper::Method;
use serde::Serialize;

use crate::https::{Access, certificates, free};
use crate::memory;

/// Timeout of a server's start.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server. Dropping it ends its processes.
pub(super) struct Server {
    pub(super) access: Access,
    /// From the start of the first process to the first 200 of `/readyz`.
    pub(super) start: Duration,
    processes: Vec<(&'static str, Child)>,
    directory: tempfile::TempDir,
}

/// Kind of a [`Server`].
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Embedded,
    /// kube-apiserver and etcd from this directory.
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
    /// Starts a server with its data in a new directory in `data`.
    pub(super) async fn start(kind: &Kind, data: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir_in(data)?;
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

    /// Resident memory of the processes.
    pub(super) fn rss(&self) -> anyhow::Result<Rss> {
        let all = self.processes.iter();
        let all = all.map(|(name, process)| Ok((*name, rss(process.id())?)));
        Ok(Rss(all.collect::<anyhow::Result<_>>()?))
    }

    /// Processor time of the processes since their start.
    pub(super) fn processor_time(&self) -> anyhow::Result<Duration> {
        let all = self.processes.iter();
        all.map(|(_, process)| processor_time(process.id())).sum()
    }
}

/// Resident megabytes of each process.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Rss(Vec<(&'static str, f64)>);

impl Rss {
    pub(super) fn sum(&self) -> f64 {
        self.0.iter().map(|(_, megabytes)| megabytes).sum()
    }
}

impl std::fmt::Display for Rss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, (name, megabytes)) in self.0.iter().enumerate() {
            let before = if n > 0 { ", " } else { "" };
            write!(f, "{before}{name} {megabytes:.0} MB")?;
        }
        Ok(())
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
pub(in crate::bench) fn rss(pid: u32) -> anyhow::Result<f64> {
    Ok(memory::resident(pid)?.0)
}

/// Processor time of a process: the 14th and 15th field of its `stat`, in ticks.
fn processor_time(pid: u32) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the name of the program in parentheses, possibly with spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|field| field.parse().unwrap_or(0)).sum();
    Ok(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second())?)
}

/// Storage of the data.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Disk {
    /// True for a file system in memory.
    memory: bool,
    /// Median time of a write of 4 KiB at the end of a file until the data is on disk.
    sync_microseconds: f64,
}

impl Disk {
    /// Storage of a directory, created if missing.
    pub(super) fn from_data(data: &Path) -> anyhow::Result<Self> {
        const TMPFS: u64 = 0x0102_1994;
        std::fs::create_dir_all(data)?;
        let mut file = tempfile::tempfile_in(data)?;
        let mut times = Vec::new();
        for _ in 0..100 {
            let begun = Instant::now();
            file.write_all(&[1; 4096])?;
            file.sync_data()?;
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let kind = u64::try_from(rustix::fs::statfs(data)?.f_type)?;
        Ok(Self {
            memory: kind == TMPFS,
            sync_microseconds: times[times.len() / 2].as_secs_f64() * 1e6,
        })
    }
}

impl std::fmt::Display for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            memory,
            sync_microseconds,
        } = self;
        match memory {
            true => f.write_str("in memory, where nothing waits for a disk"),
            false => write!(
                f,
                "on a disk that takes {sync_microseconds:.0} µs for 4 KiB and fdatasync"
            ),
        }
    }
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

/// Starts kube-apiserver and etcd as `tests/kubernetes/up` does.
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
