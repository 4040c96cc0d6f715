use std::cell::{Cell, RefCell};
use std::time::Duration;

use clap::Parser;
use serde_json::Value;

use super::thing::{Form, Thing};
use super::*;
use crate::cli::{Cli, Command, Csi};
use crate::commands::csi::tests::world::World;

const UID: &str = "cinder.csi.openstack.org/cluster-uid";

fn args(file: &str, flags: &[&str]) -> CsiOrphans {
    let mut words = vec!["ferrostack", "csi", "orphans", "--cluster=blue"];
    words.extend(["--cloud-config", file]);
    words.extend(flags);
    match Cli::try_parse_from(words).unwrap().command {
        Command::Csi(Csi::Orphans(args)) => args,
        _ => panic!("another command"),
    }
}

/// Output of the command for orphans of any age.
async fn command(
    world: &World,
    flags: &[&str],
    ask: Option<impl AsyncFn(String) -> Option<String>>,
) -> Result<String, String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cloud.conf");
    std::fs::write(&file, world.conf("secret")).unwrap();
    let mut args = args(&file.display().to_string(), flags);
    if !flags.iter().any(|flag| flag.starts_with("--older-than")) {
        args.older_than = Duration::ZERO;
    }
    let mut environment = Environment::default();
    environment.interactive = ask.is_some();
    let printed = RefCell::new(String::new());
    let print = |text: &str| {
        printed.borrow_mut().push_str(text);
        Ok(())
    };
    let answer = async |question: String| match &ask {
        Some(ask) => Ok(ask(question).await),
        None => panic!("{question}"),
    };
    let done = of_cluster(&args, &world.client, &environment, print, answer).await;
    match done {
        Ok(()) => Ok(printed.into_inner()),
        Err(error) => Err(format!("{error:#}\n{}", printed.into_inner())),
    }
}

/// Without a terminal.
const NOBODY: Option<Nobody> = None;
type Nobody = fn(String) -> std::future::Ready<Option<String>>;

async fn uid(world: &World) -> String {
    let claimed = Claimed::read(&world.client).await.unwrap();
    claimed.cluster_uid
}

fn marked(uid: &str) -> Value {
    json!({"cinder.csi.openstack.org/cluster": "blue", UID: uid,
        "csi.storage.k8s.io/pvc/namespace": "default", "csi.storage.k8s.io/pvc/name": "data"})
}

async fn volume(world: &World, name: &str, metadata: Value) -> String {
    let volume = json!({"name": name, "size": 2, "metadata": metadata});
    world.available("volume", volume).await
}

#[tokio::test]
async fn orphans_are_deleted_and_nothing_else_is() {
    let world = World::open().await;
    let uid = uid(&world).await;
    let group = "snapshot.storage.k8s.io";
    world
        .install(group, "VolumeSnapshotContent", "Cluster")
        .await;
    let named = volume(&world, "pvc-named", marked(&uid)).await;
    world.persistent_volume("pvc-named", &named).await;
    let mut kept = vec![named.clone()];
    for metadata in [
        json!({}),
        json!({"cinder.csi.openstack.org/cluster": "red", UID: uid}),
        marked("of another cluster"),
        // The Go driver's, perhaps of another cluster of this name.
        json!({"cinder.csi.openstack.org/cluster": "blue"}),
    ] {
        kept.push(volume(&world, "pvc-other", metadata).await);
    }
    kept.sort();
    let orphan = volume(&world, "pvc-lost", marked(&uid)).await;
    let snapshot = |volume: &str, name: &str| json!({"volume_id": volume, "name": name, "metadata": marked(&uid)});
    // The orphan has a snapshot that is one, too: it goes first.
    let lost = snapshot(&orphan, "snapshot-lost");
    let lost = world.available("snapshot", lost).await;
    let taken = snapshot(&named, "snapshot-taken");
    let taken = world.available("snapshot", taken).await;
    world
        .create(
            json!({"apiVersion": format!("{group}/v1"), "kind": "VolumeSnapshotContent",
            "metadata": {"name": "snapcontent-1"}, "spec": {"driver": "cinder.csi.openstack.org",
                "source": {"snapshotHandle": taken}}}),
        )
        .await;

    let text = command(&world, &[], NOBODY).await.unwrap();
    assert!(
        text.ends_with("3 orphans with 6 GiB; 2 of them with 4 GiB can be deleted\n"),
        "{text}"
    );
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].contains(&lost) && lines[1].contains("snapshot-lost"),
        "{text}"
    );
    assert!(
        lines[2..4].iter().any(|line| line.contains(&orphan)),
        "{text}"
    );
    assert!(text.contains("default/data"), "{text}");
    // Nothing is deleted that is younger than it must be.
    let young = ["--older-than=10m", "--delete", "--yes"];
    let text = command(&world, &young, NOBODY).await.unwrap();
    assert!(
        text.ends_with("; 0 of them with 0 GiB can be deleted\n"),
        "{text}"
    );
    // Nothing is deleted without an answer.
    let error = command(&world, &["--delete"], NOBODY).await.unwrap_err();
    assert!(
        error.contains("give --yes to delete without a question"),
        "{error}"
    );
    for answer in [Some("y\n"), Some("no"), None] {
        let asked = Cell::new(0);
        let ask = async |question: String| {
            assert!(
                question.starts_with("Delete 2 orphans with 4 GiB?"),
                "{question}"
            );
            asked.set(asked.get() + 1);
            answer.map(str::to_owned)
        };
        command(&world, &["--delete"], Some(ask)).await.unwrap();
        assert_eq!(asked.get(), 1);
    }
    let mut all = kept.clone();
    all.push(orphan.clone());
    all.sort();
    assert_eq!(world.ids("volume").await, all);

    let ask = async |_: String| Some("yes\n".to_owned());
    let text = command(&world, &["--delete"], Some(ask)).await.unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let deleted = [
        format!("snapshot snapshot-lost ({lost}): deleted"),
        format!("volume pvc-lost ({orphan}): deleted"),
    ];
    assert!(lines.ends_with(&[&deleted[0], &deleted[1]]), "{text}");
    crate::commands::csi::tests::world::until(async || world.ids("volume").await == kept).await;
    assert_eq!(world.ids("snapshot").await, [taken]);
    // Again, there is nothing to do.
    let again = ["--delete", "--yes", "-o", "json"];
    let text = command(&world, &again, NOBODY).await.unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let left = document["orphans"].as_array().unwrap();
    assert_eq!(left.len(), 1, "{text}");
    assert!(left[0]["kept"].as_str().unwrap().contains("--without-uid"));
    assert_eq!(left[0].get("outcome"), None);
    // The user knows that no other cluster has this name.
    let flags = ["--delete", "--yes", "--without-uid", "-o", "json"];
    let text = command(&world, &flags, NOBODY).await.unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["orphans"][0]["outcome"], "deleted");
}

#[tokio::test]
async fn what_is_named_between_the_look_and_the_deletion_is_kept() {
    let world = World::open().await;
    let uid = uid(&world).await;
    let orphan = volume(&world, "pvc-lost", marked(&uid)).await;
    let changed = volume(&world, "pvc-changed", marked(&uid)).await;
    let gone = volume(&world, "pvc-gone", marked(&uid)).await;
    // While the user reads the question, somebody restores a PersistentVolume.
    let ask = async |_: String| {
        world.persistent_volume("restored", &orphan).await;
        let path = format!("/volumes/{changed}/metadata");
        let theirs = json!({"metadata": {UID: "of another cluster"}});
        world.cinder("POST", &path, theirs).await;
        let path = format!("/volumes/{gone}");
        world.cinder("DELETE", &path, Value::Null).await;
        Some("yes".to_owned())
    };
    let text = command(&world, &["--delete"], Some(ask)).await.unwrap();
    for line in [
        format!("volume pvc-lost ({orphan}): kept: PersistentVolume/restored names it now"),
        format!("volume pvc-changed ({changed}): kept: its metadata have changed"),
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
    let ends = [": gone already", ": kept: it is deleting"];
    let line = text
        .lines()
        .find(|line| line.contains("pvc-gone ("))
        .unwrap();
    assert!(ends.iter().any(|end| line.ends_with(end)), "{line}");
    let mut left = vec![orphan, changed];
    left.sort();
    crate::commands::csi::tests::world::until(async || world.ids("volume").await == left).await;
}

#[tokio::test]
async fn a_deletion_that_fails_is_told_in_the_clouds_words_and_the_others_go_on() {
    let world = World::open().await;
    let uid = uid(&world).await;
    let held = volume(&world, "pvc-held", marked(&uid)).await;
    // Of nobody, so that Cinder does not delete the volume.
    let snapshot = json!({"volume_id": held, "name": "by hand"});
    world.available("snapshot", snapshot).await;
    let free = volume(&world, "pvc-free", marked(&uid)).await;
    let flags = ["--delete", "--yes"];
    let error = command(&world, &flags, NOBODY).await.unwrap_err();
    assert!(error.starts_with("1 of 2 could not be deleted"), "{error}");
    assert!(
        error.contains(&format!("volume pvc-free ({free}): deleted")),
        "{error}"
    );
    let line = error
        .lines()
        .find(|line| line.contains("pvc-held (") && line.contains("failed"))
        .unwrap();
    assert!(line.contains("snapshot"), "{line}");
}

#[test]
fn the_page_shows_the_table() {
    let thing = |form, name: &str, id: &str, size, created_at: &str, status: &str| Thing {
        cloud: String::new(),
        form,
        id: id.to_owned(),
        name: name.to_owned(),
        size,
        status: status.to_owned(),
        created_at: created_at.to_owned(),
        metadata: [
            ("csi.storage.k8s.io/pvc/namespace", "shop"),
            ("csi.storage.k8s.io/pvc/name", "data-db-0"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
        used_by: Vec::new(),
    };
    let volume = thing(
        Form::Volume,
        "pvc-4f0c2f7e-6a55-4a35-9a0e-3b3a55d0c8a1",
        "8e9ed23f-1e9f-4a0c-8f0c-1d3a0c3b0a11",
        10,
        "2026-11-20T08:00:00.000000",
        "available",
    );
    let young = thing(
        Form::Volume,
        "pvc-c7b1d0aa-02cf-4c4f-8f2b-7d6a2f9f1b52",
        "1b4f7c52-9d60-4f35-a6c7-5a0b1ef0a9d4",
        20,
        "2026-11-28T11:40:00.000000",
        "error",
    );
    let orphans = [
        Orphan {
            thing: volume,
            kept: None,
        },
        Orphan {
            thing: young,
            kept: Some("it is too young".to_owned()),
        },
    ];
    let now = "2026-11-28T12:00:00Z".parse().unwrap();
    let table = report::table(&orphans, now);
    let page = include_str!("../../../../../../docs/guides/cinder-csi.md");
    assert!(page.contains(&format!("```\n{table}```")), "{table}");
    assert_eq!(report::table(&[], now), "There are no orphans.\n");
}

#[test]
fn what_would_be_dangerous_is_no_value_of_a_flag() {
    let of = |flags: &[&str]| {
        let mut words = vec!["ferrostack", "csi", "orphans", "--cloud-config=f"];
        words.extend(flags);
        Cli::try_parse_from(words).err().map(|it| it.to_string())
    };
    for (flags, words) in [
        (&["--cluster="][..], "a value is required for '--cluster"),
        (&[], "--cluster <NAME>"),
        (
            &["--cluster=x", "--older-than=9m"],
            "it is ten minutes at least",
        ),
        (&["--cluster=x", "--yes"], "--delete"),
        (&["--cluster=x", "--without-uid"], "--delete"),
    ] {
        let error = of(flags).unwrap();
        assert!(error.contains(words), "{flags:?}: {error}");
    }
    assert_eq!(of(&["--cluster=x", "--older-than=10m"]), None);
}
