use api::core::v1beta2::{Cluster, Machine};
use api::k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use testbed::Management;

use super::acquire;

async fn management() -> Management {
    let management = Management::open(api::core::crd::all()).await;
    management
        .create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": "demo" }, "spec": { "paused": false },
        }))
        .await;
    for name in ["first", "second"] {
        management
            .create(json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "metadata": { "name": name },
                "spec": {
                    "clusterName": "demo",
                    "bootstrap": { "dataSecretName": "data" },
                    "infrastructureRef": {
                        "apiGroup": "infrastructure.cluster.x-k8s.io",
                        "kind": "FakeMachine", "name": name,
                    },
                },
            }))
            .await;
    }
    management
}

async fn acquires(management: &Management, cluster: &Cluster, machine: &str) -> bool {
    let machine = management.api::<Machine>().get(machine).await.unwrap();
    let acquired = acquire(&management.client, cluster, &machine).await;
    acquired.unwrap()
}

#[tokio::test]
async fn one_machine_at_a_time_holds_the_lock() {
    let management = management().await;
    let cluster = management.api::<Cluster>().get("demo").await.unwrap();
    assert!(acquires(&management, &cluster, "first").await);
    assert!(acquires(&management, &cluster, "first").await);
    assert!(!acquires(&management, &cluster, "second").await);
    management.delete::<Machine>("first").await;
    // The lock of a machine that does not exist is deleted, and acquired at the next attempt.
    assert!(!acquires(&management, &cluster, "second").await);
    assert!(acquires(&management, &cluster, "second").await);
}

#[tokio::test]
async fn nobody_gets_the_lock_of_a_cluster_that_was_initialized_after_it_was_read() {
    let management = management().await;
    let before = management.api::<Cluster>().get("demo").await.unwrap();
    let status = json!({ "status": { "initialization": { "controlPlaneInitialized": true } } });
    management
        .api::<Cluster>()
        .patch_status(
            "demo",
            &Default::default(),
            &kube::api::Patch::Merge(status),
        )
        .await
        .unwrap();
    assert!(!acquires(&management, &before, "second").await);
    let left = management.list::<ConfigMap>().await;
    let left: Vec<_> = left
        .into_iter()
        .filter_map(|map| map.metadata.name)
        .collect();
    assert!(!left.contains(&"demo-lock".to_owned()), "{left:?}");
}
