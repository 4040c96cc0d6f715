use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use api::bootstrap::v1beta2::KubeadmConfig;
use api::core::v1beta2::{Cluster, ClusterClass, ContractReference};
use api::k8s_openapi::api::core::v1::Namespace;
use api::kube::api::PostParams;
use api::kube::core::NamespaceResourceScope;
use api::kube::{Resource, ResourceExt};
use operator::client::Api;
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
async fn clusters_are_found_by_their_namespace_and_by_their_class_in_any_namespace() {
    let management = management().await;
    // There are no classes.
    management.enforce(false);
    let namespaces: Api<Namespace> = Api::all(management.client.clone());
    let other = serde_json::from_value(json!({ "metadata": { "name": "other" } })).unwrap();
    namespaces
        .create(&PostParams::default(), &other)
        .await
        .unwrap();
    for (namespace, name, class) in [
        (NAMESPACE, "a", json!({ "name": "small" })),
        (NAMESPACE, "b", json!({ "name": "large" })),
        (
            "other",
            "c",
            json!({ "name": "small", "namespace": NAMESPACE }),
        ),
        ("other", "d", json!({ "name": "small" })),
    ] {
        let clusters: Api<Cluster> = Api::namespaced(management.client.clone(), namespace);
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": name },
            "spec": { "topology": { "classRef": class, "version": "v1.34.2" } },
        });
        let cluster = serde_json::from_value(cluster).unwrap();
        clusters
            .create(&PostParams::default(), &cluster)
            .await
            .unwrap();
    }
    let shutdown = CancellationToken::new();
    let reports = Reports {
        watch: "test",
        metrics: Metrics::default(),
        recorder: None,
    };
    let api = Api::all(management.client.clone());
    let feed: Feed<Cluster> = Feed::start(api, (), reports, shutdown.clone());
    let _stop = shutdown.drop_guard();
    let names = |clusters: Vec<Arc<Cluster>>| -> Vec<String> {
        clusters.iter().map(|cluster| cluster.name_any()).collect()
    };
    let sees = async |expected: [&[&str]; 4]| {
        eventually("the index to follow", || async {
            let now = [
                names(feed.in_namespace(NAMESPACE, |_| true)),
                names(feed.in_namespace("other", |_| true)),
                names(feed.using_class(NAMESPACE, "small")),
                names(feed.using_class("other", "small")),
            ];
            if now == expected {
                Ok(())
            } else {
                Err(format!("{now:?}"))
            }
        })
        .await;
    };
    sees([&["a", "b"], &["c", "d"], &["a", "c"], &["d"]]).await;
    let changed = json!({ "spec": { "topology": { "classRef": { "name": "large" } } } });
    management.merge::<Cluster>("a", changed).await;
    sees([&["a", "b"], &["c", "d"], &["c"], &["d"]]).await;
    management.delete::<Cluster>("a").await;
    sees([&["b"], &["c", "d"], &["c"], &["d"]]).await;
}

#[tokio::test]
async fn a_class_is_found_by_its_templates() {
    let management = management().await;
    management.enforce(false);
    let reference =
        |kind: &str| json!({ "apiVersion": "fake.x-k8s.io/v1", "kind": kind, "name": "t" });
    management
        .create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
            "metadata": { "name": "small" },
            "spec": {
                "infrastructure": { "templateRef": reference("FakeClusterTemplate") },
                "controlPlane": { "templateRef": reference("FakePlaneTemplate") },
            },
        }))
        .await;
    let shutdown = CancellationToken::new();
    let feed: Feed<ClusterClass> = start(&management, shutdown.clone());
    let _stop = shutdown.drop_guard();
    let found = |kind: &str| {
        let reference = ContractReference::new("fake.x-k8s.io", kind, "t");
        feed.referring_to(NAMESPACE, &reference).len()
    };
    eventually("the class to be found", || async {
        match (found("FakeClusterTemplate"), found("FakePlaneTemplate")) {
            (1, 1) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!(found("FakeMachineTemplate"), 0);
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
