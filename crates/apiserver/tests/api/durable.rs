//! SQLite: what was acknowledged is there when the file is opened again.

use apiserver::OpenError;
use serde_json::json;

use crate::opened::open;
use crate::support::*;

#[tokio::test]
async fn objects_definitions_and_history_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let server = open(&path).await.unwrap();
    post(&server, CRDS, &widgets()).await;
    let (_, a) = post(&server, WIDGETS, &widget("a")).await;
    post(&server, WIDGETS, &widget("b")).await;
    delete(&server, &format!("{WIDGETS}/b")).await;
    let revision = server.stats().revision;
    drop(server);

    let server = open(&path).await.unwrap();
    assert_eq!(server.stats().revision, revision);
    assert_eq!(
        get(&server, &format!("{WIDGETS}/a")).await,
        (200, a.clone())
    );
    assert_eq!(get(&server, &format!("{WIDGETS}/b")).await.0, 404);
    let from = a["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{WIDGETS}?watch=1&resourceVersion={from}&timeoutSeconds=1");
    let response = send(&server, http::Method::GET, &watch, &[], "").await;
    let text = http_body_util::BodyExt::collect(response.into_body())
        .await
        .unwrap()
        .to_bytes();
    let kinds: Vec<String> = String::from_utf8_lossy(&text)
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].to_string())
        .collect();
    assert_eq!(kinds, ["\"ADDED\"", "\"DELETED\""]);
    let (_, c) = post(&server, WIDGETS, &widget("c")).await;
    let next: u64 = c["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(next, revision + 1);
    server.close().await;
}

#[tokio::test]
async fn a_schema_that_changed_shows_its_objects_the_same_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let server = open(&path).await.unwrap();
    post(&server, CRDS, &widgets()).await;
    post(&server, WIDGETS, &widget("a")).await;
    let at = "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/weight";
    let weight = json!([{"op": "add", "path": at, "value": {"type": "integer", "default": 7}}]);
    let definition = format!("{CRDS}/widgets.example.org");
    patch(&server, &definition, "application/json-patch+json", &weight).await;
    let (_, read) = get(&server, &format!("{WIDGETS}/a")).await;
    assert_eq!(read["spec"]["weight"], 7);
    server.close().await;

    let server = open(&path).await.unwrap();
    assert_eq!(get(&server, &format!("{WIDGETS}/a")).await, (200, read));
    let bytes = server.stats().object_bytes;
    delete(&server, &format!("{WIDGETS}/a")).await;
    assert!(server.stats().object_bytes < bytes);
    server.close().await;
}

#[tokio::test]
async fn concurrent_writers_see_every_conflict() {
    let directory = tempfile::tempdir().unwrap();
    let server = open(&directory.path().join("objects.db")).await.unwrap();
    post(&server, MAPS, &config_map("a", "0")).await;
    let add = |n: usize| {
        let server = server.clone();
        async move {
            let mine = json!({"data": {format!("w{n}"): "x"}});
            assert_eq!(
                patch(&server, &format!("{MAPS}/a"), MERGE, &mine).await.0,
                200
            );
        }
    };
    futures::future::join_all((0..64).map(add)).await;
    let (_, a) = get(&server, &format!("{MAPS}/a")).await;
    assert_eq!(a["data"].as_object().unwrap().len(), 65);
    server.close().await;
}

#[tokio::test]
async fn a_newer_format_a_damaged_file_and_a_second_server_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let server = open(&path).await.unwrap();
    assert!(matches!(open(&path).await, Err(OpenError::InUse { .. })));
    server.close().await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    assert!(matches!(
        open(&path).await,
        Err(OpenError::Newer { found: 99, .. })
    ));
    std::fs::write(&path, vec![7; 8192]).unwrap();
    assert!(matches!(open(&path).await, Err(OpenError::Damaged { .. })));
}

/// Variable with the path of the child's file.
const CHILD: &str = "APISERVER_TEST_DATABASE";

/// Not a test of its own: the process that the next test kills. Prints the acknowledged writes.
#[tokio::test]
async fn the_child_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let server = open(path.as_ref()).await.unwrap();
    for n in 0.. {
        let name = format!("m-{}-{n}", std::process::id());
        let (code, created) = post(&server, MAPS, &config_map(&name, "1")).await;
        assert_eq!(code, 201);
        println!(
            "acknowledged {name} {}",
            created["metadata"]["resourceVersion"].as_str().unwrap()
        );
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    use std::io::BufRead as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let mut newest = 0;
    for writes in [1, 40, 7] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "durable::the_child_writes_until_it_is_killed",
                "--nocapture",
            ])
            .env(CHILD, &path)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        let lines = lines
            .map_while(Result::ok)
            .filter(|line| line.contains("acknowledged"));
        let acknowledged: Vec<String> = lines.take(writes).collect();
        child.kill().unwrap();
        child.wait().unwrap();

        let server = open(&path).await.unwrap();
        for line in acknowledged {
            let mut words = line
                .split(' ')
                .skip_while(|word| !word.ends_with("acknowledged"))
                .skip(1);
            let (name, revision) = (words.next().unwrap(), words.next().unwrap());
            let (code, map) = get(&server, &format!("{MAPS}/{name}")).await;
            assert_eq!(
                (code, map["metadata"]["resourceVersion"].as_str()),
                (200, Some(revision))
            );
            let revision: u64 = revision.parse().unwrap();
            assert!(revision > newest);
            newest = revision;
        }
        newest = server.stats().revision;
        server.close().await;
    }
}
