//! A cluster in files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use testbed::Fuse;

use crate::world::{LOCK, World, options};

fn files(directory: &Path) -> Vec<(String, u32)> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .map(|entry| {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            (entry.file_name().into_string().unwrap(), mode)
        })
        .collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_goes_through_files_that_only_their_owner_can_read() {
    let mut world = World::with_cluster(1, 1).await;
    let (ids, resources, writes) = (world.here.ids().await, world.resources(), world.written());
    let objects = world.here.objects().await;
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("backup");

    // Killed at each write: the source is paused, and goes on at the end.
    let mut kills = 0;
    loop {
        let fuse = Fuse::at(2);
        let here = fuse.protect(&world.here.management.client);
        let options = options();
        tokio::select! {
            biased;
            done = mover::to_directory(&here, &directory, &options, &|_| {}) => {
                match done {
                    Ok(report) => assert_eq!(report.clusters, ["demo"]),
                    // The last write was the end of the record.
                    Err(error) => assert!(error.to_string().contains("is not empty"), "{error}"),
                }
                break;
            }
            () = fuse.blown() => kills += 1,
        }
        assert!(kills < 100);
    }
    assert!(kills > 3, "{kills}");
    world.here.available(2).await;
    let written = files(&directory);
    let lock = format!("ConfigMap_default_{LOCK}.yaml");
    let count = written.iter().filter(|(name, _)| *name != lock).count();
    assert_eq!(count, objects.len());
    assert!(
        written.iter().all(|(_, mode)| *mode == 0o600),
        "{written:?}"
    );
    assert!(
        written
            .iter()
            .any(|(name, _)| name == "Secret_default_demo-cloud-config.yaml")
    );
    let again = mover::to_directory(
        &world.here.management.client,
        &directory,
        &options(),
        &|_| {},
    )
    .await;
    assert!(again.unwrap_err().to_string().contains("is not empty"));

    // The place that the files are of is gone; another one takes the cluster over, killed at each write.
    world.here.stop().await;
    let mut kills = 0;
    loop {
        let fuse = Fuse::at(2);
        let there = fuse.protect(&world.there.management.client);
        let options = options();
        tokio::select! {
            biased;
            done = mover::from_directory(&directory, &there, &options, &|_| {}) => {
                match done {
                    Ok(report) => assert_eq!(report.clusters, ["demo"]),
                    // The last write was the end of the record.
                    Err(error) => assert!(error.to_string().contains("is another one"), "{error}"),
                }
                break;
            }
            () = fuse.blown() => kills += 1,
        }
        assert!(kills < 1000, "{:?}", fuse.writes());
    }
    // Each object is created and loses its mark.
    assert!(kills >= 2 * count, "{kills} kills, {count} objects");
    world.there.available(2).await;
    assert_eq!(world.there.ids().await, ids);
    assert_eq!((world.resources(), world.written()), (resources, writes));
    let names = |objects: std::collections::BTreeMap<String, serde_json::Value>| {
        objects.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(names(world.there.objects().await), names(objects));

    let twice = mover::from_directory(
        &directory,
        &world.there.management.client,
        &options(),
        &|_| {},
    )
    .await;
    assert!(
        twice
            .unwrap_err()
            .to_string()
            .contains("Cluster/demo exists in the target and is another one")
    );
    world.deleted_without_a_trace().await;
}
