//! `up --detach`: starts another process, and shows its progress until all clusters are ready.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::welcome::Welcome;
use super::{Disk, Outcome, follow, not_ready};
use crate::cli::{DataDirArg, ServerArgs, Up};
use crate::connect;
use crate::data_dir::{DataDir, holder};
use crate::environment::Environment;
use crate::observer;

/// The file in the data directory with the output of the started process.
const LOG: &str = "up.log";

/// Starts `up` in the background, and returns when all clusters are ready.
pub(super) async fn run(
    args: &Up,
    environment: &Environment,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let data = connect::data_dir(&args.data_dir, environment)?;
    // Creates the directory, and fails if it is in use.
    drop(DataDir::open_when_free(&data).await?);
    let mut child = start(&data, environment)?;
    let client = match connected(&mut child, &data, environment, &shutdown).await? {
        Some(client) => client,
        None => return interrupted(environment, &data),
    };
    let stop = shutdown.child_token();
    let snapshots = observer::observe(&client, observer::ours(), stop.clone());
    let mut progress = Progress::new(args, environment, started);
    let simulator = data.join("clouds.yaml").exists().then_some("");
    let welcome = Welcome {
        environment,
        data: &data,
        simulator: simulator.filter(|_| args.cloud.is_none()),
        exits: false,
    };
    // What becomes of the disk is in the log of the other process.
    let disk = Disk::new(|| None);
    let outcome = tokio::select! {
        outcome = follow(args, &mut progress, &welcome, (snapshots, disk), &stop) => outcome?,
        () = shutdown.cancelled() => Outcome::Interrupted,
        problem = ended(&mut child, &data) => return Err(problem),
    };
    match outcome {
        Outcome::Ready => {
            progress.leave();
            progress.say(&format!(
                "it goes on in the background; stop it with: {} down{}",
                environment.program,
                connect::data_dir_flag(environment, &data)
            ))?;
            Ok(())
        }
        Outcome::Interrupted => interrupted(environment, &data),
        Outcome::TimedOut(pending) => bail!("{}", not_ready(args.timeout, None, &pending)),
    }
}

fn interrupted(environment: &Environment, data: &Path) -> anyhow::Result<()> {
    bail!(
        "interrupted; `up` goes on in the background. Stop it with: {} down{}",
        environment.program,
        connect::data_dir_flag(environment, data)
    )
}

/// Starts the same command without --detach, in a new process group, so that Ctrl-C in this terminal does not reach it.
fn start(data: &Path, environment: &Environment) -> anyhow::Result<Child> {
    let log = data.join(LOG);
    let output = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    let errors = output.try_clone()?;
    let program = environment.executable.as_ref();
    let program = program.context("the path of this program is not known")?;
    Command::new(program)
        .args(of_started(&environment.arguments))
        .stdin(Stdio::inherit())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .context("`up` cannot be started in the background")
}

/// The arguments of the started process: it neither starts another one, nor ends after the timeout of this one.
fn of_started(arguments: &[OsString]) -> Vec<OsString> {
    let mut arguments = arguments.iter();
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        match text.as_ref() {
            "--detach" => {}
            "--timeout" => {
                let _value = arguments.next();
            }
            text if text.starts_with("--timeout=") => {}
            _ => kept.push(argument.clone()),
        }
    }
    kept
}

/// Waits until the management API responds; `None` when interrupted.
async fn connected(
    child: &mut Child,
    data: &Path,
    environment: &Environment,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<Client>> {
    let args = ServerArgs {
        data_dir: DataDirArg {
            data_dir: Some(data.to_owned()),
        },
        ..ServerArgs::default()
    };
    let pid = i32::try_from(child.id()).ok();
    loop {
        if let Some(problem) = ended_now(child, data)? {
            return Err(problem);
        }
        // The kubeconfig can be that of an earlier run, so the process must hold the lock already.
        if holder(data)? == pid
            && let Ok(client) = connect::client(&args, environment).await
        {
            return Ok(Some(client));
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
            () = shutdown.cancelled() => return Ok(None),
        }
    }
}

/// Waits for the end of the process; the error contains its last output.
async fn ended(child: &mut Child, data: &Path) -> anyhow::Error {
    loop {
        match ended_now(child, data) {
            Ok(Some(problem)) | Err(problem) => return problem,
            Ok(None) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

fn ended_now(child: &mut Child, data: &Path) -> anyhow::Result<Option<anyhow::Error>> {
    let Some(_) = child.try_wait()? else {
        return Ok(None);
    };
    let log = data.join(LOG);
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let last = last_error(&text).unwrap_or("it ended without a reason");
    Ok(Some(anyhow::anyhow!(
        "{last} (all of its output is in {})",
        log.display()
    )))
}

/// The last error, with all of its lines.
fn last_error(log: &str) -> Option<&str> {
    let start = match log.rfind("\nerror: ") {
        Some(before) => before + 1,
        None => 0,
    };
    Some(log.get(start..)?.strip_prefix("error: ")?.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_started_process_has_no_timeout_and_no_detach() {
        for arguments in [
            &["up", "--detach", "--timeout", "60s", "--data-dir", "x"][..],
            &["up", "--timeout=60s", "--data-dir", "x", "--detach"],
        ] {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(of_started(&arguments), ["up", "--data-dir", "x"]);
        }
    }

    #[test]
    fn the_last_error_is_found_with_all_of_its_lines() {
        assert_eq!(last_error("a\nerror: b\nerror: c\n  d\n"), Some("c\n  d"));
        assert_eq!(last_error("error: c"), Some("c"));
        assert_eq!(last_error("a\nb"), None);
        assert_eq!(last_error(""), None);
    }
}
