//! `xtask check` on a small workspace: a crate, one that uses it, one that does not, and a program called xtask.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

const FILES: [(&str, &str); 12] = [
    (".gitignore", "/target\n"),
    (
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\", \"xtask\"]\n",
    ),
    (
        "crates/api/Cargo.toml",
        "[package]\nname = \"api\"\nedition = \"2024\"\n",
    ),
    ("crates/api/src/lib.rs", API),
    (
        "crates/api/tests/whole.rs",
        "#[test]\nfn whole() {\n    assert_eq!(api::one(), 1);\n}\n",
    ),
    (
        "crates/user/Cargo.toml",
        "[package]\nname = \"user\"\nedition = \"2024\"\n\n[dependencies]\napi = { path = \"../api\" }\n",
    ),
    ("crates/user/src/lib.rs", USER),
    ("crates/user/tests/long.rs", FAILS),
    (
        "crates/other/Cargo.toml",
        "[package]\nname = \"other\"\nedition = \"2024\"\n",
    ),
    ("crates/other/src/lib.rs", FAILS),
    (
        "xtask/Cargo.toml",
        "[package]\nname = \"xtask\"\nedition = \"2024\"\n",
    ),
    ("xtask/src/main.rs", XTASK),
];
const API: &str = "\
//! A crate.

/// One.
pub fn one() -> u32 {
    1
}
";
const USER: &str = "\
//! A user.

#[test]
fn one_is_one() {
    assert_eq!(api::one(), 1);
}
";
/// A test that must not run.
const FAILS: &str = "\
//! Tests.

#[test]
fn fails() {
    assert_eq!(1, 2);
}
";
const XTASK: &str = "\
//! A program.

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!(\"xtask {}\", arguments.join(\" \"));
}
";

#[test]
fn what_changed_is_checked_until_the_first_failure() {
    let workspace = Workspace::new();
    workspace.write(
        "crates/api/src/lib.rs",
        &API.replace("/// One.", "/// The number one."),
    );
    let output = workspace.check(&["--list"]);
    let listed = printed(&output);
    assert!(output.status.success(), "{listed}");
    let selected = "\
all tests of crates/api: crates/api/src/lib.rs changed
unit tests of crates/user: uses crates/api
";
    assert!(listed.contains(selected), "{listed}");
    assert!(!workspace.path("target").exists(), "nothing runs");

    let output = workspace.check(&[]);
    let text = printed(&output);
    assert!(output.status.success(), "{text}");
    let steps = [
        "==== format",
        "==== build with clippy's lints, warnings denied",
        "==== generated files\nxtask codegen --check\n",
        "==== rules\nxtask tidy\n",
        "==== tests: crates/api (units of api)",
        "==== tests: crates/api (whole)",
        "==== tests: crates/user (units of user)",
        "==== summary",
    ];
    let mut rest = text.as_str();
    for step in steps {
        let at = rest.find(step);
        rest = &rest[at.unwrap_or_else(|| panic!("no {step} in {text}"))..];
    }
    assert!(!text.contains("tests: crates/other"), "{text}");

    // A user of what changed, a lint, and the format: each is found before what comes after it, with what repeats it.
    let root = workspace.0.path().canonicalize().unwrap();
    let root = root.display();
    workspace.write("crates/api/src/lib.rs", &API.replace("    1\n", "    2\n"));
    workspace.write("crates/api/tests/whole.rs", "//! No tests.\n");
    let text = workspace.fails();
    let again = format!(
        "error: tests: crates/user (units of user); again: cd {root}/crates/user && {root}/target/debug/deps/user-"
    );
    assert!(text.contains(&again), "{text}");
    workspace.write(
        "crates/api/src/lib.rs",
        &API.replace("    1\n", "    return 1;\n"),
    );
    let text = workspace.fails();
    assert!(text.contains("unneeded `return` statement"), "{text}");
    let again = format!(
        "again: cd {root} && RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ \
         cargo build --workspace --all-targets --locked"
    );
    assert!(text.contains(&again), "{text}");
    workspace.write("crates/api/src/lib.rs", &API.replace("    1\n", "  1\n"));
    let text = workspace.fails();
    assert!(text.contains("error: format; again: "), "{text}");
    assert!(!text.contains("==== build"), "{text}");
}

struct Workspace(TempDir);

impl Workspace {
    fn new() -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        for (name, content) in FILES {
            fs::create_dir_all(workspace.path(name).parent().unwrap()).unwrap();
            workspace.write(name, content);
        }
        workspace.run("cargo", &["generate-lockfile", "--offline"]);
        workspace.run("git", &["init", "-q", "-b", "main"]);
        workspace.run("git", &["config", "user.name", "x"]);
        workspace.run("git", &["config", "user.email", "x@example.com"]);
        workspace.run("git", &["add", "-A"]);
        workspace.run("git", &["commit", "-qm", "x"]);
        workspace
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        let output = command.args(arguments).current_dir(&self.0).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", printed(&output));
    }

    fn check(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(["check", "--root"])
            .arg(self.0.path())
            .args(arguments)
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap()
    }

    fn fails(&self) -> String {
        let output = self.check(&[]);
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        text
    }
}

fn printed(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    format!("{out}{errors}")
}
