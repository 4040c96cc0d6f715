use std::cell::RefCell;

use clap::Parser;
use serde_json::{Value, json};

use super::*;
use crate::cli::{Cli, Command, Csi};
use crate::commands::csi::tests::world::World;

/// Output of the command, and its exit status.
async fn command(world: &World, conf: &str, flags: &[&str]) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cloud.conf");
    std::fs::write(&file, conf).unwrap();
    let file = file.display().to_string();
    let mut words = vec!["ferrostack", "csi", "check", "--cloud-config", &file];
    words.extend(flags);
    let Command::Csi(Csi::Check(args)) = Cli::try_parse_from(words).unwrap().command else {
        panic!("another command");
    };
    let printed = RefCell::new(String::new());
    let print = |text: &str| {
        printed.borrow_mut().push_str(text);
        Ok(())
    };
    let code = of_cluster(&args, &world.client, &Environment::default(), print).await;
    let code = format!("{:?}", code.unwrap());
    // Rows with the file remain as wide as the others.
    let wide = format!("{:width$}  ", "cloud.conf", width = file.len());
    let printed = printed.into_inner().replace(&format!("{file}  "), &wide);
    (printed.replace(&file, "cloud.conf"), code)
}

/// The words of a table.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn wrong() -> String {
    format!("{:?}", ExitCode::from(2))
}

fn right() -> String {
    format!("{:?}", ExitCode::SUCCESS)
}

async fn driver(world: &World) {
    world
        .create(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
            "metadata": {"name": "cinder.csi.openstack.org"},
            "spec": {"attachRequired": true, "fsGroupPolicy": "File", "volumeLifecycleModes": ["Persistent"]}}))
        .await;
}

#[tokio::test]
async fn a_cluster_is_held_to_its_cloud_and_the_page_shows_how() {
    let world = World::open().await;
    driver(&world).await;
    let (text, code) = command(&world, &world.conf("secret"), &[]).await;
    assert_eq!((text.as_str(), code), ("Nothing is wrong.\n", right()));

    let volume = json!({"name": "pvc-1", "size": 1, "volume_type": "standard"});
    let id = world.available("volume", volume).await;
    world.persistent_volume("pvc-1", &id).await;
    world
        .persistent_volume("pvc-2", "8e9ed23f-1e9f-4a0c-8f0c-1d3a0c3b0a11")
        .await;
    let parameters = json!({"type": "ssd", "fstype": "xfs"});
    world
        .create(
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "database"}, "provisioner": "cinder.csi.openstack.org",
            "volumeBindingMode": "WaitForFirstConsumer", "parameters": parameters}),
        )
        .await;
    let group = "snapshot.storage.k8s.io";
    world.install(group, "VolumeSnapshotClass", "Cluster").await;
    world
        .create(
            json!({"apiVersion": format!("{group}/v1"), "kind": "VolumeSnapshotClass",
            "metadata": {"name": "daily"}, "driver": "cinder.csi.openstack.org",
            "deletionPolicy": "Delete", "parameters": {"force-create": "yes"}}),
        )
        .await;
    let conf = format!(
        "{}[BlockStorage]\nzone-map = nova=ceph\nbs-version = v3\n",
        world.conf("secret")
    );
    let (text, code) = command(&world, &conf, &[]).await;
    assert_eq!(code, wrong(), "{text}");
    let page = include_str!("../../../../../../docs/guides/cinder-csi.md");
    assert!(page.contains(&format!("```\n{text}```")), "{text}");

    let (text, code) = command(&world, &conf, &["-o", "json", "--with-topology=false"]).await;
    assert_eq!(code, wrong());
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&document["errors"], &document["warnings"]),
        (&json!(4), &json!(1))
    );
    let findings = document["findings"].as_array().unwrap();
    assert_eq!(
        findings[0],
        json!({"level": "error", "object": "PersistentVolume/pvc-2", "field": "spec.csi.volumeHandle",
            "message": "Cinder lists no volume 8e9ed23f-1e9f-4a0c-8f0c-1d3a0c3b0a11 in the project",
            "advice": "delete claim and PersistentVolume, or correct the project in cloud.conf: the data are not there"})
    );
}

#[tokio::test]
async fn a_file_and_a_login_that_are_wrong_are_findings_like_others() {
    let world = World::open().await;
    driver(&world).await;
    let (text, code) = command(&world, &world.conf("wrong"), &[]).await;
    assert_eq!(code, wrong());
    assert!(
        words(&text).contains("error cloud.conf [Global] "),
        "{text}"
    );
    assert!(
        text.contains("Keystone does not accept the credential"),
        "{text}"
    );
    assert!(text.contains("> correct the credentials"), "{text}");
    let (text, code) = command(&world, "[Global]\nauth-url = x\n", &[]).await;
    assert_eq!(code, wrong());
    assert!(
        words(&text).contains("error cloud.conf [Global] auth-url "),
        "{text}"
    );
    assert!(!text.contains("Nothing is wrong"), "{text}");
    // Warnings alone are no failure.
    let conf = format!("{}[BlockStorage]\nbs-version = v3\n", world.conf("secret"));
    let (text, code) = command(&world, &conf, &[]).await;
    assert_eq!(code, right(), "{text}");
    assert!(text.ends_with("0 errors, 1 warning\n"), "{text}");
}

#[tokio::test]
async fn secrets_of_classes_and_quotas_of_types_are_read() {
    let world = World::open().await;
    driver(&world).await;
    let key = |what: &str| format!("csi.storage.k8s.io/provisioner-secret-{what}");
    for name in ["absent", "elsewhere", "here"] {
        let parameters =
            json!({"type": "standard", (key("name")): name, (key("namespace")): "default"});
        world
            .create(
                json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": name}, "provisioner": "cinder.csi.openstack.org",
                "volumeBindingMode": "WaitForFirstConsumer", "parameters": parameters}),
            )
            .await;
    }
    // The key `cloud`, in base64.
    for (name, data) in [
        (
            "elsewhere",
            json!({"cloud": "c2Vjb25k", "password": "c2VjcmV0"}),
        ),
        ("here", json!({})),
    ] {
        world
            .create(json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": name, "namespace": "default"}, "data": data}))
            .await;
    }
    world.quota(json!({"volumes_standard": 0})).await;
    let (text, code) = command(&world, &world.conf("secret"), &[]).await;
    assert_eq!(code, wrong());
    let text = words(&text);
    for expected in [
        "there is no Secret absent in default",
        "the key `cloud` of the Secret elsewhere in default is `second`, and cloud.conf has [Global], without a name",
        "0 of 0 volumes of the type `standard` are in use",
        "3 errors, 0 warnings",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("secret\""), "{text}");
}

#[tokio::test]
async fn classes_of_volumes_that_are_there_are_read_where_the_cluster_has_them() {
    let world = World::open().await;
    driver(&world).await;
    for (group, kind, driver, parameters) in [
        (
            "storage.k8s.io",
            "VolumeAttributesClass",
            "driverName",
            json!({"type": "gone", "iops": "1"}),
        ),
        (
            "groupsnapshot.storage.k8s.io",
            "VolumeGroupSnapshotClass",
            "driver",
            json!({"group-type": "gone"}),
        ),
    ] {
        world.install(group, kind, "Cluster").await;
        for (name, of) in [("ours", "cinder.csi.openstack.org"), ("others", "ebs")] {
            world
                .create(json!({"apiVersion": format!("{group}/v1"), "kind": kind,
                    "metadata": {"name": name}, (driver): of, "parameters": parameters}))
                .await;
        }
    }
    let (text, code) = command(&world, &world.conf("secret"), &[]).await;
    assert_eq!(code, wrong());
    let text = words(&text);
    for expected in [
        "VolumeAttributesClass/ours parameters.iops the parameter `iops`",
        "VolumeAttributesClass/ours parameters.type Cinder shows the project no type `gone`",
        "VolumeGroupSnapshotClass/ours parameters.group-type there is no group type gone",
        "3 errors, 0 warnings",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
