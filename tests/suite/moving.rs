//! A cluster that moves from one `up` to another, on one cloud: what its user does and reads.

use std::path::Path;

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::cloud::TestCloud;
use crate::main_job::{kind, machines, wait_for_nodes, workload_client};
use crate::process::{Up, eventually, ferrostack, run, texts};

const CLUSTER: [&str; 6] = [
    "--cloud",
    "simulated",
    "--control-plane-machine-count",
    "1",
    "--worker-machine-count",
    "1",
];

fn path(home: &Path, name: &str) -> String {
    home.join(name).display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_moves_to_another_up_though_the_command_is_killed_and_is_scaled_and_deleted_there()
 {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (here, there) = (here.path(), there.path());
    let cloud = TestCloud::start(here).await;
    let before = cloud.cloud.resources();
    let mut source = Up::start(here, &CLUSTER, &cloud.variables());
    source.ready().await;
    let nothing = path(there, "nothing.yaml");
    std::fs::write(
        &nothing,
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n",
    )
    .unwrap();
    let target = Up::start(
        there,
        &["--cloud", "simulated", "-f", &nothing],
        &cloud.variables(),
    );
    eventually("the other management API", || async {
        there.join("data/kubeconfig").exists().then_some(())
    })
    .await;
    let running = cloud.cloud.resources();

    let (data, to) = (path(here, "data"), path(there, "data/kubeconfig"));
    let mut arguments = vec!["move", "--data-dir", &data, "--to-kubeconfig", &to];
    arguments.push("--dry-run");
    let dry = run(here, &arguments).await;
    let (out, err) = texts(&dry);
    assert!(dry.status.success(), "{out}{err}");
    for line in [
        "moves: Cluster/demo: it is moved with all that belongs to it",
        "moves: Secret/demo-cloud-config: ",
        "  2 Machines\n",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    arguments.extend(["-o", "json"]);
    let (out, _) = texts(&run(here, &arguments).await);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["clusters"], json!(["demo"]));
    arguments.truncate(5);

    // kill -9 while copies are created, then again with the same words.
    let mut moving = ferrostack(here).args(&arguments).start();
    let creates = |line: &str| line.starts_with("creating ");
    moving.line("of an object that is created", creates).await;
    moving.child.kill().await.unwrap();
    let elsewhere = run(
        here,
        &[
            "move",
            "--data-dir",
            &data,
            "--to-directory",
            &path(here, "files"),
        ],
    )
    .await;
    let (_, err) = texts(&elsewhere);
    assert!(err.contains("to another place has not ended"), "{err}");
    let again = run(here, &arguments).await;
    let (out, err) = texts(&again);
    assert!(again.status.success(), "{out}{err}");
    assert!(
        err.contains("continuing the move that was cut off"),
        "{err}"
    );
    assert!(
        out.contains("of namespace default have moved: Cluster demo"),
        "{out}"
    );

    // Nothing is here, and a further move says so.
    let (out, _) = texts(&run(here, &["get", "clusters", "--data-dir", &data]).await);
    assert!(
        out.contains("There is no cluster in namespace default"),
        "{out}"
    );
    let empty = run(here, &arguments).await;
    assert_eq!(empty.status.code(), Some(1));
    assert!(
        texts(&empty)
            .1
            .contains("there is nothing to move in namespace default"),
        "{}",
        texts(&empty).1
    );

    // It is managed there: a worker more, and the end.
    let client = target.client().await;
    assert_eq!(cloud.cloud.resources(), running);
    let deployments: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        "default",
        &kind("cluster.x-k8s.io", "MachineDeployment"),
    );
    let patch = Patch::Merge(json!({"spec": {"replicas": 2}}));
    deployments
        .patch("demo-md-0", &PatchParams::default(), &patch)
        .await
        .unwrap();
    wait_for_nodes(&Api::all(workload_client(there).await), 3).await;
    assert_eq!(
        machines(&client)
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        3
    );
    let there_data = path(there, "data");
    let deleted = run(
        there,
        &[
            "delete",
            "cluster",
            "demo",
            "--wait",
            "--data-dir",
            &there_data,
        ],
    )
    .await;
    let (out, err) = texts(&deleted);
    assert!(
        out.contains("cluster demo is gone"),
        "{out}{err}\n{}",
        target.story()
    );
    assert_eq!(cloud.cloud.resources(), before);
    source.stop().await;
    target.stop().await;
}
