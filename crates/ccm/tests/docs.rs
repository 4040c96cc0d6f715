//! The tables in docs/guides/cloud-controller-manager.md match the code.

#![allow(clippy::unwrap_used)]

use cloud_conf::{KEYS, Program, Support};

const PAGE: &str = include_str!("../../../docs/guides/cloud-controller-manager.md");

fn keys() -> String {
    let mut table =
        String::from("| section | key | default | meaning | |\n|---|---|---|---|---|\n");
    for key in KEYS {
        let built = match key.support(Program::CloudControllerManager) {
            Support::Served => String::new(),
            Support::Rejected(reason) => format!("rejected: {reason}"),
            Support::NoEffect(reason) => format!("warning: {reason}"),
            Support::Elsewhere(component) => format!("for {component}"),
        };
        let default = if key.default.is_empty() {
            String::new()
        } else {
            format!("`{}`", key.default)
        };
        table.push_str(&format!(
            "| {} | `{}` | {default} | {} | {built} |\n",
            key.section.name(),
            key.name,
            key.meaning
        ));
    }
    table
}

fn annotations() -> String {
    let mut table = String::from("| annotation | meaning |\n|---|---|\n");
    for annotation in ccm::ANNOTATIONS {
        table.push_str(&format!(
            "| `{}` | {} |\n",
            annotation.name, annotation.meaning
        ));
    }
    table
}

/// Sources with the tests that the page names.
fn sources() -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = String::new();
    for directory in [
        "tests/ccm",
        "../cloud-conf/src",
        "src/service",
        "src/service/tests",
        "../../tests/suite",
    ] {
        for entry in std::fs::read_dir(root.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                all.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    all
}

#[test]
fn every_test_that_the_page_names_for_a_scenario_or_a_bug_exists() {
    let sources = sources();
    let (_, tables) = PAGE.split_once("## What was run").unwrap();
    let (tables, _) = tables.split_once("\n## ").unwrap_or((tables, ""));
    let rows: Vec<&str> = tables
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    let mut tests = 0;
    for row in rows
        .iter()
        .filter(|row| !row.starts_with("| scenario") && !row.starts_with("| in the Go"))
    {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for name in cell.split(", ") {
            let name = name.trim_matches('`');
            assert!(
                sources.contains(&format!("fn {name}(")),
                "{row}: there is no test {name}"
            );
            tests += 1;
        }
    }
    assert!(tests >= 19, "only {tests} tests in {} rows", rows.len());
}

#[test]
fn the_page_has_every_key_and_annotation_as_the_code_has_them() {
    for table in [keys(), annotations()] {
        assert!(
            PAGE.contains(&table),
            "docs/guides/cloud-controller-manager.md lacks this table:\n{table}"
        );
    }
}
