//! Output of `openstack up`: a tree redrawn on a terminal, or else a line for each change.

use std::time::Instant;

use api::openstack::v1alpha1::{OpenStack, StepStatus};
use k8s_openapi::jiff::Timestamp;
use operator::client::Requests;
use serde_json::{Value, json};

use super::lines::Lines;
use super::tree::Parts;
use crate::cli::Output;
use crate::commands::openstack::upgrade;
use crate::environment::Environment;
use crate::output::Screen;
use crate::picture::{self, SIMULATED};

/// Beginning of the line about a ready cloud.
pub(super) const READY: &str = "ready after";

/// True for a line of `openstack up`, as text or JSON, about a ready cloud.
pub(super) fn is_ready(line: &str) -> bool {
    line.starts_with(READY) || line.starts_with(r#"{"ready":"#)
}

/// Printed state of a cloud.
pub(in crate::commands::openstack) struct Report<'a> {
    say: &'a dyn Fn(&str),
    style: Style,
    /// Start of the process; in a live tree, the change since which the cloud is not ready.
    started: Instant,
    /// [`StepStatus`] of each step, as printed last.
    steps: Vec<StepStatus>,
    /// Phase of an upgrade, as printed last.
    phase: String,
}

enum Style {
    Json,
    Lines(Lines),
    Live(Box<Live>),
}

struct Live {
    screen: Screen,
    parts: Parts,
    /// True if the cloud is simulated, and nothing runs.
    simulated: bool,
    /// Generation of the cloud with these [`Parts`].
    generation: Option<i64>,
    /// Lines below the tree when the cloud is ready.
    footer: Vec<String>,
}

impl<'a> Report<'a> {
    pub(in crate::commands::openstack) fn new(
        output: Output,
        environment: &Environment,
        say: &'a dyn Fn(&str),
    ) -> Self {
        let style = match (output, environment.terminal) {
            (Output::Json, _) => Style::Json,
            (Output::Text, false) => Style::Lines(Lines::default()),
            (Output::Text, true) => Style::Live(Box::new(Live {
                screen: Screen::new(environment),
                parts: Parts::default(),
                simulated: false,
                generation: None,
                footer: Vec::new(),
            })),
        };
        Self {
            say,
            style,
            started: Instant::now(),
            steps: Vec::new(),
            phase: String::new(),
        }
    }

    /// Seconds since the start.
    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Marks the tree as simulated.
    pub(super) fn mark_simulated(&mut self) {
        if let Style::Live(live) = &mut self.style {
            live.simulated = true;
        }
    }

    /// A sentence.
    pub(in crate::commands::openstack) fn note(&mut self, text: &str) {
        match &self.style {
            Style::Json => (self.say)(&terminal::json_line(&json!({"note": text}))),
            Style::Lines(_) => (self.say)(text),
            Style::Live(_) => (self.say)(text),
        }
    }

    /// Takes over a changed [`OpenStack`] object.
    pub(in crate::commands::openstack) fn cloud(&mut self, cloud: &OpenStack) {
        let steps = cloud.status.as_ref().map(|it| it.steps.clone());
        let steps = steps.unwrap_or_default();
        if let Style::Json = self.style {
            let is_same = |a: &StepStatus, b: &StepStatus| {
                (&a.name, a.phase, &a.message) == (&b.name, b.phase, &b.message)
            };
            for step in &steps {
                if !self.steps.iter().any(|it| is_same(it, step)) {
                    (self.say)(&terminal::json_line(&json!({"step": step})));
                }
            }
        }
        self.upgrade(cloud);
        if let Style::Live(live) = &mut self.style {
            live.parts.note(upgrade::line(cloud));
            if live.generation != cloud.metadata.generation {
                live.parts = Parts::from_object(cloud);
                live.parts.note(upgrade::line(cloud));
                live.generation = cloud.metadata.generation;
            }
            if !std::mem::take(&mut live.footer).is_empty() {
                // The cloud was ready before this change.
                self.started = Instant::now();
            }
        }
        self.steps = steps;
        self.tick();
    }

    /// Prints the progress of an upgrade, if changed.
    fn upgrade(&mut self, cloud: &OpenStack) {
        let line = upgrade::line(cloud);
        if line == self.phase {
            return;
        }
        line.clone_into(&mut self.phase);
        match &self.style {
            Style::Json => {
                let release = cloud.status.as_ref().and_then(|it| it.release.as_ref());
                (self.say)(&terminal::json_line(&json!({"upgrade": release})));
            }
            Style::Lines(_) if !line.is_empty() => (self.say)(&line),
            // The tree has it.
            Style::Lines(_) | Style::Live(_) => {}
        }
    }

    /// Updates the durations.
    pub(in crate::commands::openstack) fn tick(&mut self) {
        if self.steps.is_empty() {
            return;
        }
        let seconds = self.seconds();
        match &mut self.style {
            Style::Json => {}
            Style::Lines(lines) => {
                for line in lines.due(&self.steps, Instant::now()) {
                    (self.say)(&line);
                }
            }
            Style::Live(live) => live.draw(&self.steps, seconds),
        }
    }

    /// Prints the readiness of the cloud: the event as JSON, and lines for people.
    pub(super) fn ready(&mut self, event: &Value, lines: Vec<String>) {
        let seconds = self.seconds();
        match &mut self.style {
            Style::Json => (self.say)(&terminal::json_line(event)),
            Style::Lines(_) => lines.iter().for_each(|line| (self.say)(line)),
            Style::Live(live) => {
                live.footer = lines;
                live.draw(&self.steps, seconds);
            }
        }
    }

    /// Forgets a deleted cloud.
    pub(super) fn gone(&mut self) {
        self.steps.clear();
        match &mut self.style {
            Style::Json => {}
            Style::Lines(lines) => lines.clear(),
            Style::Live(live) => {
                live.footer.clear();
                // The tree of a cloud that is gone; a terminal that is gone, too, shows nothing.
                let _ = live.screen.draw(&[], |_, _| Vec::new(), &[]);
                self.started = Instant::now();
            }
        }
        self.note("the cloud was deleted; nothing is left to control");
    }

    /// Prints the stop of the controller, with its [`Requests`].
    pub(super) fn stopped(&mut self, requests: &Requests) {
        match &mut self.style {
            Style::Json => {
                let event = json!({"stopped": {"requests": counts(requests)}});
                (self.say)(&terminal::json_line(&event));
            }
            Style::Lines(_) => {}
            // The tree stays on the screen.
            Style::Live(live) => live.screen.leave(),
        }
        self.note("stopped; the cloud stays as it is. The same command goes on");
    }
}

impl Live {
    fn draw(&mut self, steps: &[StepStatus], seconds: f64) {
        let above = match self.footer.is_empty() {
            true => vec![format!("Elapsed {seconds:.0} s")],
            false => vec![],
        };
        // Nothing changes any more but the size of the window.
        if above.is_empty() && !self.screen.is_stale(&self.footer) {
            return;
        }
        let mut rows = self.parts.rows(steps, Timestamp::now());
        if let Some(first) = rows.first_mut().filter(|_| self.simulated) {
            first.name.push_str(SIMULATED);
        }
        let picture = |width, height| picture::lines(rows, width, height);
        // A terminal that is gone shows nothing.
        let _ = self.screen.draw(&above, picture, &self.footer);
    }
}

/// Numbers of [`Requests`] as JSON.
pub(super) fn counts(requests: &Requests) -> Value {
    json!({"all": requests.all(), "watches": requests.watches(), "writes": requests.writes()})
}
