use super::*;
use crate::syntax::tests::sources;

const RULE: Rule = Rule {
    what: "prints",
    paths: &["std::io::stdout", "std::print*"],
    words: &["println!("],
    within: &["crates/"],
    except: &[("crates/binary/", "it prints")],
};

fn broken_by(files: &[(&str, &str)]) -> Vec<String> {
    let sources = sources(files);
    RULE.broken_by(&sources, &Names::from_sources(&sources))
}

const ALLOWED: (&str, &str) = ("crates/binary/src/main.rs", "fn f() { println!() }");

#[test]
fn a_forbidden_word_is_found() {
    let text = "fn f() {\n    println!(\"x\");\n}\n";
    assert_eq!(
        broken_by(&[("crates/a/src/b.rs", text), ALLOWED]),
        ["crates/a/src/b.rs:2: println!(: prints (ARCHITECTURE.md)"]
    );
    // Also after tests.
    let text = format!("#[cfg(test)]\nmod tests {{\n}}\n{text}");
    assert_eq!(broken_by(&[("crates/a/src/b.rs", &text), ALLOWED]).len(), 1);
}

#[test]
fn a_forbidden_path_is_found_however_it_is_imported() {
    for text in [
        "fn f() { std::io::stdout() }",
        "use std::io::{self, stdout as out};",
        "use std::{io};\nfn f() { io::stdout() }",
        "use std::io as terminal;\nfn f() { g!(terminal::stdout()) }",
        "use std::io::*;",
        "use std::println as say;",
    ] {
        let found = broken_by(&[("crates/a/src/b.rs", text), ALLOWED]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
}

#[test]
fn comments_tests_and_other_directories_do_not_count() {
    let prints = "fn f() { println!() }";
    for (name, text) in [
        ("crates/a/src/b.rs", "/// println!(\"x\")\nfn f() {}"),
        (
            "crates/a/src/b.rs",
            "use std::io::{self, Read};\nfn f() { io::sink() }",
        ),
        (
            "crates/a/src/b.rs",
            "#[cfg(test)]\nmod tests {\n fn f() { println!() }\n}",
        ),
        ("crates/a/src/b/tests.rs", prints),
        ("crates/a/tests/all.rs", prints),
        ("crates/a/examples/one.rs", prints),
        ("elsewhere/src/b.rs", prints),
    ] {
        assert_eq!(
            broken_by(&[ALLOWED, (name, text)]),
            Vec::<String>::new(),
            "{name}: {text}"
        );
    }
}

#[test]
fn an_exception_that_is_not_needed_is_found() {
    assert_eq!(
        broken_by(&[("crates/binary/src/main.rs", "fn main() {}")]),
        ["crates/binary/: nothing there prints: take it from the rule"]
    );
}
