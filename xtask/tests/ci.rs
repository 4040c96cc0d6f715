//! Tests of `.ci/inputs` and `.ci/once`, by which continuous integration detects unchanged steps, in a repository of
//! their own.

#![allow(clippy::unwrap_used)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

#[test]
fn a_hash_of_inputs_depends_on_names_contents_modes_and_versions_of_what_is_named() {
    let repository = Repository::new();
    let hash = || repository.hash(&["a", "--version", "cat tool"]);
    let first = hash();
    assert_eq!(first.len(), 64);
    assert_eq!(hash(), first, "nothing has changed");

    let at = |name: &str| repository.path(name);
    let changes: [(&str, Act<'_>, Act<'_>); 6] = [
        ("content", &|| repository.write("a/one", "two"), &|| {
            repository.write("a/one", "one")
        }),
        (
            "a new file, not committed",
            &|| repository.write("a/new", ""),
            &|| fs::remove_file(at("a/new")).unwrap(),
        ),
        (
            "another name",
            &|| fs::rename(at("a/one"), at("a/other")).unwrap(),
            &|| fs::rename(at("a/other"), at("a/one")).unwrap(),
        ),
        (
            "permission to execute",
            &|| fs::set_permissions(at("a/one"), Permissions::from_mode(0o755)).unwrap(),
            &|| fs::set_permissions(at("a/one"), Permissions::from_mode(0o644)).unwrap(),
        ),
        (
            "where a link leads",
            &|| {
                fs::remove_file(at("a/link")).unwrap();
                symlink("elsewhere", at("a/link")).unwrap();
            },
            &|| {
                fs::remove_file(at("a/link")).unwrap();
                symlink("one", at("a/link")).unwrap();
            },
        ),
        (
            "the version of a program",
            &|| repository.write("tool", "2.0"),
            &|| repository.write("tool", "1.0"),
        ),
    ];
    for (what, change, undo) in changes {
        change();
        assert_ne!(hash(), first, "{what}");
        undo();
        assert_eq!(hash(), first, "{what}, undone");
    }

    repository.write("b", "not named");
    repository.write("a/ignored", "by git");
    assert_eq!(hash(), first, "nothing that is named has changed");
}

#[test]
fn missing_inputs_are_errors() {
    let repository = Repository::new();
    for (arguments, complaint) in [
        (&["gone"] as &[&str], "gone names no file"),
        (&["a", "gone"], "gone names no file"),
        (&["a", "--version", "exit 3"], "does not tell a version"),
        (&["a", "--version", "true"], "does not tell a version"),
        (&[], "no paths"),
    ] {
        let output = repository.run("inputs", arguments, &[]);
        assert!(!output.status.success(), "{arguments:?}");
        assert_eq!(text(&output.stdout), "");
        let errors = text(&output.stderr);
        assert!(errors.contains(complaint), "{errors}");
    }
}

#[test]
fn a_step_runs_until_it_has_passed_and_again_when_its_inputs_change() {
    let repository = Repository::new();
    let ran = |variables: &[(&str, &str)]| repository.step(&["a"], "echo ran", variables);
    assert_eq!(ran(&[]), "ran\n");
    let unchanged = ran(&[]);
    assert!(
        unchanged.starts_with("step: unchanged since it passed on "),
        "{unchanged}"
    );
    assert!(unchanged.contains(", commit "), "{unchanged}");

    repository.write("b", "not an input");
    assert_eq!(ran(&[]), unchanged);
    assert_eq!(ran(&[("FERROSTACK_CI_ALL", "1")]), "ran\n");
    assert_eq!(ran(&[("FERROSTACK_BINARY", "other")]), "ran\n", "a setting");
    assert_eq!(repository.step(&["a"], "echo another", &[]), "another\n");
    repository.write("a/one", "changed");
    assert_eq!(ran(&[]), "ran\n");
    repository.write("a/one", "one");
    assert!(
        ran(&[]).contains("unchanged since"),
        "it has passed like this"
    );
}

#[test]
fn a_step_that_passed_in_another_clone_of_the_same_content_is_unchanged() {
    let clones = [Repository::new(), Repository::new()];
    let cache = clones[0].path("cache");
    let printed = clones.each_ref().map(|clone| {
        let command = format!(
            "{}/.ci/inputs a >/dev/null && echo ran",
            clone.0.path().display()
        );
        let binary = clone.path("target/program");
        let output = clone.run(
            "once",
            &["step", "a", "--", "sh", "-c", &command],
            &[
                ("XDG_CACHE_HOME", cache.to_str().unwrap()),
                ("FERROSTACK_BINARY", binary.to_str().unwrap()),
            ],
        );
        text(&output.stdout)
    });
    assert_eq!(printed[0], "ran\n");
    assert!(printed[1].contains("unchanged since"), "{}", printed[1]);
}

#[test]
fn a_step_that_failed_or_passed_long_ago_runs_again() {
    let repository = Repository::new();
    for _ in 0..2 {
        let output = repository.run(
            "once",
            &["step", "a", "--", "sh", "-c", "echo ran; exit 7"],
            &[],
        );
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(text(&output.stdout), "ran\n");
    }
    assert_eq!(repository.step(&["a"], "echo ran", &[]), "ran\n");
    for note in fs::read_dir(repository.cache()).unwrap() {
        let long_ago = ["-d", "40 days ago"];
        let note = note.unwrap().path();
        let touched = Command::new("touch").args(long_ago).arg(note).status();
        assert!(touched.unwrap().success());
    }
    assert_eq!(repository.step(&["a"], "echo ran", &[]), "ran\n");
}

#[test]
fn a_step_that_skipped_a_test_has_not_passed() {
    let repository = Repository::new();
    fs::create_dir(repository.path("target")).unwrap();
    repository.write("target/skipped-tests", "suite: one: why\n");
    let skipping = "echo 'suite: other: why' >>target/skipped-tests";
    for _ in 0..2 {
        let printed = repository.step(&["a"], skipping, &[]);
        assert_eq!(printed, "step: tests were skipped, so it will run again\n");
    }
    assert_eq!(repository.step(&["a"], "echo ran", &[]), "ran\n");
    assert!(
        repository
            .step(&["a"], "echo ran", &[])
            .contains("unchanged since")
    );
}

#[test]
fn whether_a_step_is_due_can_be_asked_and_that_it_passed_can_be_noted() {
    let repository = Repository::new();
    let ask = |mode: &str| {
        let output = repository.run("once", &[mode, "step", "a", "--", "false"], &[]);
        (output.status.code().unwrap(), text(&output.stdout))
    };
    assert_eq!(ask("--due"), (0, String::new()));
    assert_eq!(ask("--passed"), (0, String::new()));
    let (status, output) = ask("--due");
    assert_eq!(status, 1);
    assert!(output.contains("unchanged since"), "{output}");
    let wrong = repository.run("once", &["--due", "step", "gone", "--", "false"], &[]);
    assert_eq!(wrong.status.code(), Some(2), "neither due nor unchanged");
}

/// Something that is done to a repository.
type Act<'a> = &'a dyn Fn();

/// A repository with the two scripts, a directory `a`, and a file that git ignores.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci");
        for directory in [".ci", "a"] {
            fs::create_dir(repository.path(directory)).unwrap();
        }
        for script in ["inputs", "once"] {
            fs::copy(scripts.join(script), repository.path(".ci").join(script)).unwrap();
        }
        repository.write("a/one", "one");
        symlink("one", repository.path("a/link")).unwrap();
        repository.write("tool", "1.0");
        repository.write(".gitignore", "ignored\n/cache\n");
        for arguments in [
            &["init", "-q"] as &[&str],
            &["add", "-A"],
            &[
                "-c",
                "user.name=x",
                "-c",
                "user.email=x@example.com",
                "commit",
                "-qm",
                "x",
            ],
        ] {
            let git = Command::new("git")
                .args(arguments)
                .current_dir(&repository.0)
                .status();
            assert!(git.unwrap().success());
        }
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("cache/ferrostack/ci")
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn run(&self, script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        Command::new(self.path(".ci").join(script))
            .args(arguments)
            .current_dir(&self.0)
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("FERROSTACK_CI_ALL")
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    fn hash(&self, arguments: &[&str]) -> String {
        let output = self.run("inputs", arguments, &[]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    /// What the step with these inputs and this command prints.
    fn step(&self, inputs: &[&str], command: &str, variables: &[(&str, &str)]) -> String {
        let arguments = [&["step"], inputs, &["--", "sh", "-c", command]].concat();
        let output = self.run("once", &arguments, variables);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
