//! Rules of the project that lints do not cover.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::invariants;

/// The maximum number of lines of a Rust file that is not generated.
const LONGEST: usize = 800;
/// Module names that do not describe a purpose.
const EMPTY_NAMES: [&str; 6] = [
    "utils.rs",
    "util.rs",
    "helpers.rs",
    "common.rs",
    "types.rs",
    "misc.rs",
];

/// Checks every file that git tracks.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output();
    let listed = listed.context("git ls-files")?.stdout;
    let files: Vec<&str> = listed
        .split(|byte| *byte == 0)
        .filter_map(|name| std::str::from_utf8(name).ok())
        .collect();
    let mut problems = invariants::broken(root, &files)?;
    for name in files.iter().filter(|name| name.ends_with(".rs")) {
        let Ok(text) = std::fs::read_to_string(root.join(name)) else {
            continue;
        };
        problems.extend(problems_of(name, &text));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        bail!("\n{}", problems.join("\n"))
    }
}

fn problems_of(name: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = text.lines().count();
    if lines > LONGEST && !name.contains("/generated/") {
        problems.push(format!(
            "{name}: {lines} lines; split it along an idea ({LONGEST} at most)"
        ));
    }
    let file = name.rsplit('/').next().unwrap_or_default();
    if file == "mod.rs" {
        problems.push(format!("{name}: use `foo.rs` beside `foo/`"));
    }
    if EMPTY_NAMES.contains(&file) {
        problems.push(format!("{name}: name it after what it does"));
    }
    for (index, line) in text.lines().enumerate() {
        let unfinished = ["todo!(", "unimplemented!("]
            .iter()
            .any(|mark| line.contains(mark));
        if unfinished && !name.starts_with("xtask/") {
            problems.push(format!("{name}:{}: unfinished: {}", index + 1, line.trim()));
        }
        if line.trim_start().starts_with("#[ignore") {
            problems.push(format!("{name}:{}: a test that does not run", index + 1));
        }
        // The harness hides the output of tests that pass.
        let prints = ["print", "\"skipped: "]
            .iter()
            .all(|mark| line.contains(mark));
        if prints
            && !["crates/skipped/", "xtask/"]
                .iter()
                .any(|dir| name.starts_with(dir))
        {
            problems.push(format!("{name}:{}: use skipped::because", index + 1));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        run(&crate::root()).unwrap();
    }

    #[test]
    fn each_rule_finds_a_violation() {
        assert_eq!(
            problems_of("a/b.rs", "fn main() {}\n"),
            Vec::<String>::new()
        );
        assert_eq!(problems_of("a/mod.rs", "").len(), 1);
        assert_eq!(problems_of("a/utils.rs", "").len(), 1);
        assert_eq!(problems_of("a/b.rs", &"\n".repeat(801)).len(), 1);
        assert_eq!(
            problems_of("a/b.rs", "fn f() { todo!() }\n  #[ignore]\n").len(),
            2
        );
        let skipping = "    eprintln!(\"skipped: no kubectl\");\n";
        assert_eq!(problems_of("a/b.rs", skipping).len(), 1);
    }
}
