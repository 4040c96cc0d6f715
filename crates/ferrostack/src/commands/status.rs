//! `status` and `down`, for the `up` of a data directory.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use api::printable;
use k8s_openapi::jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use status::clusters;
use status::readiness::{self, cause::is_paused};
use status::snapshot::{Item, Kind, Snapshot};

use crate::cli::{DataDirArg, Down, Output, ServerArgs, Status};
use crate::commands::up::welcome::Welcome;
use crate::connect;
use crate::data_dir::{held_since, holder};
use crate::endpoints::{Addresses, addresses, is_of_openstack, resume};
use crate::environment::Environment;
use crate::located;
use crate::output::{self, print};

/// Runs the command.
pub(super) async fn execute(args: &Status, environment: &Environment) -> anyhow::Result<ExitCode> {
    status(args, environment, print).await
}

/// Exit status of `status` without a running `up`, as of `systemctl status`.
const NOT_RUNNING: u8 = 3;

/// Running `up`.
struct Running {
    process: i32,
    data: PathBuf,
    since: Option<Timestamp>,
    addresses: Addresses,
    /// Version of the API server.
    version: String,
    snapshot: Snapshot,
}

/// Reports about the `up` on the data directory: addresses, version and time, the state of the clusters, and commands
/// to connect. The exit status is 3 if nothing runs.
pub(crate) async fn status(
    args: &Status,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let data = connect::data_dir(&args.data_dir, environment)?;
    let Some(process) = holder(&data)? else {
        print(&stopped(args, environment, &data)?)?;
        return Ok(ExitCode::from(NOT_RUNNING));
    };
    let connect = ServerArgs {
        data_dir: DataDirArg {
            data_dir: Some(data.clone()),
        },
        ..ServerArgs::default()
    };
    let client = connect::client(&connect, environment).await?;
    let running = Running {
        process,
        since: held_since(&data).and_then(|time| time.try_into().ok()),
        addresses: addresses(&data),
        version: client.apiserver_version().await?.git_version,
        snapshot: Snapshot::read(&client, None).await?,
        data,
    };
    let now = Timestamp::now();
    print(&match args.output.output {
        Output::Json => terminal::json(&running.document(now))?,
        Output::Text if is_of_openstack(&running.data) => running.of_openstack(environment, now),
        Output::Text => running.text(environment, now),
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Running {
    fn document(&self, now: Timestamp) -> Value {
        let pending: Vec<Value> = readiness::pending(&self.snapshot)
            .iter()
            .map(|pending| json!({"object": pending.object, "why": pending.why}))
            .collect();
        let clusters: Vec<Value> = self
            .snapshot
            .of_kind(Kind::Cluster)
            .map(|cluster| {
                json!({
                    "namespace": cluster.namespace(),
                    "name": cluster.name(),
                    "phase": cluster.field("/status/phase"),
                    "available": cluster.condition("Available").map(|it| it.status),
                    "paused": is_paused(cluster),
                })
            })
            .collect();
        json!({
            "running": true,
            "process": self.process,
            "dataDir": self.data,
            "since": self.since.map(|it| it.to_string()),
            "uptimeSeconds": self.seconds(now),
            "version": env!("CARGO_PKG_VERSION"),
            "apiServerVersion": self.version,
            "addresses": {
                "managementApi": self.addresses.management.map(|it| format!("https://{it}")),
                "simulatedOpenStack": self.addresses.simulated.map(|it| format!("http://{it}")),
            },
            "cloud": self.addresses.cloud,
            "clusters": clusters,
            "pending": pending,
        })
    }

    /// The seconds since the start.
    fn seconds(&self, now: Timestamp) -> Option<i64> {
        let seconds = now.as_second() - self.since?.as_second();
        Some(seconds.max(0))
    }

    /// First line: the running `command`, the start, and the addresses.
    fn head(&self, command: &str, now: Timestamp) -> String {
        let since = self.seconds(now).map(apimachinery::time::human);
        let since = since.map(|it| format!(", for {it}")).unwrap_or_default();
        format!(
            "`{command}` runs (process {}{since}) on {}",
            self.process,
            self.data.display()
        )
    }

    fn of_openstack(&self, environment: &Environment, now: Timestamp) -> String {
        format!(
            "{}\nits cloud: {} openstack status{}\n",
            self.head("openstack up", now),
            environment.program,
            located::openstack_data_dir_flag(environment, &self.data)
        )
    }

    fn text(&self, environment: &Environment, now: Timestamp) -> String {
        let mut lines = vec![
            self.head("up", now),
            format!(
                "version     ferrostack {}, API server {}",
                env!("CARGO_PKG_VERSION"),
                self.version
            ),
        ];
        let mut address = |name: &str, address: String| lines.push(format!("{name:<12}{address}"));
        if let Some(management) = self.addresses.management {
            address("API server", format!("https://{management}"));
        }
        if let Some(simulated) = self.addresses.simulated {
            address("OpenStack", format!("http://{simulated} (simulated)"));
        }
        if let Some(cloud) = &self.addresses.cloud {
            address("OpenStack", format!("cloud {}", printable::line(cloud)));
        }
        let clusters: Vec<&Item> = self.snapshot.of_kind(Kind::Cluster).collect();
        let pending = readiness::pending(&self.snapshot);
        if !clusters.is_empty() {
            lines.push(String::new());
            lines.push(match pending.is_empty() {
                true => "everything is ready".to_owned(),
                false => "not ready:".to_owned(),
            });
            let causes = pending.iter().map(|pending| {
                let cause = format!("{}: {}", pending.object, pending.why);
                format!("  {}", printable::line(&cause))
            });
            lines.extend(causes);
            let layout = output::layout(environment);
            let table = clusters::table(&self.snapshot, &clusters, now, layout);
            lines.extend(table.lines().map(str::to_owned));
        }
        let welcome = Welcome {
            environment,
            data: &self.data,
            simulator: self.data.join("cloud.db").exists().then_some(""),
            exits: false,
        };
        let names = clusters.iter().map(|it| (it.namespace(), it.name()));
        let names: Vec<_> = names.collect();
        lines.push(String::new());
        lines.extend(match names.is_empty() {
            true => welcome.first_steps(),
            false => welcome.commands(&names),
        });
        lines.push(String::new());
        lines.join("\n")
    }
}

fn stopped(
    args: &Status,
    environment: &Environment,
    data: &std::path::Path,
) -> anyhow::Result<String> {
    Ok(match (args.output.output, data.join("version").exists()) {
        (Output::Json, exists) => {
            terminal::json(&json!({"running": false, "dataDir": data, "exists": exists}))?
        }
        (Output::Text, true) => format!(
            "`up` does not run on {}. Go on with: {}\n",
            data.display(),
            resume(environment, data)
        ),
        (Output::Text, false) => format!(
            "{} is not there: `up` has not run with this data directory\n",
            data.display()
        ),
    })
}

/// Terminates the `up` of the data directory, and waits for the end.
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
        resume(environment, &data)
    ));
    Ok(())
}
