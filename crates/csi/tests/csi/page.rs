//! The page of the driver, and the record of defects of the Go driver, name tests that are there.

use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../../docs/guides/cinder-csi.md");
const DEFECTS: &str = include_str!("../../../../docs/project/runs/go-csi-driver.md");
const CODE: [&str; 7] = [
    "crates/cloud-conf",
    "crates/csi",
    "crates/csi-node",
    "crates/csi-spec/src",
    "crates/grpc/src",
    "crates/ferrostack/src/commands/csi",
    "crates/openstack/src/inventory",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of all files of a directory whose names end in `.rs`.
fn read(directory: &Path, into: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, into);
        } else if path.extension().is_some_and(|it| it == "rs") {
            into.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn each_defect_of_the_go_driver_and_each_bad_input_has_a_test_that_is_there() {
    let mut code = String::new();
    for directory in CODE {
        read(&repository().join(directory), &mut code);
    }
    let mut count = 0;
    for (page, title) in [
        (DEFECTS, "# Defects of the Go driver\n"),
        (PAGE, "\n## Bad input\n"),
    ] {
        let section = page.split(title).nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| "));
        for row in rows.skip(1) {
            let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
            for test in tests.split(", ") {
                let test = test.trim_matches('`');
                let is_there = match test.contains('/') {
                    true => repository().join(test).exists(),
                    false => code.contains(&format!("fn {test}(")),
                };
                assert!(is_there, "{test} of {row}");
                count += 1;
            }
        }
    }
    assert!(count > 90, "{count} tests");
}
