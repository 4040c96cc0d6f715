use super::*;

/// Sources as they are read from files.
pub(crate) fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    let read = |(name, text): &(&str, &str)| Source::new(name, (*text).to_owned());
    let sources: Vec<Source> = files.iter().map(read).collect();
    for source in &sources {
        assert_eq!(source.error, None, "{}", source.name);
    }
    sources
}

/// Everything that the paths of the module `a::b` name, where the root of the crate is `root`.
fn named(root: &str, text: &str) -> Vec<String> {
    let sources = sources(&[
        ("crates/a/src/lib.rs", root),
        ("crates/a/src/b.rs", text),
        ("crates/a/src/c.rs", "pub use self::d::Deep;\nmod d;"),
        ("crates/other/src/lib.rs", "pub use tokio;"),
    ]);
    let names = Names::from_sources(&sources);
    let paths = sources[1].content.paths.iter();
    let named = paths.flat_map(|path| names.named(&path.module, &path.path));
    named.map(|name| joined(&name)).collect()
}

#[test]
fn a_path_names_what_it_is_imported_from() {
    for (text, name) in [
        ("use crate::c::X;", "a::c::X"),
        ("use crate::{c::{self, X}, e};", "a::c::X"),
        ("use crate::{c};", "a::c"),
        (
            "use crate::c as other;\nfn f() { other::X::new() }",
            "a::c::X::new",
        ),
        ("use super::c::X;", "a::c::X"),
        ("mod inner { use super::super::c::X; }", "a::c::X"),
        ("use super as up;\nfn f() { up::c::x() }", "a::c::x"),
        ("use super::*;\nfn f() { c::x() }", "a::c::x"),
        ("use crate as me;\nuse me::c::X;", "a::c::X"),
        ("extern crate self as me;\nfn f() { me::c::x() }", "a::c::x"),
        ("fn f(x: &dyn crate::c::X) {}", "a::c::X"),
        ("fn f() { use crate::c::X; }", "a::c::X"),
        ("fn f() { g!(1, crate::c::X) }", "a::c::X"),
        ("macro_rules! g { () => { $crate::c::X } }", "a::c::X"),
        (
            "macro_rules! g { () => { use crate::{c::{X}}; } }",
            "a::c::X",
        ),
        (
            "struct S {\n #[serde(default = \"crate::c::x\")]\n x: u8 }",
            "a::c::x",
        ),
        ("use crate::Deep;", "a::c::d::Deep"),
        ("use crate::c::Deep;", "a::c::d::Deep"),
        (
            "use other::tokio::time;\nfn f() { time::sleep() }",
            "tokio::time::sleep",
        ),
        (
            "use std::{fs as files};\nfn f() { files::read() }",
            "std::fs::read",
        ),
        ("use std::io;\nuse io::stdout as out;", "std::io::stdout"),
        ("fn f() { ::c::x() }", "c::x"),
    ] {
        let root = "mod b;\nmod c;\npub use c::Deep;";
        let found = named(root, text);
        assert!(found.contains(&name.to_owned()), "{text}: {found:?}");
    }
}

#[test]
fn what_is_no_path_names_nothing() {
    for text in [
        "// crate::c::X\n/// [`crate::c::X`]\nfn f() {}",
        "fn f() { let c = 1; c.x(); g(c); }",
        "fn f() { g!(\"crate::c::X\") }",
        "pub(in crate::c) fn f() {}",
        "macro_rules! g { () => { pub(crate) struct S; } }",
        "#[cfg(test)]\nuse crate::c::X;",
        "#[cfg(test)]\nmod tests { use crate::c::X; }",
        "fn f() {\n #[cfg(test)]\n crate::c::x();\n }",
        "fn f() { ::c::x() }",
        "mod c {}\nuse self::c::X;",
    ] {
        let found = named("mod b;\nmod c;", text);
        let named = found.iter().any(|name| name.starts_with("a::c"));
        assert!(!named, "{text}: {found:?}");
    }
}

#[test]
fn a_line_is_a_test_only_until_its_item_ends() {
    for (text, tests) in [
        ("#[cfg(test)]\nmod tests;\nfn f() {}\n", 1..=2),
        (
            "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\nfn h() {}\n",
            2..=5,
        ),
        ("#[cfg(all(test, unix))]\nuse a::b;\nfn f() {}\n", 1..=2),
        (
            "struct S {\n    #[cfg(test)]\n    a: u8,\n    b: u8,\n}\n",
            2..=3,
        ),
        (
            "fn f() {\n    #[cfg(test)]\n    g(\n        1,\n    );\n    h();\n}\n",
            2..=5,
        ),
        (
            "impl S {\n    #[cfg(test)]\n    fn f() {\n    }\n    fn g() {}\n}\n",
            2..=4,
        ),
        ("enum E {\n    #[cfg(test)]\n    A,\n    B,\n}\n", 2..=3),
    ] {
        let source = &sources(&[("crates/a/src/b.rs", text)])[0];
        let lines = 1..=text.lines().count();
        let found: Vec<usize> = lines.filter(|line| source.is_test_line(*line)).collect();
        assert_eq!(found, tests.collect::<Vec<_>>(), "{text}");
    }
    let other =
        "#[cfg(not(test))]\nfn f() {}\n#[cfg(any(test, unix))]\nfn g() {}\n#[test]\nfn h() {}\n";
    let source = &sources(&[("crates/a/src/b.rs", other)])[0];
    assert!(source.content.tests.is_empty());
}

#[test]
fn what_is_no_rust_is_an_error() {
    assert!(
        Source::new("crates/a/src/b.rs", "fn f(".to_owned())
            .error
            .is_some()
    );
}
