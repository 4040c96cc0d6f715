//! Backups of a running server, and of one that does not run.

use apiserver::backup::{self, BackupError, Files};
use apiserver::{ApiServer, OpenError, Options};
use serde_json::Value;

use crate::local::{call, open};
use crate::site::{MAPS, Site, map, revision, story};

fn files() -> Files {
    Files::from([("pki/ca.crt".to_owned(), b"certificate".to_vec())])
}

#[tokio::test]
async fn a_running_server_is_backed_up_by_its_administrator() {
    let site = Site::new();
    let child = site.start("").unwrap();
    let client = site.client(&child);
    for n in 0..20 {
        client
            .call("POST", MAPS, &map(&format!("m{n}"), "x"))
            .await
            .unwrap();
    }
    let refused = site
        .stranger(&child)
        .call("POST", backup::PATH, &Value::Null)
        .await
        .unwrap();
    assert_eq!(
        (refused.0, refused.1["reason"].as_str()),
        (403, Some("Forbidden"))
    );
    assert_eq!(client.get(backup::PATH).await.unwrap().0, 405);

    let response = client.stream("POST", backup::PATH).await.unwrap();
    assert_eq!(response.status(), 200);
    let database = response.bytes().await.unwrap();
    // Writes after the backup are not part of it.
    client.call("POST", MAPS, &map("late", "x")).await.unwrap();
    let left: Vec<_> = std::fs::read_dir(site.data())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().contains("backup")),
        "{left:?}"
    );

    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy");
    std::fs::write(&copy, database).unwrap();
    let created = backup::complete(&copy, &files()).unwrap();
    let path = elsewhere.path().join("objects.db");
    let restored = backup::restore(&copy, &path).unwrap();
    assert_eq!(restored, created);
    assert_eq!(restored.files, files());
    let server = open(&path).await.unwrap();
    assert!(server.stats().revision > restored.revision);
    assert_eq!(
        call(&server, "GET", &format!("{MAPS}/m19"), &Value::Null)
            .await
            .0,
        200
    );
    assert_eq!(
        call(&server, "GET", &format!("{MAPS}/late"), &Value::Null)
            .await
            .0,
        404
    );
    // A restored server can be backed up in turn.
    server.close().await;
    let again = elsewhere.path().join("again");
    backup::copy(&path, &again).unwrap();
    assert_eq!(
        backup::complete(&again, &Files::new()).unwrap().objects,
        restored.objects
    );
}

#[tokio::test]
async fn a_client_that_lives_on_through_a_restore_sees_no_revision_twice_and_lists_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let server = open(&path).await.unwrap();
    call(&server, "POST", MAPS, &map("a", "before")).await;
    server.close().await;
    let copy = directory.path().join("copy");
    backup::copy(&path, &copy).unwrap();
    backup::complete(&copy, &Files::new()).unwrap();
    // The old server goes on, and so does what follows each restore of the one backup.
    let mut seen = 0;
    for round in 0..3 {
        let server = open(&path).await.unwrap();
        let (code, list) = call(&server, "GET", MAPS, &Value::Null).await;
        assert_eq!((code, list["items"].as_array().unwrap().len()), (200, 1));
        if round > 0 {
            // Nothing that the client remembers passes for the present, or for the future.
            for query in ["resourceVersionMatch=Exact", "watch=1&timeoutSeconds=1"] {
                for kind in ["configmaps", "limitranges"] {
                    let path = format!("/api/v1/{kind}?{query}&resourceVersion={seen}");
                    let (code, answer) = call(&server, "GET", &path, &Value::Null).await;
                    let answer = answer.get("object").cloned().unwrap_or(answer);
                    assert!(matches!(code, 200 | 410), "{path}: {code}");
                    assert_eq!(answer["code"], 410, "{path}: {answer}");
                }
            }
        }
        for n in 0..5 {
            let name = format!("m{round}-{n}");
            let (_, object) = call(&server, "POST", MAPS, &map(&name, "after")).await;
            let next = revision(&object);
            assert!(next > seen, "{next} after {seen}");
            seen = next;
        }
        server.close().await;
        std::fs::remove_file(&path).unwrap();
        let _ = std::fs::remove_file(directory.path().join("objects.db-wal"));
        backup::restore(&copy, &path).unwrap();
    }
    // The restored database is compacted and opened like any other.
    let server = open(&path).await.unwrap();
    let (_, object) = call(&server, "POST", MAPS, &map("b", "c")).await;
    server.close().await;
    let server = open(&path).await.unwrap();
    assert_eq!(server.stats().revision, revision(&object));
}

#[tokio::test]
async fn a_damaged_backup_a_newer_one_and_no_backup_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let server = open(&path).await.unwrap();
    call(&server, "POST", MAPS, &map("a", "some value")).await;
    let target = directory.path().join("restored.db");
    let copy = directory.path().join("copy");
    let in_use = backup::copy(&path, &copy).unwrap_err();
    assert!(
        matches!(in_use, BackupError::Open(OpenError::InUse { .. })),
        "{in_use}"
    );
    server.close().await;
    backup::copy(&path, &copy).unwrap();
    backup::complete(&copy, &files()).unwrap();
    let good = std::fs::read(&copy).unwrap();

    let at = |wanted: &[u8]| {
        good.windows(wanted.len())
            .position(|found| found == wanted)
            .unwrap()
    };
    for position in [at(b"some value"), at(b"certificate")] {
        let mut bad = good.clone();
        bad[position] ^= 1;
        std::fs::write(&copy, bad).unwrap();
        let error = story(&backup::restore(&copy, &target).unwrap_err());
        assert!(
            error.contains("copy is damaged") && error.contains("does not match its sum"),
            "{error}"
        );
        std::fs::remove_file(&target).unwrap();
    }
    for (bytes, wanted) in [
        (good[..good.len() / 2].to_vec(), "is damaged"),
        (b"not a database".to_vec(), "is damaged"),
        (Vec::new(), "is not a database of the API server"),
    ] {
        std::fs::write(&copy, bytes).unwrap();
        let error = story(&backup::restore(&copy, &target).unwrap_err());
        assert!(error.contains(wanted), "{error}");
        std::fs::remove_file(&target).unwrap();
    }
    let mut newer = good.clone();
    // The user version, big-endian, in the header of an SQLite file.
    newer[63] = 99;
    std::fs::write(&copy, newer).unwrap();
    let error = story(&backup::restore(&copy, &target).unwrap_err());
    assert!(error.contains("has format 99"), "{error}");
}

#[tokio::test]
async fn a_server_in_memory_has_nothing_to_back_up() {
    let server = ApiServer::open(Options::default()).await.unwrap();
    let (code, status) = call(&server, "POST", backup::PATH, &Value::Null).await;
    assert_eq!(code, 400);
    assert!(
        status["message"].as_str().unwrap().contains("in memory"),
        "{status}"
    );
}
