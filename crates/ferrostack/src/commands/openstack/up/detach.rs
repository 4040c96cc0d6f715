//! `openstack up --detach`: starts another process, and shows its output until the cloud is ready.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio_util::sync::CancellationToken;

use super::report::is_ready;
use crate::cli::{On, OpenStackUp};
use crate::commands::logs::Log;
use crate::commands::openstack::site;
use crate::commands::up::background;
use crate::connect;
use crate::data_dir::{DataDir, holder};
use crate::environment::Environment;
use crate::located;

/// Pause between two reads of the other process' output.
const LOOK: Duration = Duration::from_millis(100);

/// Starts `openstack up` in the background, and returns when its cloud is ready.
///
/// # Errors
/// If the cloud is not simulated, if the other process ends, or after `--timeout`.
pub(super) async fn run(
    args: &OpenStackUp,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    if !site::is_simulated(&args.place) || args.on == Some(On::ThisMachine) {
        bail!(
            "--detach is for a simulated cloud: one in a cluster keeps running without this program, and its controller, too, where `{} manager` runs in the cluster",
            environment.program
        );
    }
    let data = site::directory(args.place.data_dir.as_deref(), environment)?;
    // Creates the directory, and fails if it is in use.
    let flag = connect::data_dir_flag(environment, &data);
    drop(DataDir::open_when_free(&data, &flag).await?);
    let child = background::start(&data, environment)?;
    let log = Log::open(&data)?.context("its log is gone")?;
    let stop = format!(
        "{} down --data-dir {}",
        environment.program,
        connect::quoted(&data)
    );
    tokio::select! {
        shown = follow(child, log, &data, &say) => shown?,
        () = shutdown.cancelled() => {
            bail!("interrupted; `openstack up` goes on in the background. Stop it with: {stop}")
        }
        () = tokio::time::sleep(args.timeout) => bail!(
            "not ready after {} s; `openstack up` goes on in the background. See `{} openstack why{}`, and stop it with: {stop}",
            args.timeout.as_secs(),
            environment.program,
            located::openstack_data_dir_flag(environment, &data)
        ),
    }
    say(&format!(
        "it goes on in the background; stop it with: {stop}"
    ));
    Ok(())
}

/// Prints the output of the process, until its cloud is ready.
async fn follow(
    mut child: Child,
    mut log: Log,
    data: &Path,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let process = i32::try_from(child.id()).ok();
    let mut ready = false;
    loop {
        let ended = background::ended_now(&mut child, data)?;
        let lines = log.more(data)?;
        for line in lines.lines().filter(|line| !line.starts_with("error: ")) {
            ready |= is_ready(line);
            say(line);
        }
        if let Some(problem) = ended {
            return Err(problem);
        }
        // What is said about a cloud that is ready comes at once.
        if ready && lines.is_empty() && holder(data)? == process {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}
