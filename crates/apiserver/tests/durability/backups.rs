//! Backups of a running server, and of one that does not run.

use apiserver::backup::{self, BackupError, Files};
use apiserver::{ApiServer, OpenError, Options};
use serde_json::Value;

use crate::local::{call, open};
use crate::site::{MAPS, Site, map, story};

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
    // What is written after the backup is not in it.
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
    let made = backup::complete(&copy, &files()).unwrap();
    let path = elsewhere.path().join("objects.db");
    let restored = backup::restore(&copy, &path).unwrap();
    assert_eq!(restored, made);
    assert_eq!(restored.files, files());
    let server = open(&path).await.unwrap();
    assert_eq!(server.stats().revision, restored.revision);
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
    // The one that is restored can be backed up in its turn.
    server.close().await;
    let again = elsewhere.path().join("again");
    backup::copy(&path, &again).unwrap();
    assert_eq!(
        backup::complete(&again, &Files::new()).unwrap().objects,
        restored.objects
    );
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
        (Vec::new(), "is no database of the API server"),
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
