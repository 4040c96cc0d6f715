//! Driver as a process, and its client.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use csi_spec::ProbeRequest;
use grpc::Client;
use tokio::net::UnixStream;

use super::world::World;
use crate::memory;

/// Timeout of a call.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// Timeout of a start.
const START: Duration = Duration::from_secs(60);
/// Maximum size of an answer, in bytes.
const LARGEST: usize = 16 << 20;

/// Program with a driver.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// Path of the Go driver.
    Go(PathBuf),
    /// Path of `ferrostack`.
    Here(PathBuf),
}

impl Program {
    /// Name in messages: `Go` or `here`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Go(_) => "Go",
            Self::Here(_) => "here",
        }
    }

    fn command(&self) -> Command {
        match self {
            Self::Go(path) => Command::new(path),
            Self::Here(path) => {
                let mut command = Command::new(path);
                command.arg("cinder-csi-plugin");
                command
            }
        }
    }
}

/// Service of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Controller,
    Node,
}

/// Running driver. Dropping ends the process.
pub(crate) struct Driver {
    child: Child,
    client: Client,
}

impl Driver {
    /// Starts a [`Program`] in the directory of the world, with `name` for its socket and its log, and waits for its
    /// readiness.
    pub(crate) async fn start(
        program: &Program,
        half: Half,
        world: &World,
        name: &str,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let socket = world.directory().join(format!("{name}.sock"));
        let log = std::fs::File::create(world.directory().join(format!("{name}.log")))?;
        let without = match half {
            Half::Controller => "--provide-node-service=false",
            Half::Node => "--provide-controller-service=false",
        };
        let child = program
            .command()
            .arg(format!("--endpoint=unix://{}", socket.display()))
            .arg(format!("--cloud-config={}", world.conf().display()))
            .args(["--cluster=test", "-v=2", without])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("{program:?}"))?;
        let mut child = Guard(Some(child));
        let begun = Instant::now();
        let client = loop {
            match connect(&socket, patience).await {
                Ok(client) => break client,
                Err(error) if begun.elapsed() > START => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let is_ready = async || {
            let probed = client.call(&ProbeRequest {}).await;
            probed.is_ok_and(|it| it.ready != Some(false))
        };
        while !is_ready().await {
            if begun.elapsed() > START {
                bail!("the driver ({}) is not ready", program.name());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let child = child.0.take().context("the process")?;
        Ok(Self { child, client })
    }

    /// gRPC client of the driver.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Resident memory of the process, and its part without a file behind it, in megabytes.
    pub(crate) fn memory(&self) -> anyhow::Result<(f64, f64)> {
        memory::resident(self.child.id())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Child process, killed on drop unless taken.
struct Guard(Option<Child>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
        }
    }
}

fn end(child: &mut Child) {
    // Without effect if the process has ended.
    let _ = child.kill();
    let _ = child.wait();
}

async fn connect(socket: &Path, patience: Duration) -> anyhow::Result<Client> {
    let stream = UnixStream::connect(socket).await?;
    Ok(Client::connect(stream, "http://localhost", patience, LARGEST).await?)
}
