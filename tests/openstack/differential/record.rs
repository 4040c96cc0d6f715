//! The recorded responses of the real cloud in tests/openstack/real-answers.json: statuses, headers and shapes, no
//! content.
//!
//! `FERROSTACK_RECORD=1 cargo test -p ferrostack --test openstack_differential` updates it.

use std::fmt::Write;

use crate::play::Outcome;
use crate::root;

const FILE: &str = "tests/openstack/real-answers.json";

/// Reads the record.
pub(crate) fn read() -> Vec<Outcome> {
    let text = std::fs::read_to_string(root().join(FILE)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Writes the record, a line for each step, unless a step failed.
pub(crate) fn write(outcomes: &[Outcome]) {
    if let Some(outcome) = outcomes.iter().find(|outcome| outcome.problem.is_some()) {
        eprintln!(
            "not recorded: {} did not go as the scenario says",
            outcome.name
        );
        return;
    }
    let mut text = "[\n".to_owned();
    for (index, outcome) in outcomes.iter().enumerate() {
        let comma = if index + 1 < outcomes.len() { "," } else { "" };
        writeln!(text, "{}{comma}", serde_json::to_string(outcome).unwrap()).unwrap();
    }
    text.push_str("]\n");
    std::fs::write(root().join(FILE), text).unwrap();
}
