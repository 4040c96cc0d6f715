use super::*;
use crate::syntax::tests::sources;

const RULE: Rule = Rule {
    within: "simulator::cloud",
    of: "simulator",
    only: &["simulator::data_plane"],
};

/// The violations of the rule by modules of a simulator whose root is `root`.
fn broken_by(root: &str, files: &[(&str, &str)]) -> Vec<String> {
    let mut all = vec![
        ("crates/simulator/src/lib.rs", root),
        (
            "crates/simulator/src/cloud.rs",
            "mod ports;\nuse crate::data_plane::DataPlane;",
        ),
        (
            "crates/simulator/src/guest.rs",
            "pub use crate::data_plane::DataPlane;",
        ),
        (
            "crates/simulator/src/data_plane.rs",
            "pub struct DataPlane;",
        ),
    ];
    all.extend(files);
    let sources = sources(&all);
    RULE.broken_by(&sources, &Names::from_sources(&sources))
}

const ROOT: &str = "pub mod cloud;\npub mod guest;\npub mod data_plane;";

#[test]
fn a_module_that_may_not_be_known_is_found_however_it_is_named() {
    for text in [
        "use crate::guest::Outside;",
        "use crate::{guest, data_plane};",
        "use crate::{guest::{Outside as Addresses}};",
        "use super::super::guest;",
        "use super::super::{self as all};",
        "use crate as all;",
        "use crate::*;",
        "fn f() -> crate::guest::Outside { g() }",
        "fn f() { tokio::select!(() = crate::guest::f() => {}) }",
        "struct A {\n    #[serde(with = \"crate::guest::outside\")]\n    a: u8,\n}",
        // Re-exports, too.
        "use crate::guest::DataPlane;",
        // Only the names in the rule are permitted.
        "use crate::nodes::Node;",
    ] {
        let found = broken_by(ROOT, &[("crates/simulator/src/cloud/ports.rs", text)]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(
            found[0].starts_with("crates/simulator/src/cloud/ports.rs:"),
            "{found:?}"
        );
    }
    // By another name of the root.
    let root = "pub mod cloud;\nmod guest;\nmod data_plane;\npub use guest::Outside;";
    let text = "use crate::Outside;";
    let found = broken_by(root, &[("crates/simulator/src/cloud/ports.rs", text)]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn what_may_be_known_tests_and_other_modules_are_not_found() {
    for (name, text) in [
        (
            "cloud/ports.rs",
            "use crate::data_plane::{self, DataPlane};",
        ),
        (
            "cloud/ports.rs",
            "use crate::cloud::Port;\nuse super::Port as Other;",
        ),
        (
            "cloud/ports.rs",
            "fn f(guest: u8) { guest.g(); openstack::guest::f(); }",
        ),
        ("cloud/ports.rs", "#[cfg(test)]\nuse crate::guest::Outside;"),
        ("cloud/tests.rs", "use crate::guest::Outside;"),
        ("cloudy.rs", "use crate::guest::Outside;"),
        ("guest/outside.rs", "use crate::cloud::Port;"),
    ] {
        let file = format!("crates/simulator/src/{name}");
        let found = broken_by(ROOT, &[(&file, text)]);
        assert_eq!(found, Vec::<String>::new(), "{name}: {text}");
    }
}

#[test]
fn a_permission_that_is_not_needed_is_found() {
    let sources = sources(&[("crates/simulator/src/cloud.rs", "")]);
    let found = RULE.broken_by(&sources, &Names::from_sources(&sources));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("take it from the rule"), "{found:?}");
}
