//! Backups: made of a running `up` and of a stopped one; `up` goes on from what was restored.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};

use crate::main_job::kind;
use crate::process::{Up, run, texts};

const SMALL: [&str; 4] = [
    "--control-plane-machine-count",
    "1",
    "--worker-machine-count",
    "1",
];

/// Runs an `admin` command, and gives what it said: warnings first, which are on standard error.
async fn admin(home: &Path, args: &[&str]) -> Result<String, String> {
    let output = run(home, &[&["admin"], args].concat()).await;
    let (out, errors) = texts(&output);
    if output.status.success() {
        Ok(errors + &out)
    } else {
        Err(errors)
    }
}

/// The Machines with their uids and providers' ids: others would mean other servers.
async fn machines(up: &Up) -> BTreeMap<String, (String, String)> {
    let api: Api<DynamicObject> = Api::namespaced_with(
        up.client().await,
        "default",
        &kind("cluster.x-k8s.io", "Machine"),
    );
    let all = api.list(&ListParams::default()).await.unwrap();
    let machine = |machine: &DynamicObject| {
        let provider = machine.data["spec"]["providerID"].to_string();
        (machine.name_any(), (machine.uid().unwrap(), provider))
    };
    all.items.iter().map(machine).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn up_goes_on_from_a_backup_in_another_place() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let data = data.to_str().unwrap();
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let nothing = admin(home.path(), &["backup", &path("b"), "--data-dir", data]).await;
    let nothing = nothing.unwrap_err();
    assert!(nothing.contains("there is nothing to back up"), "{nothing}");

    let mut up = Up::start(home.path(), &SMALL, &[]);
    up.ready().await;
    let before = machines(&up).await;
    assert_eq!(before.len(), 2);
    let running = path("running.backup");
    let nowhere = path("nowhere");
    let refused = admin(
        home.path(),
        &["backup", &format!("{nowhere}/b"), "--data-dir", data],
    )
    .await;
    assert_eq!(
        refused.unwrap_err().trim_end(),
        format!("error: cannot write {nowhere}/b: there is no directory {nowhere}")
    );
    let backup = admin(home.path(), &["backup", &running, "--data-dir", data]).await;
    let backup = backup.unwrap();
    assert!(
        backup.contains("the authority of the management API"),
        "{backup}"
    );
    assert!(
        backup.starts_with("warning: the simulated cloud is not in this backup"),
        "{backup}"
    );
    let mode = std::fs::metadata(&running).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let refused = admin(
        home.path(),
        &["restore", &running, "--data-dir", data, "--replace"],
    )
    .await;
    let refused = refused.unwrap_err();
    assert!(
        refused.contains("is in use by another ferrostack"),
        "{refused}"
    );
    up.stop().await;

    let stopped = path("stopped.backup");
    let backup = admin(home.path(), &["backup", &stopped, "--data-dir", data]).await;
    let backup = backup.unwrap();
    assert!(backup.contains("the simulated cloud"), "{backup}");
    assert!(!backup.contains("warning: "), "{backup}");
    let written = std::fs::read(&stopped).unwrap();
    let again = admin(home.path(), &["backup", &stopped, "--data-dir", data]).await;
    let again = again.unwrap_err();
    assert!(again.contains("replace it with --overwrite"), "{again}");
    assert_eq!(std::fs::read(&stopped).unwrap(), written);
    let args = ["backup", &stopped, "--overwrite", "--data-dir", data];
    admin(home.path(), &args).await.unwrap();
    let disks = home.path().join("data/machines");
    std::fs::create_dir(&disks).unwrap();
    std::fs::write(disks.join("disk"), "content").unwrap();
    let with_machines = path("machines.backup");
    let backup = admin(home.path(), &["backup", &with_machines, "--data-dir", data])
        .await
        .unwrap();
    assert!(
        backup.starts_with("warning: the disks of the machines"),
        "{backup}"
    );
    std::fs::remove_dir_all(&disks).unwrap();

    // Elsewhere, as on another machine: the same Machines on the same servers.
    let elsewhere = tempfile::tempdir().unwrap();
    let there = elsewhere.path().join("data");
    let there = there.to_str().unwrap();
    admin(
        elsewhere.path(),
        &["restore", &stopped, "--data-dir", there],
    )
    .await
    .unwrap();
    let mut resumed = Up::start(elsewhere.path(), &SMALL, &[]);
    resumed.ready().await;
    assert_eq!(machines(&resumed).await, before, "{}", resumed.story());
    resumed.stop().await;

    // What is there is not lost by mistake.
    let refused = admin(home.path(), &["restore", &running, "--data-dir", data]).await;
    let refused = refused.unwrap_err();
    assert!(refused.contains("is not empty"), "{refused}");
    std::fs::write(path("damaged.backup"), b"something else").unwrap();
    let damaged = path("damaged.backup");
    let refused = admin(
        home.path(),
        &["restore", &damaged, "--data-dir", data, "--replace"],
    )
    .await;
    let refused = refused.unwrap_err();
    assert!(
        refused.contains("damaged.backup is not a backup, or a damaged one"),
        "{refused}"
    );
    // A database, but not that of an API server.
    let cloud = format!("{data}/cloud.db");
    let refused = admin(
        home.path(),
        &["restore", &cloud, "--data-dir", data, "--replace"],
    )
    .await;
    let refused = refused.unwrap_err();
    assert!(refused.contains("cloud.db is not a backup"), "{refused}");
    assert!(!home.path().join("data.restoring").exists());
    let replaced = admin(
        home.path(),
        &["restore", &running, "--data-dir", data, "--replace"],
    )
    .await;
    let replaced = replaced.unwrap();
    assert!(replaced.contains("data.before-restore"), "{replaced}");
    assert!(home.path().join("data.before-restore/cloud.db").exists());
    assert!(home.path().join("data/management.db").exists());
    assert!(!home.path().join("data/cloud.db").exists());
}
