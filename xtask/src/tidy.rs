//! Rules of the project that lints do not cover.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::invariants;

pub(crate) mod changelog;
mod names;
mod not_built;

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

/// Sources whose messages have debug forms, and why.
const DEBUG_FORMS: [(&str, &str); 6] = [
    (
        "crates/apiserver/",
        "the words of kube-apiserver, which quotes with %q",
    ),
    (
        "crates/simulator/src/cloud/",
        "the words of OpenStack, which quotes as Python does",
    ),
    (
        "crates/simulator/src/guest/",
        "the words of kubeadm and of the kubelet, which quote with %q",
    ),
    (
        "crates/openstack/src/error.rs",
        "an implementation of Debug",
    ),
    (
        "crates/ferrostack/src/ccm/files.rs",
        "a comparison that nobody reads",
    ),
    ("crates/testbed/", "read by developers"),
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
        problems.extend(not_built::without_entry(name, &text));
    }
    let readme = std::fs::read_to_string(root.join("README.md")).context("README.md")?;
    problems.extend(not_built::not_listed(&readme));
    let written = std::fs::read_to_string(root.join("CHANGELOG.md")).context("CHANGELOG.md")?;
    // The version of the workspace is that of xtask.
    problems.extend(changelog::without_version(
        &written,
        env!("CARGO_PKG_VERSION"),
    ));
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
    let mut in_tests = false;
    for (index, line) in text.lines().enumerate() {
        in_tests |= line == "#[cfg(test)]";
        let unfinished = ["todo!(", "unimplemented!("]
            .iter()
            .any(|mark| line.contains(mark));
        if unfinished && !name.starts_with("xtask/") {
            problems.push(format!("{name}:{}: unfinished: {}", index + 1, line.trim()));
        }
        if line.trim_start().starts_with("#[ignore") {
            problems.push(format!("{name}:{}: a test that does not run", index + 1));
        }
        if has_debug_form(line) && is_for_users(name) && !in_tests {
            problems.push(format!(
                "{name}:{}: a debug form, where users read a message: {}",
                index + 1,
                line.trim()
            ));
        }
        if !name.starts_with("xtask/src/tidy")
            && let Some(vague) = names::vague(line)
        {
            problems.push(format!(
                "{name}:{}: `{vague}` stands for several things: name it after what it is",
                index + 1
            ));
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

/// Whether a line formats something by its Debug implementation, for more than developers.
fn has_debug_form(line: &str) -> bool {
    let for_developers = ["debug!(", "trace!(", "panic!(", "assert", "unreachable!("];
    let formatted = line.match_indices('{').any(|(at, _)| {
        let inside = line.get(at + 1..).and_then(|rest| rest.split('}').next());
        inside.is_some_and(|inside| {
            let (name, format) = inside.split_once(':').unwrap_or((inside, ""));
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            name.chars().all(is_name) && format.ends_with('?') && !format.contains(' ')
        })
    });
    let recorded = ["warn!(?", "info!(?", "error!(?"]
        .iter()
        .any(|mark| line.contains(mark));
    let comment = line.trim_start().starts_with("//");
    (formatted || recorded) && !comment && !for_developers.iter().any(|mark| line.contains(mark))
}

/// Whether the messages of a source are for users.
fn is_for_users(name: &str) -> bool {
    let is_source = name.starts_with("crates/") && name.contains("/src/");
    let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
    is_source && !is_test && !DEBUG_FORMS.iter().any(|(start, _)| name.starts_with(start))
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
        for line in [
            "    format!(\"{name:?} is wrong\")",
            "    format!(\"{} {:?}\", a, b)",
            "#[error(\"not after {0:?}\")]",
            "    println!(\"{value:#?}\")",
            "    warn!(?error, \"a watch failed\");",
        ] {
            assert_eq!(problems_of("crates/a/src/b.rs", line).len(), 1, "{line}");
            let test = format!("#[cfg(test)]\nmod tests {{\n{line}\n}}\n");
            assert_eq!(problems_of("crates/a/src/b.rs", &test).len(), 0, "{line}");
            assert_eq!(problems_of("crates/a/src/b/tests.rs", line).len(), 0);
            assert_eq!(problems_of("crates/apiserver/src/b.rs", line).len(), 0);
        }
        for line in [
            "    debug!(\"{value:?}\");",
            "    format!(\"{{{a}?}}\")",
            "    let f = |x| { f(x)? };",
        ] {
            assert_eq!(problems_of("crates/a/src/b.rs", line).len(), 0, "{line}");
        }
        let skipping = "    eprintln!(\"skipped: no kubectl\");\n";
        assert_eq!(problems_of("a/b.rs", skipping).len(), 1);
    }
}
