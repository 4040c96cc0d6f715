use super::*;
use crate::real_systems::TABLE;
use crate::real_systems::inputs::Digests;

#[test]
fn the_table_of_this_workspace_is_valid_and_its_paths_and_scripts_are_there() {
    let root = crate::root();
    let table = Table::read(&root.join(TABLE)).unwrap();
    let mut digests = Digests::from_root(&root).unwrap();
    for step in &table.steps {
        let files = table.files_of(step);
        digests.inputs(&files, &step.command).unwrap();
    }
    let commands = table.steps.iter().map(|step| &step.command);
    let ups = table.systems.iter().map(|system| &system.up);
    let downs = table
        .systems
        .iter()
        .filter_map(|system| system.down.as_ref());
    let theres = table
        .systems
        .iter()
        .filter_map(|system| system.there.as_ref());
    for command in commands.chain(ups).chain(downs).chain(theres) {
        let words = command.split_whitespace();
        for script in words.filter(|word| word.starts_with("tests/") || word.starts_with(".ci/")) {
            assert!(root.join(script).is_file(), "{script} of {command}");
        }
    }
}

#[test]
fn a_step_needs_what_its_systems_need() {
    let table = Table::parse(TWO_SYSTEMS).unwrap();
    let step = &table.steps[0];
    let systems = table.systems_of(step);
    let names: Vec<&str> = systems.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["packages", "cloud"]);
    assert_eq!(table.conditions_of(step), ["root"]);
    assert_eq!(table.reason_of("root"), "it needs root");
    let files: Vec<&str> = table.files_of(step).into_iter().collect();
    assert_eq!(files, ["Cargo.toml", "crates", "tests"]);
}

#[test]
fn mistakes_in_a_table_are_named() {
    for (from, to, complaint) in [
        ("needs: [cloud]", "needs: [clout]", "check needs clout"),
        ("needs: [packages]", "needs: [cloud]", "cloud needs cloud"),
        (
            "name: cloud",
            "name: packages",
            "two things are called packages",
        ),
        ("name: check", "name: Check", "the name \"Check\""),
        (
            "inputs: [tests, every]",
            "inputs: []",
            "check has no inputs",
        ),
        ("minutes: 3", "minutes: 0", "check takes no time"),
        (
            "down: 'true',",
            "down: 'true', there: 'true',",
            "cloud has `there`",
        ),
        ("command: true", "comand: true", "comand"),
        (
            "shows: it runs",
            "shows: it | runs",
            "has no place in a row",
        ),
    ] {
        assert!(TWO_SYSTEMS.contains(from), "{from}");
        let error = Table::parse(&TWO_SYSTEMS.replace(from, to)).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(complaint), "{to}: {error}");
    }
}

const TWO_SYSTEMS: &str = "\
tests: 10
files:
  every: [crates, toml]
  toml: [Cargo.toml]
conditions:
- {name: root, holds: 'true', otherwise: it needs root}
systems:
- {name: packages, shows: packages, needs: [root], up: 'true', minutes: 1}
- {name: cloud, shows: a cloud, needs: [packages], up: 'true', down: 'true', minutes: 2}
steps:
- name: check
  shows: it runs
  needs: [cloud]
  inputs: [tests, every]
  command: true
  minutes: 3
";
