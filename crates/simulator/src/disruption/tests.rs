use super::*;

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn pod(name: &str, owner: Option<&str>, ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    let owners: Vec<_> = owner
        .iter()
        .map(|uid| json!({"uid": uid, "controller": true}))
        .collect();
    json!({
        "metadata": {"name": name, "labels": {"app": "web"}, "ownerReferences": owners},
        "status": {"conditions": [{"type": "Ready", "status": status}]},
    })
}

/// The ReplicaSets `rs` of a Deployment of four, and `alone`, of three.
fn controllers() -> Scales {
    let set = |uid: &str, replicas: u64, owner: Option<&str>| {
        let owners: Vec<_> = owner
            .iter()
            .map(|uid| json!({"uid": uid, "controller": true}))
            .collect();
        json!({"metadata": {"uid": uid, "ownerReferences": owners}, "spec": {"replicas": replicas}})
    };
    let deployments = [set("deployment", 4, None)];
    let sets = [
        set("rs", 3, Some("deployment")),
        set("old", 1, Some("deployment")),
        set("alone", 3, None),
    ];
    let stateful = [set("stateful", 5, None)];
    scales_of(&deployments, &sets, stateful.iter())
}

fn budget(spec: Value, status: Value) -> Value {
    let mut budget = json!({
        "metadata": {"name": "b", "generation": 2},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": status,
    });
    for (field, value) in spec.as_object().unwrap() {
        budget["spec"][field] = value.clone();
    }
    budget
}

/// `(currentHealthy, desiredHealthy, expectedPods, disruptionsAllowed)`.
fn counted(outcome: &Outcome) -> [u64; 4] {
    [
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
        "disruptionsAllowed",
    ]
    .map(|field| outcome.status[field].as_u64().unwrap())
}

#[test]
fn a_budget_counts_healthy_pods_against_those_that_their_controllers_want() {
    let of = |owner: Option<&str>, ready: usize, not_ready: usize| -> Vec<Value> {
        (0..ready + not_ready)
            .map(|at| pod(&format!("p{at}"), owner, at < ready))
            .collect()
    };
    let mixed = [
        pod("a", Some("rs"), true),
        pod("b", Some("old"), true),
        pod("c", Some("alone"), true),
        pod("d", Some("stateful"), true),
    ];
    let cases: [(Value, Vec<Value>, [u64; 4]); 13] = [
        (
            json!({"minAvailable": 2}),
            of(Some("rs"), 3, 0),
            [3, 2, 3, 1],
        ),
        (
            json!({"minAvailable": 2}),
            of(Some("rs"), 2, 1),
            [2, 2, 3, 0],
        ),
        // An absolute number needs no controllers.
        (json!({"minAvailable": 1}), of(None, 2, 0), [2, 1, 2, 1]),
        (json!({"minAvailable": 0}), of(None, 2, 0), [2, 0, 2, 2]),
        // Percentages are those of the controllers' numbers, rounded up.
        (
            json!({"minAvailable": "50%"}),
            of(Some("alone"), 3, 0),
            [3, 2, 3, 1],
        ),
        (
            json!({"minAvailable": "100%"}),
            of(Some("alone"), 3, 0),
            [3, 3, 3, 0],
        ),
        (
            json!({"maxUnavailable": 1}),
            of(Some("rs"), 4, 0),
            [4, 3, 4, 1],
        ),
        (
            json!({"maxUnavailable": 1}),
            of(Some("rs"), 3, 1),
            [3, 3, 4, 0],
        ),
        (
            json!({"maxUnavailable": "30%"}),
            of(Some("rs"), 4, 0),
            [4, 2, 4, 2],
        ),
        (
            json!({"maxUnavailable": 9}),
            of(Some("rs"), 1, 0),
            [1, 0, 4, 1],
        ),
        // Two ReplicaSets of a Deployment count once: 4 + 3 + 5.
        (json!({"maxUnavailable": 9}), mixed.to_vec(), [4, 3, 12, 1]),
        // Without pods nothing is allowed, and without numbers neither.
        (json!({"maxUnavailable": 1}), Vec::new(), [0, 0, 0, 0]),
        (json!({}), of(Some("rs"), 3, 0), [3, 0, 0, 0]),
    ];
    for (spec, pods, expected) in cases {
        let outcome = status(
            &budget(spec.clone(), json!({})),
            &pods,
            &controllers(),
            now(),
        );
        assert_eq!(counted(&outcome), expected, "{spec}");
        assert_eq!(outcome.status["observedGeneration"], 2);
        let (status, reason) = match expected[3] {
            0 => ("False", "InsufficientPods"),
            _ => ("True", "SufficientPods"),
        };
        let condition = &outcome.status["conditions"][0];
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!(status), &json!(reason))
        );
    }
}

#[test]
fn pods_that_leave_or_were_evicted_are_not_healthy() {
    let mut leaving = pod("leaving", Some("rs"), true);
    leaving["metadata"]["deletionTimestamp"] = NOW.into();
    let pods = [
        pod("a", Some("rs"), true),
        pod("evicted", Some("rs"), true),
        pod("stays", Some("rs"), true),
        leaving,
    ];
    let before = json!({"disruptedPods": {
        "evicted": "2026-01-01T11:59:00Z", "stays": "2026-01-01T11:57:59Z",
        "leaving": "2026-01-01T11:59:00Z", "gone": "2026-01-01T11:59:00Z",
    }});
    let outcome = status(
        &budget(json!({"minAvailable": 1}), before.clone()),
        &pods,
        &controllers(),
        now(),
    );
    assert_eq!(counted(&outcome), [2, 1, 4, 1]);
    assert_eq!(
        outcome.status["disruptedPods"],
        json!({"evicted": "2026-01-01T11:59:00Z"})
    );
    assert_eq!(outcome.again, Some("2026-01-01T12:01:00Z".parse().unwrap()));
    let patch = replacing(&before, outcome.status);
    assert_eq!(
        patch["disruptedPods"],
        json!({"evicted": "2026-01-01T11:59:00Z", "gone": null, "leaving": null, "stays": null})
    );
}

#[test]
fn pods_whose_controller_is_not_found_allow_no_disruption() {
    let pods = [pod("a", Some("rs"), true), pod("b", Some("unknown"), true)];
    let before = json!({"disruptionsAllowed": 3, "currentHealthy": 5});
    let outcome = status(
        &budget(json!({"maxUnavailable": 1}), before),
        &pods,
        &controllers(),
        now(),
    );
    assert_eq!(outcome.status["disruptionsAllowed"], 0);
    let condition = &outcome.status["conditions"][0];
    assert_eq!(condition["reason"], "SyncFailed");
    assert_eq!(condition["message"], "found no controllers for pod \"b\"");
}

#[test]
fn a_status_that_has_been_written_is_not_written_again() {
    let pods = [pod("a", Some("alone"), true)];
    let spec = json!({"maxUnavailable": 3});
    let first = status(
        &budget(spec.clone(), json!({})),
        &pods,
        &controllers(),
        now(),
    );
    let later = "2026-01-01T13:00:00Z".parse().unwrap();
    let second = status(
        &budget(spec.clone(), first.status.clone()),
        &pods,
        &controllers(),
        later,
    );
    assert_eq!(second, first);
    // The time is that of the last change of the condition's status.
    let none: [Value; 0] = [];
    let third = status(&budget(spec, first.status), &none, &controllers(), later);
    assert_eq!(
        third.status["conditions"][0]["lastTransitionTime"],
        "2026-01-01T13:00:00Z"
    );
}

#[test]
fn an_empty_selector_selects_all_pods_and_none_selects_nothing() {
    let pods = [pod("a", None, true)];
    let mut all = budget(json!({"minAvailable": 0}), json!({}));
    all["spec"]["selector"] = json!({});
    assert_eq!(
        counted(&status(&all, &pods, &controllers(), now())),
        [1, 0, 1, 1]
    );
    all["spec"]["selector"] = Value::Null;
    assert_eq!(
        counted(&status(&all, &pods, &controllers(), now())),
        [0, 0, 0, 0]
    );
}
