//! Progress of clusters: a live tree on a terminal, or else one line per change.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use api::printable;
use serde_json::json;
use status::readiness::{self, cause};
use status::snapshot::{Item, Kind, Snapshot};

use super::picture;
use super::welcome::Welcome;
use crate::cli::{Output, Up};
use crate::environment::Environment;
use crate::output::{self, Screen};

/// Shows progress on standard output.
pub(super) struct Progress {
    style: Style,
    started: Instant,
    /// Time of the change that has made something unready; `None` while there is nothing to wait for.
    changed: Option<Instant>,
    /// Seconds from the last such change until everything was ready.
    took: f64,
    /// True if there is no cluster, which has been said.
    idle: bool,
    printed: BTreeMap<(Kind, String), String>,
    screen: Screen,
    /// True if the cloud is simulated.
    simulated: bool,
    /// Lines below the live tree once all clusters have been ready.
    footer: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Live,
    Lines,
    Json,
}

impl Progress {
    pub(super) fn new(args: &Up, environment: &Environment, started: Instant) -> Self {
        let style = match (args.output.output, environment.terminal) {
            (Output::Json, _) => Style::Json,
            (Output::Text, true) => Style::Live,
            (Output::Text, false) => Style::Lines,
        };
        Self {
            style,
            started,
            changed: Some(started),
            took: 0.0,
            idle: false,
            printed: BTreeMap::new(),
            screen: Screen::new(environment),
            simulated: args.cloud.is_none(),
            footer: Vec::new(),
        }
    }

    /// Prints one sentence.
    pub(super) fn say(&mut self, sentence: &str) -> io::Result<()> {
        let elapsed = self.elapsed();
        output::try_say(&match self.style {
            Style::Json => {
                terminal::json_line(&json!({"elapsedSeconds": elapsed, "message": sentence}))
            }
            Style::Live => sentence.to_owned(),
            Style::Lines => format!("{elapsed:7.1}s  {sentence}"),
        })
    }

    /// Reports that all clusters in a [`Snapshot`] are ready, for users with the next commands.
    pub(super) fn ready(&mut self, snapshot: &Snapshot, welcome: &Welcome<'_>) -> io::Result<()> {
        let clusters: Vec<_> = snapshot
            .of_kind(Kind::Cluster)
            .map(|cluster| (cluster.namespace(), cluster.name()))
            .collect();
        match self.style {
            Style::Json => {
                let event = welcome.event(&clusters, self.elapsed());
                output::try_say(&terminal::json_line(&event))
            }
            Style::Lines => {
                let mut lines = welcome.lines(&clusters, self.elapsed()).into_iter();
                lines.try_for_each(|line| output::try_say(&printable::line(&line)))
            }
            Style::Live => {
                self.footer = welcome.lines(&clusters, self.took);
                self.draw(snapshot)
            }
        }
    }

    /// Keeps the last output on the screen; later output is printed below it.
    pub(super) fn leave(&mut self) {
        self.screen.leave();
    }

    /// Prints changes since the last call.
    pub(super) fn show(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        self.idle = false;
        match self.style {
            Style::Live => self.draw(snapshot),
            Style::Lines | Style::Json => self.list_changes(snapshot),
        }
    }

    /// Reports that there is no cluster, and how to create one.
    pub(super) fn nothing(&mut self, snapshot: &Snapshot, welcome: &Welcome<'_>) -> io::Result<()> {
        let was_idle = std::mem::replace(&mut self.idle, true);
        self.changed = None;
        let lines = welcome.first_steps();
        match self.style {
            Style::Live => self.screen.draw(&[], |_, _| Vec::new(), &lines),
            Style::Lines | Style::Json => {
                self.list_changes(snapshot)?;
                match (was_idle, self.style, lines.as_slice()) {
                    (true, ..) | (_, _, []) => Ok(()),
                    (_, Style::Json, [first, ..]) => self.say(first),
                    (_, _, all) => all
                        .iter()
                        .try_for_each(|line| output::try_say(&printable::line(line))),
                }
            }
        }
    }

    /// True if the output changes without a change of objects, because of a duration or a resized window.
    pub(super) fn is_ticking(&self) -> bool {
        self.style == Style::Live && (self.changed.is_some() || self.screen.is_resized())
    }

    /// Counts the time of what is not ready: from its change on, not from the start of the process.
    fn count(&mut self, ready: bool) {
        if !ready {
            self.changed.get_or_insert_with(Instant::now);
        } else if let Some(change) = self.changed.take() {
            self.took = change.elapsed().as_secs_f64();
        }
    }

    fn elapsed(&self) -> f64 {
        (self.started.elapsed().as_secs_f64() * 10.0).round() / 10.0
    }

    fn list_changes(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let mut now = BTreeMap::new();
        let elapsed = self.elapsed();
        for item in &snapshot.items {
            let key = (item.kind, format!("{}/{}", item.namespace(), item.name()));
            let state = state(snapshot, item);
            if self.printed.get(&key) != Some(&state) {
                self.line(elapsed, &item.label(), &state)?;
            }
            now.insert(key, state);
        }
        for ((kind, name), _) in self
            .printed
            .iter()
            .filter(|(key, _)| !now.contains_key(key))
        {
            let name = name.rsplit('/').next().unwrap_or_default();
            self.line(elapsed, &format!("{}/{name}", kind.as_str()), "gone")?;
        }
        self.printed = now;
        Ok(())
    }

    fn line(&self, elapsed: f64, label: &str, state: &str) -> io::Result<()> {
        output::try_say(&match self.style {
            Style::Json => {
                let change = json!({"elapsedSeconds": elapsed, "object": label, "state": state});
                terminal::json_line(&change)
            }
            Style::Lines | Style::Live => {
                let line = format!("{elapsed:7.1}s  {label:<44}  {state}");
                printable::line(&line).into_owned()
            }
        })
    }

    fn draw(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let ready = readiness::pending(snapshot).is_empty();
        self.count(ready);
        // The next commands, as long as they are valid.
        let below = if ready { self.footer.as_slice() } else { &[] };
        let above: Vec<String> = self.changed.map(elapsed_since).into_iter().collect();
        let picture = |width, room| picture::lines(snapshot, self.simulated, width, room);
        self.screen.draw(&above, picture, below)
    }
}

fn elapsed_since(change: Instant) -> String {
    format!("Elapsed {:.1} s", change.elapsed().as_secs_f64())
}

/// State of an [`Item`] in a few words: phase, and cause of the wait.
fn state(snapshot: &Snapshot, item: &Item) -> String {
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
    // The state of kinds without a phase is their Ready condition, which new objects do not have.
    let word = match (item.condition("Ready"), phase.is_empty(), &*replicas) {
        (Some(ready), true, "") if ready.status == "True" => "Ready",
        (None, true, "") => "Pending",
        _ => "",
    };
    let why = cause(snapshot, item).map(|cause| cause.text);
    // The cause is not repeated after a state that implies it: `Ready`, `Pending`, or a deletion without details.
    let why = why
        .filter(|why| word.is_empty() && why != "being deleted")
        .unwrap_or_default();
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
    use crate::tests::item;

    #[test]
    fn a_state_tells_phase_and_what_is_awaited() {
        let machine = |status: Value| {
            let object = json!({"metadata": {"name": "m"}, "status": status});
            state(&Snapshot::default(), &item(Kind::Machine, object))
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
        assert_eq!(
            state(&Snapshot::default(), &set),
            "1/3 ready: 1 of 3 machines are ready"
        );
    }

    #[test]
    fn an_object_is_ready_only_when_it_says_so() {
        let infra = |status: Value| {
            let object = json!({"metadata": {"name": "m"}, "status": status});
            state(&Snapshot::default(), &item(Kind::OpenStackMachine, object))
        };
        let ready = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": "R", "message": ""}]});
        assert_eq!(infra(Value::Null), "Pending");
        assert_eq!(infra(ready("True")), "Ready");
        assert_eq!(infra(ready("False")), "R");
    }
}
