use deployer::Reason;
use serde_json::json;

use super::*;

fn cause(of: &str, waiting: &[&str]) -> Cause {
    Cause {
        reason: Reason::TaskFailed,
        of: of.to_owned(),
        problem: "fails".to_owned(),
        since: Some("2026-01-01T00:00:00Z".to_owned()),
        detail: Some("(1045) Access denied".to_owned()),
        advice: None,
        waiting: waiting.iter().map(|it| (*it).to_owned()).collect(),
    }
}

fn line(object: &str, cause: Cause) -> String {
    let why = Why {
        object: object.to_owned(),
        causes: vec![cause],
    };
    text(&why, "2026-01-01T00:00:40Z".parse().unwrap())
}

#[test]
fn the_words_of_a_container_are_on_the_line_of_their_cause() {
    let mut cause = cause("nova-api", &["nova-api"]);
    cause.detail = Some("x\u{1b}[2J\nALL READY".to_owned());
    assert_eq!(
        line("the cloud", cause),
        "nova-api has been failing for 40 s: x\\u{1b}[2J\\nALL READY\n"
    );
}

#[test]
fn a_cause_is_one_sentence() {
    let task = || cause("task nova-schema-3f2a", &["nova-schema", "nova-conductor"]);
    assert_eq!(
        line("nova-conductor", task()),
        "nova-conductor waits for task nova-schema-3f2a, which has been failing for 40 s: (1045) Access denied\n"
    );
    assert_eq!(
        line("nova-schema", task()),
        "task nova-schema-3f2a has been failing for 40 s: (1045) Access denied\n"
    );
    assert_eq!(
        line("the cloud", task()),
        "task nova-schema-3f2a has been failing for 40 s: (1045) Access denied\n    nova-schema and nova-conductor wait for it\n"
    );
    let many = ["a", "b", "c", "d", "e", "f", "g"];
    let mut other = cause("a", &many);
    other.detail = None;
    other.advice = Some("do this".to_owned());
    assert_eq!(
        line("the cloud", other.clone()),
        "a has been failing for 40 s (do this)\n    b, c and 4 more steps wait for it\n"
    );
    assert_eq!(line("a", other), "a has been failing for 40 s (do this)\n");
    let why = Why {
        object: "nova-api".to_owned(),
        causes: vec![],
    };
    assert_eq!(text(&why, Timestamp::now()), "nova-api is ready\n");
}

#[test]
fn in_an_upgrade_the_steps_are_those_of_its_phase() {
    let of = |release: &str, phase: Option<&str>| {
        let document = json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack",
            "metadata": {"name": "cloud", "namespace": "openstack"}, "spec": {"release": release}});
        let (parameters, _) = Parameters::read(&document).unwrap();
        let cloud = Cloud::new(&document, parameters).unwrap();
        let held = Credentials::complete("cloud", &[], || 0);
        let status = json!({"release": {"current": "2025.1", "from": "2025.1", "to": "2026.1", "phase": phase}});
        let status: OpenStackStatus = serde_json::from_value(status).unwrap();
        let turn = stage(&cloud, &document, &held, &status, (&[], &[]))?;
        let names = turn.graph.steps.iter().map(|it| it.name.clone());
        Some(names.collect::<Vec<String>>())
    };
    let has = |names: &[String], name: &str| names.iter().any(|it| it == name);
    let expand = of("2026.1", Some("Expand")).unwrap();
    assert!(
        has(&expand, "nova-expand") && !has(&expand, "nova-schema"),
        "{expand:?}"
    );
    // Of the checks alone, by the annotation, the release of the cloud is the old one.
    for release in ["2025.1", "2026.1"] {
        let check = of(release, Some("Check")).unwrap();
        assert!(
            has(&check, "nova-check") && has(&check, "nova-schema"),
            "{check:?}"
        );
    }
    assert_eq!(of("2026.1", None), None);
}
