//! Commands that are ended in time, with everything that they started.

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

/// A command that is asked to end has so long to stop what it started.
const GRACE: Duration = Duration::from_secs(60);
/// Between two looks at a command.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes at the end of a command's output that are kept.
const TAIL: usize = 4096;
/// So long after a command has ended the rest of its output is waited for. What it started may hold the pipe for hours.
const REST: Duration = Duration::from_millis(500);

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// By itself.
    Status(ExitStatus),
    /// It was ended, because its time was over.
    TooLong,
    /// It was ended, because this program was asked to end.
    Stopped,
}

impl End {
    /// Whether it ended by itself, without an error.
    pub(super) fn is_success(self) -> bool {
        matches!(self, Self::Status(status) if status.success())
    }
}

/// Whether this program was asked to end, by SIGINT, SIGTERM or SIGHUP.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// One that never is set.
    pub(super) fn never() -> Self {
        Self::default()
    }

    /// Takes the place of the default actions of these signals, which would leave systems behind.
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

    /// Whether this program was asked to end.
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

    /// Prints what comes out of the pipe, and keeps the end of it, until no process has the other end. The receiver is closed then.
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
                // Without a reader of its output the run goes on: the record is what counts.
                let _ = out.write_all(part).and_then(|()| out.flush());
            }
        });
        closed
    }
}

/// Runs a command of bash in `root`, and ends it at `end`. Both of its outputs go to that of this program, and their end into
/// `tail`.
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
    // With it goes this program's end of the pipe.
    drop(bash);
    let closed = tail.follow(reader);
    let end = wait(child, end, stop);
    let _ = closed.recv_timeout(REST);
    end
}

/// Runs a command of bash in `root` without its output.
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
    // A group of its own, so that what it started is asked to end with it.
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

/// Asks the group to end; what has not when its time is over is killed.
fn ended(child: &mut Child) -> anyhow::Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let send = |signal| group.map(|group| kill_process_group(group, signal));
    send(Signal::TERM);
    let patience = Instant::now() + GRACE;
    while child.try_wait()?.is_none() && Instant::now() < patience {
        std::thread::sleep(LOOK);
    }
    // Also what outlived its parent.
    send(Signal::KILL);
    child.wait()?;
    Ok(())
}
