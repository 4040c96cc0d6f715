//! A disk without room, or without the right to write: a clear message, nothing acknowledged lost, reads go on.

use std::collections::BTreeMap;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

use crate::site::{Child, Client, MAPS, Site, map, revision};

/// So that each write needs room.
fn filler(n: usize) -> String {
    format!("{n}-").repeat(1000)
}

/// Writes until the disk refuses, and returns the acknowledged writes and the refusal.
async fn fill(client: &Client) -> (BTreeMap<String, u64>, String) {
    let mut acknowledged = BTreeMap::new();
    for n in 0..20_000 {
        let name = format!("m{n}");
        let (code, answer) = client
            .call("POST", MAPS, &map(&name, &filler(n)))
            .await
            .unwrap();
        if code != 201 {
            assert_eq!(
                (code, answer["reason"].as_str()),
                (500, Some("InternalError"))
            );
            return (acknowledged, answer["message"].to_string());
        }
        acknowledged.insert(name, revision(&answer));
    }
    panic!("the disk never was full");
}

async fn check(client: &Client, acknowledged: &BTreeMap<String, u64>) {
    let (code, list) = client.get(MAPS).await.unwrap();
    assert_eq!(code, 200);
    let items = list["items"].as_array().unwrap();
    let found: BTreeMap<String, u64> = items
        .iter()
        .map(|item| {
            (
                item["metadata"]["name"].as_str().unwrap().to_owned(),
                revision(item),
            )
        })
        .collect();
    assert_eq!(found, *acknowledged);
}

/// The story of both tests: full, reads go on, room again, killed.
async fn full_and_not(site: &Site, child: Child, before: &str, make_room: impl FnOnce(&Child)) {
    let client = site.client(&child);
    let (mut acknowledged, message) = fill(&client).await;
    assert!(message.contains("the object was not stored"), "{message}");
    assert!(message.contains("objects.db"), "{message}");
    assert!(message.contains("reads go on"), "{message}");
    assert!(acknowledged.len() > 10, "{}", acknowledged.len());
    check(&client, &acknowledged).await;
    let one = client.get(&format!("{MAPS}/m0")).await.unwrap();
    assert_eq!(one.0, 200);
    // The write is refused again, and again leaves nothing behind.
    let again = client
        .call("POST", MAPS, &map("again", &filler(1)))
        .await
        .unwrap();
    assert_eq!(again.0, 500);
    check(&client, &acknowledged).await;

    make_room(&child);
    let (code, answer) = client
        .call("POST", MAPS, &map("again", &filler(1)))
        .await
        .unwrap();
    assert_eq!(code, 201, "{answer}");
    acknowledged.insert("again".to_owned(), revision(&answer));
    check(&client, &acknowledged).await;
    if before.is_empty() {
        child.kill();
        let child = site.start("").unwrap();
        check(&site.client(&child), &acknowledged).await;
    }
}

#[tokio::test]
async fn a_file_that_may_not_grow_refuses_writes_until_it_may() {
    let site = Site::new();
    // The signal that comes with the refusal would end the process.
    let child = site.start("trap '' XFSZ").unwrap();
    let pid = Pid::from_raw(i32::try_from(child.pid()).unwrap());
    let limit = |bytes: Option<u64>| {
        let new = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(pid, Resource::Fsize, new).unwrap();
    };
    let maximum = prlimit(
        pid,
        Resource::Fsize,
        rustix::process::getrlimit(Resource::Fsize),
    )
    .unwrap()
    .maximum;
    if maximum.is_some() {
        skipped::because("files are limited here already");
        return;
    }
    limit(Some(400_000));
    full_and_not(&site, child, "", |_| limit(None)).await;
}

#[tokio::test]
async fn a_full_file_system_refuses_writes_until_there_is_room() {
    let site = Site::new();
    let data = site.data();
    let data = data.display();
    // In a mount namespace of its own, which ends with the process.
    if !may_mount() {
        skipped::because("file systems can be mounted by root only");
        return;
    }
    let before = format!(
        "if [ -z \"$MOUNTED\" ]; then MOUNTED=1 exec unshare --mount sh -c 'mount -t tmpfs -o size=3m none {data} && head -c 1500000 /dev/zero > {data}/ballast && exec \"$0\" \"$@\"' \"$0\" \"$@\"; fi"
    );
    let child = site.start(&before).unwrap();
    full_and_not(&site, child, &before, |child| {
        let ballast = format!("/proc/{}/root{data}/ballast", child.pid());
        std::fs::remove_file(ballast).unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_directory_that_may_not_be_written_is_refused_with_the_reason() {
    let site = Site::new();
    let data = site.data();
    let before = if may_mount() {
        format!(
            "if [ -z \"$MOUNTED\" ]; then MOUNTED=1 exec unshare --mount sh -c 'mount -t tmpfs -o ro none {} && exec \"$0\" \"$@\"' \"$0\" \"$@\"; fi",
            data.display()
        )
    } else {
        format!("chmod 0555 {}", data.display())
    };
    let refusal = site.start(&before).err().unwrap();
    assert!(refusal.starts_with("refused: the database "), "{refusal}");
    assert!(
        refusal.contains("objects.db cannot be written"),
        "{refusal}"
    );
    assert!(
        refusal.contains("must be able to write the file and its directory"),
        "{refusal}"
    );
}

#[tokio::test]
async fn a_second_server_on_the_same_file_is_refused() {
    let site = Site::new();
    let first = site.start("").unwrap();
    let refusal = site.start("").err().unwrap();
    assert!(
        refusal.contains("is in use by another process"),
        "{refusal}"
    );
    let (code, _) = site.client(&first).get(MAPS).await.unwrap();
    assert_eq!((code, Value::Null), (200, Value::Null));
}

fn may_mount() -> bool {
    std::process::Command::new("unshare")
        .args(["--mount", "true"])
        .status()
        .is_ok_and(|status| status.success())
}
