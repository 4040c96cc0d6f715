//! Process of a guest runner, and its process group.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use super::console::Consoles;

/// Pause after a full read, so that endless output does not use a whole CPU.
const BREATH: Duration = Duration::from_millis(5);
/// Time to read remaining output after the runner's end: a process that left the group may keep the pipe open.
const REST: Duration = Duration::from_secs(5);

/// Running guest runner.
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    readers: JoinSet<()>,
}

impl Process {
    /// Starts `program` in `directory` with `document` on the standard input.
    ///
    /// # Errors
    /// The program is missing or cannot be executed.
    pub(crate) fn start(
        program: &Path,
        directory: &Path,
        document: Vec<u8>,
        consoles: &Consoles,
        instance: &str,
    ) -> io::Result<Self> {
        let mut child = Command::new(program)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let mut readers = JoinSet::new();
        if let Some(mut input) = child.stdin.take() {
            // A runner may close its standard input without reading: a broken pipe is no error.
            readers.spawn(async move { drop(input.write_all(&document).await) });
        }
        if let Some(output) = child.stdout.take() {
            readers.spawn(read(output, consoles.clone(), instance.to_owned()));
        }
        if let Some(errors) = child.stderr.take() {
            readers.spawn(read(errors, consoles.clone(), instance.to_owned()));
        }
        Ok(Self {
            child,
            group,
            readers,
        })
    }

    /// Returns the id of the process, until its end.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the runner ends, then kills the rest of its group.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.kill();
        let rest = async { while self.readers.join_next().await.is_some() {} };
        if tokio::time::timeout(REST, rest).await.is_err() {
            self.readers.shutdown().await;
        }
        Ok(status)
    }

    /// Sends SIGTERM to the runner, and kills its group if the runner still runs after `patience`.
    pub(crate) async fn stop(&mut self, patience: Duration) {
        if let Some(pid) = self.group.filter(|_| self.child.id().is_some()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        if tokio::time::timeout(patience, self.ended()).await.is_err() {
            self.kill();
            let _ = self.ended().await;
        }
    }

    fn kill(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.id().is_some() {
            self.kill();
        }
    }
}

async fn read(mut from: impl AsyncRead + Unpin, consoles: Consoles, instance: String) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        consoles.print(&instance, &buffer[..count]);
        if count == buffer.len() {
            tokio::time::sleep(BREATH).await;
        }
    }
}

/// Returns the start time of a process, in clock ticks since the system's boot, to distinguish processes with the same
/// id. `None` for an unknown process.
pub(crate) fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    (!matches!(*fields.first()?, "Z" | "X")).then_some(())?;
    fields.get(19)?.parse().ok()
}

/// Kills the group of a runner left by an earlier process.
pub(crate) fn end_left_behind(pid: u32, ticks: u64) {
    if started(pid) == Some(ticks)
        && let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw)
    {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
