//! Damaged files: refused with a reason, or read as if nothing had happened.

use std::collections::BTreeMap;
use std::path::Path;

use apiserver::OpenError;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::local::{call, open};
use crate::site::{MAPS, Site, map, revision, story};

/// Everything that a server shows of a database.
async fn dump(path: &Path) -> Result<Value, OpenError> {
    let server = open(path).await?;
    let mut all = json!({"revision": server.stats().revision});
    for path in [
        "/api/v1/namespaces",
        "/api/v1/configmaps",
        "/api/v1/serviceaccounts",
    ] {
        let (code, list) = call(&server, "GET", path, &Value::Null).await;
        assert_eq!(code, 200, "{list}");
        all[path] = list["items"].clone();
    }
    server.close().await;
    Ok(all)
}

/// A closed database with a history: objects created, changed and deleted.
async fn written(path: &Path) -> Value {
    let server = open(path).await.unwrap();
    for n in 0..40 {
        let (code, _) = call(
            &server,
            "POST",
            MAPS,
            &map(&format!("m{n}"), &"value ".repeat(n * 3)),
        )
        .await;
        assert_eq!(code, 201);
    }
    for n in 0..10 {
        let name = format!("m{n}");
        let changed = call(
            &server,
            "PUT",
            &format!("{MAPS}/{name}"),
            &map(&name, "changed"),
        )
        .await;
        assert_eq!(changed.0, 200);
        let gone = call(
            &server,
            "DELETE",
            &format!("{MAPS}/m{}", n + 20),
            &Value::Null,
        )
        .await;
        assert_eq!(gone.0, 200);
    }
    server.close().await;
    dump(path).await.unwrap()
}

#[tokio::test]
async fn a_wrong_byte_is_found_or_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let reference = written(&path).await;
    let good = std::fs::read(&path).unwrap();
    let mut refused = 0;
    let positions = (0..100).chain((100..good.len()).step_by(211));
    for (n, position) in positions.enumerate() {
        let mut bad = good.clone();
        bad[position] ^= 1 << (n % 8);
        std::fs::write(&path, bad).unwrap();
        let _ = std::fs::remove_file(directory.path().join("objects.db-wal"));
        match dump(&path).await {
            Ok(found) => assert_eq!(found, reference, "byte {position}"),
            Err(
                OpenError::Damaged { .. }
                | OpenError::Foreign { .. }
                | OpenError::Newer { .. }
                | OpenError::Database { .. },
            ) => refused += 1,
            Err(other) => panic!("byte {position}: {other}"),
        }
    }
    // Most of the file is used.
    assert!(refused > 100, "{refused}");
}

#[tokio::test]
async fn a_file_that_was_cut_is_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    written(&path).await;
    let good = std::fs::read(&path).unwrap();
    for length in (1..good.len())
        .step_by(3331)
        .chain([4096, good.len() - 4096, good.len() - 1])
    {
        std::fs::write(&path, &good[..length]).unwrap();
        let error = dump(&path)
            .await
            .err()
            .unwrap_or_else(|| panic!("{length} bytes"));
        let text = story(&error);
        assert!(
            text.contains("restore it from a backup"),
            "{length}: {text}"
        );
    }
}

/// A log without its end is like a disk that lost its last writes: the rest is whole.
#[tokio::test]
async fn of_a_log_that_was_cut_or_damaged_what_is_before_that_is_kept() {
    let site = Site::new();
    let child = site.start("").unwrap();
    let client = site.client(&child);
    let mut revisions = BTreeMap::new();
    for n in 0..60 {
        let (code, created) = client
            .call("POST", MAPS, &map(&format!("m{n}"), "x"))
            .await
            .unwrap();
        assert_eq!(code, 201);
        revisions.insert(revision(&created), format!("m{n}"));
    }
    child.kill();
    let path = site.database();
    let wal = site.data().join("objects.db-wal");
    let (file, log) = (std::fs::read(&path).unwrap(), std::fs::read(&wal).unwrap());
    assert!(log.len() > 60 * 4096);
    let mut counts = Vec::new();
    for (n, length) in (32 + 40_000..=log.len())
        .step_by(29_989)
        .chain([log.len()])
        .enumerate()
    {
        for flip in [false, true] {
            std::fs::write(&path, &file).unwrap();
            let mut bad = log.clone();
            match flip {
                true => bad[length - 1] ^= 1 << (n % 8),
                false => bad.truncate(length),
            }
            std::fs::write(&wal, bad).unwrap();
            let server = open(&path).await.unwrap();
            let (_, list) = call(&server, "GET", MAPS, &Value::Null).await;
            let found: BTreeMap<u64, String> = list["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| {
                    (
                        revision(item),
                        item["metadata"]["name"].as_str().unwrap().to_owned(),
                    )
                })
                .collect();
            let newest = found.keys().max().copied().unwrap_or(0);
            let wanted: BTreeMap<u64, String> = revisions
                .range(..=newest)
                .map(|(a, b)| (*a, b.clone()))
                .collect();
            assert_eq!(found, wanted, "{length} {flip}");
            counts.push(found.len());
            server.close().await;
        }
    }
    assert_eq!(counts[counts.len() - 2], 60, "the whole log has everything");
}

#[tokio::test]
async fn a_file_of_format_1_is_brought_to_format_2() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let connection = Connection::open(&path).unwrap();
    // As written by the release with format 1.
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE log (
                 rev INTEGER PRIMARY KEY, collection TEXT NOT NULL, key TEXT NOT NULL,
                 prev INTEGER NOT NULL, deleted INTEGER NOT NULL, value BLOB NOT NULL);
             CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
             INSERT INTO meta VALUES ('compacted', 7);
             PRAGMA user_version = 1;",
        )
        .unwrap();
    for n in 10..30 {
        let mut object = map(&format!("m{n}"), "old");
        object["metadata"]["resourceVersion"] = n.to_string().into();
        object["metadata"]["namespace"] = "default".into();
        object["metadata"]["uid"] = format!("uid-{n}").into();
        let insert = "INSERT INTO log (rev, collection, key, prev, deleted, value) VALUES (?1, '/configmaps', ?2, 0, 0, ?3)";
        let key = format!("default/m{n}");
        connection
            .execute(insert, params![n, key, object.to_string().into_bytes()])
            .unwrap();
    }
    drop(connection);
    let found = dump(&path).await.unwrap();
    assert_eq!(found["/api/v1/configmaps"].as_array().unwrap().len(), 20);
    // Rows have sums now, so a change behind the server's back is found.
    let connection = Connection::open(&path).unwrap();
    let format: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(format, 2);
    connection
        .execute(
            "UPDATE log SET value = CAST(replace(value, 'old', 'new') AS BLOB) WHERE rev = 12",
            [],
        )
        .unwrap();
    drop(connection);
    let error = dump(&path).await.err().unwrap();
    assert!(
        error
            .to_string()
            .contains("/configmaps default/m12 at revision 12 does not match its sum"),
        "{error}"
    );
}

#[tokio::test]
async fn a_database_of_something_else_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE log (a)").unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(open(&path).await, Err(OpenError::Foreign { .. })));
    let connection = Connection::open(&path).unwrap();
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!((tables, before.is_empty()), (1, false));
}
