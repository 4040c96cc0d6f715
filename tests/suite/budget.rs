//! OpenStack requests per cluster and per worker, held to a budget. Reads are shared lists and counted apart.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::cloud::TestCloud;
use crate::main_job::kind;
use crate::process::{Up, eventually};

/// The most writes for a cluster with one control plane machine and no worker: network, subnet, router, three
/// groups, their rules, load balancer, floating IP, tags, and the machine.
const PER_CLUSTER: u64 = 30;
/// The most writes for each further worker.
const PER_WORKER: u64 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn writes_stay_within_their_budget() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let args = [
        "--cloud",
        "simulated",
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ];
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    let first = cloud.cloud.writes();
    assert!(
        first <= PER_CLUSTER + PER_WORKER,
        "{first} writes:\n{}",
        routes(&cloud)
    );

    let deployment = kind("cluster.x-k8s.io", "MachineDeployment");
    let api: Api<DynamicObject> = Api::namespaced_with(up.client().await, "default", &deployment);
    cloud.cloud.reset_requests();
    let patch = Patch::Merge(json!({"spec": {"replicas": 6}}));
    api.patch("demo-md-0", &PatchParams::default(), &patch)
        .await
        .unwrap();
    eventually("six workers", || async {
        let found = api.get("demo-md-0").await.ok()?;
        (found.data["status"]["readyReplicas"] == 6).then_some(())
    })
    .await;
    let more = cloud.cloud.writes() - first;
    assert!(
        more <= 5 * PER_WORKER,
        "{more} writes for 5 workers:\n{}",
        routes(&cloud)
    );
    up.stop().await;
}

fn routes(cloud: &TestCloud) -> String {
    let lines = cloud.cloud.requests().into_iter().map(|request| {
        format!(
            "{:>5} {} {} {}",
            request.count, request.service, request.method, request.route
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}
