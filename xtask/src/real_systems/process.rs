//! Commands with a time limit, ended with all their child processes.

use std::io::{self, PipeReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use crate::lints;

/// Time for a command to stop its child processes after SIGTERM.
const GRACE: Duration = Duration::from_secs(60);
/// Interval between two looks at a command.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes kept from the end of a command's output.
const TAIL: usize = 4096;
/// Time to wait for the rest of the output after the end of a command. Its child processes may hold the pipe for hours.
const REST: Duration = Duration::from_millis(500);

/// End of a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// The command ended by itself.
    Status(ExitStatus),
    /// The command was ended at its time limit.
    TooLong,
    /// The command was ended because this program is stopping.
    Stopped,
}

impl End {
    /// True if the command ended by itself, without an error.
    pub(super) fn is_success(self) -> bool {
        matches!(self, Self::Status(status) if status.success())
    }
}

/// Flag: true after SIGINT, SIGTERM or SIGHUP.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Flag that is never set.
    pub(super) fn never() -> Self {
        Self::default()
    }

    /// Installs handlers for these signals. The default actions would leave systems running.
    pub(super) fn on_signals() -> anyhow::Result<Self> {
        let stop = Self::default();
        let flag = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let signals = {
            let _inside = runtime.enter();
            let kinds = [
                SignalKind::interrupt(),
                SignalKind::terminate(),
                SignalKind::hangup(),
            ];
            kinds.map(signal)
        };
        let [interrupt, terminate, hangup] = signals;
        let (mut interrupt, mut terminate, mut hangup) = (interrupt?, terminate?, hangup?);
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
            });
            flag.0.store(true, Ordering::Relaxed);
        });
        Ok(stop)
    }

    /// True if the program is to stop.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The last [`TAIL`] bytes of a command's output.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    /// Whole lines, with a line break after each.
    pub(super) fn lines(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let whole = match text.split_once('\n') {
            Some((_, rest)) if kept.len() == TAIL => rest,
            _ => &text,
        };
        let mut lines = String::new();
        for line in whole.lines() {
            lines.push_str(line);
            lines.push('\n');
        }
        lines
    }

    fn add(&self, part: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(part);
        let over = kept.len().saturating_sub(TAIL);
        kept.drain(..over);
    }

    /// Prints the output of the pipe and keeps its end, until the last process closes the pipe. Then the receiver is
    /// closed.
    fn follow(&self, mut output: PipeReader) -> Receiver<()> {
        let tail = self.clone();
        let (open, closed) = mpsc::channel();
        std::thread::spawn(move || {
            let _open = open;
            let mut part = [0; 8192];
            while let Ok(length @ 1..) = output.read(&mut part) {
                let part = &part[..length];
                tail.add(part);
                let mut out = io::stdout().lock();
                // Without a reader of the output the run goes on: the record counts.
                let _ = out.write_all(part).and_then(|()| out.flush());
            }
        });
        closed
    }
}

/// Runs a bash command in `root`, and ends it at `end`. Standard output and error go to the output of this program, the
/// last bytes also to `tail`.
///
/// # Errors
///
/// bash cannot be started.
pub(super) fn run(
    root: &Path,
    command: &str,
    end: Option<Instant>,
    stop: &Stop,
    tail: &Tail,
) -> anyhow::Result<End> {
    let (reader, writer) = io::pipe()?;
    let mut bash = bash(root, command);
    bash.stdout(writer.try_clone()?).stderr(writer);
    let child = bash.spawn().context("bash")?;
    // This drop closes the write end of the pipe in this program.
    drop(bash);
    let closed = tail.follow(reader);
    let end = wait(child, end, stop);
    let _ = closed.recv_timeout(REST);
    end
}

/// Runs a bash command in `root` without output.
///
/// # Errors
///
/// bash cannot be started.
pub(super) fn quiet(root: &Path, command: &str, stop: &Stop) -> anyhow::Result<End> {
    let mut bash = bash(root, command);
    bash.stdout(Stdio::null()).stderr(Stdio::null());
    wait(bash.spawn().context("bash")?, None, stop)
}

fn bash(root: &Path, command: &str) -> Command {
    let mut bash = Command::new("bash");
    // A process group, so that SIGTERM reaches child processes, too.
    bash.args(["-euo", "pipefail", "-c", command])
        .current_dir(root)
        .env("PWD", root)
        .envs(lints::VARIABLES)
        .stdin(Stdio::null())
        .process_group(0);
    bash
}

fn wait(mut child: Child, end: Option<Instant>, stop: &Stop) -> anyhow::Result<End> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Status(status));
        }
        if stop.is_set() {
            ended(&mut child)?;
            return Ok(End::Stopped);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            ended(&mut child)?;
            return Ok(End::TooLong);
        }
        std::thread::sleep(LOOK);
    }
}

/// Sends SIGTERM to the group, and SIGKILL after [`GRACE`].
fn ended(child: &mut Child) -> anyhow::Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let send = |signal| group.map(|group| kill_process_group(group, signal));
    send(Signal::TERM);
    let patience = Instant::now() + GRACE;
    while child.try_wait()?.is_none() && Instant::now() < patience {
        std::thread::sleep(LOOK);
    }
    // Also for processes that outlived their parent.
    send(Signal::KILL);
    child.wait()?;
    Ok(())
}
