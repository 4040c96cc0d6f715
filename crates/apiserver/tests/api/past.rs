//! The past outside of memory: watches and lists get the former state from the file.

use std::time::{Duration, Instant};

use apiserver::ApiServer;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::opened::open;
use crate::support::*;

const METADATA: &str =
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const OTHER_VERSION: &str = "/apis/example.org/v1beta1/namespaces/default/widgets";

/// Requests: path, query, and accepted media type.
const ASKED: [(&str, &str, &str); 6] = [
    (WIDGETS, "", "application/json"),
    ("/apis/example.org/v1/widgets", "", "application/json"),
    (WIDGETS, "&labelSelector=on", "application/json"),
    (
        WIDGETS,
        "&fieldSelector=metadata.name%3Db",
        "application/json",
    ),
    (WIDGETS, "", METADATA),
    (OTHER_VERSION, "&labelSelector=on", "application/json"),
];

async fn text(server: &ApiServer, path: &str, accept: &str) -> String {
    let response = send(server, Method::GET, path, &[("accept", accept)], "").await;
    assert_eq!(response.status(), 200, "{path}");
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The lines of a watch after `revision`, until nothing happens for a second.
async fn lines(server: &ApiServer, asked: (&str, &str, &str), revision: u64) -> Vec<String> {
    let (path, query, accept) = asked;
    let path = format!("{path}?watch=1&resourceVersion={revision}&timeoutSeconds=1{query}");
    let text = text(server, &path, accept).await;
    text.lines().map(str::to_owned).collect()
}

fn revision_of(line: &str) -> u64 {
    let event: Value = serde_json::from_str(line).unwrap();
    let revision = event["object"]["metadata"]["resourceVersion"].as_str();
    revision.unwrap().parse().unwrap()
}

/// Creates, changes, labels and deletes objects.
async fn write(server: &ApiServer, step: usize) {
    let name = ["a", "b", "c"][step % 3];
    let path = format!("{WIDGETS}/{name}");
    let label = |value: Value| json!({"metadata": {"labels": {"on": value}}});
    match step / 3 {
        0 | 5 => drop(post(server, WIDGETS, &widget(name)).await),
        1 => drop(patch(server, &path, MERGE, &label(json!("yes"))).await),
        2 => drop(patch(server, &path, MERGE, &json!({"spec": {"size": 5}})).await),
        3 => drop(patch(server, &path, MERGE, &label(Value::Null)).await),
        _ => drop(delete(server, &path).await),
    }
}

/// Answers recorded while the past was in memory.
struct Seen {
    lines: Vec<Vec<String>>,
    /// Revisions, and the lists at the time.
    lists: Vec<(u64, String)>,
}

impl Seen {
    /// Asks again from each revision, for all at once.
    async fn again(&self, server: &ApiServer) {
        let each = |(revision, list): &(u64, String)| self.after(server, *revision, list.clone());
        futures::future::join_all(self.lists.iter().map(each)).await;
    }

    async fn after(&self, server: &ApiServer, revision: u64, list: String) {
        let path = format!("{WIDGETS}?resourceVersion={revision}&resourceVersionMatch=Exact");
        assert_eq!(text(server, &path, "application/json").await, list);
        let watches = ASKED.map(|asked| lines(server, asked, revision));
        let found = futures::future::join_all(watches).await;
        for (found, all) in found.iter().zip(&self.lines) {
            let newer = all.iter().filter(|line| revision_of(line) > revision);
            let newer: Vec<&String> = newer.collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), newer, "after {revision}");
        }
    }
}

#[tokio::test]
async fn a_watch_and_a_list_get_the_same_from_the_file_as_they_did_from_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let server = open(&path).await.unwrap();
    post(&server, CRDS, &widgets()).await;
    let first = server.stats().revision;
    let mut lists = Vec::new();
    for step in 0..18 {
        write(&server, step).await;
        let list = text(&server, WIDGETS, "application/json").await;
        let value: Value = serde_json::from_str(&list).unwrap();
        let revision = value["metadata"]["resourceVersion"].as_str().unwrap();
        lists.push((revision.parse().unwrap(), list));
    }
    let watches = ASKED.map(|asked| lines(&server, asked, first));
    let lines = futures::future::join_all(watches).await;
    assert_eq!(lines[0].len(), 18);
    assert!(
        lines[2]
            .iter()
            .any(|line| line.starts_with(r#"{"type":"DELETED""#))
    );
    let seen = Seen { lines, lists };
    let before = server.stats().past_bytes;
    let began = Instant::now();
    while server.stats().past_bytes > before / 4 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{:?}",
            server.stats()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    seen.again(&server).await;
    server.close().await;
    let server = open(&path).await.unwrap();
    seen.again(&server).await;
    server.close().await;
}
