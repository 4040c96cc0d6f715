use super::*;

const RULE: Rule = Rule {
    what: "prints",
    words: &["println!("],
    within: &["crates/"],
    except: &[("crates/binary/", "it prints")],
};

fn broken_by(files: &[(&str, &str)]) -> Vec<String> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    RULE.broken_by(&files.iter().map(owned).collect::<Vec<_>>())
}

#[test]
fn a_forbidden_word_is_found() {
    let text = "fn f() {\n    println!(\"x\");\n}\n";
    assert_eq!(
        broken_by(&[
            ("crates/a/src/b.rs", text),
            ("crates/binary/src/main.rs", text)
        ]),
        ["crates/a/src/b.rs:2: println!(: prints (ARCHITECTURE.md)"]
    );
}

#[test]
fn comments_tests_and_other_directories_do_not_count() {
    let allowed = ("crates/binary/src/main.rs", "println!()");
    for (name, text) in [
        ("crates/a/src/b.rs", "/// println!(\"x\")\n"),
        (
            "crates/a/src/b.rs",
            "#[cfg(test)]\nmod tests {\n println!()\n}",
        ),
        ("crates/a/src/b/tests.rs", "println!()"),
        ("crates/a/tests/all.rs", "println!()"),
        ("crates/a/examples/one.rs", "println!()"),
        ("elsewhere/src/b.rs", "println!()"),
    ] {
        assert_eq!(
            broken_by(&[allowed, (name, text)]),
            Vec::<String>::new(),
            "{name}"
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
