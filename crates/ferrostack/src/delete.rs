//! `delete cluster`.

use std::time::{Duration, Instant};

use anyhow::bail;
use kube::api::{Api, DeleteParams, DynamicObject};

use crate::cli::ConnectArgs;
use crate::connect;
use crate::environment::Environment;
use crate::readiness::waits_for;
use crate::snapshot::{Item, Kind, Snapshot};

/// How often `--wait` looks. The management API is local and keeps what it lists in memory.
const LOOK: Duration = Duration::from_millis(250);

/// Deletes the cluster `name`; with `wait`, returns when it and all its machines are gone.
/// `say` is called with every change of what is left.
pub(crate) async fn cluster(
    name: &str,
    args: &ConnectArgs,
    wait: Option<Duration>,
    environment: &Environment,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let client = connect::client(args, environment).await?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &args.namespace, &Kind::Cluster.resource());
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => say(&format!("cluster {name} is being deleted")),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            bail!(
                "there is no cluster `{name}` in namespace {}",
                args.namespace
            )
        }
        Err(other) => return Err(other.into()),
    }
    let Some(limit) = wait else { return Ok(()) };
    let started = Instant::now();
    let mut printed = String::new();
    loop {
        let snapshot = Snapshot::read(&client, Some(&args.namespace)).await?;
        let left = left_over(&snapshot, name);
        if left.is_empty() {
            say(&format!(
                "cluster {name} is gone after {:.1} s",
                started.elapsed().as_secs_f64()
            ));
            return Ok(());
        }
        let line = summary(&left);
        if line != printed {
            say(&line);
            printed = line;
        }
        if started.elapsed() > limit {
            let stuck: Vec<String> = left.iter().map(|item| reason(item)).collect();
            bail!(
                "cluster {name} is not gone after {} s:\n{}",
                limit.as_secs(),
                stuck.join("\n")
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn left_over<'a>(snapshot: &'a Snapshot, name: &str) -> Vec<&'a Item> {
    let label = "cluster.x-k8s.io/cluster-name";
    let belongs = |item: &Item| {
        (item.kind == Kind::Cluster && item.name() == name)
            || item
                .object
                .metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get(label))
                == Some(&name.to_owned())
    };
    snapshot.items.iter().filter(|item| belongs(item)).collect()
}

fn summary(left: &[&Item]) -> String {
    let counts = Kind::ALL.iter().filter_map(|kind| {
        let count = left.iter().filter(|item| item.kind == *kind).count();
        (count > 0).then(|| format!("{count} {}", kind.as_str()))
    });
    format!("waiting for {}", counts.collect::<Vec<_>>().join(", "))
}

fn reason(item: &Item) -> String {
    let why = item
        .condition("Deleting")
        .filter(|deleting| deleting.status == "True" && !deleting.message.is_empty())
        .map(|deleting| {
            deleting
                .message
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .or_else(|| waits_for(item))
        .unwrap_or_else(|| "its finalizer is still there".to_owned());
    format!("  {}: {why}", item.label())
}
