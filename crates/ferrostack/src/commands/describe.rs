//! `describe cluster`.

use anyhow::bail;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use status::clusters;
use status::observer::observe;
use status::snapshot::follow::Wanted;
use status::snapshot::{Item, Kind, Snapshot};
use status::tree::conditions::{self, Selector};
use status::tree::{self, Branch, Parts, Selection};
use terminal::{CLEAR, Colors, Layout};
use tokio_util::sync::CancellationToken;

use crate::cli::{Color, Describe, DescribeCluster, Listing};
use crate::connect;
use crate::environment::Environment;
use crate::output::{self, print_painted};
use crate::signals::stop_if;

/// Runs the command.
pub(super) async fn execute(args: &Describe, environment: &Environment) -> anyhow::Result<()> {
    let Describe::Cluster(args) = args;
    cluster(args, environment, stop_if(args.watch)?, print_painted).await
}

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
        (Some(namespace), None) => match clusters::only_of(&snapshot, namespace) {
            Some(name) => Chosen::One { namespace, name },
            None => bail!("{}", clusters::unnamed(&client, namespace, OR_ALL).await?),
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
            Self::One { namespace, name } => Ok(clusters::missing(client, name, namespace).await?),
            Self::All => Ok(clusters::NONE.to_owned()),
        }
    }

    fn gone(self) -> String {
        match self {
            Self::One { name, .. } => format!("cluster `{name}` is gone\n"),
            Self::All => "all clusters are gone\n".to_owned(),
        }
    }
}

/// Alternative to a choice by name.
const OR_ALL: &str = ", or use -A for all of all namespaces";

/// One of several outputs; on a terminal each replaces the previous one.
fn framed(output: Listing, terminal: bool, text: &str) -> String {
    match output {
        Listing::Text | Listing::Wide if terminal => format!("{CLEAR}{text}"),
        Listing::Text | Listing::Wide => format!("{text}\n"),
        Listing::Yaml => format!("---\n{text}"),
        Listing::Json => text.to_owned(),
    }
}

/// Output for a [`Snapshot`]; `None` without such a cluster.
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

/// [`Branch`] of one cluster, with the requested conditions, and among clusters of all namespaces with the namespace.
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
