use super::*;

fn named(id: &str, name: &str) -> Named {
    Named {
        id: id.into(),
        name: name.into(),
    }
}

fn group(name: &str, domain_id: &str) -> Arc<Group> {
    Arc::new(Group {
        group: named(&format!("id-{name}"), name),
        domain_id: domain_id.into(),
    })
}

fn identity(name: &str) -> Identity {
    Identity {
        user: named("u1", name),
        domain: named("d1", "Default"),
        scope: Scope::Project(named("p1", "demo")),
        trust: false,
        roles: ["member".into(), "reader".into()].into(),
        groups: Some([group("ops", "d1")].into()),
        access_rules: None,
    }
}

fn extra(user: &Subject, key: &str) -> Vec<String> {
    user.extra
        .as_ref()
        .unwrap()
        .get(key)
        .cloned()
        .unwrap_or_default()
}

#[test]
fn a_user_is_that_of_the_go_program() {
    let user = user(&identity("alice"), &Options::default()).unwrap();
    assert_eq!((&*user.name, &*user.uid), ("alice", "u1"));
    assert_eq!(user.groups, ["ops", "p1"]);
    assert_eq!(
        extra(&user, "alpha.kubernetes.io/identity/roles"),
        ["member", "reader"]
    );
    assert_eq!(
        extra(&user, "alpha.kubernetes.io/identity/project/id"),
        ["p1"]
    );
    assert_eq!(
        extra(&user, "alpha.kubernetes.io/identity/project/name"),
        ["demo"]
    );
    assert_eq!(
        extra(&user, "alpha.kubernetes.io/identity/user/domain/id"),
        ["d1"]
    );
    assert_eq!(
        extra(&user, "alpha.kubernetes.io/identity/user/domain/name"),
        ["Default"]
    );
    assert_eq!(user.extra.unwrap().len(), 5);
}

#[test]
fn names_of_kubernetes_do_not_come_from_keystone() {
    for name in [
        "system:admin",
        "system:node:a",
        "system:",
        "",
        "a\nb",
        "a\u{7f}",
    ] {
        let refused = user(&identity(name), &Options::default());
        assert!(refused.is_err(), "{name:?}");
        let quoted = refused
            .unwrap_err()
            .contains(name.trim_start_matches("system:"));
        assert!(!quoted || name.is_empty() || name == "system:", "{name:?}");
    }
    let mut it = identity("alice");
    let names = [
        "system:masters",
        "keystone:system",
        "ops",
        "a\tb",
        "systems",
    ];
    it.groups = Some(names.iter().map(|name| group(name, "d1")).collect());
    assert_eq!(
        user(&it, &Options::default()).unwrap().groups,
        ["ops", "systems", "p1"]
    );
    // Neither by a format.
    let format = |text: &str| text.parse::<Format>().unwrap();
    let mut it = identity("masters");
    it.domain.name = "system".into();
    let options = Options {
        username: format("%D:%n"),
        ..Options::default()
    };
    assert!(user(&it, &options).is_err());
}

#[test]
fn names_are_qualified_by_formats() {
    let options = |username: &str, group: &str| Options {
        username: username.parse().unwrap(),
        group: group.parse().unwrap(),
        ..Options::default()
    };
    for (username, name) in [
        ("%n", "alice"),
        ("%n@%D", "alice@Default"),
        ("%i", "u1"),
        ("keystone:%d/%n%%", "keystone:d1/alice%"),
    ] {
        let options = options(username, "%n");
        assert_eq!(user(&identity("alice"), &options).unwrap().name, name);
        assert_eq!(options.username.is_ambiguous(), username == "%n");
    }
    let mut it = identity("alice");
    it.groups = Some([group("ops", "d1"), group("other", "d2")].into());
    // Of another domain, Keystone does not tell the name.
    assert_eq!(
        user(&it, &options("%n", "%n@%D")).unwrap().groups,
        ["ops@Default", "p1"]
    );
    assert_eq!(
        user(&it, &options("%n", "%d:%n")).unwrap().groups,
        ["d1:ops", "d2:other", "p1"]
    );
    for wrong in ["", "x", "%", "%x", "%D", "system:%n"] {
        assert!(wrong.parse::<Format>().is_err(), "{wrong}");
    }
}

#[test]
fn scopes_domains_and_projects_are_those_that_are_accepted() {
    let all = ["project", "trust", "domain", "system", "unscoped"];
    let accepted = |scopes: &[&str]| Options {
        scopes: scopes.iter().map(|it| it.parse().unwrap()).collect(),
        ..Options::default()
    };
    let of = |scope: Scope, trust: bool| Identity {
        scope,
        trust,
        ..identity("alice")
    };
    let project = Scope::Project(named("p1", "demo"));
    let cases = [
        ("project", of(project.clone(), false), "p1"),
        ("trust", of(project, true), "p1"),
        (
            "domain",
            of(Scope::Domain(named("d9", "x")), false),
            "keystone:domain:d9",
        ),
        ("system", of(Scope::System, false), "keystone:system"),
        ("unscoped", of(Scope::Unscoped, false), "ops"),
    ];
    for (scope, identity, last) in cases {
        let accepts = user(&identity, &accepted(&[scope])).unwrap();
        assert_eq!(accepts.groups.last().unwrap(), last);
        let others: Vec<&str> = all.into_iter().filter(|it| *it != scope).collect();
        let refused = user(&identity, &accepted(&others)).unwrap_err();
        assert!(refused.contains("not accepted"), "{refused}");
        // The Go program takes projects, also those of trusts.
        let default = user(&identity, &Options::default()).is_ok();
        assert_eq!(default, ["project", "trust"].contains(&scope), "{scope}");
    }
    assert!(
        "projects"
            .parse::<Accepted>()
            .unwrap_err()
            .contains("`projects` is no scope")
    );
    let set = |names: &[&str]| {
        names
            .iter()
            .map(|it| (*it).to_owned())
            .collect::<HashSet<_>>()
    };
    for (domains, projects, expected) in [
        (&["d1"][..], &[][..], true),
        (&["x", "Default"], &[], true),
        (&["x"], &[], false),
        (&[], &["p1"], true),
        (&[], &["demo"], true),
        (&[], &["x"], false),
        (&["d1"], &["x"], false),
    ] {
        let options = Options {
            domains: set(domains),
            projects: set(projects),
            ..Options::default()
        };
        assert_eq!(
            user(&identity("a"), &options).is_ok(),
            expected,
            "{domains:?} {projects:?}"
        );
    }
    let options = Options {
        projects: set(&["p1"]),
        ..accepted(&all)
    };
    assert!(user(&of(Scope::System, false), &options).is_err());
}

#[test]
fn access_rules_that_allow_less_than_everything_are_refused() {
    let rule = |service: &str, method: &str, path: &str| AccessRule {
        service: service.into(),
        method: method.into(),
        path: path.into(),
    };
    let all =
        ["GET", "POST", "PUT", "PATCH", "DELETE"].map(|method| rule("kubernetes", method, "/**"));
    let less: Vec<_> = all.iter().skip(1).cloned().collect();
    let below = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        .map(|method| rule("kubernetes", method, "/api/**"));
    let others =
        ["GET", "POST", "PUT", "PATCH", "DELETE"].map(|method| rule("compute", method, "/**"));
    for (rules, expected) in [
        (None, true),
        (Some(Vec::new()), false),
        (Some(all.to_vec()), true),
        (Some(less), false),
        (Some(below.to_vec()), false),
        (Some(others.to_vec()), false),
    ] {
        let it = Identity {
            access_rules: rules.clone().map(Vec::into_boxed_slice),
            ..identity("alice")
        };
        assert_eq!(
            user(&it, &Options::default()).is_ok(),
            expected,
            "{rules:?}"
        );
    }
}

#[test]
fn roles_are_mapped_to_groups_and_names_also_to_those_of_kubernetes() {
    let mapping = |role: &str, username: &str, groups: &[&str]| RoleMapping {
        keystone_role: role.to_owned(),
        username: username.to_owned(),
        groups: groups.iter().map(|it| (*it).to_owned()).collect(),
    };
    let alice = user(&identity("alice"), &Options::default()).unwrap();
    let mappings = [
        mapping("member", "", &["system:masters"]),
        mapping("reader", "shared", &["readers"]),
        mapping("admin", "root", &["admins"]),
        mapping("", "nobody", &["nobodies"]),
    ];
    let mapped = mapped(&alice, &mappings);
    assert_eq!(mapped.name, "shared");
    assert_eq!(mapped.groups, ["ops", "p1", "system:masters", "readers"]);
    assert_eq!((mapped.uid, mapped.extra), (alice.uid, alice.extra));
}
