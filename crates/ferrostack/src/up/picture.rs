//! Draws all clusters on a terminal: failing ones first, then those in progress, then those that are ready.

use crate::readiness::cause;
use crate::snapshot::{Item, Kind, Snapshot};
use crate::tree::{self, Branch};

/// The width of names below which messages are shortened instead.
const NARROWEST_NAME: usize = 22;

/// The state of a row's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Failing,
    Waiting,
    Ready,
    /// A row without a state.
    None,
}

/// A line of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) mark: Mark,
    pub(super) text: String,
}

/// A row before its layout.
struct Row {
    mark: Mark,
    /// The branches of the tree before the name.
    branches: String,
    name: String,
    state: String,
    message: String,
    /// Whether this is the first row of a cluster, which is never left out before other rows.
    head: bool,
}

/// All clusters, in at most `height` lines of `width` characters.
pub(super) fn lines(snapshot: &Snapshot, width: usize, height: usize) -> Vec<Line> {
    let mut rows = rows(snapshot);
    let (width, height) = (width.max(20), height.max(2));
    let left_out = (rows.len() > height).then(|| leave_out(&mut rows, height - 1));
    let room = height - usize::from(left_out.is_some());
    let mut lines = lay_out(&rows, width, room.saturating_sub(rows.len()));
    if let Some(text) = left_out {
        lines.push(Line {
            mark: Mark::None,
            text: cut(&text, width),
        });
    }
    lines
}

/// Failing clusters first. If there are several clusters, one that is ready takes one row.
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

/// The mark of an object by its own state.
fn mark_of(node: &Branch) -> Mark {
    match node {
        _ if node.failing => Mark::Failing,
        _ if node.is_ready() => Mark::Ready,
        _ if node.status.is_empty() && node.message.is_empty() => Mark::None,
        _ => Mark::Waiting,
    }
}

/// Mark and message of a row. An object that is ready by its own state does not claim success while something below it
/// fails or waits: it has the mark and the message of that.
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

/// The message of the cloud without the request that failed, which `describe` shows.
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

/// The phase, and the numbers of ready and failing machines.
fn state(node: &Branch) -> String {
    let failing = node.children.iter().filter(|child| child.failing).count();
    let ready = node
        .desired_replicas
        .map(|desired| format!("{}/{desired}", node.ready_replicas.unwrap_or(0)));
    let failing = (node.desired_replicas.is_some() && failing > 0).then(|| format!("✗ {failing}"));
    let phase = Some(node.phase.clone()).filter(|phase| !phase.is_empty());
    let parts: Vec<String> = [phase, ready, failing].into_iter().flatten().collect();
    parts.join(" ")
}

/// Leaves out rows until `height` rows are left: first ready ones, then waiting ones, then failing ones, each from the
/// end. Returns a summary of the rows left out.
fn leave_out(rows: &mut Vec<Row>, height: usize) -> String {
    let mut counts = [0usize; 3];
    for (index, mark) in [Mark::Ready, Mark::Waiting, Mark::Failing]
        .into_iter()
        .enumerate()
    {
        while rows.len() > height {
            let fits = |row: &Row| !row.head && (row.mark == mark || row.mark == Mark::None);
            let Some(at) = rows.iter().rposition(fits) else {
                break;
            };
            if rows.remove(at).mark == mark {
                counts[index] += 1;
            }
        }
    }
    // There are more clusters than lines.
    let heads = rows.len().saturating_sub(height);
    rows.truncate(height);
    let words = ["ready", "waiting", "failing"];
    let parts: Vec<String> = counts
        .iter()
        .zip(words)
        .filter(|(count, _)| **count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .chain((heads > 0).then(|| format!("{heads} clusters")))
        .collect();
    format!(
        "… {} more: {}",
        counts.iter().sum::<usize>() + heads,
        parts.join(", ")
    )
}

/// Lines of `width` characters. Up to `spare` more lines than rows have what does not fit beside a failing cluster.
fn lay_out(rows: &[Row], width: usize, mut spare: usize) -> Vec<Line> {
    let len = |text: &str| text.chars().count();
    let widest = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let state = widest(&|row| len(&row.state));
    let message = widest(&|row| len(&row.message));
    let name = widest(&|row| len(&row.branches) + 2 + len(&row.name));
    // Names are shortened before messages are.
    let room = width.saturating_sub(state + message + 4);
    let name = name.min(room.max(NARROWEST_NAME).max(width / 3));
    let mut lines = Vec::new();
    for row in rows {
        let beside = name + state + 4;
        let below = if row.head && row.mark == Mark::Failing && beside + len(&row.message) > width {
            wrapped(&row.message, width.saturating_sub(2))
        } else {
            Vec::new()
        };
        let fits = below.len() <= spare;
        let message = if fits && !below.is_empty() {
            ""
        } else {
            row.message.as_str()
        };
        let sign = match row.mark {
            Mark::Failing => "✗ ",
            Mark::Waiting => "… ",
            Mark::Ready => "✔ ",
            Mark::None => "",
        };
        let start = format!("{}{sign}", row.branches);
        let short = shorten(&row.name, name.saturating_sub(len(&start)));
        let text = format!("{start}{short}");
        let pad = " ".repeat(name.saturating_sub(len(&text)));
        let line = format!("{text}{pad}  {:<state$}  {message}", row.state);
        lines.push(Line {
            mark: row.mark,
            text: cut(line.trim_end(), width),
        });
        if fits {
            spare -= below.len();
            lines.extend(below.into_iter().map(|text| Line {
                mark: Mark::None,
                text: format!("│ {text}"),
            }));
        }
    }
    lines
}

/// `text` in lines of at most `width` characters, broken between words where that is possible.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, width)),
        }
    }
    lines
}

/// `MachineDeployment/demo-md-0` in `width` characters: first without the kind, then without the middle.
fn shorten(name: &str, width: usize) -> String {
    let chars = |text: &str| text.chars().count();
    if chars(name) <= width {
        return name.to_owned();
    }
    let bare = match name.split_once('/') {
        // Its name is that of its cluster.
        Some(("OpenStackCluster", _)) => "Infrastructure",
        Some((_, bare)) => bare,
        None => name,
    };
    if chars(bare) <= width {
        return bare.to_owned();
    }
    let end: usize = width.saturating_sub(1) / 2;
    let start = width.saturating_sub(1) - end;
    let first: String = bare.chars().take(start).collect();
    let last: String = bare.chars().skip(chars(bare) - end).collect();
    format!("{first}…{last}")
}

/// `text` in `width` characters; an ellipsis replaces what is cut.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests;
