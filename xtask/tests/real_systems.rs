//! `xtask real-systems` with systems and steps that are short commands, in a repository of their own.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const TABLE: &str = r#"
build: echo build >>target/log
tests: 10
conditions:
- {name: here, holds: 'true', otherwise: nothing}
- {name: nowhere, holds: 'false', otherwise: there is no such thing}
systems:
- {name: packages, shows: packages, needs: [here], up: echo packages | tee -a target/log >target/packages, there: test -e target/packages, minutes: 1}
- {name: cloud, shows: a cloud, needs: [packages], up: echo cloud up >>target/log, down: echo cloud down >>target/log, minutes: 2}
- {name: api, shows: an API server, up: echo api up >>target/log, down: echo api down >>target/log, minutes: 2}
steps:
- {name: one, shows: the first, needs: [cloud], inputs: [a], command: echo one >>target/log, minutes: 1}
- {name: two, shows: the second, needs: [api], inputs: [a, b], command: echo two >>target/log, minutes: 1}
- {name: three, shows: the third, needs: [cloud], inputs: [b], command: echo three >>target/log, minutes: 1}
- {name: four, shows: the fourth, needs: [nowhere], inputs: [b], command: echo four >>target/log, minutes: 1}
"#;

#[test]
fn what_is_due_runs_with_its_systems_and_is_recorded() {
    let repository = Repository::new(TABLE);
    let output = repository.run(&[]);
    assert!(output.status.success(), "{}", printed(&output));
    // Each system starts once, and stops when none of the steps that follow needs it.
    let log = "build\npackages\ncloud up\none\nthree\ncloud down\napi up\ntwo\napi down\n";
    assert_eq!(repository.log(), log);
    let text = printed(&output);
    assert!(
        text.contains(
            "not possible here: four (it has no record; it has not passed): there is no such thing"
        ),
        "{text}"
    );
    let row = repository.row("one");
    assert!(row.starts_with("| one | the first | 0.0 | 20"), "{row}");
    assert!(row.contains(&repository.head()), "{row}");
    assert!(repository.row("four").ends_with("| – | – | – | – | – |"));
    assert!(
        repository
            .row("cloud")
            .starts_with("| cloud | a cloud | 0.0 | 20")
    );

    // Nothing has changed.
    repository.forget();
    let output = repository.run(&[]);
    assert!(output.status.success(), "{}", printed(&output));
    assert_eq!(repository.log(), "");
    assert!(printed(&output).contains("\nunchanged: one (passed on 20"));
    // An input has.
    repository.write("a", "changed");
    assert!(repository.run(&[]).status.success());
    let log = "build\npackages\ncloud up\none\ncloud down\napi up\ntwo\napi down\n";
    assert_eq!(repository.log(), log);
    assert!(repository.row("one").contains(" with changes | "));
    // A step alone, and all of them.
    repository.forget();
    assert!(repository.run(&["--step", "three"]).status.success());
    assert_eq!(
        repository.log(),
        "build\npackages\ncloud up\nthree\ncloud down\n"
    );
    repository.forget();
    assert!(repository.run(&["--all"]).status.success());
    for step in ["one", "two", "three"] {
        assert!(repository.log().contains(&format!("\n{step}\n")), "{step}");
    }
    let unknown = repository.run(&["--step", "five"]);
    assert!(!unknown.status.success());
    assert!(printed(&unknown).contains("there is no step five"));
}

#[test]
fn what_does_not_fit_is_left_out_and_comes_first_in_the_next_run() {
    let long = "command: echo two >>target/log, minutes: 6";
    let table = TABLE.replace("command: echo two >>target/log, minutes: 1", long);
    let repository = Repository::new(&table);
    // 1 + 2 + 1 for the first step, and another minute for the third, which shares its cloud; 2 + 6 for the second.
    let output = repository.run(&["--minutes", "5.5"]);
    assert!(output.status.success(), "{}", printed(&output));
    let log = "build\npackages\ncloud up\none\nthree\ncloud down\n";
    assert_eq!(repository.log(), log);
    let left = "left for another run: two (it has no record; it has not passed)";
    assert!(printed(&output).contains(left), "{}", printed(&output));

    repository.write("b", "changed");
    let plan = printed(&repository.run(&["--minutes", "8.5", "--plan"]));
    assert!(plan.starts_with("two: it has no record;"), "{plan}");
    // Systems that are present, or start within a moment by the record, leave time for the third.
    let third = "\nthree: its inputs have changed; passed on ";
    assert!(plan.contains(third), "{plan}");
    repository.forget();
    assert!(repository.run(&["--minutes", "8.5"]).status.success());
    let log = "build\napi up\ntwo\napi down\npackages\ncloud up\nthree\ncloud down\n";
    assert_eq!(repository.log(), log);
}

#[test]
fn a_machine_on_which_the_tests_take_twice_as_long_has_half_the_time() {
    let repository = Repository::new(TABLE);
    let output = repository.run(&["--minutes", "7", "--tests-took", "1200", "--plan"]);
    let plan = printed(&output);
    assert!(
        plan.starts_with("two: it has no record; it has not passed; 2.0 minutes\n"),
        "{plan}"
    );
    assert!(plan.contains("    needs api, 4.0 minutes\n"), "{plan}");
    assert_eq!(repository.log(), "");
    assert!(
        !repository.path("docs/project/real-systems.md").exists(),
        "a plan writes nothing"
    );
}

#[test]
fn a_failure_hides_no_later_step_and_fails_the_run() {
    let table = TABLE
        .replace(
            "command: echo one >>",
            "command: echo one >>target/log; seq 1 2000; echo why >&2; exit 7; echo >>",
        )
        .replace(
            "up: echo api up >>",
            "up: echo api up >>target/log; exit 3; echo >>",
        );
    let repository = Repository::new(&table);
    let output = repository.run(&[]);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    // A partially started system is stopped, too.
    let log = "build\npackages\ncloud up\none\nthree\ncloud down\napi up\napi down\n";
    assert_eq!(repository.log(), log);
    assert!(text.contains("failed: one, two"), "{text}");
    assert!(text.contains("two: FAILED: api did not start"), "{text}");
    // Who sees the end of the output alone sees why: whole lines of it, of both streams.
    let (_, end) = text.split_once("---- the end of one: the first\n").unwrap();
    let (first, rest) = end.split_once('\n').unwrap();
    let first: u32 = first.parse().unwrap();
    assert!((1000..1400).contains(&first), "{first}");
    assert!(rest.contains("\n1999\n2000\nwhy\n"), "{rest}");
    assert!(rest.contains("---- the end of start of api\n"), "{rest}");
    assert!(repository.row("one").ends_with("| – | – | – | – | – |"));
    assert!(repository.row("three").contains("| the third | 0.0 | 20"));
}

#[test]
fn a_step_for_which_the_time_was_too_short_has_not_failed() {
    let repository = Repository::new(
        "build: 'true'\ntests: 10\nconditions: []\nsystems: []\nsteps:\n- {name: one, shows: something, inputs: [a], command: sleep 60, minutes: 0.01}\n",
    );
    let output = repository.run(&["--minutes", "0.02", "--grace", "0.02"]);
    let text = printed(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("one: ended, the time was over"), "{text}");
    assert!(
        text.contains("left for another run: one (it has not passed)"),
        "{text}"
    );
    assert!(repository.row("one").contains("| – |"), "{text}");
}

#[test]
fn a_step_that_skips_a_test_has_not_passed() {
    let line = "command: echo one >>target/log, minutes";
    let skipping = "command: 'echo \"suite: it: no kubectl\" >>target/skipped-tests', minutes";
    let repository = Repository::new(&TABLE.replace(line, skipping));
    let output = repository.run(&["--step", "one"]);
    let text = printed(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("one: tests were skipped, so it has not passed"),
        "{text}"
    );
    assert!(
        text.contains("skipped in one: suite: it: no kubectl"),
        "{text}"
    );
    assert!(repository.row("one").ends_with("| – | – | – | – | – |"));

    let may = skipping.replace("command", "may-skip: [no kubectl], command");
    let repository = Repository::new(&TABLE.replace(line, &may));
    assert!(repository.run(&["--step", "one"]).status.success());
    assert!(repository.row("one").contains("| 0.0 | 20"));
}

#[test]
fn an_interrupted_run_ends_its_step_and_stops_the_systems() {
    let table = TABLE.replace(
        "command: echo one >>target/log",
        "command: 'trap \"echo ended >>target/log; exit 1\" TERM; sleep 600 & wait'",
    );
    let repository = Repository::new(&table);
    let mut child = repository.command(&["--step", "one"]).spawn().unwrap();
    let began = Instant::now();
    while !repository.log().contains("cloud up") {
        assert!(began.elapsed() < Duration::from_secs(60), "no cloud");
        std::thread::sleep(Duration::from_millis(20));
    }
    // As `.ci/run` ends it, or an interrupted terminal.
    std::thread::sleep(Duration::from_millis(200));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let log = "build\npackages\ncloud up\nended\ncloud down\n";
    assert_eq!(repository.log(), log);
}

/// A repository with a table, two inputs and a directory for what is built.
struct Repository(TempDir);

impl Repository {
    fn new(table: &str) -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        for folder in [".ci", "target", "docs"] {
            fs::create_dir(repository.path(folder)).unwrap();
        }
        repository.write(".ci/real-systems.yaml", table);
        repository.write(".gitignore", "/target\n");
        repository.write("a", "a");
        repository.write("b", "b");
        repository.git(&["init", "-q"]);
        repository.git(&["config", "user.name", "x"]);
        repository.git(&["config", "user.email", "x@example.com"]);
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-qm", "x"]);
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        let output = git.args(arguments).current_dir(&self.0).output().unwrap();
        assert!(output.status.success(), "{}", printed(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "--short=8", "HEAD"])
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
        xtask
            .args(["real-systems", "--root"])
            .arg(self.0.path())
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        xtask
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.output().unwrap()
    }

    /// Output of the commands in the table.
    fn log(&self) -> String {
        fs::read_to_string(self.path("target/log")).unwrap_or_default()
    }

    fn forget(&self) {
        let _ = fs::remove_file(self.path("target/log"));
    }

    /// The row of a step or of a system.
    fn row(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path("docs/project/real-systems.md")).unwrap();
        let start = format!("| {name} |");
        let row = text.lines().find(|line| line.starts_with(&start));
        row.unwrap().to_owned()
    }
}

fn printed(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    format!("{out}{errors}")
}
