use std::collections::BTreeMap;
use std::fmt::Debug;

use api::bootstrap::v1beta2::KubeadmConfig;
use api::core::v1beta2::{Cluster, ContractReference};
use api::kube::core::NamespaceResourceScope;
use api::kube::{Api, Resource, ResourceExt};
use operator::metrics::Metrics;
use operator::watch::Reports;
use serde::de::DeserializeOwned;
use serde_json::json;
use testbed::{Management, NAMESPACE, eventually};
use tokio_util::sync::CancellationToken;

use super::{Feed, Indexed};

async fn management() -> Management {
    let groups = [api::core::crd::all(), api::bootstrap::crd::all()];
    Management::open(groups.into_iter().flatten()).await
}

fn start<K>(management: &Management, shutdown: CancellationToken) -> Feed<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Indexed,
    K: Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let reports = Reports {
        watch: "test",
        metrics: Metrics::default(),
        recorder: None,
    };
    let api = Api::namespaced(management.client.clone(), NAMESPACE);
    Feed::start(api, (), reports, shutdown)
}

async fn config(management: &Management, name: &str, cluster: &str) {
    management
        .create(json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
            "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": cluster } },
            "spec": {},
        }))
        .await;
}

#[tokio::test]
async fn objects_are_found_by_their_cluster_until_they_leave_it_or_go() {
    let management = management().await;
    config(&management, "a", "one").await;
    config(&management, "b", "one").await;
    config(&management, "c", "two").await;
    let shutdown = CancellationToken::new();
    let feed: Feed<KubeadmConfig> = start(&management, shutdown.clone());
    let _stop = shutdown.drop_guard();
    let found = |cluster: &str| -> Vec<String> {
        let found = feed.in_cluster(NAMESPACE, cluster, |_| true);
        found.iter().map(|config| config.name_any()).collect()
    };
    let sees = async |one: &[&str], two: &[&str]| {
        eventually("the index to follow", || async {
            let now = (found("one"), found("two"));
            if now.0 == one && now.1 == two {
                Ok(())
            } else {
                Err(format!("{now:?}"))
            }
        })
        .await;
    };
    sees(&["a", "b"], &["c"]).await;
    assert!(feed.in_cluster("elsewhere", "one", |_| true).is_empty());
    let moved = json!({ "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "two" } } });
    management.merge::<KubeadmConfig>("b", moved).await;
    sees(&["a"], &["b", "c"]).await;
    management.delete::<KubeadmConfig>("c").await;
    management.delete::<KubeadmConfig>("a").await;
    sees(&[], &["b"]).await;
    assert_eq!(
        feed.index
            .read()
            .names(NAMESPACE, super::Key::Cluster("one".to_owned()))
            .count(),
        0
    );
}

#[tokio::test]
async fn a_cluster_is_found_by_what_it_refers_to() {
    let management = management().await;
    let reference = json!({
        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "FakeCluster", "name": "net",
    });
    management
        .create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": "demo" }, "spec": { "infrastructureRef": reference },
        }))
        .await;
    let shutdown = CancellationToken::new();
    let feed: Feed<Cluster> = start(&management, shutdown.clone());
    let _stop = shutdown.drop_guard();
    let reference: ContractReference = serde_json::from_value(reference).unwrap();
    eventually("the Cluster to be found", || async {
        match feed.referring_to(NAMESPACE, &reference).as_slice() {
            [cluster] if cluster.name_any() == "demo" => Ok(()),
            other => Err(format!("{} Clusters", other.len())),
        }
    })
    .await;
    let other = ContractReference {
        name: "other".to_owned(),
        ..reference
    };
    assert!(feed.referring_to(NAMESPACE, &other).is_empty());
}

#[tokio::test]
async fn what_is_remembered_of_an_object_is_forgotten_with_it() {
    let management = management().await;
    let shutdown = CancellationToken::new();
    let feed: Feed<KubeadmConfig> = start(&management, shutdown.clone());
    let _stop = shutdown.drop_guard();
    let memory = feed.memory::<u32>();
    let mut objects = BTreeMap::new();
    for name in ["a", "b"] {
        config(&management, name, "one").await;
        let object = eventually("the object to arrive", || async {
            feed.get(NAMESPACE, name).ok_or_else(|| name.to_owned())
        })
        .await;
        memory.insert(&object, 1);
        objects.insert(name, object);
    }
    assert_eq!((memory.get(&objects["a"]), memory.len()), (Some(1), 2));
    management.delete::<KubeadmConfig>("a").await;
    eventually("the object to be forgotten", || async {
        match memory.len() {
            1 => Ok(()),
            other => Err(other.to_string()),
        }
    })
    .await;
    // A reconcile that was still running does not restore the value, and a new object with the same name has none.
    memory.insert(&objects["a"], 2);
    config(&management, "a", "one").await;
    let namesake = eventually("the namesake to arrive", || async {
        feed.get(NAMESPACE, "a").ok_or_else(|| "absent".to_owned())
    })
    .await;
    assert_eq!(
        (memory.get(&objects["a"]), memory.get(&namesake)),
        (None, None)
    );
    assert_eq!(memory.get(&objects["b"]), Some(1));
}
