use super::*;
use crate::linked::Id;

/// A crate whose sources are in a directory of their own.
fn krate(name: &str, licence: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Crate) {
    let directory = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let krate = Crate {
        id: Id {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
        },
        licence: licence.to_owned(),
        checksum: Some("00".to_owned()),
        repository: None,
        directory: directory.path().to_owned(),
        needs: Default::default(),
    };
    (directory, krate)
}

const ISC: &str = "Copyright A\nPermission to use, copy, modify, and distribute this\nsoftware, provided that the above copyright notice appears\n";

#[test]
fn every_file_with_a_licence_is_in_the_notices_and_equal_ones_once() {
    let (_a, first) = krate(
        "a",
        "ISC",
        &[
            ("LICENSE", ISC),
            ("vendor/COPYING", "of b"),
            ("license.rs", "fn f() {}"),
        ],
    );
    let indented = ISC.replace('\n', "\n  ");
    let (_b, second) = krate("b", "ISC", &[("LICENSE.md", &indented)]);
    let text = text(&[first, second], "target").unwrap();
    assert_eq!(text.matches("Copyright A").count(), 1, "{text}");
    assert!(
        text.contains("a 1.0.0: LICENSE\nb 1.0.0: LICENSE.md\n"),
        "{text}"
    );
    assert!(text.contains("a 1.0.0: vendor/COPYING\n"), "{text}");
    assert!(!text.contains("fn f()"), "{text}");
}

#[test]
fn a_crate_without_the_text_of_its_licence_is_an_error() {
    let (_a, lacking) = krate("a", "ISC AND MIT", &[("LICENSE", ISC)]);
    let (_b, none) = krate("b", "ISC", &[("src/lib.rs", "")]);
    let error = text(&[lacking, none], "target").unwrap_err().to_string();
    assert!(
        error.contains("a 1.0.0: its licence is ISC AND MIT"),
        "{error}"
    );
    assert!(error.contains("b 1.0.0: its licence is ISC"), "{error}");
}

#[test]
fn the_notices_of_the_program_have_every_crate_and_the_code_that_crates_bring() {
    let target = linked::host().unwrap();
    let crates = linked::crates(&crate::root(), &target).unwrap();
    let notices = text(&crates, &target).unwrap();
    for krate in crates.iter().filter(|krate| !krate.is_of_the_workspace()) {
        let line = format!("\n{} {}: ", krate.id.name, krate.id.version);
        assert!(
            notices.matches(&line).count() >= 2,
            "in the list and at a text: {line}"
        );
    }
    for words in [
        "Jason Evans <jasone@canonware.com>",
        "May you do good and not evil.",
        "code that was sourced from BoringSSL",
        "fiat-crypto",
        "Copyright (c) 2022 Tom Forbes and Contributors",
        "Trifecta Tech Foundation",
    ] {
        assert!(notices.contains(words), "{words}");
    }
    let root = crate::root().display().to_string();
    assert!(!notices.contains(&root), "a path of the machine");
}

#[test]
fn texts_are_given_for_crates_that_lack_them_alone() {
    let target = linked::host().unwrap();
    let crates = linked::crates(&crate::root(), &target).unwrap();
    for (name, ..) in texts::TEXTS {
        let krate = crates.iter().find(|krate| krate.id.name == name);
        let krate = krate.unwrap_or_else(|| panic!("{name} is not in the program"));
        assert!(
            complete(krate, &files(krate).unwrap()).is_err(),
            "{name} has its text"
        );
    }
}
