use super::*;
use crate::syntax::tests::sources;

const ROOT: (&str, &str) = (
    "crates/a/src/lib.rs",
    "mod b;\nmod c;\nmod d;\nmod e;\nmod f;\npub use e::Shared;",
);

/// Differences from `listed` in a crate with these modules.
fn differences(files: &[(&str, &str)], listed: &[&[&str]]) -> Vec<String> {
    let names: Vec<String> = files
        .iter()
        .map(|(module, _)| format!("crates/a/src/{module}.rs"))
        .collect();
    let mut all = vec![ROOT];
    all.extend(
        names
            .iter()
            .zip(files)
            .map(|(name, (_, text))| (name.as_str(), *text)),
    );
    let sources = sources(&all);
    Graph::new("a", &sources, &Names::from_sources(&sources)).differences("a", listed)
}

const TWO: [(&str, &str); 2] = [("b", "use crate::c::C;"), ("c", "use crate::b::B;")];

#[test]
fn a_circle_that_is_not_listed_is_found_with_what_makes_it() {
    let found = differences(&TWO, &[]);
    assert_eq!(
        found,
        [
            "crate a: `b` is in a circle of modules (ARCHITECTURE.md), {\"b\", \"c\"}:\
             \n    b -> c  crates/a/src/b.rs:1: a::c::C\n    c -> b  crates/a/src/c.rs:1: a::b::B",
            "crate a: `c` is in a circle of modules (ARCHITECTURE.md), {\"b\", \"c\"}:\
             \n    c -> b  crates/a/src/c.rs:1: a::b::B\n    b -> c  crates/a/src/b.rs:1: a::c::C",
        ]
    );
    for files in [
        [
            ("b/inner", "use super::super::{c};"),
            ("c", "fn f() { g!(crate::b::B) }"),
        ],
        // The root is in no circle; what it exports again is in one of its modules.
        [("b", "use crate::Shared;"), ("e", "use crate::b::B;")],
    ] {
        assert_eq!(differences(&files, &[]).len(), 2, "{files:?}");
    }
}

#[test]
fn modules_that_lead_one_way_tests_and_what_is_listed_are_not_found() {
    for files in [
        [
            ("b", "use crate::c::C;\nuse crate::d::D;"),
            ("c", "use crate::d::D;"),
        ],
        [("b", "use crate::c::C;"), ("c/tests", "use crate::b::B;")],
        [
            ("b", "use crate::c::C;"),
            ("c", "#[cfg(test)]\nuse crate::b::B;"),
        ],
        [("b/x", "use super::y::Y;"), ("b/y", "use super::x::X;")],
    ] {
        assert_eq!(differences(&files, &[]), Vec::<String>::new(), "{files:?}");
    }
    assert_eq!(differences(&TWO, &[&["b", "c"]]), Vec::<String>::new());
}

#[test]
fn a_module_that_joins_a_circle_is_found() {
    let files = [
        ("b", "use crate::c::C;"),
        ("c", "use crate::d::D;"),
        ("d", "use crate::b::B;"),
    ];
    let found = differences(&files, &[&["b", "c"]]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`d` is in a circle"), "{found:?}");
    assert!(
        found[0].contains("d -> b  crates/a/src/d.rs:1"),
        "{found:?}"
    );
}

#[test]
fn a_module_that_has_left_a_circle_must_leave_the_list() {
    let found = differences(&TWO, &[&["b", "c", "d"]]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`d` has left the circle"), "{found:?}");
}

#[test]
fn circles_that_join_or_fall_apart_are_found() {
    let apart = [
        ("b", "use crate::c::C;"),
        ("c", "use crate::b::B;"),
        ("d", "use crate::e::E;"),
        ("e", "use crate::d::D;"),
    ];
    let lists: [&[&str]; 2] = [&["b", "c"], &["d", "e"]];
    assert_eq!(differences(&apart, &lists), Vec::<String>::new());
    let found = differences(&apart, &[&["b", "c", "d", "e"]]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("has fallen apart"), "{found:?}");

    let mut joined = apart;
    joined[1].1 = "use crate::b::B;\nuse crate::d::D;";
    joined[3].1 = "use crate::d::D;\nuse crate::b::B;";
    let found = differences(&joined, &lists);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("two circles of modules have become one"),
        "{found:?}"
    );
    assert!(
        found[0].contains("e -> b  crates/a/src/e.rs:2"),
        "{found:?}"
    );
}
