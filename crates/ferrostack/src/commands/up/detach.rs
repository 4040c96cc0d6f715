//! `up --detach`: starts another process, and shows its progress until all clusters are ready.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::bail;
use kube::Client;
use status::observer;
use tokio_util::sync::CancellationToken;

use super::background::{ended, ended_now, start};
use super::progress::Progress;
use super::welcome::Welcome;
use super::{Disk, Outcome, follow, not_ready};
use crate::cli::{DataDirArg, ServerArgs, Up};
use crate::connect;
use crate::data_dir::{DataDir, holder};
use crate::environment::Environment;

/// Starts `up` in the background, and returns when all clusters are ready.
pub(super) async fn run(
    args: &Up,
    environment: &Environment,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let data = connect::data_dir(&args.data_dir, environment)?;
    // Creates the directory, and fails if it is in use.
    let flag = connect::data_dir_flag(environment, &data);
    drop(DataDir::open_when_free(&data, &flag).await?);
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
