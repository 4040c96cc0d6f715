//! `describe cluster`.

use anyhow::bail;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use operator::client::Api;
use terminal::{CLEAR, Colors, Layout};
use tokio_util::sync::CancellationToken;

use crate::cli::{Color, DescribeCluster, Listing};
use crate::connect;
use crate::environment::Environment;
use crate::observer::observe;
use crate::output;
use crate::snapshot::follow::Wanted;
use crate::snapshot::{Item, Kind, Snapshot};
use crate::tree::conditions::{self, Selector};
use crate::tree::{self, Branch, Parts, Selection};

/// Prints the tree of a cluster, or of all of them, once, or with `--watch` at every change.
pub(crate) async fn cluster(
    args: &DescribeCluster,
    environment: &Environment,
    stop: CancellationToken,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let client = connect::client(&args.connect.server, environment).await?;
    let namespace = (!args.all_namespaces).then_some(args.connect.namespace.as_str());
    let wanted = Wanted {
        templates: args.show_templates,
        resource_sets: args.show_resourcesets,
    };
    let followed = Snapshot::follow(&client, namespace, wanted).await?;
    let snapshot = followed.snapshot;
    let chosen = match (namespace, &args.name) {
        (None, _) => Chosen::All,
        (Some(namespace), Some(name)) => Chosen::One { namespace, name },
        (Some(namespace), None) => match only(named(&snapshot), namespace) {
            Some(name) => Chosen::One { namespace, name },
            None => bail!(
                "{}",
                none_chosen(namespace, OR_ALL, &clusters(&client).await?)
            ),
        },
    };
    let Some(mut printed) = text(args, chosen, environment, &snapshot)? else {
        bail!("{}", chosen.missing(&client).await?);
    };
    let first = trees(args, chosen, &snapshot);
    conditions::check(&args.show_conditions, &first).map_err(anyhow::Error::msg)?;
    if !args.watch {
        return print(&printed);
    }
    let mut snapshots = observe(&client, followed.resources, stop.clone());
    // The first snapshot of the watch is complete, too.
    while snapshots.borrow().items.is_empty() {
        if snapshots.changed().await.is_err() {
            return Ok(());
        }
    }
    print(&framed(args.output, environment.terminal, &printed))?;
    while snapshots.changed().await.is_ok() {
        let next = text(args, chosen, environment, &snapshots.borrow_and_update())?;
        let Some(next) = next else {
            return print(&chosen.gone());
        };
        if next != printed {
            print(&framed(args.output, environment.terminal, &next))?;
            printed = next;
        }
    }
    Ok(())
}

/// The clusters to describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen<'a> {
    One { namespace: &'a str, name: &'a str },
    All,
}

impl Chosen<'_> {
    fn is(self, cluster: &Item) -> bool {
        match self {
            Self::One { namespace, name } => {
                cluster.namespace() == namespace && cluster.name() == name
            }
            Self::All => true,
        }
    }

    async fn missing(self, client: &Client) -> anyhow::Result<String> {
        match self {
            Self::One { namespace, name } => missing(client, name, namespace).await,
            Self::All => Ok(NONE.to_owned()),
        }
    }

    fn gone(self) -> String {
        match self {
            Self::One { name, .. } => format!("cluster `{name}` is gone\n"),
            Self::All => "all clusters are gone\n".to_owned(),
        }
    }
}

/// How `describe` takes more than one.
const OR_ALL: &str = ", or use -A for all of all namespaces";
const NONE: &str = "there is no cluster in any namespace";

/// Namespaces and names of the clusters of a snapshot.
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

/// One of several outputs: on a terminal it replaces the previous one.
fn framed(output: Listing, terminal: bool, text: &str) -> String {
    match output {
        Listing::Text | Listing::Wide if terminal => format!("{CLEAR}{text}"),
        Listing::Text | Listing::Wide => format!("{text}\n"),
        Listing::Yaml => format!("---\n{text}"),
        Listing::Json => text.to_owned(),
    }
}

/// The output for a snapshot; `None` if there is no such cluster in it.
fn text(
    args: &DescribeCluster,
    chosen: Chosen<'_>,
    environment: &Environment,
    snapshot: &Snapshot,
) -> anyhow::Result<Option<String>> {
    let now = Timestamp::now();
    let trees = trees(args, chosen, snapshot);
    let Some(first) = trees.first() else {
        return Ok(None);
    };
    let colors = colors(args, environment);
    let list = chosen == Chosen::All;
    Ok(Some(match args.output {
        Listing::Text => tree::table(&trees, now, output::layout(environment), colors),
        Listing::Wide => tree::table(&trees, now, Layout::Wide, colors),
        Listing::Json if list => terminal::json(&trees)?,
        Listing::Json => terminal::json(first)?,
        Listing::Yaml if list => terminal::yaml(&trees)?,
        Listing::Yaml => terminal::yaml(first)?,
    }))
}

fn trees(args: &DescribeCluster, chosen: Chosen<'_>, snapshot: &Snapshot) -> Vec<Branch> {
    let clusters = snapshot.of_kind(Kind::Cluster);
    clusters
        .filter(|cluster| chosen.is(cluster))
        .map(|cluster| tree_of(args, snapshot, cluster))
        .collect()
}

/// The tree of one cluster, with the requested conditions. Among clusters of all namespaces it has its namespace.
fn tree_of(args: &DescribeCluster, snapshot: &Snapshot, cluster: &Item) -> Branch {
    let machines = args.show_conditions.iter().any(Selector::selects_machines);
    // Machines with Nodes or conditions of their own have separate lines, and so they have in JSON and YAML.
    let grouping = args.grouping && !args.no_grouping;
    let selection = Selection {
        grouping: args.output == Listing::Text && grouping && !machines,
        machine_sets: args.show_machinesets,
        resource_sets: args.show_resourcesets,
        templates: args.show_templates,
        parts: match args.echo {
            true => Parts::All,
            false => Parts::Telling,
        },
    };
    let namespace = cluster.namespace();
    let mut root = tree::of_cluster(snapshot, cluster, selection);
    conditions::add(&mut root, snapshot, namespace, &args.show_conditions);
    match (args.all_namespaces, args.output) {
        (false, _) => {}
        (true, Listing::Text | Listing::Wide) => root.name.push_str(&format!(" (-n {namespace})")),
        (true, Listing::Json | Listing::Yaml) => namespace.clone_into(&mut root.namespace),
    }
    root
}

fn colors(args: &DescribeCluster, environment: &Environment) -> Colors {
    match args.color {
        Color::Auto => output::colors(environment),
        Color::Always => Colors::On,
        Color::Never => Colors::Off,
    }
}

/// The error for a missing cluster `name`, with the existing ones: of the namespace, or else of other namespaces.
pub(crate) async fn missing(
    client: &Client,
    name: &str,
    namespace: &str,
) -> anyhow::Result<String> {
    Ok(there_is_no(name, namespace, &clusters(client).await?))
}

/// The name of the only cluster of a namespace.
///
/// # Errors
/// When there is none, or more than one, with their names.
pub(crate) async fn only_name(client: &Client, namespace: &str) -> anyhow::Result<String> {
    let known = clusters(client).await?;
    let clusters = known.iter().map(|(of, name)| (of.as_str(), name.as_str()));
    match only(clusters, namespace) {
        Some(name) => Ok(name.to_owned()),
        None => bail!("{}", none_chosen(namespace, "", &known)),
    }
}

/// Namespaces and names of all clusters.
async fn clusters(client: &Client) -> anyhow::Result<Vec<(String, String)>> {
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

    #[test]
    fn without_a_name_the_clusters_to_choose_from_are_named() {
        let known = [("default", "a"), ("default", "b"), ("prod", "c")]
            .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
        assert_eq!(
            none_chosen("default", OR_ALL, &known),
            "name one of the clusters in namespace default, or use -A for all of all namespaces; there are: a, b"
        );
        assert_eq!(
            none_chosen("test", OR_ALL, &known[2..]),
            "there is no cluster in namespace test; in other namespaces there are: c (-n prod)"
        );
        assert_eq!(none_chosen("test", OR_ALL, &[]), NONE);
    }

    #[test]
    fn the_only_cluster_of_a_namespace_needs_no_name() {
        let cluster = |namespace: &str, name: &str| {
            let metadata = serde_json::json!({"name": name, "namespace": namespace});
            crate::snapshot::tests::item(Kind::Cluster, serde_json::json!({"metadata": metadata}))
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
}
