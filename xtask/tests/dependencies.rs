//! Tests of `.ci/dependencies`, which keeps what cargo has built of the dependencies for the next clone, with checkouts,
//! target directories and a cache of their own.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

/// Files of cargo for crates outside the workspace, some with names like crates of the workspace.
const DEPENDENCIES: &[&str] = &[
    "deps/libserde-0123456789abcdef.rlib",
    "deps/libserde-0123456789abcdef.rmeta",
    "deps/serde-0123456789abcdef.d",
    "deps/libserde_derive-123456789abcdef0.so",
    "deps/liblibc-23456789abcdef01.rlib",
    "deps/libapi_types-3456789abcdef012.rlib",
    "deps/libweb_api-456789abcdef0123.rlib",
    ".fingerprint/serde-0123456789abcdef/dep-lib-serde",
    ".fingerprint/serde-0123456789abcdef/invoked.timestamp",
    ".fingerprint/serde-0123456789abcdef/lib-serde",
    ".fingerprint/serde-0123456789abcdef/lib-serde.json",
    ".fingerprint/web-api-456789abcdef0123/lib-web_api",
    ".fingerprint/ring-56789abcdef01234/run-build-script-build-script-build",
    "build/ring-6789abcdef012345/build-script-build",
    "build/ring-6789abcdef012345/build_script_build-6789abcdef012345.d",
    "build/ring-56789abcdef01234/invoked.timestamp",
    "build/ring-56789abcdef01234/out/libring_core.a",
    "build/ring-56789abcdef01234/out/include/ring.h",
    "build/ring-56789abcdef01234/output",
    "build/ring-56789abcdef01234/root-output",
];

/// Files of cargo for crates of the workspace: `ferrostack-api`, a library `api` with a build script and the tests
/// `end-to-end`, and `xtask`; and the rest of a compiler that was killed.
const OURS: &[&str] = &[
    "deps/libapi-789abcdef0123456.rlib",
    "deps/libapi-789abcdef0123456.rmeta",
    "deps/api-789abcdef0123456.d",
    "deps/api-89abcdef01234567",
    "deps/api-89abcdef01234567.api.9abc.rcgu.o",
    "deps/end_to_end-9abcdef012345678",
    "deps/end_to_end-9abcdef012345678.d",
    "deps/xtask-abcdef0123456789",
    "deps/rmetaAbC12d/full.rmeta",
    "deps/rustcAbC12d/symbols.o",
    ".fingerprint/ferrostack-api-789abcdef0123456/lib-api",
    ".fingerprint/ferrostack-api-9abcdef012345678/test-integration-test-end-to-end",
    ".fingerprint/xtask-abcdef0123456789/bin-xtask",
    "build/ferrostack-api-bcdef0123456789a/build-script-build",
    "build/ferrostack-api-cdef0123456789ab/out/generated.rs",
    "examples/serve-def0123456789abc",
    "incremental/api-1a2b3c/s-1-2/dep-graph.bin",
    "libapi.rlib",
    "xtask",
];

const NONE: &str = "none are kept for this Cargo.lock and toolchain\n";

/// First lines of a wrapper that calls the wrapped program.
const REAL: &str = "PATH=${PATH#*:}";

/// A copy of which but a part of one file is made.
const PART: &str = r#"for to; do :; done; mkdir -p "$to/deps"; echo part >"$to/deps/libserde-0123456789abcdef.rlib""#;

#[test]
fn what_was_saved_is_restored_in_another_clone_with_its_content_modes_and_times() {
    let machine = Machine::new();
    let [first, second] = ["first", "second"].map(|name| machine.checkout(name));
    for profile in ["debug", "release"] {
        first.build(profile);
        let built = tree(&first.target(profile));
        let printed = first.succeeds("save", profile);
        assert!(printed.starts_with("kept: "), "{printed}");
        assert_eq!(tree(&first.target(profile)), built, "it stays as it was");

        let printed = second.succeeds("restore", profile);
        assert!(printed.starts_with("restored: "), "{printed}");
        let restored = tree(&second.target(profile));
        for name in DEPENDENCIES.iter().map(Path::new) {
            assert!(built.contains_key(name), "{}", name.display());
            assert_eq!(restored.get(name), built.get(name), "{}", name.display());
        }
    }
    assert_eq!(
        names(&second.root.join("target")),
        ["CACHEDIR.TAG", "debug", "release"]
    );
    let tag = fs::read_to_string(second.target("CACHEDIR.TAG")).unwrap();
    assert!(
        tag.starts_with("Signature: 8a477f597d28d172789f06886806bc55"),
        "{tag}"
    );
}

#[test]
fn nothing_of_the_crates_of_the_workspace_is_kept() {
    let machine = Machine::new();
    let checkout = machine.checkout("one");
    for profile in ["debug", "release"] {
        checkout.build(profile);
        checkout.succeeds("save", profile);
    }
    let kept = machine.kept();
    assert_eq!(kept.len(), 2, "{kept:?}");
    let mut expected: Vec<_> = DEPENDENCIES.iter().map(PathBuf::from).collect();
    expected.sort();
    for name in kept {
        let files: Vec<_> = tree(&machine.cache().join(&name)).into_keys().collect();
        assert_eq!(files, expected, "{name}");
    }
}

#[test]
fn with_another_lock_manifest_toolchain_or_flag_nothing_is_restored() {
    let machine = Machine::new();
    let built = machine.checkout("built");
    built.build("debug");
    built.succeeds("save", "debug");

    let changed = machine.checkout("changed");
    for name in [
        "Cargo.lock",
        "Cargo.toml",
        "crates/api/Cargo.toml",
        "xtask/Cargo.toml",
    ] {
        let before = fs::read_to_string(changed.root.join(name)).unwrap();
        changed.write(name, format!("{before}# changed\n"));
        assert_eq!(changed.succeeds("restore", "debug"), NONE, "{name}");
        changed.write(name, before);
    }
    let added = changed.root.join("crates/added");
    changed.write("crates/added/Cargo.toml", "[package]\nname = 'added'\n");
    assert_eq!(changed.succeeds("restore", "debug"), NONE, "a new manifest");
    fs::remove_dir_all(added).unwrap();
    for variable in [
        ("RUSTFLAGS", "-Ctarget-cpu=native"),
        ("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-cpu=native"),
        ("CARGO_PROFILE_DEV_OPT_LEVEL", "s"),
    ] {
        let output = changed.run(&["restore", "debug"], &[variable]);
        assert_eq!(text(&output.stdout), NONE, "{variable:?}");
    }
    machine.program("rustc", "echo rustc 1.0.1");
    assert_eq!(changed.succeeds("restore", "debug"), NONE, "the toolchain");
    machine.program("rustc", "echo rustc 1.0.0");
    assert_eq!(changed.succeeds("restore", "release"), NONE, "the profile");
    assert!(!changed.root.join("target").exists());

    changed.write("crates/api/src/lib.rs", "//! Changed.\n");
    let output = changed.run(&["restore", "debug"], &[("CARGO_TERM_COLOR", "never")]);
    let printed = text(&output.stdout);
    assert!(
        printed.starts_with("restored: "),
        "nothing has changed: {printed}"
    );
}

#[test]
fn a_target_directory_that_is_there_stays_as_it_is() {
    let machine = Machine::new();
    let built = machine.checkout("built");
    for profile in ["debug", "release"] {
        built.build(profile);
        built.succeeds("save", profile);
    }
    for (clone, file) in [
        (
            "of a build",
            "target/debug/deps/libserde-fedcba9876543210.rlib",
        ),
        ("without dependencies", "target/debug/xtask"),
    ] {
        let checkout = machine.checkout(clone);
        checkout.write(file, "here before");
        checkout.write("target/CACHEDIR.TAG", "Signature: cargo's own");
        let before = tree(&checkout.root);
        let printed = checkout.succeeds("restore", "debug");
        assert_eq!(printed, "target/debug is there already\n", "{clone}");
        assert_eq!(tree(&checkout.root), before, "{clone}");

        // Files of another profile do not matter, and stay as well.
        let printed = checkout.succeeds("restore", "release");
        assert!(printed.starts_with("restored: "), "{clone}: {printed}");
        let mut after = tree(&checkout.root);
        after.retain(|name, _| !name.starts_with("target/release"));
        assert_eq!(after, before, "{clone}");
    }
}

#[test]
fn a_save_that_was_cut_off_is_never_restored() {
    for (program, script) in [
        // After the first of three folders; before those of other keys are removed; before the new ones get their name.
        ("cp", format!(r#"{REAL}; cp "$@"; kill -KILL 0"#)),
        ("find", "kill -KILL 0".to_owned()),
        ("mv", "kill -KILL 0".to_owned()),
    ] {
        let machine = Machine::new();
        let [first, second] = ["first", "second"].map(|name| machine.checkout(name));
        first.build("debug");
        machine.program(program, &script);
        let output = first.run(&["save", "debug"], &[]);
        assert_eq!(output.status.signal(), Some(9), "{program}");
        assert_eq!(machine.kept().len(), 1, "{program}: there is a part");
        machine.without(program);

        assert_eq!(second.succeeds("restore", "debug"), NONE, "{program}");
        assert!(!second.root.join("target").exists(), "{program}");

        let printed = first.succeeds("save", "debug");
        assert!(printed.starts_with("kept: "), "{program}: {printed}");
        assert_eq!(machine.kept().len(), 1, "{program}: the part is gone");
        second.succeeds("restore", "debug");
        let restored = tree(&second.target("debug"));
        assert_eq!(restored.len(), DEPENDENCIES.len(), "{program}");
    }
}

#[test]
fn a_save_that_fails_keeps_nothing() {
    type Act<'a> = &'a dyn Fn(&Machine, &Checkout<'_>);
    let fails: [(&str, Act<'_>); 8] = [
        ("without a build", &|_, checkout| {
            fs::remove_dir_all(checkout.root.join("target")).unwrap();
        }),
        ("without a manifest", &|_, checkout| {
            fs::remove_file(checkout.root.join("xtask/Cargo.toml")).unwrap();
        }),
        ("no names of crates", &|machine, _| {
            machine.program("cargo", "exit 101")
        }),
        ("empty names of crates", &|machine, _| {
            machine.program("cargo", "exit 0")
        }),
        ("no version of the toolchain", &|machine, _| {
            machine.program("rustc", "exit 1")
        }),
        ("unknown space", &|machine, _| {
            machine.program("df", "exit 1")
        }),
        ("no copy", &|machine, _| machine.program("cp", "exit 1")),
        ("no other name", &|machine, _| {
            machine.program("mv", "exit 1")
        }),
    ];
    for (what, act) in fails {
        let machine = Machine::new();
        let checkout = machine.checkout("one");
        checkout.build("debug");
        act(&machine, &checkout);
        let output = checkout.run(&["save", "debug"], &[]);
        assert!(!output.status.success(), "{what}");
        assert_eq!(text(&output.stdout), "", "{what}");
        assert!(machine.kept().is_empty(), "{what}");
    }
}

#[test]
fn a_restore_that_was_cut_off_is_done_again_as_a_whole() {
    let machine = Machine::new();
    let [first, second] = ["first", "second"].map(|name| machine.checkout(name));
    first.build("debug");
    first.succeeds("save", "debug");
    machine.program("cp", &format!("{PART}; kill -KILL 0"));
    let output = second.run(&["restore", "debug"], &[]);
    assert_eq!(output.status.signal(), Some(9));
    machine.without("cp");

    let printed = second.succeeds("restore", "debug");
    assert!(printed.starts_with("restored: "), "{printed}");
    assert_eq!(
        tree(&second.target("debug")),
        tree(&machine.cache().join(&machine.kept()[0]))
    );
    assert_eq!(
        names(&second.root.join("target")),
        ["CACHEDIR.TAG", "debug"],
        "nothing of the part"
    );
}

#[test]
fn a_restore_that_fails_leaves_everything_to_the_build() {
    let machine = Machine::new();
    let [first, second] = ["first", "second"].map(|name| machine.checkout(name));
    first.build("debug");
    first.succeeds("save", "debug");
    machine.program("cp", &format!("{PART}; exit 1"));
    assert_eq!(second.succeeds("restore", "debug"), "");
    assert_eq!(names(&second.root.join("target")), ["CACHEDIR.TAG"]);
}

#[test]
fn a_key_that_cannot_be_told_is_an_error() {
    let machine = Machine::new();
    let [first, second] = ["first", "second"].map(|name| machine.checkout(name));
    first.build("debug");
    first.succeeds("save", "debug");
    machine.program("rustc", "echo rustc 1.0.0; exit 1");
    let output = second.run(&["restore", "debug"], &[]);
    assert!(!output.status.success(), "{}", text(&output.stdout));
    assert!(!second.root.join("target").exists());
}

#[test]
fn only_the_last_key_of_a_profile_is_kept_and_what_is_kept_is_not_saved_again() {
    let machine = Machine::new();
    let checkout = machine.checkout("one");
    checkout.build("debug");
    checkout.build("release");
    checkout.succeeds("save", "release");
    let release = machine.kept();
    checkout.succeeds("save", "debug");
    let both = machine.kept();
    assert_eq!(both.len(), 2, "{both:?}");

    fs::remove_file(checkout.target("debug").join(DEPENDENCIES[0])).unwrap();
    let before = tree(&machine.cache());
    assert_eq!(checkout.succeeds("save", "debug"), "", "it is kept");
    assert_eq!(tree(&machine.cache()), before);

    checkout.write("Cargo.lock", "version = 4\n# changed\n");
    checkout.succeeds("save", "debug");
    let changed = machine.kept();
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert!(!changed.contains(&both[0]), "{changed:?}");
    assert!(changed.contains(&release[0]), "{changed:?}");
}

#[test]
fn nothing_is_kept_where_less_than_20_gb_are_left() {
    let machine = Machine::new();
    let checkout = machine.checkout("one");
    checkout.build("debug");
    let cache = machine.path("cache").canonicalize().unwrap();
    let df = |cached: u32, elsewhere: u32| {
        let script = format!(
            r#"for path; do :; done
            echo Avail
            case $(realpath "$path") in "{}"*) echo {cached} ;; *) echo {elsewhere} ;; esac"#,
            cache.display()
        );
        machine.program("df", &script);
    };
    df(19, 100);
    let printed = checkout.succeeds("save", "debug");
    assert!(printed.starts_with("not kept: "), "{printed}");
    assert!(machine.kept().is_empty());
    df(20, 0);
    let printed = checkout.succeeds("save", "debug");
    assert!(printed.starts_with("kept: "), "{printed}");
}

#[test]
fn other_arguments_are_refused() {
    let machine = Machine::new();
    let checkout = machine.checkout("one");
    checkout.build("debug");
    let before = tree(&checkout.root);
    for arguments in [
        &[] as &[&str],
        &["save"],
        &["restore", ""],
        &["keep", "debug"],
        &["restore", "debgu"],
        &["save", "../debug"],
        &["debug", "save"],
        &["save", "debug", "release"],
    ] {
        let output = checkout.run(arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        let errors = text(&output.stderr);
        let usage = ".ci/dependencies restore|save debug|release";
        assert!(errors.contains(usage), "{arguments:?}: {errors}");
    }
    assert_eq!(tree(&checkout.root), before);
    assert!(machine.kept().is_empty());
}

/// A directory with a cache, checkouts, and programs that precede those of the system.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for directory in ["cache", "programs"] {
            fs::create_dir(machine.path(directory)).unwrap();
        }
        machine.program("cargo", &format!(r#"exec "{}" "$@""#, env!("CARGO")));
        machine.program("rustc", "echo rustc 1.0.0");
        machine.program("df", "echo Avail; echo 100");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn programs(&self) -> PathBuf {
        self.path("programs")
    }

    /// Puts a shell script in place of a program.
    fn program(&self, name: &str, script: &str) {
        let path = self.programs().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    /// Takes it away again.
    fn without(&self, name: &str) {
        fs::remove_file(self.programs().join(name)).unwrap();
    }

    fn cache(&self) -> PathBuf {
        self.path("cache/ferrostack/dependencies")
    }

    /// The names of what is in the cache.
    fn kept(&self) -> Vec<String> {
        names(&self.cache())
    }

    /// A clone of a workspace of two crates.
    fn checkout(&self, name: &str) -> Checkout<'_> {
        let root = self.path(name);
        fs::create_dir_all(root.join(".ci")).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/dependencies");
        symlink(script, root.join(".ci/dependencies")).unwrap();
        let checkout = Checkout {
            machine: self,
            root,
        };
        for (name, content) in [
            (
                "Cargo.toml",
                "[workspace]\nresolver = '3'\nmembers = ['crates/*', 'xtask']\n",
            ),
            ("Cargo.lock", "version = 4\n"),
            (
                "crates/api/Cargo.toml",
                "[package]\nname = 'ferrostack-api'\nedition = '2024'\n\n[lib]\nname = 'api'\n",
            ),
            ("crates/api/build.rs", "fn main() {}\n"),
            ("crates/api/src/lib.rs", ""),
            ("crates/api/tests/end-to-end.rs", ""),
            (
                "xtask/Cargo.toml",
                "[package]\nname = 'xtask'\nedition = '2024'\n",
            ),
            ("xtask/src/main.rs", "fn main() {}\n"),
        ] {
            checkout.write(name, content);
        }
        checkout
    }
}

struct Checkout<'a> {
    machine: &'a Machine,
    root: PathBuf,
}

impl Checkout<'_> {
    fn target(&self, name: &str) -> PathBuf {
        self.root.join("target").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes what cargo leaves of a build, each file with a time of its own.
    fn build(&self, profile: &str) {
        for (name, second) in DEPENDENCIES.iter().chain(OURS).zip(1_700_000_000..) {
            let content = [profile.as_bytes(), b"\0\xff\r\n", name.as_bytes()].concat();
            self.write(&format!("target/{profile}/{name}"), content);
            let file = File::options()
                .write(true)
                .open(self.target(profile).join(name))
                .unwrap();
            if name.ends_with("/build-script-build") {
                file.set_permissions(Permissions::from_mode(0o755)).unwrap();
            }
            file.set_modified(UNIX_EPOCH + Duration::new(second, 123_456_789))
                .unwrap();
        }
    }

    /// Runs the script in a process group of its own, which a program in place of another can end.
    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let path = env::var("PATH").unwrap();
        Command::new(self.root.join(".ci/dependencies"))
            .args(arguments)
            .current_dir(&self.root)
            .env(
                "PATH",
                format!("{}:{path}", self.machine.programs().display()),
            )
            .env("XDG_CACHE_HOME", self.machine.path("cache"))
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .envs(variables.iter().copied())
            .process_group(0)
            .output()
            .unwrap()
    }

    /// Standard output of a successful run.
    fn succeeds(&self, what: &str, profile: &str) -> String {
        let output = self.run(&[what, profile], &[]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    }
}

/// Time, mode and content of each file in a directory and in those within.
type Tree = BTreeMap<PathBuf, (SystemTime, u32, Vec<u8>)>;

fn tree(directory: &Path) -> Tree {
    let mut files = Tree::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let metadata = fs::metadata(&path).unwrap();
            let mode = metadata.permissions().mode();
            let file = (metadata.modified().unwrap(), mode, fs::read(&path).unwrap());
            files.insert(path.strip_prefix(directory).unwrap().to_owned(), file);
        }
    }
    files
}

/// The names of what is in a directory, if there is one.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
