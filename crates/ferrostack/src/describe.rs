//! `describe cluster`.

use anyhow::bail;
use k8s_openapi::jiff::Timestamp;

use crate::cli::{ConnectArgs, Output};
use crate::connect;
use crate::environment::Environment;
use crate::snapshot::{Item, Kind, Snapshot};
use crate::tree;

/// The tree of a cluster, for people or as JSON.
pub(crate) async fn cluster(
    name: &str,
    args: &ConnectArgs,
    grouping: bool,
    output: Output,
    environment: &Environment,
) -> anyhow::Result<String> {
    let client = connect::client(args, environment).await?;
    let snapshot = Snapshot::read(&client, Some(&args.namespace)).await?;
    let Some(cluster) = find(&snapshot, name) else {
        bail!("{}", missing(&snapshot, name, &args.namespace));
    };
    let root = tree::of_cluster(&snapshot, cluster, grouping);
    match output {
        Output::Text => Ok(tree::table(&root, Timestamp::now())),
        Output::Json => Ok(serde_json::to_string_pretty(&root)? + "\n"),
    }
}

fn find<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a Item> {
    snapshot
        .of_kind(Kind::Cluster)
        .find(|cluster| cluster.name() == name)
}

fn missing(snapshot: &Snapshot, name: &str, namespace: &str) -> String {
    let others: Vec<&str> = snapshot.of_kind(Kind::Cluster).map(Item::name).collect();
    match others.as_slice() {
        [] => format!("there is no cluster `{name}` in namespace {namespace}, nor any other"),
        others => format!(
            "there is no cluster `{name}` in namespace {namespace}; there are: {}",
            others.join(", ")
        ),
    }
}
