//! `status` and `down`, for the `up` that uses a data directory.

use std::time::{Duration, Instant};

use anyhow::bail;
use api::printable;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::cli::{DataDirArg, Down, Output, ServerArgs, Status};
use crate::connect;
use crate::data_dir::holder;
use crate::environment::Environment;
use crate::output;
use crate::readiness;
use crate::snapshot::{Kind, Snapshot};
use crate::up::welcome::Welcome;
use crate::up::{is_of_openstack, resume};

/// Reports whether `up` runs on the data directory, what its clusters wait for, and how to connect to them.
pub(crate) async fn status(args: &Status, environment: &Environment) -> anyhow::Result<String> {
    let data = connect::data_dir(&args.data_dir, environment)?;
    let Some(pid) = holder(&data)? else {
        return stopped(args, environment, &data);
    };
    let connect = ServerArgs {
        data_dir: DataDirArg {
            data_dir: Some(data.clone()),
        },
        ..ServerArgs::default()
    };
    let client = connect::client(&connect, environment).await?;
    let snapshot = Snapshot::read(&client, None).await?;
    let clusters: Vec<_> = snapshot
        .of_kind(Kind::Cluster)
        .map(|cluster| (cluster.namespace(), cluster.name()))
        .collect();
    let pending = readiness::pending(&snapshot);
    if args.output.output == Output::Json {
        let pending: Vec<_> = pending
            .iter()
            .map(|pending| json!({"object": pending.object, "why": pending.why}))
            .collect();
        let names: Vec<_> = clusters
            .iter()
            .map(|(namespace, name)| json!({"namespace": namespace, "name": name}))
            .collect();
        let status = json!({"running": true, "process": pid, "dataDir": data, "clusters": names, "pending": pending});
        return Ok(output::json(&status)?);
    }
    if is_of_openstack(&data) {
        return Ok(format!(
            "`openstack up` runs (process {pid}) on {}\nits cloud: {} openstack status --data-dir {}\n",
            data.display(),
            environment.program,
            connect::quoted(&data)
        ));
    }
    let mut lines = vec![format!("`up` runs (process {pid}) on {}", data.display())];
    lines.push(match (clusters.is_empty(), pending.is_empty()) {
        (true, _) => "there is no cluster".to_owned(),
        (false, true) => "everything is ready".to_owned(),
        (false, false) => "not ready:".to_owned(),
    });
    if !clusters.is_empty() {
        lines.extend(
            pending
                .iter()
                .map(|pending| {
                    printable::line(&format!("{}: {}", pending.object, pending.why)).into_owned()
                })
                .map(|pending| format!("  {pending}")),
        );
    }
    let welcome = Welcome {
        program: &environment.program,
        data: &data,
        simulator: data.join("cloud.db").exists().then_some(""),
        exits: false,
    };
    lines.extend(welcome.commands(&clusters));
    lines.push(String::new());
    Ok(lines.join("\n"))
}

fn stopped(
    args: &Status,
    environment: &Environment,
    data: &std::path::Path,
) -> anyhow::Result<String> {
    Ok(match (args.output.output, data.join("version").exists()) {
        (Output::Json, exists) => {
            output::json(&json!({"running": false, "dataDir": data, "exists": exists}))?
        }
        (Output::Text, true) => format!(
            "`up` does not run on {}. Go on with: {}\n",
            data.display(),
            resume(&environment.program, data)
        ),
        (Output::Text, false) => format!(
            "{} is not there: `up` has not run with this data directory\n",
            data.display()
        ),
    })
}

/// Terminates the `up` that uses the data directory, and waits for its end.
pub(crate) async fn down(
    args: &Down,
    environment: &Environment,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let data = connect::data_dir(&args.data_dir, environment)?;
    let Some(pid) = holder(&data)? else {
        say(&format!("`up` does not run on {}", data.display()));
        return Ok(());
    };
    let Some(process) = Pid::from_raw(pid) else {
        bail!("{} does not name a process", data.join("lock").display());
    };
    kill_process(process, Signal::TERM)
        .map_err(|source| anyhow::anyhow!("process {pid} cannot be ended: {source}"))?;
    let started = Instant::now();
    while holder(&data)?.is_some() {
        if started.elapsed() > args.timeout {
            bail!(
                "process {pid} has not ended after {} s; end it with: kill -9 {pid}",
                args.timeout.as_secs()
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let what = match is_of_openstack(&data) {
        true => "the cloud stays",
        false => "the clusters stay",
    };
    say(&format!(
        "stopped; {what} in {}. Go on with: {}",
        data.display(),
        resume(&environment.program, &data)
    ));
    Ok(())
}
