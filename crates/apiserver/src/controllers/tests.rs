use http::Request;
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::Collector;
use crate::{ApiServer, Options};

async fn post(server: &ApiServer, path: &str, object: &Value) {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(Full::from(object.to_string()))
        .unwrap();
    let answer = server.in_process().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 201);
}

#[tokio::test]
async fn events_of_both_groups_are_deleted_an_hour_after_their_last_occurrence() {
    let server = ApiServer::open(Options::default()).await.unwrap();
    let now = Timestamp::now();
    let after = |minutes: i64| now + SignedDuration::from_mins(minutes);
    let object = json!({"kind": "Pod", "namespace": "default", "name": "p"});
    for (name, last) in [("old", after(0)), ("seen", after(30))] {
        let event = json!({
            "metadata": {"name": format!("core-{name}")}, "involvedObject": object,
            "firstTimestamp": "2001-01-01T00:00:00Z", "lastTimestamp": apimachinery::time::seconds(last),
        });
        post(&server, "/api/v1/namespaces/default/events", &event).await;
        let event = json!({
            "metadata": {"name": format!("new-{name}")}, "regarding": object, "type": "Normal",
            "eventTime": "2001-01-01T00:00:00.000000Z", "action": "A", "reason": "R",
            "reportingController": "example.org/c", "reportingInstance": "c-0",
            "series": {"count": 2, "lastObservedTime": last.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()},
        });
        post(
            &server,
            "/apis/events.k8s.io/v1/namespaces/default/events",
            &event,
        )
        .await;
    }
    let left = || -> Vec<String> {
        let state = server.core().store.read();
        let all = state.range("/events", "", None);
        all.map(|event| event.name().to_owned()).collect()
    };
    let core = server.core();
    Collector { core }.old_events(after(59)).await;
    assert_eq!(left().len(), 4);
    Collector { core }.old_events(after(61)).await;
    assert_eq!(left(), ["core-seen", "new-seen"]);
    Collector { core }.old_events(after(91)).await;
    assert_eq!(left(), Vec::<String>::new());
}
