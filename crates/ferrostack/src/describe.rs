//! `describe cluster`.

use anyhow::bail;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::cli::{DescribeCluster, Listing};
use crate::connect;
use crate::environment::Environment;
use crate::snapshot::{Kind, Snapshot};
use crate::tree::conditions::{self, Selector};
use crate::tree::{self, Layout};
use crate::up::observe;

/// Prints the tree of a cluster once, or with `--watch` at every change.
pub(crate) async fn cluster(
    args: &DescribeCluster,
    environment: &Environment,
    stop: CancellationToken,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let client = connect::client(&args.connect, environment).await?;
    let namespace = args.connect.namespace.as_str();
    let snapshot = Snapshot::read(&client, Some(namespace)).await?;
    let Some(mut printed) = text(args, environment, &snapshot)? else {
        bail!("{}", missing(&client, &args.name, namespace).await?);
    };
    if !args.watch {
        return print(&printed);
    }
    let mut snapshots = observe(&client, stop.clone());
    // The first snapshot of the watch is complete, too.
    while snapshots.borrow().items.is_empty() {
        if snapshots.changed().await.is_err() {
            return Ok(());
        }
    }
    print(&framed(args.output, environment.terminal, &printed))?;
    while snapshots.changed().await.is_ok() {
        let next = text(args, environment, &snapshots.borrow_and_update())?;
        let Some(next) = next else {
            return print(&format!("cluster `{}` is gone\n", args.name));
        };
        if next != printed {
            print(&framed(args.output, environment.terminal, &next))?;
            printed = next;
        }
    }
    Ok(())
}

/// One of several outputs: on a terminal it replaces the previous one.
fn framed(output: Listing, terminal: bool, text: &str) -> String {
    match output {
        Listing::Text | Listing::Wide if terminal => format!("\x1b[H\x1b[2J{text}"),
        Listing::Text | Listing::Wide => format!("{text}\n"),
        Listing::Yaml => format!("---\n{text}"),
        Listing::Json => text.to_owned(),
    }
}

/// The output for a snapshot; `None` if the cluster is not in it.
fn text(
    args: &DescribeCluster,
    environment: &Environment,
    snapshot: &Snapshot,
) -> anyhow::Result<Option<String>> {
    let now = Timestamp::now();
    let namespace = &args.connect.namespace;
    let cluster = snapshot
        .of_kind(Kind::Cluster)
        .find(|cluster| cluster.name() == args.name && cluster.namespace() == namespace);
    let Some(cluster) = cluster else {
        return Ok(None);
    };
    let machines = args.show_conditions.iter().any(Selector::selects_machines);
    // Machines with Nodes or conditions of their own have separate lines, and so they have in JSON and YAML.
    let grouping = args.output == Listing::Text && !args.no_grouping && !machines;
    let mut root = tree::of_cluster(snapshot, cluster, grouping);
    conditions::add(&mut root, snapshot, namespace, &args.show_conditions);
    Ok(Some(match args.output {
        Listing::Text => tree::table(&root, now, Layout::of(environment)),
        Listing::Wide => tree::table(&root, now, Layout::Wide),
        Listing::Json => serde_json::to_string_pretty(&root)? + "\n",
        Listing::Yaml => serde_saphyr::to_string(&root)?,
    }))
}

/// The error for a missing cluster `name`, with the existing ones: of the namespace, or else of other namespaces.
pub(crate) async fn missing(
    client: &Client,
    name: &str,
    namespace: &str,
) -> anyhow::Result<String> {
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &Kind::Cluster.resource());
    let clusters = all.list(&ListParams::default()).await?.items;
    let known: Vec<(String, String)> = clusters
        .iter()
        .map(|cluster| (cluster.namespace().unwrap_or_default(), cluster.name_any()))
        .collect();
    Ok(there_is_no(name, namespace, &known))
}

fn there_is_no(name: &str, namespace: &str, known: &[(String, String)]) -> String {
    let here: Vec<&str> = known
        .iter()
        .filter(|(of, _)| of == namespace)
        .map(|(_, name)| name.as_str())
        .collect();
    let start = format!("there is no cluster `{name}` in namespace {namespace}");
    if !here.is_empty() {
        return format!("{start}; there are: {}", here.join(", "));
    }
    if known.is_empty() {
        return format!("{start}, nor any other");
    }
    let elsewhere: Vec<String> = known
        .iter()
        .map(|(namespace, name)| format!("{name} (-n {namespace})"))
        .collect();
    format!(
        "{start}; in other namespaces there are: {}",
        elsewhere.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_of_the_namespace_are_named_before_those_of_others() {
        let known = |known: &[(&str, &str)]| -> Vec<(String, String)> {
            let owned = known
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
            owned.collect()
        };
        let both = known(&[("default", "a"), ("default", "b"), ("prod", "c")]);
        let text = "there is no cluster `x` in namespace default";
        assert_eq!(
            there_is_no("x", "default", &both),
            format!("{text}; there are: a, b")
        );
        assert_eq!(
            there_is_no("x", "default", &known(&[("prod", "c")])),
            format!("{text}; in other namespaces there are: c (-n prod)")
        );
        assert_eq!(
            there_is_no("x", "default", &[]),
            format!("{text}, nor any other")
        );
    }
}
