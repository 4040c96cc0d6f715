//! The tree of a cluster's objects, as `describe cluster` prints it and `up` draws it.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::readiness::{summary, waits_for};
use crate::snapshot::{Item, Kind, Snapshot};

/// One object, or several in the same state, with its children.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Branch {
    /// `Kind/name`, or `3 Machines...`.
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) replicas: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) available_replicas: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) ready_replicas: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) up_to_date_replicas: String,
    /// Such as `Available: True`.
    pub(crate) status: String,
    pub(crate) reason: String,
    /// When the status changed, RFC 3339.
    pub(crate) since: String,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) phase: String,
    /// What the object waits for, without the names of the conditions that report it.
    #[serde(skip)]
    pub(crate) waits_for: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<Branch>,
}

/// The tree of `cluster`. With `grouping`, machines in the same state share one line.
pub(crate) fn of_cluster(snapshot: &Snapshot, cluster: &Item, grouping: bool) -> Branch {
    let mut root = branch(cluster, "Available", "");
    let machines: Vec<&Item> = snapshot.belonging(cluster, Kind::Machine).collect();
    for infra in snapshot.belonging(cluster, Kind::OpenStackCluster) {
        root.children
            .push(branch(infra, "Ready", "ClusterInfrastructure - "));
    }
    for control_plane in snapshot.belonging(cluster, Kind::KubeadmControlPlane) {
        let mut node = branch(control_plane, "Available", "ControlPlane - ");
        let own = machines
            .iter()
            .filter(|machine| machine.is_owned_by(control_plane));
        node.children = machine_branches(own.copied(), grouping);
        root.children.push(node);
    }
    let mut workers = Branch {
        name: "Workers".to_owned(),
        ..empty()
    };
    for deployment in snapshot.belonging(cluster, Kind::MachineDeployment) {
        let mut node = branch(deployment, "Available", "");
        let sets: Vec<&Item> = snapshot
            .of_kind(Kind::MachineSet)
            .filter(|set| set.is_owned_by(deployment))
            .collect();
        let own = machines
            .iter()
            .filter(|m| sets.iter().any(|set| m.is_owned_by(set)));
        node.children = machine_branches(own.copied(), grouping);
        workers.children.push(node);
    }
    if !workers.children.is_empty() {
        root.children.push(workers);
    }
    root
}

fn machine_branches<'a>(machines: impl Iterator<Item = &'a Item>, grouping: bool) -> Vec<Branch> {
    let mut out: Vec<(Branch, Vec<&str>)> = Vec::new();
    for machine in machines {
        let node = branch(machine, "Ready", "");
        match out.iter_mut().find(|(known, _)| {
            grouping && known.status == node.status && known.reason == node.reason
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
                message: format!("See {}", shortened(&names)),
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

fn branch(item: &Item, type_: &str, prefix: &str) -> Branch {
    let condition = item.condition(type_);
    let count = |field: &str| match item.field(field) {
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let replicas = match (item.kind, item.field("/spec/replicas").as_i64()) {
        (Kind::KubeadmControlPlane | Kind::MachineDeployment, Some(wanted)) => {
            format!(
                "{}/{wanted}",
                item.field("/status/replicas").as_i64().unwrap_or(0)
            )
        }
        _ => String::new(),
    };
    let (status, reason, since, message) = match condition {
        Some(c) => (
            format!("{type_}: {}", c.status),
            c.reason.to_owned(),
            c.since.to_owned(),
            if c.status == "True" {
                String::new()
            } else {
                summary(c.message)
            },
        ),
        None => (String::new(), String::new(), String::new(), String::new()),
    };
    Branch {
        name: format!("{prefix}{}", item.label()),
        replicas,
        available_replicas: count("/status/availableReplicas"),
        ready_replicas: count("/status/readyReplicas"),
        up_to_date_replicas: count("/status/upToDateReplicas"),
        message: if message.is_empty() && !status.ends_with("True") {
            waits_for(item).unwrap_or_default()
        } else {
            message
        },
        status,
        reason,
        since,
        waits_for: waits_for(item)
            .map(|why| without_conditions(&why).to_owned())
            .unwrap_or_default(),
        phase: item
            .field("/status/phase")
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        children: Vec::new(),
    }
}

fn empty() -> Branch {
    Branch {
        name: String::new(),
        replicas: String::new(),
        available_replicas: String::new(),
        ready_replicas: String::new(),
        up_to_date_replicas: String::new(),
        status: String::new(),
        reason: String::new(),
        since: String::new(),
        message: String::new(),
        phase: String::new(),
        waits_for: String::new(),
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

const HEADER: [&str; 9] = [
    "NAME",
    "REPLICAS",
    "AVAILABLE",
    "READY",
    "UP TO DATE",
    "STATUS",
    "REASON",
    "SINCE",
    "MESSAGE",
];

/// The tree as an aligned table under a header.
pub(crate) fn table(root: &Branch, now: Timestamp) -> String {
    let mut rows = vec![HEADER.map(str::to_owned)];
    flatten(root, "", "", now, &mut rows);
    align(&rows)
}

/// Columns padded to their widest cell, two blanks apart.
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
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.chars().count() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn flatten(node: &Branch, own: &str, below: &str, now: Timestamp, rows: &mut Vec<[String; 9]>) {
    rows.push([
        format!("{own}{}", node.name),
        node.replicas.clone(),
        node.available_replicas.clone(),
        node.ready_replicas.clone(),
        node.up_to_date_replicas.clone(),
        node.status.clone(),
        node.reason.clone(),
        age(&node.since, now),
        node.message.clone(),
    ]);
    for (index, child) in node.children.iter().enumerate() {
        let (branch, rest) = if index + 1 == node.children.len() {
            ("└─", "  ")
        } else {
            ("├─", "│ ")
        };
        flatten(
            child,
            &format!("{below}{branch}"),
            &format!("{below}{rest}"),
            now,
            rows,
        );
    }
}

/// How long ago `since` was, as kubectl writes ages: `45s`, `3m`, `2h`, `5d`.
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
