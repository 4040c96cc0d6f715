use std::collections::HashMap;
use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::subject::{PROJECT_ID, PROJECT_NAME, ROLES as ROLES_KEY, ResourceAttributes};

mod go;

fn subject(name: &str, roles: &[&str], project: &str, groups: &[&str]) -> Subject {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    Subject {
        name: name.to_owned(),
        uid: format!("id-of-{name}"),
        groups: words(groups),
        extra: Some(HashMap::from([
            (ROLES_KEY.to_owned(), words(roles)),
            (PROJECT_ID.to_owned(), words(&[&format!("id-of-{project}")])),
            (PROJECT_NAME.to_owned(), words(&[project])),
        ])),
    }
}

/// `get default pods exec apps`: verb, namespace, resource, sub-resource, group; `-` for an empty one. `get /path` for a path.
fn asked(words: &str) -> Attributes {
    let words: Vec<String> = words.split(' ').map(|word| word.replace('-', "")).collect();
    let word = |index: usize| words.get(index).cloned().unwrap_or_default();
    if word(1).starts_with('/') {
        return Attributes::Path {
            verb: word(0),
            path: word(1),
        };
    }
    Attributes::Resource(ResourceAttributes {
        verb: word(0),
        namespace: word(1),
        resource: word(2),
        subresource: word(3),
        group: word(4),
        ..ResourceAttributes::default()
    })
}

fn compiled(text: &str, mode: Mode) -> Policy {
    Policy::compile(text, mode).unwrap().policy
}

fn second(permissions: &str) -> String {
    format!(
        r#"[{{"users": {{"roles": ["dev"], "projects": ["demo"]}}, "resource_permissions": {permissions}}}]"#
    )
}

fn allows(text: &str, mode: Mode, request: &str) -> bool {
    let alice = subject("alice", &["dev", "other"], "demo", &["ops"]);
    decide(&compiled(text, mode), &alice, &asked(request)).allowed
}

#[test]
fn version_2_is_that_of_the_go_program() {
    for (permissions, request, expected) in [
        (r#"{"default/pods": ["get"]}"#, "get default pods", true),
        (r#"{"default/pods": ["GET"]}"#, "get default pods", true),
        (r#"{"Default/Pods": ["get"]}"#, "get default pods", true),
        (r#"{"default/pods": ["get"]}"#, "list default pods", false),
        // Sub-resources and groups are not looked at.
        (
            r#"{"default/pods": ["get"]}"#,
            "get default pods exec",
            true,
        ),
        (
            r#"{"default/pods": ["get"]}"#,
            "get default pods - metrics.k8s.io",
            true,
        ),
        // Requests without a namespace are in `*` alone.
        (r#"{"!x/nodes": ["get"]}"#, "get - nodes", false),
        (r#"{"['*']/nodes": ["get"]}"#, "get - nodes", false),
        (r#"{"*/nodes": ["get"]}"#, "get - nodes", true),
        (
            r#"{"!kube-system/!['secrets', 'roles']": ["*"]}"#,
            "delete a pods",
            true,
        ),
        (
            r#"{"!kube-system/!['secrets', 'roles']": ["*"]}"#,
            "get a secrets",
            false,
        ),
        (r#"{"!kubesystem/*": ["*"]}"#, "get kubesystem pods", false),
        (r#"{"a/b/c": ["*"], "pods": ["*"]}"#, "get a b", false),
        (r#"{"*/['pods', 'x": ["*"]}"#, "get a pods", false),
        ("{}", "get a pods", false),
    ] {
        let text = second(permissions);
        assert_eq!(
            allows(&text, Mode::Compatible, request),
            expected,
            "{permissions} {request}"
        );
    }
}

#[test]
fn users_of_version_2_have_all_roles_and_one_of_the_projects() {
    let permissions = r#""resource_permissions": {"*/*": ["*"]}"#;
    let policy = |users: &str| format!("[{{{users}{permissions}}}]");
    for (users, expected) in [
        (
            r#""users": {"roles": ["dev"], "projects": ["demo"]},"#,
            true,
        ),
        (
            r#""users": {"roles": ["dev"], "projects": ["x", "idofdemo"]},"#,
            false,
        ),
        (
            r#""users": {"roles": ["dev"], "projects": ["x", "id-of-demo"]},"#,
            true,
        ),
        (
            r#""users": {"roles": ["dev", "other"], "projects": ["demo"]},"#,
            true,
        ),
        (
            r#""users": {"roles": ["dev", "third"], "projects": ["demo"]},"#,
            false,
        ),
        (r#""users": {"projects": ["demo"]},"#, true),
        (r#""users": {"roles": ["dev"]},"#, false),
        (r#""users": {},"#, false),
        (r#""users": null,"#, true),
        ("", true),
    ] {
        let text = policy(users);
        assert_eq!(
            allows(&text, Mode::Compatible, "get a pods"),
            expected,
            "{users}"
        );
    }
    // A user whom no webhook has authenticated is nobody's.
    let stranger = Subject::default();
    let decision = decide(
        &compiled(&policy(""), Mode::Compatible),
        &stranger,
        &asked("get a b"),
    );
    assert!(!decision.allowed && decision.reason.contains("no extra keys"));
}

#[test]
fn version_1_is_that_of_the_go_program() {
    let resource = |more: &str, matches: &str| {
        format!(r#"[{{"resource": {{"verbs": ["get"], {more}}}, "match": [{matches}]}}]"#)
    };
    let pods = r#""resources": ["pods"], "version": "*", "namespace": "*""#;
    for (matches, expected) in [
        (r#"{"type": "user", "values": ["alice"]}"#, true),
        (r#"{"type": "user", "values": ["id-of-alice"]}"#, true),
        (r#"{"type": "group", "values": ["ops"]}"#, true),
        (r#"{"type": "project", "values": ["demo"]}"#, true),
        (r#"{"type": "project", "values": ["id-of-demo"]}"#, true),
        (r#"{"type": "role", "values": ["x", "dev"]}"#, true),
        (r#"{"type": "role", "values": ["*"]}"#, true),
        (r#"{"type": "role", "values": []}"#, false),
        (r#"{"type": "domain", "values": ["*"]}"#, false),
        (
            r#"{"type": "role", "values": ["dev"]}, {"type": "user", "values": ["bob"]}"#,
            false,
        ),
        ("null", false),
        // Everybody.
        ("", true),
    ] {
        let text = resource(pods, matches);
        assert_eq!(
            allows(&text, Mode::Compatible, "get a pods"),
            expected,
            "{matches}"
        );
    }
    let everybody = r#"{"type": "user", "values": ["*"]}"#;
    for (more, request, expected) in [
        (pods, "get a pods exec", false),
        (
            r#""resources": ["pods/exec"], "version": "*", "namespace": "*""#,
            "get a pods exec",
            true,
        ),
        (
            r#""resources": ["pods/*"], "version": "*", "namespace": "*""#,
            "get a pods exec",
            true,
        ),
        (
            r#""resources": ["pods/*"], "version": "*", "namespace": "*""#,
            "get a pods",
            false,
        ),
        (
            r#""resources": ["*"], "version": "*", "namespace": "*""#,
            "get a pods exec",
            true,
        ),
        (
            r#""resources": ["*"], "version": "", "namespace": "*""#,
            "get a pods",
            true,
        ),
        (
            r#""resources": ["*"], "version": "", "namespace": "*""#,
            "get a pods - apps",
            false,
        ),
        (
            r#""resources": ["*"], "version": "apps", "namespace": "a""#,
            "get a pods - apps",
            true,
        ),
        (
            r#""resources": ["*"], "version": "*", "namespace": "a""#,
            "get - nodes",
            false,
        ),
        (
            r#""resources": ["*"], "version": "*", "namespace": """#,
            "get - nodes",
            true,
        ),
        // Where the Go program crashes.
        (
            r#""resources": ["*"], "namespace": "*""#,
            "get a pods",
            false,
        ),
        (r#""resources": ["*"], "version": "*""#, "get a pods", false),
        (
            r#""Resources": ["*"], "VERSION": "*", "namespace": "*""#,
            "get a pods",
            true,
        ),
    ] {
        let text = resource(more, everybody);
        assert_eq!(
            allows(&text, Mode::Compatible, request),
            expected,
            "{more} {request}"
        );
    }
}

#[test]
fn paths_are_exact_in_version_2_and_may_end_with_an_asterisk_in_version_1() {
    let first = |path: &str, verbs: &str| {
        format!(
            r#"[{{"nonresource": {{"verbs": [{verbs}], {path}}}, "match": [{{"type": "role", "values": ["dev"]}}]}}]"#
        )
    };
    for (path, verbs, expected) in [
        (r#""path": "/api/v1""#, r#""get""#, true),
        (r#""path": "/api/*""#, r#""*""#, true),
        (r#""path": "/api/**""#, r#""get""#, true),
        (r#""path": "*""#, r#""get""#, true),
        (r#""path": "/apis/*""#, r#""get""#, false),
        (r#""path": "/api""#, r#""get""#, false),
        (r#""path": "/api/*""#, r#""get", """#, false),
        (r#""verbs": null"#, r#""get""#, false),
    ] {
        let text = first(path, verbs);
        assert_eq!(
            allows(&text, Mode::Compatible, "get /api/v1"),
            expected,
            "{text}"
        );
    }
    for (permissions, expected) in [
        (r#"{"/api/v1": ["get"]}"#, true),
        (r#"{"/api/v1": ["GET"]}"#, false),
        (r#"{"/api/*": ["get"]}"#, false),
        (r#"{"/api/v1": ["*"]}"#, true),
    ] {
        let text = second(permissions).replace("resource_", "nonresource_");
        assert_eq!(
            allows(&text, Mode::Compatible, "get /api/v1"),
            expected,
            "{text}"
        );
    }
}

#[test]
fn version_2_hides_version_1_of_the_same_kind_in_one_entry() {
    let text = r#"[{"resource": {"verbs": ["*"], "resources": ["*"], "version": "*", "namespace": "*"},
        "nonresource": {"verbs": ["get"], "path": "*"}, "resource_permissions": {}}]"#;
    assert!(!allows(text, Mode::Compatible, "get a pods"));
    assert!(allows(text, Mode::Compatible, "get /x"));
}

#[test]
fn strict_mode_knows_sub_resources_and_groups() {
    for (permissions, request, expected) in [
        (r#"{"a/pods": ["get"]}"#, "get a pods", true),
        // The documented read-only policy is no shell.
        (r#"{"a/pods": ["get"]}"#, "get a pods exec", false),
        (r#"{"a/pods/log": ["get"]}"#, "get a pods log", true),
        (r#"{"a/pods/log": ["get"]}"#, "get a pods", false),
        (r#"{"a/pods/*": ["get"]}"#, "get a pods log", true),
        (r#"{"a/pods/*": ["get"]}"#, "get a pods exec", false),
        (r#"{"a/pods/exec": ["create"]}"#, "create a pods exec", true),
        (
            r#"{"a/pods/exec": ["get", "create"]}"#,
            "get a pods exec",
            true,
        ),
        (r#"{"*/*": ["get", "list"]}"#, "get a pods exec", false),
        (r#"{"*/*": ["get", "list"]}"#, "get a pods log", true),
        (r#"{"*/*": ["*"]}"#, "get a pods exec", true),
        (r#"{"*/*": ["*"]}"#, "create - nodes", true),
        (r#"{"*/*/status": ["get"]}"#, "get a pods", false),
        (r#"{"*/['*']": ["get"]}"#, "get a pods log", true),
        (
            r#"{"a/apps:deployments": ["get"]}"#,
            "get a deployments - apps",
            true,
        ),
        (
            r#"{"a/apps:deployments": ["get"]}"#,
            "get a deployments - extensions",
            false,
        ),
        (r#"{"a/apps:*": ["get"]}"#, "get a deployments - apps", true),
        (
            r#"{"a/:pods": ["get"]}"#,
            "get a pods - metrics.k8s.io",
            false,
        ),
        (r#"{"a/:pods": ["get"]}"#, "get a pods", true),
        (
            r#"{"a/['pods', 'pods/log', 'apps:deployments/scale']": ["get"]}"#,
            "get a pods log",
            true,
        ),
        (
            r#"{"a/['pods', 'apps:deployments/scale']": ["get"]}"#,
            "get a deployments - apps",
            false,
        ),
        (
            r#"{"a/['pods', 'services']/status": ["get"]}"#,
            "get a pods status",
            true,
        ),
        (
            r#"{"a/['pods', 'services']/status": ["get"]}"#,
            "get a pods",
            false,
        ),
        (
            r#"{"a/!['secrets', 'apps:deployments']": ["get"]}"#,
            "get a pods",
            true,
        ),
        (
            r#"{"a/!['secrets', 'apps:deployments']": ["get"]}"#,
            "get a secrets",
            false,
        ),
        (r#"{"a/!secrets": ["get"]}"#, "get a pods log", false),
        (r#"{"a/!secrets": ["get"]}"#, "get a -", true),
        (r#"{"a/!['secrets']/log": ["get"]}"#, "get a pods log", true),
    ] {
        let text = second(permissions);
        assert_eq!(
            allows(&text, Mode::Strict, request),
            expected,
            "{permissions} {request}"
        );
    }
}

#[test]
fn strict_mode_refuses_what_the_go_program_ignores_and_says_where() {
    let entry =
        |users: &str, more: &str| format!("[{{\n{users}\"resource_permissions\": {more}}}]");
    let users = "\"users\": {\"roles\": [\"r\"], \"projects\": [\"p\"]},\n";
    let all = r#"{"*/*": ["*"]}"#;
    for (text, expected) in [
        (entry("", all), "line 1, column 2: without `users`"),
        (entry("\"users\": {\"roles\": [\"r\"]},\n", all), "without projects"),
        (entry("\"users\": {\"role\": [\"r\"], \"projects\": [\"p\"]},\n", all), "line 2, column 11: `users` has no `role`"),
        (entry("\"users\": {\"projects\": [\"$PROJECT_ID\"]},\n", all), "is not filled in"),
        (entry(users, r#"{"a/b": ["get"], "a/b": []}"#), "is there twice"),
        (entry(users, r#"{"a": ["get"]}"#), "line 3, column 26: `a` has no namespace"),
        (entry(users, r#"{"a/b/c/d": ["get"]}"#), "is no sub-resource"),
        (entry(users, r#"{"a/!*": ["get"]}"#), "admits nothing"),
        (entry(users, r#"{"a/!": ["get"]}"#), "is no resource"),
        (entry(users, r#"{"!/b": ["get"]}"#), "admits everything"),
        (entry(users, r#"{"a/['b'": ["get"]}"#), "is no list"),
        (entry(users, r#"{"['a/b": ["get"]}"#), "is no list"),
        (entry(users, r#"{"a/[]": ["get"]}"#), "is empty"),
        (entry(users, r#"{"a/['*', 'b']": ["get"]}"#), "nothing besides"),
        (entry(users, r#"{"a/!['b/c']": ["get"]}"#), "where none can be"),
        (entry(users, r#"{"a/b": []}"#), "a verb is missing"),
        (format!("[{{{users}\"Resource_permissions\": {all}}}]"), "is written `resource_permissions`"),
        (format!("[{{{users}\"permissions\": {all}}}]"), "has no key `permissions`"),
        (format!("[{{{users}\"users\": {{}}, \"resource_permissions\": {all}}}]"), "`users` is there twice"),
        ("[{}]".to_owned(), "has no permissions"),
        ("null".to_owned(), "there is no policy"),
        (r#"[{"resource": {"verbs": ["get"], "resources": ["a"], "namespace": "*"}, "match": [{"type": "user", "values": ["a"]}]}]"#.to_owned(), "permits nothing without `version`"),
        (r#"[{"resource": {"verbs": ["get"], "resources": ["a"], "version": "*", "namespace": "*"}}]"#.to_owned(), "without `match`"),
        (r#"[{"nonresource": {"verbs": ["get"]}, "match": [{"type": "users", "values": []}]}]"#.to_owned(), "`users` is no type"),
    ] {
        let errors = Policy::compile(&text, Mode::Strict).unwrap_err().to_string();
        assert!(errors.contains(expected), "{text}\n{errors}");
        // The Go program takes it.
        assert!(Policy::compile(&text, Mode::Compatible).is_ok(), "{text}");
    }
}

#[test]
fn what_permits_nothing_or_everybody_is_doubtful_where_it_is_taken() {
    for (text, expected) in [
        (second(r#"{"a/b/c": ["get"]}"#), "`a/b/c` permits nothing"),
        (second(r#"{"a/['b'": ["get"]}"#), "is no list such as"),
        (second(r#"{"a/!": ["get"]}"#), "admits everything"),
        (r#"[{"resource_permissions": {"*/*": ["*"]}}]"#.to_owned(), "for everybody"),
        (r#"[{"resource": {"verbs": ["get"], "resources": ["a"]}, "match": [{"type": "user", "values": ["a"]}]}]"#.to_owned(), "permits nothing without `version`"),
    ] {
        let doubts = Policy::compile(&text, Mode::Compatible).unwrap().doubts;
        assert!(doubts.iter().any(|it| it.message.contains(expected)), "{text}: {doubts:?}");
    }
    assert_eq!(
        Policy::compile(&second(r#"{"a/b": ["get"]}"#), Mode::Compatible)
            .unwrap()
            .doubts,
        []
    );
}

#[test]
fn what_the_go_program_refuses_or_crashes_on_is_refused_with_its_place() {
    for (text, expected) in [
        ("", "line 1, column 1: "),
        ("{}", "a policy is a list of entries, not an object"),
        (
            "[1]",
            "line 1, column 2: an entry is an object, not a number",
        ),
        ("[null]", "not null"),
        (
            "[\n{\"users\": []}]",
            "line 2, column 11: `users` wants an object, not a list",
        ),
        (
            "[{\"users\": {\"roles\": \"x\"}}]",
            "`roles` wants a list, not a string",
        ),
        (
            "[{\"users\": {\"roles\": [1]}}]",
            "`roles` wants a string, not a number",
        ),
        ("[{\"match\": {}}]", "`match` wants a list"),
        ("[{\"match\": [[]]}]", "an element of `match` is an object"),
        (
            "[{\"resource\": \"x\"}]",
            "`resource` is an object, not a string",
        ),
        (
            "[{\"resource\": {\"verbs\": true}}]",
            "`verbs` wants a list, not a truth value",
        ),
        (
            "[{\"resource\": {\"version\": 1}}]",
            "`version` wants a string",
        ),
        (
            "[{\"nonresource\": {\"path\": []}}]",
            "`path` wants a string",
        ),
        (
            "[{\"resource_permissions\": {\"a/b\": \"get\"}}]",
            "`a/b` wants a list",
        ),
        ("[] x", "after the end"),
    ] {
        let errors = Policy::compile(text, Mode::Compatible)
            .unwrap_err()
            .to_string();
        assert!(errors.contains(expected), "{text}: {errors}");
    }
    let large = format!("[{}]", " ".repeat(LARGEST));
    let error = Policy::compile(&large, Mode::Compatible).unwrap_err();
    assert!(error.to_string().contains("at most 4 MiB"));
    let many = format!("[{}0]", "1,".repeat(100_000));
    let error = Policy::compile(&many, Mode::Compatible)
        .unwrap_err()
        .to_string();
    assert!(error.len() < 4000 && error.ends_with("more"), "{error}");
}

#[test]
fn an_explanation_has_each_rule_and_says_why_not() {
    let text = "[{\"users\": {\"roles\": [\"x\"], \"projects\": [\"demo\"]}, \"resource_permissions\": {\"*/*\": [\"*\"]}},\n \
                {\"users\": {\"projects\": [\"demo\"]}, \"resource_permissions\": {\"a/pods\": [\"get\"], \"b/pods\": [\"get\"]}}]";
    let policy = compiled(text, Mode::Compatible);
    let (alice, request) = (subject("alice", &["dev"], "demo", &[]), asked("get a pods"));
    let explained: Vec<_> = explain(&policy, &alice, &request).collect();
    let misses: Vec<_> = explained
        .iter()
        .map(|it| (it.entry, it.place.line, it.miss))
        .collect();
    assert_eq!(
        misses,
        [
            (1, 1, Some("the user lacks a role")),
            (2, 2, None),
            (2, 2, Some("another namespace"))
        ]
    );
    let decision = decide(&policy, &alice, &request);
    assert_eq!(decision.reason, "entry 2 of the policy: a/pods: get");
    assert_eq!(policy.entries(), 2);
}

const NAMES: [&str; 5] = ["a", "b", "pods", "kube-system", ""];
const HALVES: [&str; 14] = [
    "a",
    "B",
    "pods",
    "*",
    "!a",
    "!",
    "!*",
    "['a', 'pods']",
    "!['a', 'b']",
    "['*']",
    "[]",
    "['a'",
    " a ",
    "!['*']",
];

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(words).prop_map(str::to_owned)
}

fn list(words: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(one_of(words), 0..3)
}

fn entries() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Value, json};
    const VERBS: [&str; 4] = ["get", "*", "LIST", ""];
    const USERS: [&str; 4] = ["a", "b", "*", "id-of-a"];
    let key = (one_of(&HALVES), one_of(&HALVES)).prop_map(|(a, b)| format!("{a}/{b}"));
    let keys = prop_oneof![9 => key, 1 => one_of(&["a", "a/b/c"])];
    let permissions = proptest::collection::hash_map(keys, list(&VERBS), 0..3);
    let paths = proptest::collection::hash_map(one_of(&["/a", "/a/*", "*"]), list(&VERBS), 0..3);
    let users =
        (list(&USERS), list(&USERS), 0..4u8).prop_map(|(roles, projects, which)| match which {
            0 => json!({"roles": roles}),
            1 => json!({"projects": projects}),
            _ => json!({"roles": roles, "projects": projects}),
        });
    let kinds = one_of(&["user", "group", "project", "role", "none"]);
    let matches = proptest::collection::vec((kinds, list(&USERS)), 0..3);
    let matches = matches.prop_map(|all| {
        let all = all
            .into_iter()
            .map(|(kind, values)| json!({"type": kind, "values": values}));
        all.collect::<Vec<_>>()
    });
    let resources = list(&["a", "pods", "*", "pods/*", "pods/b", "a/b"]);
    let resource = (
        list(&VERBS),
        resources,
        one_of(&["*", "", "b"]),
        one_of(&["*", "", "a"]),
    );
    let resource = resource.prop_map(|(verbs, resources, version, namespace)| {
        json!({"verbs": verbs, "resources": resources, "version": version, "namespace": namespace})
    });
    let path = (list(&VERBS), one_of(&["/a", "/a/*", "*", ""]))
        .prop_map(|(verbs, path)| json!({"verbs": verbs, "path": path}));
    let some = proptest::option::of::<BoxedStrategy<Value>>;
    let parts = (
        some(users.boxed()),
        some(permissions.prop_map(|it| json!(it)).boxed()),
        some(paths.prop_map(|it| json!(it)).boxed()),
        some(matches.prop_map(|it| json!(it)).boxed()),
        some(resource.boxed()),
        some(path.boxed()),
    );
    parts.prop_map(|parts| {
        let parts = [
            ("users", parts.0),
            ("resource_permissions", parts.1),
            ("nonresource_permissions", parts.2),
            ("match", parts.3),
            ("resource", parts.4),
            ("nonresource", parts.5),
        ];
        let parts = parts
            .into_iter()
            .filter_map(|(name, part)| Some((name.to_owned(), part?)));
        parts.collect()
    })
}

fn subjects() -> impl Strategy<Value = Subject> {
    let names = (
        one_of(&["a", "b"]),
        list(&["a", "b"]),
        one_of(&["a", "b"]),
        list(&["a", "b"]),
    );
    let known = names.prop_map(|(name, roles, project, groups)| {
        let words = |words: &[String]| words.to_vec();
        let mut subject = subject(&name, &[], &project, &[]);
        subject.groups = words(&groups);
        subject
            .extra
            .get_or_insert_default()
            .insert(ROLES_KEY.to_owned(), words(&roles));
        subject
    });
    let strangers = proptest::sample::select(vec![None, Some(HashMap::new())]);
    let strangers = strangers.prop_map(|extra| Subject {
        name: "a".to_owned(),
        extra,
        ..Subject::default()
    });
    prop_oneof![9 => known, 1 => strangers]
}

fn requests() -> impl Strategy<Value = Attributes> {
    let verbs = || one_of(&["get", "list", "delete", ""]);
    let parts = (
        verbs(),
        one_of(&NAMES),
        one_of(&NAMES),
        one_of(&["", "b", "exec"]),
        one_of(&["", "b"]),
    );
    let resource = parts.prop_map(|(verb, namespace, resource, subresource, group)| {
        Attributes::Resource(ResourceAttributes {
            verb,
            namespace,
            resource,
            subresource,
            group,
            ..ResourceAttributes::default()
        })
    });
    let path = (verbs(), one_of(&["/a", "/a/b", "/b", ""]));
    let path = path.prop_map(|(verb, path)| Attributes::Path { verb, path });
    prop_oneof![4 => resource, 1 => path]
}

proptest! {
    /// The tests have a second copy of the reference, which goes through one entry after the other like the Go
    /// program. The Go program itself is compared by `tests/keystone/side-by-side`. 10 000 cases:
    /// `PROPTEST_CASES=10000 cargo test -p ferrostack-keystone-auth --lib decisions_are_those`.
    #[test]
    fn decisions_are_those_of_the_rules_as_the_reference_states_them(
        entries in proptest::collection::vec(entries(), 0..8),
        subject in subjects(),
        requests in proptest::collection::vec(requests(), 1..8),
    ) {
        let document = serde_json::Value::from(entries);
        let policy = compiled(&document.to_string(), Mode::Compatible);
        for request in requests {
            let expected = go::allows(&document, &subject, &request);
            let decision = decide(&policy, &subject, &request);
            prop_assert_eq!(decision.allowed, expected, "{} {:?} {:?}", document, subject, request);
            if subject.extra.is_some() {
                let mut explained = explain(&policy, &subject, &request);
                prop_assert_eq!(explained.any(|it| it.miss.is_none()), expected);
            }
        }
    }

    /// Strict mode never permits more than the compatible one, except for sub-resources and groups, which are new.
    #[test]
    fn strict_mode_permits_nothing_more(
        entries in proptest::collection::vec(entries(), 1..3),
        subject in subjects(),
        request in requests(),
    ) {
        let text = serde_json::Value::from(entries).to_string();
        if let Ok(strict) = Policy::compile(&text, Mode::Strict)
            && decide(&strict.policy, &subject, &request).allowed
        {
            let compatible = compiled(&text, Mode::Compatible);
            prop_assert!(decide(&compatible, &subject, &request).allowed, "{}", text);
        }
    }

    #[test]
    fn no_text_makes_the_compiler_panic(text in "[\\[\\]{}:,\"'!*/a-z ]{0,60}", keys in proptest::collection::vec(".{0,12}", 0..4)) {
        for mode in [Mode::Compatible, Mode::Strict] {
            let _ = Policy::compile(&text, mode);
            let permissions: serde_json::Map<_, _> = keys.iter().map(|key| (key.clone(), serde_json::json!(["get"]))).collect();
            let document = serde_json::json!([{"users": {"projects": ["p"]}, "resource_permissions": permissions}]);
            if let Ok(compiled) = Policy::compile(&document.to_string(), mode) {
                decide(&compiled.policy, &subject("a", &[], "p", &[]), &asked("get a b c"));
            }
        }
    }
}

/// The aim for release code on an idle machine is 20 µs; the limit here is a hundred times as much.
#[test]
fn a_large_policy_is_not_looked_through() {
    let entry = |index: usize| {
        format!(
            r#"{{"users": {{"roles": ["r{}"], "projects": ["p{}"]}}, "resource_permissions": {{"n{}/['pods', 'r{index}']": ["get"]}}}}"#,
            index % 7,
            index % 50,
            index % 300
        )
    };
    let all: Vec<String> = (0..2000).map(entry).collect();
    let policy = compiled(&format!("[{}]", all.join(",")), Mode::Compatible);
    let user = subject("alice", &["r3"], "p17", &[]);
    let request = asked("get n17 pods");
    let looked_at = policy.resources.candidates(&user, &request).count();
    assert!(looked_at <= 10, "{looked_at}");
    let begun = Instant::now();
    for _ in 0..1000 {
        std::hint::black_box(decide(&policy, &user, &request));
    }
    assert!(begun.elapsed().as_secs() < 2, "{:?}", begun.elapsed());
}
