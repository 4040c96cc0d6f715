//! Simulated etcd cluster: members, without data.
//!
//! ```text
//!   rules    who can be added, promoted and removed, who leads (pure)
//!   member   the calls of one member, with etcd's responses
//!   (here)   running machines, persistence, connections
//! ```
//!
//! A member belongs to a machine but outlives the machine: until its removal, the member stays in the list and counts
//! for the quorum. Not simulated: keys and values, the log, snapshots and delays. Source of the rules and messages:
//! `server/etcdserver` and `api/v3rpc/rpctypes` of etcd 3.6.

mod member;
mod rules;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use etcd::Status;
pub use etcd::messages::AlarmType;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::rules::State;

pub use self::rules::{Listed, MemberHost};

/// Port for clients.
pub const PORT: u16 = 2379;
/// Version reported by members, as in etcd's image of kubeadm v1.34.2.
pub(crate) const VERSION: &str = "3.6.5";

/// etcd cluster, shared by the machines of its members.
#[derive(Debug)]
pub struct Etcd {
    path: Option<PathBuf>,
    inner: Mutex<Inner>,
    /// How often `kubeadm join` has tried to add a member.
    attempts: AtomicUsize,
    /// Machine of the member for every addition, if a test has set one.
    additions_go_to: Mutex<Option<String>>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    /// Machines that have been powered on, each with the token that ends its member.
    machines: HashMap<String, Running>,
    /// True if no file existed: the members of a cluster older than the file are adopted.
    unlisted: bool,
}

#[derive(Debug)]
struct Running {
    power: CancellationToken,
    /// Cancelled with `power`, and when the machine's member is removed.
    member: CancellationToken,
}

impl Inner {
    fn is_up(&self, machine: &str) -> bool {
        let running = self.machines.get(machine);
        running.is_some_and(|running| !running.member.is_cancelled())
    }

    /// Returns the [`State`], updated for the machines that run now.
    fn settled(&mut self) -> &mut State {
        let up: Vec<u64> = self
            .state
            .members()
            .filter(|member| self.is_up(&member.machine))
            .map(|member| member.id)
            .collect();
        self.state.settle(&up);
        &mut self.state
    }
}

impl Etcd {
    /// Opens a cluster with the members in the file `path`, or without members if the file does not exist. `None`: in
    /// memory.
    ///
    /// # Errors
    /// If the file exists but is unreadable.
    pub fn open(path: Option<PathBuf>) -> io::Result<Self> {
        let kept = path.as_deref().map(read).transpose()?.flatten();
        Ok(Self {
            path,
            attempts: AtomicUsize::new(0),
            additions_go_to: Mutex::default(),
            inner: Mutex::new(Inner {
                unlisted: kept.is_none(),
                state: kept.unwrap_or_default(),
                machines: HashMap::new(),
            }),
        })
    }

    /// Adds the first member, as `kubeadm init` does. Idempotent.
    pub fn found(&self, place: &MemberHost) {
        self.inner.lock().unlisted = false;
        self.change(|state| {
            if state.members().next().is_none() {
                state.found(place);
            }
            Ok(())
        })
        .unwrap_or_default();
    }

    /// Adds a member from before the file of the cluster.
    pub fn adopt(&self, place: &MemberHost) {
        if self.inner.lock().unlisted {
            self.change(|state| {
                if state.of(&place.machine).is_none() {
                    state.found(place);
                }
                Ok(())
            })
            .unwrap_or_default();
        }
    }

    /// Starts the member of a machine, which runs until `power` ends or the member is removed. Both cancel the returned
    /// token.
    ///
    /// # Errors
    /// etcd's fatal message if the machine has no member (any more).
    pub fn run(
        &self,
        machine: &str,
        power: &CancellationToken,
    ) -> Result<CancellationToken, String> {
        let mut inner = self.inner.lock();
        if inner.state.of(machine).is_none() {
            return Err("the member has been permanently removed from the cluster".to_owned());
        }
        let member = power.child_token();
        let running = Running {
            power: power.clone(),
            member: member.clone(),
        };
        inner.machines.insert(machine.to_owned(), running);
        let state = inner.settled();
        if let Some(id) = state.of(machine).map(|member| member.id) {
            state.reconnect(id);
        }
        Ok(member)
    }

    /// Checks before `kubeadm join` that every member that has ever started responds.
    ///
    /// # Errors
    /// The message of kubeadm.
    pub fn check(&self) -> Result<(), String> {
        let inner = self.inner.lock();
        let silent = inner
            .state
            .members()
            .find(|member| member.is_started() && !inner.is_up(&member.machine));
        match silent {
            None => Ok(()),
            Some(member) => Err(format!(
                "etcd cluster is not healthy: failed to dial endpoint {} with maintenance client: context deadline exceeded",
                member.client_url
            )),
        }
    }

    /// Adds the member of a machine as a learner. Idempotent.
    ///
    /// # Errors
    /// The [`Status`] of etcd.
    pub fn add_learner(&self, place: &MemberHost) -> Result<(), Status> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let first: usize = place.machine.bytes().map(usize::from).sum();
        let chosen = self.additions_go_to.lock().clone();
        self.change(|state| {
            if state.of(&place.machine).is_some() || state.claim(place) {
                return Ok(());
            }
            let endpoints = state.endpoints();
            // kubeadm lists the members and adds one, in turns, and each request goes to the next endpoint: of two, the
            // same one gets each addition. Which one is first is random; here it depends on the machine.
            let turn = first.wrapping_add(2 * attempt).checked_rem(endpoints.len());
            let asked = turn.and_then(|turn| endpoints.get(turn));
            let chosen = chosen.as_ref().and_then(|machine| state.of(machine));
            let url = place.peer_url();
            let asked = chosen.map(|member| member.id).or(asked.copied());
            let asked = asked.unwrap_or_default();
            state.add(&url, true, asked, Some(place)).map(drop)
        })
    }

    /// Sets the member for every addition of kubeadm, by its machine.
    pub fn send_additions_to(&self, machine: &str) {
        *self.additions_go_to.lock() = Some(machine.to_owned());
    }

    /// Sets whether the member of a machine counts another running member as disconnected, as etcd does after a message
    /// that timed out. A restart of either member ends this.
    pub fn part(&self, machine: &str, other: &str, apart: bool) {
        self.change(|state| {
            let id = |machine: &str| state.of(machine).map(|member| member.id);
            if let (Some(local), Some(remote)) = (id(machine), id(other)) {
                state.part(local, remote, apart);
            }
            Ok(())
        })
        .unwrap_or_default();
    }

    /// Starts the learner of a machine. A running learner counts as in sync.
    pub fn start(&self, place: &MemberHost) {
        self.change(|state| {
            state.start(place);
            Ok(())
        })
        .unwrap_or_default();
    }

    /// Restarts the member of a machine with `--force-new-cluster`: it becomes the only member, with a vote, and the
    /// others can never come back. Idempotent.
    ///
    /// # Errors
    /// The machine is off, or has no member.
    pub fn force_new_cluster(&self, machine: &str) -> Result<(), String> {
        if !self.inner.lock().is_up(machine) {
            return Err("etcd does not run on this machine".to_owned());
        }
        let forced = self.change(|state| {
            let member = state.of(machine).ok_or_else(rules::not_found)?;
            let id = member.id;
            state.keep_only(id);
            Ok(())
        });
        forced.map_err(|status| status.message)
    }

    /// Promotes the member of a machine. Idempotent.
    ///
    /// # Errors
    /// The [`Status`] of etcd.
    pub fn promote(&self, machine: &str) -> Result<(), Status> {
        self.change(|state| match state.of(machine) {
            Some(member) if !member.learner => Ok(()),
            Some(member) => state.promote(member.id),
            None => Err(rules::not_found()),
        })
    }

    /// Checks that writes can be committed: a majority of the voting members runs.
    ///
    /// # Errors
    /// The message of etcd, as returned by an API server.
    pub fn takes_writes(&self) -> Result<(), String> {
        let mut inner = self.inner.lock();
        let state = inner.settled();
        if state.members().next().is_none() || state.leader() != 0 {
            return Ok(());
        }
        Err(rules::timed_out().message)
    }

    /// Raises or clears an alarm for the member of a machine.
    pub fn alarm(&self, machine: &str, alarm: AlarmType, raised: bool) {
        self.change(|state| {
            if let Some(id) = state.of(machine).map(|member| member.id) {
                state.raise(id, alarm, raised);
            }
            Ok(())
        })
        .unwrap_or_default();
    }

    /// Returns the number of elections, transfers of leadership included.
    pub fn term(&self) -> u64 {
        self.inner.lock().settled().term()
    }

    /// Returns all members.
    pub fn members(&self) -> Vec<Listed> {
        let mut inner = self.inner.lock();
        let leader = inner.settled().leader();
        let inner = &*inner;
        let listed = inner.state.members().map(|member| Listed {
            name: member.name.clone(),
            machine: member.machine.clone(),
            learner: member.learner,
            leads: member.id == leader,
            up: inner.is_up(&member.machine),
        });
        listed.collect()
    }

    /// Serves one connection to the member of a machine, until the connection or the member ends.
    pub async fn serve<S>(self: Arc<Self>, machine: &str, tls: TlsAcceptor, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let ended = self
            .inner
            .lock()
            .machines
            .get(machine)
            .map(|running| running.member.clone());
        if let Some(ended) = ended {
            let member = Arc::new(member::Member::new(Arc::clone(&self), machine));
            let serving = etcd::server::serve(stream, tls, member);
            ended.run_until_cancelled(serving).await;
        }
    }

    /// Changes and persists the state. Stops removed members.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> Result<T, Status>) -> Result<T, Status> {
        let mut inner = self.inner.lock();
        let done = change(inner.settled())?;
        let removed: Vec<_> = inner
            .machines
            .iter()
            .filter(|(machine, running)| {
                !running.power.is_cancelled() && inner.state.of(machine).is_none()
            })
            .map(|(_, running)| running.member.clone())
            .collect();
        removed.iter().for_each(CancellationToken::cancel);
        inner.settled();
        if let Some(path) = &self.path
            && let Err(error) = write(path, &inner.state)
        {
            warn!(path = %path.display(), "cannot keep the members of a simulated etcd: {error}");
        }
        Ok(done)
    }
}

fn read(path: &Path) -> io::Result<Option<State>> {
    match std::fs::read(path) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the file atomically, by renaming.
fn write(path: &Path, state: &State) -> io::Result<()> {
    let draft = path.with_extension("new");
    std::fs::write(&draft, serde_json::to_vec(state)?)?;
    std::fs::rename(draft, path)
}

#[cfg(test)]
mod tests;
