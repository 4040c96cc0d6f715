//! What users read when something happens behind the program's back, or a version is in the way.

use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};

use crate::main_job::kind;
use crate::process::{Up, eventually, ferrostack, texts};

const SMALL: [&str; 4] = [
    "--control-plane-machine-count",
    "1",
    "--worker-machine-count",
    "1",
];

/// The notes of the events of a reason.
async fn notes(up: &Up, reason: &str) -> Vec<(String, String)> {
    let events = ApiResource::from_gvk(&GroupVersionKind::gvk("events.k8s.io", "v1", "Event"));
    let events: Api<DynamicObject> = Api::namespaced_with(up.client().await, "default", &events);
    let events = events.list(&ListParams::default()).await.unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_reason = events
        .items
        .iter()
        .filter(|event| event.data["reason"] == reason);
    of_reason
        .map(|event| {
            (
                text(&event.data["regarding"]["kind"]),
                text(&event.data["note"]),
            )
        })
        .collect()
}

async fn described(home: &std::path::Path) -> String {
    let output = ferrostack(home)
        .args(["describe", "cluster", "demo", "--data-dir"])
        .arg(home.join("data"))
        .output()
        .await;
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{err}");
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_deleted_by_hand_is_seen_before_the_next_list() {
    let home = tempfile::tempdir().unwrap();
    let mut up = Up::start(home.path(), &SMALL, &[]);
    up.ready().await;
    let machines: Api<DynamicObject> = Api::namespaced_with(
        up.client().await,
        "default",
        &kind("infrastructure.cluster.x-k8s.io", "OpenStackMachine"),
    );
    let all = machines.list(&ListParams::default()).await.unwrap();
    let worker = all
        .items
        .iter()
        .find(|machine| !is_control_plane(machine))
        .unwrap();
    let id = worker.data["status"]["instanceID"].as_str().unwrap();
    let clouds = std::fs::read_to_string(home.path().join("data/clouds.yaml")).unwrap();
    let config = openstack::CloudConfig::parse(&clouds, "simulated").unwrap();
    let session = openstack::Session::connect(config, &Default::default())
        .await
        .unwrap();
    session.compute().delete_server(id).await.unwrap();
    let deleted = Instant::now();
    let reported = eventually("the loss is reported", || async {
        let found = notes(&up, "InstanceDeleted").await;
        let kinds = ["OpenStackMachine", "Machine"];
        let all = kinds
            .iter()
            .all(|kind| found.iter().any(|(of, _)| of == kind));
        all.then_some(found)
    })
    .await;
    // Ten seconds, on a machine that does other things besides. Without hints it takes a minute or more.
    assert!(deleted.elapsed() < Duration::from_secs(30), "{reported:?}");
    assert!(
        reported[0].1.contains("was deleted by somebody else"),
        "{reported:?}"
    );
    up.stop().await;
}

fn is_control_plane(machine: &DynamicObject) -> bool {
    let labels = machine.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key("cluster.x-k8s.io/control-plane"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_rollout_stands_where_users_look() {
    let home = tempfile::tempdir().unwrap();
    let mut up = Up::start(home.path(), &SMALL, &[]);
    up.ready().await;
    let deployments: Api<DynamicObject> = Api::namespaced_with(
        up.client().await,
        "default",
        &kind("cluster.x-k8s.io", "MachineDeployment"),
    );
    let patch = json!({"spec": {"template": {"spec": {"version": "v1.35.0"}}}});
    deployments
        .patch("demo-md-0", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    let why =
        "ersion v1.35.0 is newer than that of KubeadmControlPlane demo-control-plane, v1.34.2";
    eventually("the event", || async {
        let found = notes(&up, "RolloutBlocked").await;
        let reported =
            |(kind, note): &(String, String)| kind == "MachineDeployment" && note.contains(why);
        found.iter().any(reported).then_some(())
    })
    .await;
    let out = described(home.path()).await;
    let row = out.lines().find(|line| line.contains("MachineDeployment/"));
    assert!(row.unwrap().contains(&format!("blocked: v{why}")), "{out}");
    for _ in 0..200 {
        if up.story().contains(why) {
            break;
        }
        up.read_lines(1).await;
    }
    assert!(up.story().contains(why), "{}", up.story());
    up.stop().await;
}
