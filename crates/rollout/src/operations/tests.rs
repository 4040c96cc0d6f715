use serde_json::{Value, json};

use super::*;

fn object(name: &str, created: &str, status: &Value) -> Value {
    json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStackOperation",
        "metadata": {"name": name, "namespace": "openstack", "creationTimestamp": created},
        "spec": {"openstack": "cloud", "backup": {}}, "status": status})
}

fn seen(operations: Vec<Value>) -> Seen {
    Seen {
        budgets: Vec::new(),
        nodes: None,
        objects: vec![],
        operations,
        pods: vec![],
    }
}

#[test]
fn the_oldest_is_next_and_what_has_begun_goes_on() {
    let done = json!({"phase": "Succeeded"});
    let mut other = object("of-another", "2026-11-28T00:00:00Z", &json!({}));
    other["spec"]["openstack"] = "another".into();
    let mut all = vec![
        object("b", "2026-11-29T00:00:01Z", &json!({})),
        object("done", "2026-11-28T00:00:00Z", &done),
        object("a", "2026-11-29T00:00:00Z", &json!({"phase": "Pending"})),
        other,
    ];
    let names = |all: &[Value]| {
        let found = unfinished(&seen(all.to_vec()), "cloud").into_iter();
        found.map(|it| it.name_any()).collect::<Vec<_>>()
    };
    assert_eq!(names(&all), ["a", "b"]);
    all[0]["status"] = json!({"phase": "Running", "steps": [{"name": "Backup"}]});
    assert_eq!(names(&all), ["b", "a"]);
}

#[test]
fn the_last_backup_is_the_newest_that_was_made() {
    let written = |name: &str, started: &str| {
        let status = json!({"phase": "Succeeded", "backup": name, "started": started});
        object(name, started, &status)
    };
    let failed = json!({"phase": "Failed", "started": "2026-11-30T00:00:00Z"});
    let all = vec![
        written("first", "2026-11-28T00:00:00Z"),
        written("second", "2026-11-29T00:00:00Z"),
        object("failed", "2026-11-30T00:00:00Z", &failed),
    ];
    let last = last_backup(&seen(all), "cloud").unwrap();
    assert_eq!(
        last,
        ("second".to_owned(), "2026-11-29T00:00:00Z".to_owned())
    );
    assert_eq!(last_backup(&seen(vec![]), "cloud"), None);
}

#[test]
fn steps_that_were_passed_have_seconds_and_a_failure_is_final() {
    let before = object("a", "2026-11-29T00:00:00Z", &json!({}));
    let mut before: OpenStackOperation = serde_json::from_value(before).unwrap();
    let at = |second: i64| Timestamp::from_second(second).unwrap();
    let stand = |phase, end| Stand {
        phase,
        end,
        message: String::new(),
        report: None,
    };
    before.status = Some(after_look(&before, &stand(Phase::Check, None), at(100)));
    let status = after_look(&before, &stand(Phase::Load, None), at(107));
    let of = |status: &OpenStackOperationStatus| {
        let steps = status.steps.iter();
        steps
            .map(|it| (it.name.clone(), it.seconds))
            .collect::<Vec<_>>()
    };
    let named = |name: &str, seconds| (name.to_owned(), seconds);
    assert_eq!(
        of(&status),
        [
            named("Check", Some(7)),
            named("Stop", Some(0)),
            named("Load", None)
        ]
    );
    before.status = Some(status);
    let long = "x".repeat(3 * LONGEST);
    let failed = after_look(&before, &stand(Phase::Load, Some(Err(long))), at(110));
    assert!(failed.is_over() && failed.message.len() == LONGEST);
    assert_eq!(of(&failed)[2], named("Load", Some(3)));
    assert_eq!(failed.backup, None);
    let waits = waiting(&before, "another comes before it");
    assert_eq!(waits.phase.as_deref(), Some(RUNNING));
    assert_eq!(waits.message, "another comes before it");
}
