//! The tree of a cluster's objects, as printed by `describe cluster` and `up`.

pub(crate) mod conditions;
pub(crate) mod fit;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use crate::environment::Environment;
use crate::readiness::cause;
use crate::snapshot::{Item, Kind, Snapshot};

/// One object, or several in the same state, with its children.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Branch {
    /// `Kind/name`, or `3 Machines...`.
    pub(crate) name: String,
    /// The namespace of a cluster, where clusters of several namespaces are described.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    /// The requested number of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) desired_replicas: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replicas: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available_replicas: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready_replicas: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) up_to_date_replicas: Option<i64>,
    /// Such as `Available: True`.
    pub(crate) status: String,
    pub(crate) reason: String,
    /// When the status changed, RFC 3339.
    pub(crate) since: String,
    /// Why the object is not ready.
    pub(crate) message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) phase: String,
    /// Whether it needs intervention.
    pub(crate) failing: bool,
    /// The Kubernetes version of a machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) version: String,
    /// The Node of a machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) node: String,
    /// The conditions to show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<conditions::Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<Branch>,
    /// Whether it has been a Node.
    #[serde(skip)]
    was_ready: bool,
}

impl Branch {
    pub(crate) fn is_ready(&self) -> bool {
        self.status.ends_with("True") && self.message.is_empty()
    }
}

/// The tree of `cluster`. With `grouping`, machines in the same state are combined in one line.
pub(crate) fn of_cluster(snapshot: &Snapshot, cluster: &Item, grouping: bool) -> Branch {
    let branch = |item: &Item, type_: &str, prefix: &str| branch(snapshot, item, type_, prefix);
    let machine_branches = |machines: Vec<&Item>| machine_branches(snapshot, &machines, grouping);
    let mut root = branch(cluster, "Available", "");
    let machines: Vec<&Item> = snapshot.belonging(cluster, Kind::Machine).collect();
    for infra in snapshot.belonging(cluster, Kind::OpenStackCluster) {
        root.children
            .push(branch(infra, "Ready", "ClusterInfrastructure - "));
    }
    for control_plane in snapshot.belonging(cluster, Kind::KubeadmControlPlane) {
        let mut node = branch(control_plane, "Available", "ControlPlane - ");
        let of_set = machines
            .iter()
            .filter(|machine| machine.is_owned_by(control_plane));
        node.children = machine_branches(of_set.copied().collect());
        root.children.push(node);
    }
    let mut workers = Branch {
        name: "Workers".to_owned(),
        ..Branch::default()
    };
    for deployment in snapshot.belonging(cluster, Kind::MachineDeployment) {
        let mut node = branch(deployment, "Available", "");
        let sets: Vec<&Item> = snapshot
            .of_kind(Kind::MachineSet)
            .filter(|set| set.is_owned_by(deployment))
            .collect();
        let of_set = machines
            .iter()
            .filter(|m| sets.iter().any(|set| m.is_owned_by(set)));
        node.children = machine_branches(of_set.copied().collect());
        workers.children.push(node);
    }
    if !workers.children.is_empty() {
        root.children.push(workers);
    }
    root
}

/// Machines that have been Nodes are combined when state and cause are the same; machines that never were Nodes have
/// separate lines.
fn machine_branches(snapshot: &Snapshot, machines: &[&Item], grouping: bool) -> Vec<Branch> {
    let mut out: Vec<(Branch, Vec<&str>)> = Vec::new();
    for machine in machines {
        let node = branch(snapshot, machine, "Ready", "");
        let state = |node: &Branch| {
            (
                node.status.clone(),
                node.reason.clone(),
                node.message.clone(),
            )
        };
        match out.iter_mut().find(|(known, _)| {
            grouping && known.was_ready && node.was_ready && state(known) == state(&node)
        }) {
            Some((known, names)) => {
                names.push(machine.name());
                known.since = known.since.clone().max(node.since);
            }
            None => out.push((node, vec![machine.name()])),
        }
    }
    out.into_iter()
        .map(|(node, names)| match names.as_slice() {
            [_] => node,
            _ => Branch {
                name: format!("{} Machines...", names.len()),
                message: match node.message.is_empty() {
                    true => format!("See {}", shortened(&names)),
                    false => format!("{} (see {})", node.message, shortened(&names)),
                },
                ..node
            },
        })
        .collect()
}

fn shortened(names: &[&str]) -> String {
    match names {
        [a, b] => format!("{a}, {b}"),
        [a, b, ..] => format!("{a}, {b}, ..."),
        _ => names.join(", "),
    }
}

fn branch(snapshot: &Snapshot, item: &Item, type_: &str, prefix: &str) -> Branch {
    let count = |field: &str| item.field(field).as_i64();
    let scales = matches!(
        item.kind,
        Kind::KubeadmControlPlane | Kind::MachineDeployment
    );
    let condition = item.condition(type_);
    let cause = cause(snapshot, item).unwrap_or_default();
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    Branch {
        name: format!("{prefix}{}", item.label()),
        namespace: String::new(),
        desired_replicas: count("/spec/replicas").filter(|_| scales),
        replicas: scales.then(|| count("/status/replicas").unwrap_or(0)),
        available_replicas: count("/status/availableReplicas"),
        ready_replicas: count("/status/readyReplicas"),
        up_to_date_replicas: count("/status/upToDateReplicas"),
        status: condition
            .map(|c| format!("{type_}: {}", c.status))
            .unwrap_or_default(),
        reason: text(condition.map(|c| c.reason)),
        since: text(condition.map(|c| c.since)),
        message: cause.text,
        phase: text(item.field("/status/phase").as_str()),
        failing: cause.failing,
        version: text(item.field("/spec/version").as_str()),
        node: text(item.field("/status/nodeRef/name").as_str()),
        conditions: Vec::new(),
        was_ready: !item.field("/status/nodeRef").is_null(),
        children: Vec::new(),
    }
}

/// `InfrastructureReady: InstanceReady: waiting for ...` without the leading condition types.
pub(crate) fn without_conditions(message: &str) -> &str {
    let is_type = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.chars().all(|c| c.is_ascii_alphanumeric())
    };
    match message.split_once(": ") {
        Some((first, rest)) if is_type(first) => without_conditions(rest),
        _ => message,
    }
}

const HEADER: [&str; 11] = [
    "NAME",
    "VERSION",
    "NODE",
    "REPLICAS",
    "AVAILABLE",
    "READY",
    "UP TO DATE",
    "STATUS",
    "REASON",
    "SINCE",
    "MESSAGE",
];

/// The columns that a narrow terminal does without: counts, REASON, SINCE and REPLICAS.
const EXPENDABLE: [usize; 6] = [6, 4, 5, 8, 9, 3];

/// How a table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As wide as its content.
    Full,
    /// The same with versions and Nodes.
    Wide,
    /// For a terminal of this many columns.
    Terminal(usize),
}

impl Layout {
    /// For the terminal that the output goes to, if it goes to one.
    pub(crate) fn of(environment: &Environment) -> Self {
        environment.columns().map_or(Self::Full, Self::Terminal)
    }
}

/// Formats trees as one aligned table with a header.
pub(crate) fn table(roots: &[Branch], now: Timestamp, layout: Layout) -> String {
    let mut rows = vec![HEADER.map(str::to_owned)];
    for root in roots {
        flatten(root, "", "", now, &mut rows);
    }
    if layout != Layout::Wide {
        for row in &mut rows {
            row[1].clear();
            row[2].clear();
        }
    }
    match layout {
        Layout::Terminal(width) => fit::fit(&rows, width, &EXPENDABLE),
        Layout::Full | Layout::Wide => align(&rows),
    }
}

/// Pads columns to their widest cell and separates them by two blanks. Columns without any text are left out.
pub(crate) fn align<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths).filter(|(_, width)| *width > 0) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.chars().count() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn count(count: Option<i64>) -> String {
    count.map(|count| count.to_string()).unwrap_or_default()
}

fn flatten(node: &Branch, of_set: &str, below: &str, now: Timestamp, rows: &mut Vec<[String; 11]>) {
    rows.push([
        format!("{of_set}{}", node.name),
        node.version.clone(),
        node.node.clone(),
        match (node.replicas, node.desired_replicas) {
            (Some(replicas), Some(desired)) => format!("{replicas}/{desired}"),
            _ => String::new(),
        },
        count(node.available_replicas),
        count(node.ready_replicas),
        count(node.up_to_date_replicas),
        node.status.clone(),
        node.reason.clone(),
        age(&node.since, now),
        node.message.clone(),
    ]);
    let total = node.conditions.len() + node.children.len();
    let lines = |index: usize| match index + 1 == total {
        true => ("└─", "  "),
        false => ("├─", "│ "),
    };
    for (index, row) in node.conditions.iter().enumerate() {
        let mut cells: [String; 11] = Default::default();
        cells[0] = format!("{below}{}{}", lines(index).0, row.type_);
        cells[7].clone_from(&row.status);
        cells[8].clone_from(&row.reason);
        cells[9] = age(&row.since, now);
        cells[10] = row.message.replace('\n', " ");
        rows.push(cells);
    }
    for (index, child) in node.children.iter().enumerate() {
        let (branch, rest) = lines(node.conditions.len() + index);
        flatten(
            child,
            &format!("{below}{branch}"),
            &format!("{below}{rest}"),
            now,
            rows,
        );
    }
}

/// The time since `since`, formatted as ages in kubectl: `45s`, `3m`, `2h`, `5d`.
pub(crate) fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else {
        return String::new();
    };
    let seconds = (now.as_second() - since.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests;
