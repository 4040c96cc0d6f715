//! Commands that are ended in time, with everything that they started.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use crate::lints;

/// A command that is asked to end has so long to stop what it started.
const GRACE: Duration = Duration::from_secs(60);
/// Between two looks at a command.
const LOOK: Duration = Duration::from_millis(50);

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

/// Runs a command of bash in `root`, and ends it at `end`.
///
/// # Errors
///
/// bash cannot be started.
pub(super) fn run(
    root: &Path,
    command: &str,
    end: Option<Instant>,
    stop: &Stop,
) -> anyhow::Result<End> {
    let mut bash = bash(root, command);
    wait(bash.spawn().context("bash")?, end, stop)
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
