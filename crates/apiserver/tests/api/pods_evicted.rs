//! Evictions, within the limits of PodDisruptionBudgets.

use apiserver::ApiServer;
use serde_json::{Value, json};

use crate::support::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A pod of the application `web` on a node.
async fn pod(server: &ApiServer, name: &str, phase: &str, ready: bool) {
    let object = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    let (code, answer) = post(server, PODS, &object).await;
    assert_eq!(code, 201, "{answer}");
    let word = if ready { "True" } else { "False" };
    let status =
        json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": word}]}});
    let path = format!("{PODS}/{name}/status");
    assert_eq!(patch(server, &path, MERGE, &status).await.0, 200);
}

/// A budget of the application `web`.
async fn budget(server: &ApiServer, name: &str, spec: Value, status: Value) {
    let mut object = json!({
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    let (code, answer) = post(server, BUDGETS, &object).await;
    assert_eq!(code, 201, "{answer}");
    let mut whole = json!({
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1,
        "expectedPods": 1,
    });
    for (field, value) in status.as_object().unwrap() {
        whole[field] = value.clone();
    }
    let path = format!("{BUDGETS}/{name}/status");
    let (code, answer) = patch(server, &path, MERGE, &json!({"status": whole})).await;
    assert_eq!(code, 200, "{answer}");
}

async fn evict(server: &ApiServer, name: &str, options: Value) -> (u16, Value) {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
        "deleteOptions": options,
    });
    post(server, &format!("{PODS}/{name}/eviction"), &eviction).await
}

async fn is_deleting(server: &ApiServer, name: &str) -> bool {
    let (code, pod) = get(server, &format!("{PODS}/{name}")).await;
    code == 404 || !pod["metadata"]["deletionTimestamp"].is_null()
}

#[tokio::test]
async fn a_spent_budget_refuses_and_one_that_is_not_is_spent() {
    let server = server().await;
    pod(&server, "a", "Running", true).await;
    pod(&server, "b", "Running", true).await;
    budget(
        &server,
        "web",
        json!({}),
        json!({"disruptionsAllowed": 1, "currentHealthy": 2}),
    )
    .await;

    let (code, answer) = evict(&server, "a", Value::Null).await;
    assert_eq!(
        (code, &answer["status"]),
        (201, &json!("Success")),
        "{answer}"
    );
    let (_, evicted) = get(&server, &format!("{PODS}/a")).await;
    assert_eq!(evicted["metadata"]["deletionGracePeriodSeconds"], 30);
    let conditions = evicted["status"]["conditions"].as_array().unwrap();
    let why = conditions
        .iter()
        .find(|condition| condition["type"] == "DisruptionTarget");
    let why = why.unwrap();
    assert_eq!(
        (&why["status"], &why["reason"], &why["message"]),
        (
            &json!("True"),
            &json!("EvictionByEvictionAPI"),
            &json!("Eviction API: evicting")
        )
    );
    let (_, budget) = get(&server, &format!("{BUDGETS}/web")).await;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(
        budget["status"]["disruptedPods"]["a"].is_string(),
        "{budget}"
    );
    let condition = &budget["status"]["conditions"][0];
    assert_eq!(
        (
            &condition["type"],
            &condition["status"],
            &condition["reason"]
        ),
        (
            &json!("DisruptionAllowed"),
            &json!("False"),
            &json!("InsufficientPods")
        )
    );

    let (code, status) = evict(&server, "b", Value::Null).await;
    assert_eq!((code, &status["reason"]), (429, &json!("TooManyRequests")));
    assert_eq!(
        status["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["reason"], "DisruptionBudget");
    assert_eq!(
        cause["message"],
        "The disruption budget web needs 1 healthy pods and has 2 currently"
    );
    assert!(!is_deleting(&server, "b").await);
}

#[tokio::test]
async fn a_budget_that_is_not_up_to_date_asks_to_come_again() {
    let server = server().await;
    pod(&server, "a", "Running", true).await;
    budget(
        &server,
        "web",
        json!({}),
        json!({"observedGeneration": 0, "disruptionsAllowed": 5}),
    )
    .await;
    let (code, status) = evict(&server, "a", Value::Null).await;
    assert_eq!(code, 429);
    assert_eq!(status["details"]["retryAfterSeconds"], 10);
    assert_eq!(
        status["details"]["causes"][0]["message"],
        "The disruption budget web is still being processed by the server."
    );
}

#[tokio::test]
async fn two_budgets_of_one_pod_are_an_error() {
    let server = server().await;
    pod(&server, "a", "Running", true).await;
    for name in ["one", "two"] {
        budget(&server, name, json!({}), json!({"disruptionsAllowed": 1})).await;
    }
    let (code, status) = evict(&server, "a", Value::Null).await;
    assert_eq!(code, 500);
    assert_eq!(
        status["message"],
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    );
    for name in ["one", "two"] {
        let (_, budget) = get(&server, &format!("{BUDGETS}/{name}")).await;
        assert_eq!(
            budget["status"]["disruptionsAllowed"], 1,
            "nothing is spent"
        );
    }
}

#[tokio::test]
async fn pods_that_do_not_count_go_whatever_the_budget_says() {
    let server = server().await;
    budget(&server, "web", json!({}), json!({})).await;
    for phase in ["Pending", "Succeeded", "Failed"] {
        let name = phase.to_lowercase();
        pod(&server, &name, phase, false).await;
        let (code, answer) = evict(&server, &name, Value::Null).await;
        assert_eq!(code, 201, "{phase}: {answer}");
        assert!(is_deleting(&server, &name).await, "{phase}");
    }
    // One that runs and is not ready goes when enough others are.
    pod(&server, "unready", "Running", false).await;
    assert_eq!(evict(&server, "unready", Value::Null).await.0, 201);
    // One that is going already is told so again.
    assert_eq!(evict(&server, "unready", Value::Null).await.0, 201);
}

#[tokio::test]
async fn a_pod_that_is_not_ready_counts_when_others_are_missing_unless_the_budget_says_otherwise() {
    let server = server().await;
    pod(&server, "a", "Running", false).await;
    budget(&server, "web", json!({}), json!({"currentHealthy": 0})).await;
    assert_eq!(evict(&server, "a", Value::Null).await.0, 429);
    let policy = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    let path = format!("{BUDGETS}/web");
    assert_eq!(patch(&server, &path, MERGE, &policy).await.0, 200);
    assert_eq!(evict(&server, "a", Value::Null).await.0, 201);
}

#[tokio::test]
async fn a_dry_run_asks_the_budget_and_changes_nothing() {
    let server = server().await;
    pod(&server, "a", "Running", true).await;
    budget(&server, "web", json!({}), json!({"disruptionsAllowed": 1})).await;
    let (code, answer) = evict(&server, "a", json!({"dryRun": ["All"]})).await;
    assert_eq!(code, 201, "{answer}");
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
    let path = format!("{PODS}/a/eviction?dryRun=All");
    assert_eq!(post(&server, &path, &eviction).await.0, 201);
    let unknown = json!({"dryRun": ["x"]});
    let (code, status) = evict(&server, "a", unknown.clone()).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"x\"]: supported values: \"All\""
    );
    let mut both = eviction.clone();
    both["deleteOptions"] = unknown;
    let (code, status) = post(&server, &path, &both).await;
    assert_eq!(code, 500);
    assert_eq!(
        status["message"],
        "Non-matching dry-run options in request and content: [All] and [x]"
    );
    assert!(!is_deleting(&server, "a").await);
    let (_, found) = get(&server, &format!("{BUDGETS}/web")).await;
    assert_eq!(found["status"]["disruptionsAllowed"], 1);
    assert_eq!(found["status"]["disruptedPods"], Value::Null);
    let spent = json!({"status": {"disruptionsAllowed": 0}});
    let status = format!("{BUDGETS}/web/status");
    assert_eq!(patch(&server, &status, MERGE, &spent).await.0, 200);
    assert_eq!(post(&server, &path, &eviction).await.0, 429);
}

#[tokio::test]
async fn preconditions_and_names_must_fit() {
    let server = server().await;
    pod(&server, "a", "Running", true).await;
    let (code, status) = evict(&server, "a", json!({"preconditions": {"uid": "other"}})).await;
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    let words = "Operation cannot be fulfilled on Pod \"a\": the UID in the precondition (other) does not match the UID in record (";
    assert!(
        status["message"].as_str().unwrap().starts_with(words),
        "{status}"
    );
    let old = json!({"preconditions": {"resourceVersion": "1"}});
    assert_eq!(evict(&server, "a", old).await.0, 409);
    let (_, now) = get(&server, &format!("{PODS}/a")).await;
    assert!(now["metadata"]["deletionTimestamp"].is_null());
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}});
    let (code, status) = post(&server, &format!("{PODS}/a/eviction"), &eviction).await;
    assert_eq!(code, 400);
    assert_eq!(
        status["message"],
        "name in URL does not match name in Eviction object"
    );
    let revision = now["metadata"]["resourceVersion"].clone();
    let current = json!({"preconditions": {"resourceVersion": revision}, "gracePeriodSeconds": 0});
    assert_eq!(evict(&server, "a", current).await.0, 201);
    assert_eq!(get(&server, &format!("{PODS}/a")).await.0, 404);
}
