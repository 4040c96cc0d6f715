//! Program that runs servers as machines.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use simulator::data_plane::DataPlane;
use simulator::guest::Outside;
use simulator::machine::Servers;
use simulator::runner::{self, Runners};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Guest runner, and the address of the metadata service for its machines.
#[derive(Clone, Debug)]
pub struct Program {
    /// Path of the program.
    pub path: PathBuf,
    /// A free port of 127.0.0.1 if absent.
    pub metadata_address: Option<SocketAddr>,
}

impl Program {
    /// Checks that the program can be executed.
    ///
    /// # Errors
    /// If the file is missing, or not executable.
    pub fn check(&self) -> anyhow::Result<()> {
        check(&self.path)
    }
}

/// Starts the machines of a [`DataPlane`], with their disks in `directory`, as [`Runners`].
///
/// # Errors
/// If the address of the metadata service is taken, or the directory cannot be used.
pub async fn machines(
    world: watch::Receiver<Arc<DataPlane>>,
    servers: Arc<dyn Servers>,
    program: &Program,
    directory: PathBuf,
    outside: Outside,
    shutdown: CancellationToken,
) -> anyhow::Result<Runners> {
    let address = program
        .metadata_address
        .unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let metadata = TcpListener::bind(address)
        .await
        .with_context(|| format!("--metadata-address {address}: cannot listen there"))?;
    let options = runner::Options {
        outside,
        ..runner::Options::new(program.path.clone(), directory.clone())
    };
    Runners::start(world, servers, metadata, options, shutdown)
        .await
        .with_context(|| format!("the directory of the machines, {}", directory.display()))
}

/// Rejects a runner that cannot be executed: such a runner would set every server to ERROR.
fn check(program: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let displayed = program.display();
    let found = std::fs::metadata(program)
        .with_context(|| format!("--guest-runner {displayed}: there is no such program"))?;
    if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
        anyhow::bail!("--guest-runner {displayed}: not a program; is it executable (chmod +x)?");
    }
    Ok(())
}
