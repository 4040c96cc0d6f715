//! What a person sees while clusters come up: a live tree on a terminal, else one line per change.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Instant;

use serde_json::json;

use super::welcome::Welcome;
use crate::cli::Output;
use crate::readiness::waits_for;
use crate::snapshot::{Item, Kind, Snapshot};
use crate::tree::{self, Branch};

/// Shows progress on standard output.
pub(super) struct Progress {
    style: Style,
    started: Instant,
    printed: BTreeMap<(Kind, String), String>,
    drawn_lines: usize,
    /// Stands below the live tree once all has been ready.
    footer: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Live,
    Lines,
    Json,
}

impl Progress {
    pub(super) fn new(output: Output, terminal: bool, started: Instant) -> Self {
        let style = match (output, terminal) {
            (Output::Json, _) => Style::Json,
            (Output::Text, true) => Style::Live,
            (Output::Text, false) => Style::Lines,
        };
        Self {
            style,
            started,
            printed: BTreeMap::new(),
            drawn_lines: 0,
            footer: Vec::new(),
        }
    }

    /// Says one sentence.
    pub(super) fn say(&mut self, sentence: &str) -> io::Result<()> {
        let elapsed = self.elapsed();
        let mut out = io::stdout().lock();
        match self.style {
            Style::Json => writeln!(
                out,
                "{}",
                json!({"elapsedSeconds": elapsed, "message": sentence})
            )?,
            Style::Live => {
                erase(&mut out, std::mem::take(&mut self.drawn_lines))?;
                writeln!(out, "{sentence}")?;
            }
            Style::Lines => writeln!(out, "{elapsed:7.1}s  {sentence}")?,
        }
        out.flush()
    }

    /// Says that everything is ready, and for people also how to go on.
    pub(super) fn ready(&mut self, snapshot: &Snapshot, welcome: &Welcome<'_>) -> io::Result<()> {
        let clusters: Vec<_> = snapshot
            .of_kind(Kind::Cluster)
            .map(|cluster| (cluster.namespace(), cluster.name()))
            .collect();
        let mut out = io::stdout().lock();
        match self.style {
            Style::Json => writeln!(out, "{}", welcome.event(&clusters, self.elapsed()))?,
            Style::Lines => {
                for line in welcome.lines(&clusters, self.elapsed()) {
                    writeln!(out, "{line}")?;
                }
            }
            Style::Live => {
                drop(out);
                self.footer = welcome.lines(&clusters, self.elapsed());
                return self.draw(snapshot);
            }
        }
        out.flush()
    }

    /// Leaves the picture that is on the screen where it is; what follows goes below it.
    pub(super) fn leave(&mut self) {
        self.drawn_lines = 0;
    }

    /// Shows what has changed since the last call.
    pub(super) fn show(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        match self.style {
            Style::Live => self.draw(snapshot),
            Style::Lines | Style::Json => self.list_changes(snapshot),
        }
    }

    /// Whether the picture contains durations, which grow without any change.
    pub(super) fn is_ticking(&self) -> bool {
        self.style == Style::Live && self.footer.is_empty()
    }

    fn elapsed(&self) -> f64 {
        (self.started.elapsed().as_secs_f64() * 10.0).round() / 10.0
    }

    fn list_changes(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let mut now = BTreeMap::new();
        let mut out = io::stdout().lock();
        let elapsed = self.elapsed();
        for item in &snapshot.items {
            let key = (item.kind, format!("{}/{}", item.namespace(), item.name()));
            let state = state(item);
            if self.printed.get(&key) != Some(&state) {
                self.line(&mut out, elapsed, &item.label(), &state)?;
            }
            now.insert(key, state);
        }
        for ((kind, name), _) in self
            .printed
            .iter()
            .filter(|(key, _)| !now.contains_key(key))
        {
            let name = name.rsplit('/').next().unwrap_or_default();
            self.line(
                &mut out,
                elapsed,
                &format!("{}/{name}", kind.as_str()),
                "gone",
            )?;
        }
        self.printed = now;
        out.flush()
    }

    fn line(&self, out: &mut impl Write, elapsed: f64, label: &str, state: &str) -> io::Result<()> {
        match self.style {
            Style::Json => {
                let change = json!({"elapsedSeconds": elapsed, "object": label, "state": state});
                writeln!(out, "{change}")
            }
            Style::Lines | Style::Live => writeln!(out, "{elapsed:7.1}s  {label:<44}  {state}"),
        }
    }

    fn draw(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let (width, height) = crossterm::terminal::size().unwrap_or((100, 40));
        let mut lines = match self.footer.is_empty() {
            true => vec![format!(
                "Elapsed {:.1} s",
                self.started.elapsed().as_secs_f64()
            )],
            false => Vec::new(),
        };
        for cluster in snapshot.of_kind(Kind::Cluster) {
            let mut rows = Vec::new();
            rows_of(
                &tree::of_cluster(snapshot, cluster, false),
                "",
                "",
                &mut rows,
            );
            lines.extend(tree::align(&rows).lines().map(str::to_owned));
        }
        // What scrolled off the screen could not be redrawn.
        lines.truncate(usize::from(height).saturating_sub(1 + self.footer.len()));
        let mut out = io::stdout().lock();
        erase(&mut out, self.drawn_lines)?;
        for line in &lines {
            let cut: String = line.chars().take(usize::from(width)).collect();
            writeln!(out, "{cut}")?;
        }
        // Lines to copy are not cut; each counts as the rows that it takes on the screen.
        self.drawn_lines = lines.len();
        for line in &self.footer {
            writeln!(out, "{line}")?;
            self.drawn_lines += rows_on_screen(line, usize::from(width));
        }
        out.flush()
    }
}

/// A row of the live tree: object, state, what it waits for.
fn rows_of(node: &Branch, first: &str, below: &str, rows: &mut Vec<[String; 3]>) {
    let mark = match (node.status.ends_with("True"), node.status.is_empty()) {
        (true, _) => "✔ ",
        (false, true) => "",
        (false, false) => "… ",
    };
    let ready = match node.replicas.split_once('/') {
        Some((_, wanted)) if node.ready_replicas.is_empty() => format!("0/{wanted}"),
        Some((_, wanted)) => format!("{}/{wanted}", node.ready_replicas),
        None => String::new(),
    };
    let state = match (node.phase.as_str(), ready.as_str()) {
        ("", ready) => ready.to_owned(),
        (phase, "") => phase.to_owned(),
        (phase, ready) => format!("{phase} {ready}"),
    };
    rows.push([
        format!("{first}{mark}{}", node.name),
        state,
        node.waits_for.clone(),
    ]);
    for (index, child) in node.children.iter().enumerate() {
        let (branch, rest) = if index + 1 == node.children.len() {
            ("└─", "  ")
        } else {
            ("├─", "│ ")
        };
        rows_of(
            child,
            &format!("{below}{branch}"),
            &format!("{below}{rest}"),
            rows,
        );
    }
}

fn rows_on_screen(line: &str, width: usize) -> usize {
    line.chars().count().div_ceil(width.max(1)).max(1)
}

/// Moves up over the last picture and clears it.
fn erase(out: &mut impl Write, lines: usize) -> io::Result<()> {
    if lines == 0 {
        Ok(())
    } else {
        write!(out, "\x1b[{lines}A\r\x1b[J")
    }
}

/// An object's state in a few words: its phase, and what it waits for.
fn state(item: &Item) -> String {
    let phase = item.field("/status/phase").as_str().unwrap_or_default();
    let phase = match (item.is_deleting(), phase) {
        (true, _) => "Deleting",
        (false, phase) => phase,
    };
    let replicas = match item.kind {
        Kind::KubeadmControlPlane | Kind::MachineDeployment | Kind::MachineSet => format!(
            "{}/{} ready",
            item.field("/status/readyReplicas").as_i64().unwrap_or(0),
            item.field("/spec/replicas").as_i64().unwrap_or(0),
        ),
        _ => String::new(),
    };
    // The state of kinds without a phase is their Ready condition, which new objects lack.
    let word = match (item.condition("Ready"), phase.is_empty(), &*replicas) {
        (Some(ready), true, "") if ready.status == "True" => "Ready",
        (None, true, "") => "Pending",
        _ => "",
    };
    let why = waits_for(item).unwrap_or_default();
    let why = tree::without_conditions(&why).to_owned();
    let parts = [phase.to_owned(), replicas, word.to_owned(), why];
    parts
        .iter()
        .filter(|part| !part.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join(": ")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::snapshot::tests::item;

    #[test]
    fn a_state_tells_phase_and_what_is_awaited() {
        let machine = |status: Value| {
            state(&item(
                Kind::Machine,
                json!({"metadata": {"name": "m"}, "status": status}),
            ))
        };
        assert_eq!(machine(json!({"phase": "Running"})), "Running");
        assert_eq!(
            machine(json!({"phase": "Provisioning", "conditions": [
                {"type": "InfrastructureReady", "status": "False", "reason": "R", "message": "* server is BUILD"}]})),
            "Provisioning: server is BUILD"
        );
        let set = item(
            Kind::MachineDeployment,
            json!({"metadata": {"name": "m"}, "spec": {"replicas": 3}, "status": {"readyReplicas": 1}}),
        );
        assert_eq!(state(&set), "1/3 ready");
    }

    #[test]
    fn the_live_tree_shows_what_each_object_waits_for() {
        let branch = |kind, object| {
            let snapshot = Snapshot {
                items: vec![item(kind, object)],
            };
            let mut rows = Vec::new();
            let root = tree::of_cluster(&snapshot, &snapshot.items[0], false);
            rows_of(&root, "", "", &mut rows);
            rows.remove(0)
        };
        let condition = |type_: &str, message: &str| json!({"type": type_, "status": "False", "reason": "R", "message": message});
        let conditions = [
            condition("Available", "* RemoteConnectionProbe: no connection"),
            condition(
                "InfrastructureReady",
                "APIEndpointReady: waiting for load balancer x",
            ),
        ];
        assert_eq!(
            branch(
                Kind::Cluster,
                json!({"metadata": {"name": "c"}, "status": {"phase": "Provisioning", "conditions": conditions}})
            ),
            ["… Cluster/c", "Provisioning", "waiting for load balancer x"]
        );
        assert_eq!(
            branch(
                Kind::MachineDeployment,
                json!({"metadata": {"name": "d"}, "spec": {"replicas": 3}, "status": {"replicas": 3, "phase": "Running"}})
            ),
            ["MachineDeployment/d", "Running 0/3", ""]
        );
    }

    #[test]
    fn an_object_is_ready_only_when_it_says_so() {
        let infra = |status: Value| {
            let object = json!({"metadata": {"name": "m"}, "status": status});
            state(&item(Kind::OpenStackMachine, object))
        };
        let ready = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": "R", "message": ""}]});
        assert_eq!(infra(Value::Null), "Pending");
        assert_eq!(infra(ready("True")), "Ready");
        assert_eq!(infra(ready("False")), "R");
    }
}
