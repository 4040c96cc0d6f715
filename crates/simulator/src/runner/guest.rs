//! Machine of one server, powered on and off with the server.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Options;
use super::console::Consoles;
use super::disks::Disks;
use super::document;
use super::fleet::write_private;
use super::process::{self, Process};
use crate::data_plane::Instance;
use crate::machine::{Machine, Servers};

/// How often a machine's volumes are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Exit status of a runner that cannot start the machine.
const CANNOT_START: i32 = 126;

/// State shared by all machines.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) servers: Arc<dyn Servers>,
    pub(crate) consoles: Consoles,
    /// Address of the metadata service.
    pub(crate) service: String,
}

/// Desired state of a server: `None` after its deletion.
pub(crate) type Wanted = Option<Instance>;

/// Why a machine ended.
enum End {
    /// The machine was stopped, because the server was stopped, deleted or rebooted.
    Stopped,
    /// The machine ended on its own.
    Itself(io::Result<ExitStatus>),
}

/// Process of a machine's runner, as stored on disk.
#[derive(Deserialize, Serialize)]
struct Left {
    pid: u32,
    started: u64,
}

/// Machine of one server.
pub(crate) struct Guest {
    shared: Arc<Shared>,
    id: String,
    directory: PathBuf,
    wanted: watch::Receiver<Wanted>,
    /// Boot that ended on its own: the machine starts again only with another one.
    spent: Option<u64>,
}

impl Guest {
    pub(crate) fn new(shared: Arc<Shared>, id: &str, wanted: watch::Receiver<Wanted>) -> Self {
        Self {
            directory: shared.options.state_dir.join(id),
            shared,
            id: id.to_owned(),
            wanted,
            spent: None,
        }
    }

    /// Runs until the server is deleted, or until `shutdown`.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            match wanted {
                None => break self.remove(),
                Some(instance) if instance.running && self.spent != Some(instance.boot) => {
                    self.boot(&instance, &shutdown).await;
                    if shutdown.is_cancelled() {
                        break;
                    }
                }
                Some(_) => tokio::select! {
                    changed = self.wanted.changed() => if changed.is_err() { break },
                    () = shutdown.cancelled() => break,
                },
            }
        }
    }

    /// Starts the machine and waits until it ends.
    async fn boot(&mut self, instance: &Instance, shutdown: &CancellationToken) {
        let (mut process, mut disks) = match self.start(instance) {
            Ok(started) => started,
            Err(fault) => return self.cannot_start(instance, &fault),
        };
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = loop {
            tokio::select! {
                ended = process.ended() => break End::Itself(ended),
                () = switched(&mut self.wanted, instance.boot) => break End::Stopped,
                () = shutdown.cancelled() => break End::Stopped,
                _ = look.tick() => self.follow(instance, &mut disks),
            }
        };
        match end {
            End::Stopped => process.stop(self.shared.options.patience).await,
            End::Itself(Ok(status)) if status.code() == Some(CANNOT_START) => {
                let consoles = &self.shared.consoles;
                let fault = consoles.last_line(&self.id).unwrap_or_default();
                self.cannot_start(instance, &fault);
            }
            End::Itself(ended) => self.ended(instance, ended),
        }
        let _ = std::fs::remove_file(self.directory.join("runner.json"));
    }

    /// Passes the volumes to the machine, and the machine's answers to the cloud.
    fn follow(&self, instance: &Instance, disks: &mut Disks) {
        let servers = &self.shared.servers;
        if disks.begins_to_answer() {
            servers.answers_for_volumes(&self.id, instance.boot);
        }
        let Some(volumes) = servers.volumes(&self.id) else {
            return;
        };
        if let Err(error) = disks.follow(&volumes) {
            warn!(instance = self.id, "its volumes cannot be written: {error}");
        }
        for (volume, answer) in disks.answers() {
            servers.volume_answered(&self.id, &volume, &answer);
        }
    }

    fn start(&self, instance: &Instance) -> Result<(Process, Disks), String> {
        let machine = self
            .shared
            .servers
            .machine(&self.id)
            .ok_or("the server has been deleted")?;
        let program = &self.shared.options.program;
        let prepared = self.prepare(instance, &machine);
        let (document, disks) =
            prepared.map_err(|error| format!("{}: {error}", self.directory.display()))?;
        let process = Process::start(
            program,
            &self.directory,
            document,
            &self.shared.consoles,
            &self.id,
        )
        .map_err(|error| {
            format!(
                "the guest runner {} cannot be started: {error}",
                program.display()
            )
        })?;
        self.note(&process);
        Ok((process, disks))
    }

    /// Creates the machine's directory, config drive and volumes; returns the document.
    fn prepare(&self, instance: &Instance, machine: &Machine) -> io::Result<(Vec<u8>, Disks)> {
        end_left_behind(&self.directory);
        let disk = self.directory.join("disk");
        renew(&self.directory, instance.disk)?;
        std::fs::create_dir_all(&disk)?;
        let drive = machine
            .config_drive
            .then(|| self.directory.join("config-drive"));
        if let Some(drive) = &drive {
            document::write_drive(drive, instance, machine)?;
        }
        let service = &self.shared.service;
        let document = document::document(instance, machine, &disk, drive.as_deref(), service);
        let disks = Disks::open(&self.directory, &machine.volumes)?;
        Ok((document.to_string().into_bytes(), disks))
    }

    /// Stores the process on disk: if this process is killed, the next start of the cloud ends the runner.
    fn note(&self, process: &Process) {
        let left = process.id().and_then(|pid| {
            let started = process::started(pid)?;
            serde_json::to_vec(&Left { pid, started }).ok()
        });
        if let Some(left) = left
            && let Err(error) = write_private(&self.directory.join("runner.json"), &left)
        {
            warn!(
                instance = self.id,
                "the runner is not noted on disk: {error}"
            );
        }
    }

    fn cannot_start(&mut self, instance: &Instance, fault: &str) {
        self.spent = Some(instance.boot);
        self.shared.consoles.note(&self.id, fault);
        warn!(instance = self.id, "a machine cannot be started: {fault}");
        self.shared.servers.failed(&self.id, instance.boot, fault);
    }

    fn ended(&mut self, instance: &Instance, ended: io::Result<ExitStatus>) {
        self.spent = Some(instance.boot);
        let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        let line = format!("the guest runner ended: {how}");
        self.shared.consoles.note(&self.id, &line);
        self.shared.servers.ended(&self.id, instance.boot);
    }

    fn remove(&self) {
        self.shared.consoles.forget(&self.id);
        remove(&self.directory);
    }
}

/// Waits until the server is stopped, deleted or rebooted.
async fn switched(wanted: &mut watch::Receiver<Wanted>, boot: u64) {
    let stays = |wanted: &Wanted| {
        let instance = wanted.as_ref();
        instance.is_some_and(|it| it.running && it.boot == boot)
    };
    // The sender is dropped with the fleet, which ends by shutdown.
    let _ = wanted.wait_for(|wanted| !stays(wanted)).await;
}

/// Removes the disk of a machine that has been rebuilt since.
fn renew(directory: &Path, number: u64) -> io::Result<()> {
    let file = directory.join("rebuilds");
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    if known.trim().parse().unwrap_or(0) == number {
        return Ok(());
    }
    remove(&directory.join("disk"));
    std::fs::create_dir_all(directory)?;
    write_private(&file, number.to_string().as_bytes())
}

/// Ends the runner that an earlier process has left in `directory`.
pub(crate) fn end_left_behind(directory: &Path) {
    let file = directory.join("runner.json");
    let Ok(text) = std::fs::read(&file) else {
        return;
    };
    if let Ok(left) = serde_json::from_slice::<Left>(&text) {
        process::end_left_behind(left.pid, left.started);
    }
    let _ = std::fs::remove_file(file);
}

/// Removes a machine's directory.
pub(crate) fn remove(directory: &Path) {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            warn!("cannot remove {}: {error}", directory.display());
        }
        _ => {}
    }
}
