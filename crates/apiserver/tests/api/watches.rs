//! Watches: nothing missed, nothing twice.

use std::time::Duration;

use apiserver::{ApiServer, Body, Options};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::support::*;

/// The lines of a watch stream.
struct Watch {
    body: Body,
    buffer: Vec<u8>,
}

impl Watch {
    async fn open(server: &ApiServer, path: &str) -> Self {
        let response = send(server, Method::GET, path, &[], "").await;
        assert_eq!(response.status(), 200);
        Self {
            body: response.into_body(),
            buffer: Vec::new(),
        }
    }

    /// The type, the name and the revision of the next event.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&line).ok();
            }
            let frame = self.body.frame().await?.unwrap();
            self.buffer.extend_from_slice(frame.data_ref()?);
        }
    }

    async fn names(&mut self, count: usize) -> Vec<(String, String)> {
        let mut names = Vec::new();
        for _ in 0..count {
            let event = self.next().await.unwrap();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            names.push((
                text(&event["type"]),
                text(&event["object"]["metadata"]["name"]),
            ));
        }
        names
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
        .collect()
}

#[tokio::test]
async fn a_watch_without_revision_begins_with_what_there_is() {
    let server = server().await;
    post(&server, MAPS, &config_map("a", "1")).await;
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=true")).await;
    assert_eq!(watch.names(1).await, pairs(&[("ADDED", "a")]));
    post(&server, MAPS, &config_map("b", "1")).await;
    patch(
        &server,
        &format!("{MAPS}/a"),
        MERGE,
        &json!({"data": {"k": "2"}}),
    )
    .await;
    delete(&server, &format!("{MAPS}/b")).await;
    let expected = pairs(&[("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]);
    assert_eq!(watch.names(3).await, expected);
}

#[tokio::test]
async fn a_watch_from_a_list_goes_on_where_the_list_ends() {
    let server = server().await;
    post(&server, MAPS, &config_map("a", "1")).await;
    let (_, list) = get(&server, MAPS).await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    post(&server, MAPS, &config_map("b", "1")).await;
    let mut watch = Watch::open(
        &server,
        &format!("{MAPS}?watch=1&resourceVersion={revision}"),
    )
    .await;
    assert_eq!(watch.names(1).await, pairs(&[("ADDED", "b")]));
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_marked_bookmark() {
    let server = server().await;
    post(&server, MAPS, &config_map("a", "1")).await;
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Watch::open(&server, &format!("{MAPS}?{query}")).await;
    assert_eq!(watch.names(1).await, pairs(&[("ADDED", "a")]));
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    let annotations = &bookmark["object"]["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
}

#[tokio::test]
async fn an_object_that_ceases_to_match_is_deleted_for_the_watcher() {
    let server = server().await;
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=true&labelSelector=on")).await;
    post(&server, MAPS, &config_map("a", "1")).await;
    let path = format!("{MAPS}/a");
    let label = |value: Value| json!({"metadata": {"labels": {"on": value}}});
    patch(&server, &path, MERGE, &label(json!("yes"))).await;
    patch(&server, &path, MERGE, &label(json!("still"))).await;
    patch(&server, &path, MERGE, &label(Value::Null)).await;
    let expected = pairs(&[("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]);
    assert_eq!(watch.names(3).await, expected);
}

#[tokio::test]
async fn a_watch_from_forgotten_history_is_gone() {
    let server = ApiServer::open(Options {
        history: 3,
        ..Options::default()
    })
    .await
    .unwrap();
    let (_, first) = post(&server, MAPS, &config_map("a", "1")).await;
    let revision = first["metadata"]["resourceVersion"].as_str().unwrap();
    for name in ["b", "c", "d", "e"] {
        post(&server, MAPS, &config_map(name, "1")).await;
    }
    let mut watch = Watch::open(
        &server,
        &format!("{MAPS}?watch=1&resourceVersion={revision}"),
    )
    .await;
    let event = watch.next().await.unwrap();
    assert_eq!(
        (event["type"].as_str(), event["object"]["code"].as_i64()),
        (Some("ERROR"), Some(410))
    );
    assert_eq!(event["object"]["reason"], "Expired");
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout() {
    let server = server().await;
    let mut watch = Watch::open(
        &server,
        &format!("{MAPS}?watch=1&resourceVersion=1&timeoutSeconds=5"),
    )
    .await;
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_timeout_that_overflows_or_is_negative_ends_the_watch_as_on_kube_apiserver() {
    let server = server().await;
    for (seconds, ends) in [
        ("-1", true),
        ("9223372036", false),
        ("9223372037", true),
        ("18446744074", true),
        ("9223372036854775807", true),
    ] {
        let path = format!("{MAPS}?watch=1&resourceVersion=1&timeoutSeconds={seconds}");
        let mut watch = Watch::open(&server, &path).await;
        let next = tokio::time::timeout(Duration::from_secs(5), watch.next()).await;
        assert_eq!(matches!(next, Ok(None)), ends, "{seconds}: {next:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn initial_events_of_a_revision_yet_to_come_are_waited_for_and_then_refused() {
    let server = server().await;
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999";
    let mut watch = Watch::open(&server, &format!("{MAPS}?{query}")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["code"], 504);
    assert_eq!(
        event["object"]["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_watch_of_a_custom_resource_ends_with_its_definition() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let mut watch = Watch::open(&server, &format!("{WIDGETS}?watch=1")).await;
    delete(&server, &format!("{CRDS}/widgets.example.org")).await;
    assert!(watch.next().await.is_none());
}

/// As in kube-apiserver, which has another watch cache from then on.
#[tokio::test]
async fn the_watches_of_a_kind_end_when_its_definition_changes_and_begin_with_a_list() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let (_, made) = post(&server, WIDGETS, &widget("a")).await;
    let seen = made["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let since = format!("{WIDGETS}?watch=1&resourceVersion={seen}");
    let mut watch = Watch::open(&server, &since).await;
    let crd = format!("{CRDS}/widgets.example.org");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    patch(&server, &crd, MERGE, &labelled).await;
    let mut other = Watch::open(&server, &since).await;
    patch(&server, &format!("{WIDGETS}/a"), MERGE, &labelled).await;
    for watch in [&mut watch, &mut other] {
        assert_eq!(watch.next().await.unwrap()["type"], "MODIFIED");
    }

    let categories = json!({"spec": {"names": {"categories": ["gadgets"]}}});
    let (_, changed) = patch(&server, &crd, MERGE, &categories).await;
    let revision = changed["metadata"]["resourceVersion"].as_str().unwrap();
    for mut watch in [watch, other] {
        assert!(watch.next().await.is_none());
    }
    let mut again = Watch::open(&server, &since).await;
    let event = again.next().await.unwrap();
    let expected = (
        410,
        format!("too old resource version: {seen} ({revision})"),
    );
    let object = &event["object"];
    assert_eq!(
        (
            object["code"].as_i64().unwrap(),
            object["message"].as_str().unwrap()
        ),
        (expected.0, expected.1.as_str())
    );
    let (_, list) = get(&server, WIDGETS).await;
    let listed = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut fresh = Watch::open(
        &server,
        &format!("{WIDGETS}?watch=1&resourceVersion={listed}"),
    )
    .await;
    delete(&server, &format!("{WIDGETS}/a")).await;
    assert_eq!(fresh.next().await.unwrap()["type"], "DELETED");
}
