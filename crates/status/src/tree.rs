//! Tree of a cluster's objects, as printed by `describe cluster` and `up`.

pub mod cluster;
pub mod conditions;
mod paint;

use api::conditions::Type;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use terminal::{Colors, Layout, age, align, cells};

use crate::readiness::cause;
use crate::snapshot::{Condition, Item, Kind, Snapshot};

pub use self::cluster::{Parts, Selection, of_cluster};

/// Object, or several in the same state, with its children.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// `Kind/name`, or `3 Machines...`.
    pub name: String,
    /// The namespace of a cluster, where clusters of several namespaces are described.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The requested number of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i64>,
    /// The existing machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// Machines that are available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i64>,
    /// Machines that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i64>,
    /// Machines of the newest template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i64>,
    /// Such as `Available: True`.
    pub status: String,
    /// Reason of the condition.
    pub reason: String,
    /// Time of the last change of the status, RFC 3339.
    pub since: String,
    /// Cause why the object is not ready.
    pub message: String,
    /// Phase of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// True if the object needs intervention.
    pub failing: bool,
    /// The Kubernetes version of a machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The Node of a machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// The conditions to show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<conditions::Row>,
    /// Objects below.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Branch>,
    /// True if the machine has been a Node.
    #[serde(skip)]
    was_ready: bool,
}

impl Branch {
    /// True if the condition is true, without a message to show.
    pub fn is_ready(&self) -> bool {
        self.status.ends_with("True") && self.message.is_empty()
    }
}

fn branch(snapshot: &Snapshot, item: &Item, prefix: &str) -> Branch {
    let count = |field: &str| item.field(field).as_i64();
    let scales = match item.kind {
        Kind::KubeadmControlPlane | Kind::MachineDeployment | Kind::MachineSet => true,
        // Control planes and pools of other providers.
        Kind::Other => count("/spec/replicas").is_some(),
        _ => false,
    };
    let (type_, condition) = summary(item);
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

/// [`Condition`] that summarises an object, and its type.
fn summary(item: &Item) -> (&'static str, Option<Condition<'_>>) {
    let types: &[Type] = match item.kind {
        Kind::Cluster | Kind::KubeadmControlPlane | Kind::MachineDeployment | Kind::MachineSet => {
            &[Type::Available]
        }
        Kind::OpenStackCluster | Kind::OpenStackMachine | Kind::Machine => &[Type::Ready],
        Kind::Other => &[Type::Available, Type::Ready],
    };
    let mut found = types
        .iter()
        .filter_map(|type_| Some((type_.as_str(), Some(item.condition(*type_)?))));
    found.next().unwrap_or(("", None))
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

/// Columns left out on a narrow terminal: counts, REASON, SINCE and REPLICAS.
const EXPENDABLE: [usize; 6] = [6, 4, 5, 8, 9, 3];

/// Formats [`Branch`]es as one aligned table with a header.
pub fn table(roots: &[Branch], now: Timestamp, layout: Layout, colors: Colors) -> String {
    let mut rows = vec![HEADER.map(str::to_owned)];
    for root in roots {
        flatten(root, "", "", (now, colors), &mut rows);
    }
    if layout != Layout::Wide {
        for row in &mut rows {
            row[1].clear();
            row[2].clear();
        }
    }
    let Layout::Terminal(width) = layout else {
        return align(&rows);
    };
    let mut text = terminal::fit(&rows, width, &EXPENDABLE);
    for narrow in NARROWER {
        if has_room(&text, width) {
            break;
        }
        rows.iter_mut().for_each(narrow);
        text = terminal::fit(&rows, width, &EXPENDABLE);
    }
    text
}

/// Shorter forms of a row, each for a terminal that is too narrow for the one before.
const NARROWER: [fn(&mut [String; 11]); 2] = [
    |row| row[0] = without_role(&row[0]),
    |row| {
        row[7] = row[7]
            .replacen("Available: ", "", 1)
            .replacen("Ready: ", "", 1)
    },
];

/// True if the rows of the table fit, with or without the messages below them.
fn has_room(text: &str, width: usize) -> bool {
    let is_row = |line: &&str| {
        let start = line.trim_start_matches(' ');
        line.len() - start.len() < 4 || start.starts_with(['├', '└', '│'])
    };
    let mut lines = text.lines().filter(is_row);
    lines.all(|line| terminal::width(line) <= width)
}

/// The name without the role before it, such as `ControlPlane - `; a name of an object has no blank.
fn without_role(name: &str) -> String {
    let Some((before, rest)) = name.split_once(" - ") else {
        return name.to_owned();
    };
    let role = before.chars().rev().take_while(char::is_ascii_alphabetic);
    let branches = before.len() - role.count();
    format!("{}{rest}", &before[..branches])
}

fn count(count: Option<i64>) -> String {
    count.map(|count| count.to_string()).unwrap_or_default()
}

fn flatten(
    node: &Branch,
    of_set: &str,
    below: &str,
    (now, colors): (Timestamp, Colors),
    rows: &mut Vec<[String; 11]>,
) {
    let mut row = cells([
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
        String::new(),
        node.reason.clone(),
        age(&node.since, now),
        node.message.clone(),
    ]);
    row[7] = paint::state(colors, node);
    rows.push(row);
    let total = node.conditions.len() + node.children.len();
    let lines = |index: usize| match index + 1 == total {
        true => ("└─", "  "),
        false => ("├─", "│ "),
    };
    for (index, row) in node.conditions.iter().enumerate() {
        let mut of_condition: [String; 11] = Default::default();
        of_condition[0] = format!("{below}{}{}", lines(index).0, row.type_);
        of_condition[8].clone_from(&row.reason);
        of_condition[9] = age(&row.since, now);
        of_condition[10] = row.message.replace('\n', " ");
        let mut of_condition = cells(of_condition);
        of_condition[7] = paint::condition(colors, row);
        rows.push(of_condition);
    }
    for (index, child) in node.children.iter().enumerate() {
        let (branch, rest) = lines(node.conditions.len() + index);
        flatten(
            child,
            &format!("{below}{branch}"),
            &format!("{below}{rest}"),
            (now, colors),
            rows,
        );
    }
}

#[cfg(test)]
mod tests;
