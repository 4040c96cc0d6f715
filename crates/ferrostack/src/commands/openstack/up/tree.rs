//! Steps of a cloud as a tree on a terminal: a row for each service, with unready steps and the reasons of waits below.

use std::collections::BTreeMap;

use api::openstack::v1alpha1::{OpenStack, Phase, StepStatus};
use deployer::{Cloud, Credentials, Parameters, upgrade};
use k8s_openapi::jiff::Timestamp;

use crate::picture::{Mark, Row};

/// Services of a cloud in order, each with the steps.
#[derive(Debug, Default)]
pub(super) struct Parts {
    title: String,
    /// Progress of an upgrade.
    note: String,
    parts: Vec<(&'static str, Vec<String>)>,
}

impl Parts {
    /// [`Parts`] of an object; none for rejected parameters.
    pub(super) fn from_object(object: &OpenStack) -> Self {
        let cloud = serde_json::to_value(object).ok().and_then(|document| {
            let (parameters, _) = Parameters::read(&document).ok()?;
            Cloud::new(&document, parameters).ok()
        });
        let Some(cloud) = cloud else {
            return Self::default();
        };
        let held = Credentials::complete(&cloud.name, &[], || 0);
        let graph = deployer::desired(&cloud, &held);
        let mut parts: Vec<(&'static str, Vec<String>)> = Vec::new();
        for step in graph.steps {
            match parts.iter_mut().find(|(part, _)| *part == step.part) {
                Some((_, steps)) => steps.push(step.name),
                None => parts.push((step.part, vec![step.name])),
            }
        }
        Self {
            title: format!("OpenStack/{}", cloud.name),
            note: String::new(),
            parts,
        }
    }

    /// Sets the progress of an upgrade beside the title.
    pub(super) fn note(&mut self, note: String) {
        self.note = note;
    }

    /// [`Row`]s at this time.
    pub(super) fn rows(&self, steps: &[StepStatus], now: Timestamp) -> Vec<Row> {
        let by_name: BTreeMap<&str, &StepStatus> =
            steps.iter().map(|it| (it.name.as_str(), it)).collect();
        let mut rows = vec![Row {
            mark: worst(steps.iter()),
            branches: String::new(),
            name: self.title.clone(),
            state: ready(steps.iter()),
            message: self.note.clone(),
            head: true,
        }];
        let last = self.parts.len().saturating_sub(1);
        for (index, (part, names)) in self.parts.iter().enumerate() {
            let tasks = steps
                .iter()
                .filter(|it| upgrade::part(&it.name) == Some(*part));
            let steps = names.iter().filter_map(|it| by_name.get(it.as_str()));
            let steps: Vec<&StepStatus> = steps.copied().chain(tasks).collect();
            let (branch, below) = branches(index == last);
            rows.push(Row {
                mark: worst(steps.iter().copied()),
                branches: branch.to_owned(),
                name: (*part).to_owned(),
                state: ready(steps.iter().copied()),
                message: String::new(),
                head: false,
            });
            let left = steps.into_iter().filter(|it| it.phase != Phase::Ready);
            let left: Vec<&StepStatus> = left.collect();
            let end = left.len().saturating_sub(1);
            rows.extend(left.iter().enumerate().map(|(index, step)| Row {
                mark: mark(step.phase),
                branches: format!("{below}{}", branches(index == end).0),
                name: step.name.clone(),
                state: since(step, now),
                message: step.message.clone(),
                head: false,
            }));
        }
        rows
    }
}

/// Branch before a row, and before the rows below.
fn branches(is_last: bool) -> (&'static str, &'static str) {
    match is_last {
        true => ("└─", "  "),
        false => ("├─", "│ "),
    }
}

fn mark(phase: Phase) -> Mark {
    match phase {
        Phase::Failed => Mark::Failing,
        Phase::Progressing => Mark::Waiting,
        // What waits for others is not at work.
        Phase::Waiting => Mark::Later,
        Phase::Ready => Mark::Ready,
    }
}

/// Worst [`Mark`] of the steps.
fn worst<'a>(steps: impl Iterator<Item = &'a StepStatus>) -> Mark {
    let marks = steps.map(|step| match mark(step.phase) {
        Mark::Later => Mark::Waiting,
        mark => mark,
    });
    marks.min().unwrap_or(Mark::None)
}

fn ready<'a>(steps: impl Iterator<Item = &'a StepStatus>) -> String {
    let (mut ready, mut all) = (0, 0);
    for step in steps {
        all += 1;
        ready += usize::from(step.phase == Phase::Ready);
    }
    format!("{ready}/{all}")
}

/// Duration of a step's work.
fn since(step: &StepStatus, now: Timestamp) -> String {
    let started = step
        .started
        .as_ref()
        .filter(|_| step.phase != Phase::Waiting);
    let seconds = started.map(|it| now.duration_since(it.0).as_secs().max(0));
    seconds.map(|it| format!("{it} s")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;
    use crate::picture;

    fn object() -> OpenStack {
        let object = json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack",
            "metadata": {"name": "cloud", "namespace": "openstack"}, "spec": {"release": "2026.1"}});
        serde_json::from_value(object).unwrap()
    }

    /// Every step is ready, but for these.
    fn steps(parts: &Parts, others: &[(&str, Phase, &str)]) -> Vec<StepStatus> {
        let names = parts.parts.iter().flat_map(|(_, steps)| steps);
        let step = |name: &String| {
            let other = others.iter().find(|(it, ..)| it == name);
            let (phase, message) = other.map_or((Phase::Ready, ""), |it| (it.1, it.2));
            StepStatus {
                name: name.clone(),
                phase,
                message: message.to_owned(),
                started: Some(Time(Timestamp::UNIX_EPOCH)),
                seconds: None,
            }
        };
        names.map(step).collect()
    }

    fn text(parts: &Parts, steps: &[StepStatus], height: usize) -> Vec<String> {
        let now = Timestamp::from_second(7).unwrap();
        let lines = picture::lines(parts.rows(steps, now), 90, height);
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_cloud_that_is_ready_has_a_row_for_each_service() {
        let parts = Parts::from_object(&object());
        let lines = text(&parts, &steps(&parts, &[]), 40);
        assert_eq!(lines.len(), 1 + parts.parts.len(), "{lines:#?}");
        let count: usize = parts.parts.iter().map(|(_, steps)| steps.len()).sum();
        assert!(lines[0].starts_with("✔ OpenStack/cloud "), "{lines:#?}");
        assert!(
            lines[0].ends_with(&format!(" {count}/{count}")),
            "{lines:#?}"
        );
        for part in [
            "cloud", "mariadb", "rabbitmq", "keystone", "neutron", "nova", "horizon",
        ] {
            let row = lines
                .iter()
                .filter(|it| it.contains(&format!("─✔ {part} ")));
            assert_eq!(row.count(), 1, "{part}: {lines:#?}");
        }
    }

    #[test]
    fn what_is_not_ready_is_below_its_service_with_what_it_waits_for() {
        let parts = Parts::from_object(&object());
        let others = [
            (
                "keystone-bootstrap",
                Phase::Progressing,
                "Job x has not completed",
            ),
            (
                "keystone-api",
                Phase::Waiting,
                "waits for keystone-bootstrap",
            ),
            ("nova-schema", Phase::Failed, "Job y has failed"),
        ];
        let lines = text(&parts, &steps(&parts, &others), 40);
        let at = |words: &str| {
            let found = lines.iter().position(|it| it.contains(words));
            found.unwrap_or_else(|| panic!("{words}: {lines:#?}"))
        };
        assert!(lines[0].starts_with('✗'), "{lines:#?}");
        let keystone = at("─… keystone ");
        assert_eq!(at("│ ├─… keystone-bootstrap"), keystone + 1);
        assert!(
            lines[keystone + 1].ends_with("7 s    Job x has not completed"),
            "{lines:#?}"
        );
        assert_eq!(at("│ └─keystone-api"), keystone + 2);
        assert!(lines[keystone + 2].ends_with("  waits for keystone-bootstrap"));
        assert!(lines[at("─✗ nova-schema")].ends_with("Job y has failed"));
        // In a small window the causes stay.
        let small = text(&parts, &steps(&parts, &others), 8);
        assert_eq!(small.len(), 8);
        assert!(
            small.iter().any(|it| it.contains("Job y has failed")),
            "{small:#?}"
        );
        assert_eq!(small[7], "… 8 more: 8 ready");
        let smaller = text(&parts, &steps(&parts, &others), 6);
        assert_eq!(smaller[5], "… 10 more: 9 ready, 1 not begun");
    }

    #[test]
    fn rejected_parameters_have_no_parts() {
        let mut object = object();
        object.spec.release = "none".to_owned();
        let parts = Parts::from_object(&object);
        assert_eq!(parts.rows(&[], Timestamp::UNIX_EPOCH).len(), 1);
    }
}
