//! All machines: reconciles them with every [`DataPlane`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Options;
use super::console::Consoles;
use super::forward::{self, Forwards};
use super::guest::{self, Guest, Shared, Wanted};
use super::hosts::Hosts;
use crate::data_plane::DataPlane;
use crate::machine::Servers;

/// Task that follows the [`DataPlane`].
pub(crate) struct Fleet {
    shared: Arc<Shared>,
    guests: HashMap<String, watch::Sender<Wanted>>,
    forwards: Forwards,
    hosts: Hosts,
    tasks: TaskTracker,
    /// Directories of earlier processes whose servers have not been in the [`DataPlane`] yet.
    unclaimed: BTreeSet<String>,
    /// Locked while the fleet exists: a second fleet would end the runners of this one.
    _lock: File,
}

impl Fleet {
    pub(crate) async fn open(
        servers: Arc<dyn Servers>,
        consoles: Consoles,
        options: Options,
        service: String,
    ) -> io::Result<Self> {
        let mut directory = std::fs::DirBuilder::new();
        directory.recursive(true).mode(0o700);
        directory.create(&options.state_dir)?;
        let lock = File::create(options.state_dir.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::new(
                io::ErrorKind::ResourceBusy,
                "it is in use by another process",
            ),
            TryLockError::Error(error) => error,
        })?;
        // Absolute paths, because the runner has another working directory.
        let state_dir = std::fs::canonicalize(&options.state_dir)?;
        let program = std::fs::canonicalize(&options.program).unwrap_or(options.program);
        let options = Options {
            state_dir,
            program,
            ..options
        };
        let mut unclaimed = BTreeSet::new();
        for entry in std::fs::read_dir(&options.state_dir)? {
            let entry = entry?;
            guest::end_left_behind(&entry.path());
            unclaimed.insert(entry.file_name().to_string_lossy().into_owned());
        }
        Ok(Self {
            forwards: Forwards::new(servers.clone()),
            hosts: Hosts::new(servers.clone()),
            shared: Arc::new(Shared {
                options,
                servers,
                consoles,
                service,
            }),
            guests: HashMap::new(),
            tasks: TaskTracker::new(),
            unclaimed,
            _lock: lock,
        })
    }

    /// Follows `world` until `shutdown`, then powers off all machines.
    pub(crate) async fn run(
        mut self,
        mut world: watch::Receiver<Arc<DataPlane>>,
        shutdown: CancellationToken,
    ) {
        let mut probe = tokio::time::interval(self.shared.options.probe);
        probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut open = true;
        loop {
            let now = Arc::clone(&world.borrow_and_update());
            self.follow(&now, &shutdown);
            self.hosts.follow(&now);
            let outside = &self.shared.options.outside;
            let routes = forward::routes(&now, &self.hosts, outside);
            self.forwards.follow(routes).await;
            tokio::select! {
                () = shutdown.cancelled() => break,
                changed = world.changed(), if open => open = changed.is_ok(),
                _ = probe.tick() => self.forwards.probe(&now, &self.hosts).await,
            }
        }
        self.forwards.close();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn follow(&mut self, world: &DataPlane, shutdown: &CancellationToken) {
        let present: BTreeMap<&str, _> = world
            .instances
            .iter()
            .map(|instance| (instance.id.as_str(), instance))
            .collect();
        for (id, instance) in &present {
            self.unclaimed.remove(*id);
            let wanted = Some((*instance).clone());
            match self.guests.get(*id) {
                Some(sender) => {
                    sender.send_if_modified(|old| {
                        let differs = *old != wanted;
                        old.clone_from(&wanted);
                        differs
                    });
                }
                None => {
                    let (sender, receiver) = watch::channel(wanted);
                    let guest = Guest::new(Arc::clone(&self.shared), id, receiver);
                    self.tasks.spawn(guest.run(shutdown.clone()));
                    self.guests.insert((*id).to_owned(), sender);
                }
            }
        }
        self.guests.retain(|id, sender| {
            if present.contains_key(id.as_str()) {
                return true;
            }
            // A server in ERROR is not in the DataPlane, but keeps its disk and console.
            let kept = self.shared.servers.machine(id).is_some();
            sender.send_if_modified(|wanted| switch_off(wanted, kept));
            kept
        });
        if !present.is_empty() {
            self.sweep();
        }
    }

    /// Removes the directories of earlier processes whose servers no longer exist.
    fn sweep(&mut self) {
        for id in std::mem::take(&mut self.unclaimed) {
            if self.shared.servers.machine(&id).is_none() && uuid::Uuid::parse_str(&id).is_ok() {
                guest::remove(&self.shared.options.state_dir.join(id));
            }
        }
    }
}

fn switch_off(wanted: &mut Wanted, kept: bool) -> bool {
    match wanted {
        Some(instance) if kept => std::mem::take(&mut instance.running),
        _ => wanted.take().is_some(),
    }
}

/// Writes a file with mode 0600.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(content)
}
