//! What the real kube-apiserver answered, normalised: for each file of the scenario one in tests/kubernetes/answers,
//! one step on each line.

use std::collections::BTreeMap;

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

/// Writes it.
pub(crate) fn write(outcomes: &[Outcome]) {
    let mut of_files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for outcome in outcomes {
        let line = serde_json::to_string(outcome).unwrap();
        of_files.entry(&outcome.file_stem).or_default().push(line);
    }
    for (stem, lines) in of_files {
        let text = format!("[\n{}\n]\n", lines.join(",\n"));
        let file = root().join(FOLDER).join(stem).with_extension("json");
        std::fs::write(file, text).unwrap();
    }
}
