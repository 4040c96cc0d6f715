//! What a person sees while clusters come up: a live tree on a terminal, else one line per change.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Instant;

use serde_json::{Value, json};

use crate::cli::Output;
use crate::readiness::waits_for;
use crate::snapshot::{Item, Kind, Snapshot};
use crate::tree::{self, Branch};

/// Shows progress on standard output.
pub(super) struct Progress {
    style: Style,
    started: Instant,
    shown: BTreeMap<(Kind, String), String>,
    drawn_lines: usize,
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
            shown: BTreeMap::new(),
            drawn_lines: 0,
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
    pub(super) fn ready(&mut self, event: &Value, lines: &[String]) -> io::Result<()> {
        match self.style {
            Style::Json => {
                let mut event = event.clone();
                event["elapsedSeconds"] = json!(self.elapsed());
                writeln!(io::stdout().lock(), "{event}")
            }
            Style::Live | Style::Lines => {
                self.drawn_lines = 0;
                let mut out = io::stdout().lock();
                lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
                out.flush()
            }
        }
    }

    /// Shows what has changed since the last call.
    pub(super) fn show(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        match self.style {
            Style::Live => self.draw(snapshot),
            Style::Lines | Style::Json => self.list_changes(snapshot),
        }
    }

    /// Whether the picture holds times that grow on their own.
    pub(super) fn is_live(&self) -> bool {
        self.style == Style::Live
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
            if self.shown.get(&key) != Some(&state) {
                self.line(&mut out, elapsed, &item.label(), &state)?;
            }
            now.insert(key, state);
        }
        for ((kind, name), _) in self.shown.iter().filter(|(key, _)| !now.contains_key(key)) {
            let name = name.rsplit('/').next().unwrap_or_default();
            self.line(
                &mut out,
                elapsed,
                &format!("{}/{name}", kind.as_str()),
                "gone",
            )?;
        }
        self.shown = now;
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
        let mut lines = vec![format!(
            "Elapsed {:.1} s",
            self.started.elapsed().as_secs_f64()
        )];
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
        lines.truncate(usize::from(height).saturating_sub(1));
        let mut out = io::stdout().lock();
        erase(&mut out, self.drawn_lines)?;
        for line in &lines {
            let cut: String = line.chars().take(usize::from(width)).collect();
            writeln!(out, "{cut}")?;
        }
        self.drawn_lines = lines.len();
        out.flush()
    }
}

/// A row of the live tree: object, state, what it waits for.
fn rows_of(node: &Branch, own: &str, below: &str, rows: &mut Vec<[String; 3]>) {
    let mark = match (node.status.ends_with("True"), node.status.is_empty()) {
        (true, _) => "✔ ",
        (false, true) => "",
        (false, false) => "… ",
    };
    let state = match (node.phase.as_str(), node.replicas.as_str()) {
        ("", replicas) => replicas.to_owned(),
        (phase, "") => phase.to_owned(),
        (phase, replicas) => format!("{phase} {replicas}"),
    };
    rows.push([
        format!("{own}{mark}{}", node.name),
        state,
        node.message.clone(),
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
    let ready = if phase.is_empty() && replicas.is_empty() {
        "Ready"
    } else {
        ""
    };
    let parts = match waits_for(item) {
        Some(why) => [phase.to_owned(), replicas, why],
        None => [phase.to_owned(), replicas, ready.to_owned()],
    };
    parts
        .iter()
        .filter(|part| !part.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join(": ")
}

#[cfg(test)]
mod tests {
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
}
