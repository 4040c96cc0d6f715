//! Guests in a process of their own, on a cloud that they know by its APIs only.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};

use crate::cloud::TestCloud;
use crate::main_job::workload_client;
use crate::process::{Up, ferrostack, run, texts};

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_only_see_the_apis_make_a_cluster_of_another_cloud() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::without_guests(home.path()).await;
    let mut guests = ferrostack(home.path())
        .args(["simulate", "guests", "--cloud", "simulated-admin"])
        .args(["--interval", "1s", "--state-dir"])
        .arg(home.path().join("guests"))
        .envs(cloud.variables())
        .start();

    let counts = [
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ];
    let args: Vec<&str> = ["--cloud", "simulated"].into_iter().chain(counts).collect();
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    let nodes: Api<Node> = Api::all(workload_client(home.path()).await);
    let found = nodes.list(&ListParams::default()).await.unwrap();
    assert_eq!(found.items.len(), 2);

    let mut boot_lines = Vec::new();
    while boot_lines
        .iter()
        .filter(|line: &&String| line.ends_with(": is a node"))
        .count()
        < 2
    {
        boot_lines.push(guests.line("of what boots", |_| true).await);
    }
    assert!(
        boot_lines.iter().any(|line| line.contains(": boots (")),
        "{boot_lines:?}"
    );
    assert!(
        boot_lines
            .iter()
            .any(|line| line.contains("leads to a load balancer of")),
        "{boot_lines:?}"
    );
    up.stop().await;
    guests.child.kill().await.unwrap();
}

#[tokio::test]
async fn guests_need_an_administrator_and_say_so() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::without_guests(home.path()).await;
    let command = ferrostack(home.path())
        .args(["simulate", "guests", "--cloud", "simulated"])
        .envs(cloud.variables());
    let (_, errors) = texts(&command.output().await);
    assert!(errors.contains("needs an administrator"), "{errors}");
    let (_, errors) = texts(&run(home.path(), &["simulate", "guests"]).await);
    assert!(errors.contains("--cloud"), "{errors}");
}
