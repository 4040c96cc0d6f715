//! `get clusters`.

pub(crate) mod kubeconfig;

use futures::StreamExt;
use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use operator::client::Api;
use serde_json::json;
use status::clusters::{self, table};
use status::snapshot::{Item, Kind, Snapshot};
use terminal::Layout;
use tokio_util::sync::CancellationToken;

use crate::cli::{Get, GetClusters, Listing};
use crate::connect;
use crate::environment::Environment;
use crate::output::{self, print, print_document, say};
use crate::signals::stop_if;

/// Runs the command.
pub(super) async fn execute(args: &Get, environment: &Environment) -> anyhow::Result<()> {
    match args {
        Get::Kubeconfig(args) if args.merge => {
            say(&kubeconfig::merge(args, environment).await?);
            Ok(())
        }
        Get::Kubeconfig(args) => {
            let text = kubeconfig::of_workload(args, environment).await?.text;
            match &args.write_to {
                Some(file) => output::file::write_secret(environment, file, &text),
                None => print_document(&text),
            }
        }
        Get::Clusters(args) => clusters_of(args, environment, stop_if(args.watch)?, print).await,
    }
}

/// Prints clusters once, or with `--watch` at every change.
async fn clusters_of(
    args: &GetClusters,
    environment: &Environment,
    stop: CancellationToken,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let client = connect::client(&args.connect.server, environment).await?;
    let namespace = (!args.all_namespaces).then_some(args.connect.namespace.as_str());
    let snapshot = Snapshot::read(&client, namespace).await?;
    for name in &args.names {
        if !snapshot
            .of_kind(Kind::Cluster)
            .any(|cluster| cluster.name() == name)
        {
            anyhow::bail!(
                "{}",
                clusters::missing(&client, name, &args.connect.namespace).await?
            );
        }
    }
    let mut printed = text(args, &snapshot, environment)?;
    print(&printed)?;
    if !args.watch {
        return Ok(());
    }
    let resource = Kind::Cluster.resource();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let changes = operator::watch::objects(&api, watcher::Config::default())
        .default_backoff()
        .touched_objects();
    let mut changes = std::pin::pin!(changes);
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            change = changes.next() => if change.is_none() { return Ok(()) },
        }
        let snapshot = Snapshot::read(&client, namespace).await?;
        let next = text(args, &snapshot, environment)?;
        if next != printed {
            print(&next)?;
            printed = next;
        }
    }
}

fn text(
    args: &GetClusters,
    snapshot: &Snapshot,
    environment: &Environment,
) -> anyhow::Result<String> {
    let now = Timestamp::now();
    let wanted = |cluster: &&Item| {
        args.names.is_empty() || args.names.iter().any(|name| name == cluster.name())
    };
    let clusters: Vec<&Item> = snapshot.of_kind(Kind::Cluster).filter(wanted).collect();
    match args.output {
        Listing::Text | Listing::Wide if clusters.is_empty() => Ok(match args.all_namespaces {
            true => "There is no cluster in any namespace.\n".to_owned(),
            false => format!(
                "There is no cluster in namespace {}; -A lists those of all namespaces.\n",
                args.connect.namespace
            ),
        }),
        Listing::Text => Ok(table(snapshot, &clusters, now, output::layout(environment))),
        Listing::Wide => Ok(table(snapshot, &clusters, now, Layout::Wide)),
        Listing::Json => Ok(terminal::json(&list(&clusters))?),
        Listing::Yaml => Ok(terminal::yaml(&list(&clusters))?),
    }
}

fn list(clusters: &[&Item]) -> serde_json::Value {
    let items: Vec<_> = clusters.iter().map(|cluster| &cluster.object).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}
