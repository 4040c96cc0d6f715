use std::collections::BTreeSet;

use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::linked::host;
use crate::root;

/// A program that writes documents as `ferrostack` does, and the directory that it is in.
fn fake(version: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("fake.rs");
    let text = r#"
        fn main() {
            let arguments: Vec<String> = std::env::args().skip(1).collect();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            match arguments[..] {
                ["version", "--client"] => println!("ferrostack VERSION"),
                ["completion", shell] => println!("completions for {shell}"),
                ["man", directory] => {
                    for page in ["ferrostack-up.1", "ferrostack.1"] {
                        std::fs::write(format!("{directory}/{page}"), page).unwrap();
                    }
                }
                _ => std::process::exit(2),
            }
        }
    "#;
    fs::write(&source, text.replace("VERSION", version)).unwrap();
    let program = directory.path().join("fake");
    let mut rustc = Command::new("rustc");
    rustc
        .current_dir(root())
        .arg(&source)
        .arg("-o")
        .arg(&program);
    linked::output(&mut rustc).unwrap();
    (directory, program)
}

/// Writes a release with that program.
fn release(program: &Path) -> TempDir {
    let output = tempfile::tempdir().unwrap();
    let arguments = Arguments {
        target: Vec::new(),
        binary: Some(program.to_owned()),
        output: output.path().to_owned(),
    };
    run(&root(), &arguments).unwrap();
    output
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_release_is_an_archive_a_bill_and_sums_and_the_same_program_gives_the_same_bytes() {
    let (_directory, program) = fake(VERSION);
    let target = host().unwrap();
    let name = format!("ferrostack-{VERSION}-{target}");
    let [first, second] = [release(&program), release(&program)];
    let archive = format!("{name}.tar.gz");
    let bill = format!("{name}.cdx.json");
    assert_eq!(
        names(first.path()),
        ["SHA256SUMS".to_owned(), bill.clone(), archive.clone()]
    );
    for file in names(first.path()) {
        let read = |release: &TempDir| fs::read(release.path().join(&file)).unwrap();
        assert!(read(&first) == read(&second), "{file}");
    }
    let mut check = Command::new("sha256sum");
    check
        .args(["--check", "SHA256SUMS"])
        .current_dir(first.path());
    let checked = linked::output(&mut check).unwrap();
    assert_eq!(checked, format!("{bill}: OK\n{archive}: OK\n"));

    let archive = first.path().join(&archive);
    let tar = |arguments: &[&str]| {
        let mut tar = Command::new("tar");
        linked::output(
            tar.args(arguments)
                .arg("--file")
                .arg(&archive)
                .env("TZ", "UTC"),
        )
        .unwrap()
    };
    let time = jiff::Timestamp::from_second(time(&root()).unwrap() as i64).unwrap();
    let time = time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let listed = tar(&[
        "--list",
        "--gzip",
        "--verbose",
        "--full-time",
        "--numeric-owner",
    ]);
    // Mode, owner, size, date, time, path.
    let files: Vec<(String, String)> = listed
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[1], "0/0", "{line}");
            assert_eq!(words[3..5].join(" "), time, "{line}");
            (words[0].to_owned(), words[5].to_owned())
        })
        .collect();
    let expected = [
        "CHANGELOG.md",
        "COPYRIGHT-rust-library.html",
        "LICENSE",
        "README.md",
        "RELEASE",
        "THIRD_PARTY_NOTICES",
        "completions/_ferrostack",
        "completions/ferrostack.bash",
        "completions/ferrostack.fish",
        "ferrostack",
        "man/man1/ferrostack-up.1",
        "man/man1/ferrostack.1",
    ];
    let expected = expected.map(|file| {
        let mode = match file {
            "ferrostack" => "-rwxr-xr-x",
            _ => "-rw-r--r--",
        };
        (mode.to_owned(), format!("{name}/{file}"))
    });
    assert_eq!(files, expected);

    let unpacked = tempfile::tempdir().unwrap();
    let place = unpacked.path().to_str().unwrap();
    tar(&["--extract", "--gzip", "--directory", place]);
    let content = |file: &str| fs::read(unpacked.path().join(&name).join(file)).unwrap();
    let text = |file: &str| String::from_utf8(content(file)).unwrap();
    assert!(content("ferrostack") == fs::read(&program).unwrap());
    assert_eq!(text("completions/_ferrostack"), "completions for zsh\n");
    assert!(text("THIRD_PARTY_NOTICES").contains(&target));
    let facts = text("RELEASE");
    let start = format!("ferrostack {VERSION}\ntarget: {target}\nlinked ");
    assert!(facts.starts_with(&start), "{facts}");
    assert!(facts.contains("needs glibc 2."), "{facts}");
    assert!(facts.contains("libc.so.6"), "{facts}");
}

#[test]
fn the_bill_of_materials_is_what_cargo_lock_pins_of_what_is_linked() {
    let (_directory, program) = fake(VERSION);
    let release = release(&program);
    let target = host().unwrap();
    let file = format!("ferrostack-{VERSION}-{target}.cdx.json");
    let bill = fs::read(release.path().join(file)).unwrap();
    let bill: Value = serde_json::from_slice(&bill).unwrap();
    let text = |value: &Value, pointer: &str| {
        let text = value.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let sums = linked::checksums(&lock);
    let components = bill["components"].as_array().unwrap();
    let mut found = BTreeSet::new();
    for component in components {
        assert_ne!(text(component, "/licenses/0/expression"), "", "{component}");
        let id = linked::Id {
            name: text(component, "/name"),
            version: text(component, "/version"),
        };
        if text(component, "/purl").starts_with("pkg:cargo/") {
            let sum = text(component, "/hashes/0/content");
            assert_eq!(Some(&sum), sums.get(&id), "{component}");
        }
        found.insert(id.name);
    }
    let crates = linked::crates(&root(), &target).unwrap();
    for krate in &crates {
        let name = &krate.id.name;
        assert!(found.contains(name) || name == "ferrostack", "{name}");
    }
    // Beside the crates, of which one is the program: two libraries in C and that of Rust.
    assert_eq!(components.len(), crates.len() + 2);
    for name in ["sqlite", "jemalloc", "rust-std"] {
        assert!(found.contains(name), "{name}");
    }
    let subject = &bill["metadata"]["component"];
    let sum = sha256(&fs::read(&program).unwrap());
    assert_eq!(text(subject, "/hashes/0/content"), sum);
    assert!(
        text(subject, "/properties/1/value").starts_with("2."),
        "{subject}"
    );
    every_reference_is_a_component(&bill);
}

fn every_reference_is_a_component(bill: &Value) {
    let reference = |component: &Value| component["bom-ref"].as_str().unwrap().to_owned();
    let components = bill["components"].as_array().unwrap();
    let mut known: BTreeSet<String> = components.iter().map(reference).collect();
    assert_eq!(known.len(), components.len(), "references are unique");
    known.insert(reference(&bill["metadata"]["component"]));
    for dependency in bill["dependencies"].as_array().unwrap() {
        for name in dependency["dependsOn"].as_array().unwrap() {
            assert!(known.contains(name.as_str().unwrap()), "{name}");
        }
    }
}

#[test]
fn a_program_of_another_version_is_refused() {
    let (_directory, program) = fake("0.0.9");
    let error = documents::of(&program).unwrap_err().to_string();
    assert!(
        error.ends_with(&format!(
            "is ferrostack 0.0.9, and the release is {VERSION}"
        )),
        "{error}"
    );
}

#[test]
fn a_target_that_cannot_be_built_for_is_an_error_where_it_is_asked_for() {
    let Err(error) = builds::all(&root(), &["riscv64gc-unknown-linux-gnu".to_owned()]) else {
        panic!("it is no target of a release");
    };
    let error = error.to_string();
    assert!(error.contains("no target of a release"), "{error}");
    assert!(error.contains("aarch64-unknown-linux-gnu"), "{error}");
}
