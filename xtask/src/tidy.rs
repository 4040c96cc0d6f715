//! Rules of the project that lints do not cover.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::invariants;
use crate::syntax::Source;

pub(crate) mod changelog;
mod dates;
mod guides;
pub(crate) mod links;
mod names;
mod not_built;
mod style;
pub(crate) mod words;

/// Maximum number of lines of a Rust file, unless generated.
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

/// Sources that may have debug forms in messages, with reasons.
const DEBUG_FORMS: [(&str, &str); 9] = [
    (
        "crates/apimachinery/",
        "the words of kube-apiserver, which quotes with %q",
    ),
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
        "crates/ferrostack/src/commands/cloud_controller_manager/files.rs",
        "a comparison that nobody reads",
    ),
    ("crates/converging/", "read by developers"),
    ("crates/octavia-model/", "read by developers"),
    ("crates/testbed/", "read by developers"),
];

/// Checks every file tracked by git.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let sources = sources(root)?;
    let mut problems = invariants::broken(root, &sources)?;
    for source in &sources {
        problems.extend(problems_of(source));
        problems.extend(not_built::without_entry(source));
    }
    problems.extend(words::broken(root, &sources)?);
    problems.extend(style::broken(root)?);
    let pages = pages(root)?;
    problems.extend(links::broken(&pages, |path| root.join(path).exists()));
    problems.extend(dates::outside_of_records(&pages));
    problems.extend(guides::incomplete(&pages));
    let list = std::fs::read_to_string(root.join(not_built::LIST)).context(not_built::LIST)?;
    problems.extend(not_built::not_listed(&list));
    let written = std::fs::read_to_string(root.join("CHANGELOG.md")).context("CHANGELOG.md")?;
    // The workspace and xtask have the same version.
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

/// Rust files tracked by git, as [`Source`]s.
fn sources(root: &Path) -> anyhow::Result<Vec<Source>> {
    let files = tracked(root, ".rs")?.into_iter();
    Ok(files.map(|(name, text)| Source::new(&name, text)).collect())
}

/// Pages tracked by git.
fn pages(root: &Path) -> anyhow::Result<links::Pages> {
    Ok(tracked(root, ".md")?.into_iter().collect())
}

/// Files tracked by git with this ending of the name, each with its text.
fn tracked(root: &Path, ending: &str) -> anyhow::Result<Vec<(String, String)>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output();
    let listed = listed.context("git ls-files")?.stdout;
    let names = listed
        .split(|byte| *byte == 0)
        .filter_map(|name| std::str::from_utf8(name).ok());
    let files = names.filter(|name| name.ends_with(ending));
    let files = files.filter_map(|name| {
        let text = std::fs::read_to_string(root.join(name)).ok()?;
        Some((name.to_owned(), text))
    });
    Ok(files.collect())
}

fn problems_of(source: &Source) -> Vec<String> {
    let (name, text) = (source.name.as_str(), source.text.as_str());
    let mut problems = Vec::new();
    if let Some(error) = &source.error {
        problems.push(format!("{name}: cannot be read: {error}"));
    }
    problems.extend(misnamed_tests(source));
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
        if has_debug_form(line) && is_for_users(source) && !source.is_test_line(index + 1) {
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
        // The harness hides the output of passed tests.
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

/// Test modules with names that rules would take for production code.
fn misnamed_tests(source: &Source) -> impl Iterator<Item = String> {
    let modules = source.content.modules.iter();
    let files = modules.filter(|module| module.is_test && module.is_file);
    let others = files.filter(|module| !module.module.iter().any(|name| name == "tests"));
    others.map(|module| {
        format!(
            "{}:{}: name it `tests`, or move it into `tests`: rules would take it for production code",
            source.name, module.line
        )
    })
}

/// True if a line formats a value by Debug for other readers than developers.
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

/// True if the messages of a source are for users.
fn is_for_users(source: &Source) -> bool {
    let name = &source.name;
    let is_source = name.starts_with("crates/") && source.module.is_some();
    let mut others = DEBUG_FORMS.iter();
    is_source && !source.is_test() && !others.any(|(start, _)| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        run(&crate::root()).unwrap();
    }

    fn problems(name: &str, text: &str) -> Vec<String> {
        problems_of(&Source::new(name, text.to_owned()))
    }

    #[test]
    fn each_rule_finds_a_violation() {
        assert_eq!(problems("a/b.rs", "fn main() {}\n"), Vec::<String>::new());
        assert_eq!(problems("a/mod.rs", "").len(), 1);
        assert_eq!(problems("a/utils.rs", "").len(), 1);
        assert_eq!(problems("a/b.rs", &"\n".repeat(801)).len(), 1);
        assert_eq!(problems("a/b.rs", "fn f() {").len(), 1);
        let text = "fn f() { todo!() }\n  #[ignore]\nfn g() {}\n";
        assert_eq!(problems("a/b.rs", text).len(), 2);
        let skipping = "fn f() {\n    eprintln!(\"skipped: no kubectl\");\n}\n";
        assert_eq!(problems("a/b.rs", skipping).len(), 1);
    }

    #[test]
    fn debug_forms_are_found_where_users_read_a_message() {
        for line in [
            "    format!(\"{name:?} is wrong\");",
            "    format!(\"{} {:?}\", a, b);",
            "    println!(\"{value:#?}\");",
            "    warn!(?error, \"a watch failed\");",
        ] {
            let function = format!("fn f() {{\n{line}\n}}\n");
            let file = "crates/a/src/b.rs";
            assert_eq!(problems(file, &function).len(), 1, "{line}");
            let inline = format!("#[cfg(test)]\nmod tests {{\n{function}}}\n");
            assert_eq!(problems(file, &inline).len(), 0, "{line}");
            let item = format!("#[cfg(test)]\n{function}");
            assert_eq!(problems(file, &item).len(), 0, "{line}");
            assert_eq!(problems("crates/a/src/b/tests.rs", &function).len(), 0);
            assert_eq!(problems("crates/apiserver/src/b.rs", &function).len(), 0);
            // Code after the tests is no test.
            for tests in ["mod tests;", "mod tests {}", "use std::fs;", "fn g() {}"] {
                let text = format!("#[cfg(test)]\n{tests}\n{function}");
                assert_eq!(problems(file, &text).len(), 1, "{text}");
            }
        }
        let error = "enum E {\n    #[error(\"not after {0:?}\")]\n    Late(u8),\n}\n";
        assert_eq!(problems("crates/a/src/b.rs", error).len(), 1);
        for line in [
            "    debug!(\"{value:?}\");",
            "    format!(\"{{{a}?}}\");",
            "    let f = |x| { f(x)? };",
        ] {
            let function = format!("fn f() {{\n{line}\n}}\n");
            assert_eq!(problems("crates/a/src/b.rs", &function).len(), 0, "{line}");
        }
    }

    #[test]
    fn modules_of_tests_have_names_by_which_rules_know_them() {
        let tests = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod model {}\n";
        assert_eq!(problems("crates/a/src/b.rs", tests), Vec::<String>::new());
        let inner = "#[cfg(test)]\nmod model;\n";
        assert_eq!(problems("crates/a/src/b/tests.rs", inner).len(), 0);
        assert_eq!(problems("crates/a/src/b.rs", inner).len(), 1);
    }
}
