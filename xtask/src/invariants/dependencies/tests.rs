use super::*;

fn package(name: &str, dependencies: &[(&str, Option<&str>, bool)]) -> Package {
    let dependencies = dependencies.iter().map(|(name, kind, ours)| Dependency {
        name: (*name).to_owned(),
        kind: kind.map(str::to_owned),
        path: ours.then(|| "/somewhere".to_owned()),
    });
    Package {
        name: name.to_owned(),
        dependencies: dependencies.collect(),
    }
}

#[test]
fn a_dependency_that_no_rule_allows_is_found() {
    let api = ("ferrostack-api", None, true);
    let cases: [(&str, &[_], &str); 6] = [
        (
            "ferrostack-operator",
            &[api, ("ferrostack-openstack", None, true)],
            "crate operator must not use openstack (ARCHITECTURE.md)",
        ),
        (
            "ferrostack-operator",
            &[api, ("ferrostack-testbed", Some("dev"), true)],
            "the tests of crate operator must not use testbed (ARCHITECTURE.md)",
        ),
        (
            "ferrostack-operator",
            &[api, ("reqwest", None, false)],
            "crate operator must not use reqwest (ARCHITECTURE.md)",
        ),
        (
            "ferrostack-openstack",
            &[("kube-core", None, false)],
            "crate openstack must not use kube-core (ARCHITECTURE.md)",
        ),
        (
            "ferrostack-operator",
            &[],
            "crate operator may use api and does not: take it from the rule",
        ),
        (
            "ferrostack-new",
            &[],
            "crate new: say in xtask/src/invariants/dependencies.rs what it may use",
        ),
    ];
    for (name, dependencies, problem) in cases {
        assert_eq!(broken(&[package(name, dependencies)]), [problem]);
    }
}

#[test]
fn tests_may_use_what_the_crate_must_not() {
    let operator = package(
        "ferrostack-operator",
        &[
            ("ferrostack-api", None, true),
            ("reqwest", Some("dev"), false),
        ],
    );
    assert_eq!(broken(&[operator]), Vec::<String>::new());
}

#[test]
fn crates_that_the_architecture_does_not_describe_are_found() {
    let all: Vec<String> = RULES
        .iter()
        .map(|rule| format!("| `{}` | x |", rule.name))
        .collect();
    assert_eq!(undescribed(&all.join("\n")), Vec::<String>::new());
    assert_eq!(
        undescribed(&all[1..].join("\n")),
        ["ARCHITECTURE.md: the table of crates lacks `api`"]
    );
}
