//! Clusters of namespaces: existing ones, an error for a missing one, and a table.

use api::conditions::Type;
use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use operator::client::Api;
use terminal::{Layout, age, align, cells, fit};

use crate::readiness::cause;
use crate::snapshot::{Item, Kind, Snapshot};

/// Error for namespaces without clusters.
pub const NONE: &str = "there is no cluster in any namespace";

/// Reason why a namespace has no single cluster to choose.
#[derive(Debug, thiserror::Error)]
pub enum UnnamedError {
    /// No cluster, or several; the message for the user.
    #[error("{0}")]
    Choice(String),
    /// The clusters cannot be listed.
    #[error(transparent)]
    Unlisted(#[from] kube::Error),
}

/// Namespaces and names of the clusters of a [`Snapshot`].
fn named(snapshot: &Snapshot) -> impl Iterator<Item = (&str, &str)> {
    let clusters = snapshot.of_kind(Kind::Cluster);
    clusters.map(|cluster| (cluster.namespace(), cluster.name()))
}

/// The name of the only one of `clusters` in the namespace.
fn only<'a>(
    clusters: impl Iterator<Item = (&'a str, &'a str)>,
    namespace: &str,
) -> Option<&'a str> {
    let mut names = clusters.filter(|(of, _)| *of == namespace);
    let (_, first) = names.next()?;
    names.next().is_none().then_some(first)
}

/// The name of the only cluster of a namespace in a [`Snapshot`].
pub fn only_of<'a>(snapshot: &'a Snapshot, namespace: &str) -> Option<&'a str> {
    only(named(snapshot), namespace)
}

/// The error for a namespace without or with several clusters, when no name is given. `or` is another way to choose.
///
/// # Errors
/// If the clusters cannot be listed.
pub async fn unnamed(client: &Client, namespace: &str, or: &str) -> kube::Result<String> {
    Ok(none_chosen(namespace, or, &clusters(client).await?))
}

/// The error for a missing cluster `name`, with the existing ones: of the namespace, or else of other namespaces.
///
/// # Errors
/// If the clusters cannot be listed.
pub async fn missing(client: &Client, name: &str, namespace: &str) -> kube::Result<String> {
    Ok(there_is_no(name, namespace, &clusters(client).await?))
}

/// The name of the only cluster of a namespace.
///
/// # Errors
/// [`UnnamedError::Choice`] without a cluster, or with several, by name.
pub async fn only_name(client: &Client, namespace: &str) -> Result<String, UnnamedError> {
    let known = clusters(client).await?;
    let clusters = known.iter().map(|(of, name)| (of.as_str(), name.as_str()));
    match only(clusters, namespace) {
        Some(name) => Ok(name.to_owned()),
        None => Err(UnnamedError::Choice(none_chosen(namespace, "", &known))),
    }
}

/// Namespaces and names of all clusters.
async fn clusters(client: &Client) -> kube::Result<Vec<(String, String)>> {
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &Kind::Cluster.resource());
    let clusters = all.list(&ListParams::default()).await?.items;
    let names = clusters
        .iter()
        .map(|cluster| (cluster.namespace().unwrap_or_default(), cluster.name_any()));
    Ok(names.collect())
}

fn there_is_no(name: &str, namespace: &str, known: &[(String, String)]) -> String {
    let start = format!("there is no cluster `{name}` in namespace {namespace}");
    let here = in_namespace(namespace, known);
    if !here.is_empty() {
        return format!("{start}; there are: {here}");
    }
    if known.is_empty() {
        return format!("{start}, nor any other");
    }
    format!(
        "{start}; in other namespaces there are: {}",
        with_namespaces(known)
    )
}

/// The error for a namespace without or with several clusters, when no name is given.
/// `or` is another way to choose.
fn none_chosen(namespace: &str, or: &str, known: &[(String, String)]) -> String {
    let here = in_namespace(namespace, known);
    if !here.is_empty() {
        return format!("name one of the clusters in namespace {namespace}{or}; there are: {here}");
    }
    if known.is_empty() {
        return NONE.to_owned();
    }
    format!(
        "there is no cluster in namespace {namespace}; in other namespaces there are: {}",
        with_namespaces(known)
    )
}

fn in_namespace(namespace: &str, known: &[(String, String)]) -> String {
    let here = known.iter().filter(|(of, _)| of == namespace);
    let names: Vec<&str> = here.map(|(_, name)| name.as_str()).collect();
    names.join(", ")
}

fn with_namespaces(known: &[(String, String)]) -> String {
    let names: Vec<String> = known
        .iter()
        .map(|(namespace, name)| format!("{name} (-n {namespace})"))
        .collect();
    names.join(", ")
}

/// Row for each cluster: readiness, and the cause of waiting.
pub fn table(snapshot: &Snapshot, clusters: &[&Item], now: Timestamp, layout: Layout) -> String {
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
        rows.push(cells([
            cluster.namespace().to_owned(),
            cluster.name().to_owned(),
            text("/status/phase"),
            cluster
                .condition(Type::Available)
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
    use serde_json::json;

    use super::*;
    use crate::snapshot::tests::item;

    /// Another way to choose.
    const OR: &str = ", or use -A for all of all namespaces";

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

    #[test]
    fn without_a_name_the_clusters_to_choose_from_are_named() {
        let known = [("default", "a"), ("default", "b"), ("prod", "c")]
            .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
        assert_eq!(
            none_chosen("default", OR, &known),
            "name one of the clusters in namespace default, or use -A for all of all namespaces; there are: a, b"
        );
        assert_eq!(
            none_chosen("test", OR, &known[2..]),
            "there is no cluster in namespace test; in other namespaces there are: c (-n prod)"
        );
        assert_eq!(none_chosen("test", OR, &[]), NONE);
    }

    #[test]
    fn the_only_cluster_of_a_namespace_needs_no_name() {
        let cluster = |namespace: &str, name: &str| {
            let metadata = serde_json::json!({"name": name, "namespace": namespace});
            item(Kind::Cluster, serde_json::json!({"metadata": metadata}))
        };
        let snapshot = Snapshot::from(vec![
            cluster("default", "a"),
            cluster("prod", "b"),
            cluster("prod", "c"),
        ]);
        assert_eq!(only(named(&snapshot), "default"), Some("a"));
        assert_eq!(only(named(&snapshot), "prod"), None);
        assert_eq!(only(named(&snapshot), "test"), None);
    }

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
