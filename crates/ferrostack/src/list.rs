//! `get clusters`.

use futures::StreamExt;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use operator::client::Api;
use serde_json::json;
use terminal::{Layout, age, align, fit};
use tokio_util::sync::CancellationToken;

use crate::cli::{GetClusters, Listing};
use crate::connect;
use crate::describe;
use crate::environment::Environment;
use crate::output;
use crate::readiness::cause;
use crate::snapshot::{Item, Kind, Snapshot};

/// Prints clusters once, or with `--watch` at every change.
pub(crate) async fn clusters(
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
                describe::missing(&client, name, &args.connect.namespace).await?
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

/// A row for each cluster: what is ready, and what it waits for.
pub(crate) fn table(
    snapshot: &Snapshot,
    clusters: &[&Item],
    now: Timestamp,
    layout: Layout,
) -> String {
    let header = [
        "NAMESPACE",
        "NAME",
        "PHASE",
        "AVAILABLE",
        "CONTROL PLANE",
        "WORKERS",
        "VERSION",
        "AGE",
        "ENDPOINT",
        "WAITS FOR",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    for cluster in clusters {
        let count = |kind| {
            let (mut ready, mut wanted) = (0, 0);
            for item in snapshot.belonging(cluster, kind) {
                ready += item.field("/status/readyReplicas").as_i64().unwrap_or(0);
                wanted += item.field("/spec/replicas").as_i64().unwrap_or(0);
            }
            format!("{ready}/{wanted}")
        };
        let text = |pointer: &str| {
            cluster
                .field(pointer)
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let version = snapshot
            .belonging(cluster, Kind::KubeadmControlPlane)
            .find_map(|plane| plane.field("/spec/version").as_str());
        let created = cluster
            .object
            .creation_timestamp()
            .map(|time| time.0.to_string());
        let endpoint = match cluster.field("/spec/controlPlaneEndpoint/port").as_i64() {
            Some(port) if layout == Layout::Wide => {
                format!("{}:{port}", text("/spec/controlPlaneEndpoint/host"))
            }
            _ => String::new(),
        };
        rows.push(terminal::cells([
            cluster.namespace().to_owned(),
            cluster.name().to_owned(),
            text("/status/phase"),
            cluster
                .condition("Available")
                .map(|c| c.status.to_owned())
                .unwrap_or_default(),
            count(Kind::KubeadmControlPlane),
            count(Kind::MachineDeployment),
            version.unwrap_or_default().to_owned(),
            age(&created.unwrap_or_default(), now),
            endpoint,
            cause(snapshot, cluster)
                .map(|cause| cause.text)
                .unwrap_or_default(),
        ]));
    }
    if layout != Layout::Wide {
        for row in &mut rows {
            row[8].clear();
        }
    }
    match layout {
        // The name, what is ready and what it waits for stay.
        Layout::Terminal(columns) => fit(&rows, columns, &[7, 6, 2, 0]),
        Layout::Full | Layout::Wide => align(&rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::tests::item;

    #[test]
    fn a_paused_cluster_is_listed_as_paused() {
        let cluster = json!({
            "metadata": {"name": "demo", "namespace": "default", "uid": "demo"},
            "spec": {"paused": true},
            "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Available", "message": ""}]},
        });
        let snapshot = Snapshot::from(vec![item(Kind::Cluster, cluster)]);
        let clusters: Vec<&Item> = snapshot.of_kind(Kind::Cluster).collect();
        let table = table(&snapshot, &clusters, Timestamp::UNIX_EPOCH, Layout::Full);
        assert!(table.contains("paused by spec.paused"), "{table}");
    }
}
