//! `up` that is asked to stop: at its beginning, and when it has clusters.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};

use crate::main_job::kind;
use crate::process::{Up, eventually};

/// When the conditions of all objects last changed: `Kind/name/type` and the time.
async fn changes(client: &kube::Client) -> BTreeMap<String, String> {
    let mut changes = BTreeMap::new();
    for name in ["OpenStackCluster", "OpenStackMachine"] {
        let resource = kind("infrastructure.cluster.x-k8s.io", name);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for object in api.list(&ListParams::default()).await.unwrap() {
            let conditions = object.data["status"]["conditions"].as_array().cloned();
            for condition in conditions.unwrap_or_default() {
                let label = format!("{name}/{}/{}", object.name_any(), condition["type"]);
                changes.insert(label, condition["lastTransitionTime"].to_string());
            }
        }
    }
    changes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_writes_no_failure_into_the_objects() {
    let home = tempfile::tempdir().unwrap();
    let args = [
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ];
    let mut up = Up::start(home.path(), &args, &[]);
    up.ready().await;
    let before = changes(&up.client().await).await;
    assert!(
        before
            .keys()
            .any(|it| it.contains("OpenStackAuthenticationSucceeded")),
        "{before:?}"
    );
    for _ in 0..3 {
        up.stop().await;
        up = Up::start(home.path(), &[], &[]);
        up.ready().await;
        assert_eq!(changes(&up.client().await).await, before);
    }
    up.stop().await;
}

/// Waits until `up` has its data directory, as the reader of a signal has begun by then.
async fn has_begun(home: &Path) {
    let lock = home.join("data/lock");
    eventually("the lock", || async { lock.exists().then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_the_first_second_is_a_stop() {
    for pause in [0, 20, 60, 120, 250, 500, 900] {
        let home = tempfile::tempdir().unwrap();
        let up = Up::start(home.path(), &[], &[]);
        has_begun(home.path()).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let log = up.log.clone();
        up.stop().await;
        let log = std::fs::read_to_string(log).unwrap();
        // What a stop of an `up` that has begun may wait for.
        assert!(!log.contains("after 15 s"), "after {pause} ms: {log}");
    }
}
