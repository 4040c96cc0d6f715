//! Draws all clusters on a terminal: failing ones first, then clusters in progress, then ready ones.

use status::readiness::cause;
use status::snapshot::{Item, Kind, Snapshot};
use status::tree::{self, Branch};

use crate::picture::{self, Line, Mark, Row, SIMULATED};

/// All clusters, in at most `height` lines of `width` characters. The first row marks a `simulated` cloud.
pub(super) fn lines(
    snapshot: &Snapshot,
    simulated: bool,
    width: usize,
    height: usize,
) -> Vec<Line> {
    let mut rows = rows(snapshot);
    if let Some(first) = rows.first_mut().filter(|_| simulated) {
        first.name.push_str(SIMULATED);
    }
    picture::lines(rows, width, height)
}

/// [`Row`]s, failing clusters first. Among several clusters, a ready one takes one row.
fn rows(snapshot: &Snapshot) -> Vec<Row> {
    let mut clusters: Vec<(Mark, &Item)> = snapshot
        .of_kind(Kind::Cluster)
        .map(|cluster| (mark_of_cluster(snapshot, cluster), cluster))
        .collect();
    clusters.sort_by_key(|(mark, _)| *mark);
    let several = clusters.len() > 1;
    let mut rows = Vec::new();
    for (mark, cluster) in clusters {
        let mut root = tree::of_cluster(snapshot, cluster, tree::Selection::default());
        if several {
            root.name = format!("{} (-n {})", root.name, cluster.namespace());
        }
        if several && mark == Mark::Ready {
            let machines = snapshot.belonging(cluster, Kind::Machine).count();
            rows.push(Row {
                mark,
                branches: String::new(),
                name: root.name,
                state: format!("{machines} machines"),
                message: String::new(),
                head: true,
            });
        } else {
            of_branch(&root, "", "", &mut rows);
        }
    }
    rows
}

fn mark_of_cluster(snapshot: &Snapshot, cluster: &Item) -> Mark {
    let parts = [
        Kind::OpenStackCluster,
        Kind::KubeadmControlPlane,
        Kind::MachineDeployment,
        Kind::Machine,
    ];
    let causes: Vec<_> = std::iter::once(cluster)
        .chain(
            parts
                .iter()
                .flat_map(|kind| snapshot.belonging(cluster, *kind)),
        )
        .filter_map(|item| cause(snapshot, item))
        .collect();
    match (causes.iter().any(|cause| cause.failing), causes.is_empty()) {
        (true, _) => Mark::Failing,
        (false, true) => Mark::Ready,
        (false, false) => Mark::Waiting,
    }
}

/// [`Mark`] of an object by its own state.
fn mark_of(node: &Branch) -> Mark {
    match node {
        _ if node.failing => Mark::Failing,
        _ if node.is_ready() => Mark::Ready,
        _ if node.status.is_empty() && node.message.is_empty() => Mark::None,
        _ => Mark::Waiting,
    }
}

/// [`Mark`] and message of a row. An object ready by its own state takes mark and message from a failing or waiting
/// object below.
fn judged(node: &Branch) -> (Mark, &str) {
    let mark = mark_of(node);
    if matches!(mark, Mark::Failing | Mark::Waiting) {
        return (mark, &node.message);
    }
    let worst = node
        .children
        .iter()
        .map(judged)
        .min_by_key(|(mark, _)| *mark);
    match worst {
        Some((mark @ (Mark::Failing | Mark::Waiting), message)) => (mark, message),
        _ => (mark, &node.message),
    }
}

fn of_branch(node: &Branch, first: &str, below: &str, rows: &mut Vec<Row>) {
    let (mark, message) = match mark_of(node) {
        Mark::None => (Mark::None, node.message.as_str()),
        _ => judged(node),
    };
    rows.push(Row {
        mark,
        branches: first.to_owned(),
        name: node
            .name
            .trim_start_matches("ClusterInfrastructure - ")
            .trim_start_matches("ControlPlane - ")
            .trim_start_matches("Machine/")
            .to_owned(),
        state: state(node),
        message: without_request(message).to_owned(),
        head: first.is_empty(),
    });
    for (index, child) in node.children.iter().enumerate() {
        let (branch, rest) = match index + 1 == node.children.len() {
            true => ("└─", "  "),
            false => ("├─", "│ "),
        };
        let (first, below) = (format!("{below}{branch}"), format!("{below}{rest}"));
        of_branch(child, &first, &below, rows);
    }
}

/// Message of the cloud without the failed request, which `describe` shows.
fn without_request(message: &str) -> &str {
    let is_request = |rest: &str| {
        ["GET", "POST", "PUT", "PATCH", "DELETE"]
            .iter()
            .any(|method| rest.contains(&format!(" {method} /")))
    };
    match message.split_once(" (") {
        Some((words, rest)) if is_request(rest) => words,
        _ => message,
    }
}

/// Phase, and the numbers of ready and failing machines; readiness for an object without these.
fn state(node: &Branch) -> String {
    let failing = node.children.iter().filter(|child| child.failing).count();
    let ready = node
        .desired_replicas
        .map(|desired| format!("{}/{desired}", node.ready_replicas.unwrap_or(0)));
    let failing = (node.desired_replicas.is_some() && failing > 0).then(|| format!("✗ {failing}"));
    let phase = Some(node.phase.clone()).filter(|phase| !phase.is_empty());
    let has_neither = phase.is_none() && ready.is_none() && !node.status.is_empty();
    let readiness = has_neither.then(|| match node.is_ready() {
        true => "Ready".to_owned(),
        false => "Not ready".to_owned(),
    });
    let parts = [phase, ready, failing, readiness].into_iter().flatten();
    let parts: Vec<String> = parts.collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests;
