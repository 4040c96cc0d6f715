//! What the real kube-apiserver answered, normalised: for each file of the scenario one in tests/kubernetes/answers,
//! one step on each line.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::play::Outcome;
use crate::root;

const FOLDER: &str = "tests/kubernetes/answers";

/// The record, in the order of the scenario's files.
pub(crate) fn read() -> Vec<Outcome> {
    let mut files: Vec<_> = std::fs::read_dir(root().join(FOLDER))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let of_file = |path: &std::path::PathBuf| -> Vec<Outcome> {
        let text = std::fs::read_to_string(path).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().flat_map(of_file).collect()
}

/// Outcomes as the record has them: of long parts only the sum.
pub(crate) fn summed(outcomes: &[Outcome]) -> Vec<Outcome> {
    let mut outcomes = outcomes.to_vec();
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.summed) {
        let parts = outcome.answer["body"].as_object_mut().into_iter().flatten();
        for (_, part) in parts {
            let text = part.to_string();
            if text.len() > 200 {
                *part = Value::from(format!("<{} bytes, sum {:016x}>", text.len(), sum(&text)));
            }
        }
    }
    outcomes
}

/// Tells texts apart (FNV-1a); nobody gains from two of the same sum.
fn sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Writes it.
pub(crate) fn write(outcomes: &[Outcome]) {
    let mut of_files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let outcomes = summed(outcomes);
    for outcome in &outcomes {
        let line = serde_json::to_string(outcome).unwrap();
        of_files.entry(&outcome.file_stem).or_default().push(line);
    }
    for (stem, lines) in of_files {
        let text = format!("[\n{}\n]\n", lines.join(",\n"));
        let file = root().join(FOLDER).join(stem).with_extension("json");
        std::fs::write(file, text).unwrap();
    }
}
