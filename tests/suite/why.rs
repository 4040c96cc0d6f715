//! `why`: one chain from an object to the cloud's own words.

use std::collections::BTreeMap;
use std::path::Path;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use simulator::guest;

use crate::cloud::TestCloud;
use crate::main_job::kind;
use crate::process::{Up, eventually, ferrostack, texts};

async fn why(home: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = ferrostack(home)
        .arg("why")
        .args(args)
        .arg("--data-dir")
        .arg(home.join("data"))
        .output()
        .await;
    let (out, err) = texts(&output);
    (output.status.code(), out, err)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_quota_refuses_is_told_from_the_cluster_to_the_server() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let quotas = BTreeMap::from([("instances".to_owned(), 2)]);
    let cloud = TestCloud::with(home, quotas, guest::Options::default()).await;
    let args = [
        "--cloud",
        "simulated",
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ];
    let mut up = Up::start(home, &args, &cloud.variables());
    up.ready().await;
    let (code, out, err) = why(home, &[]).await;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, "Cluster/demo is ready\n");

    let deployments: Api<DynamicObject> = Api::default_namespaced_with(
        up.client().await,
        &kind("cluster.x-k8s.io", "MachineDeployment"),
    );
    let two = Patch::Merge(json!({"spec": {"replicas": 2}}));
    let params = PatchParams::default();
    deployments.patch("demo-md-0", &params, &two).await.unwrap();
    let out = eventually("the words of the cloud", || async {
        let (_, out, _) = why(home, &["md", "demo-md-0"]).await;
        out.contains("Quota exceeded").then_some(out)
    })
    .await;
    let first = out.lines().next().unwrap();
    assert!(
        first.starts_with("MachineDeployment/demo-md-0 waits for OpenStackMachine/demo-md-0-")
            && first.contains(", which has been failing for "),
        "{out}"
    );
    for line in [
        "    └─MachineSet/demo-md-0-",
        "      └─Machine/demo-md-0-",
        "        └─OpenStackMachine/demo-md-0-",
        "next: raise the quota",
    ] {
        assert!(out.contains(line), "{line}\n{out}");
    }
    // The same chain from the Cluster, for programs.
    let (_, out, err) = why(home, &["cluster/demo", "-o", "json"]).await;
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
    assert_eq!(answer["ready"], false, "{answer:#}");
    assert_eq!(answer["chain"][0]["object"], "Cluster/demo");
    assert_eq!(answer["chain"][1]["object"], "MachineDeployment/demo-md-0");
    let detail = answer["cause"]["detail"].as_str().unwrap();
    assert!(detail.contains("Quota exceeded for instances"), "{detail}");

    let (code, _, err) = why(home, &["machine/no-such"]).await;
    assert_eq!(code, Some(1));
    let start = "error: there is no Machine/no-such in namespace default; there are: demo-";
    assert!(err.starts_with(start), "{err}");
    up.stop().await;
}
