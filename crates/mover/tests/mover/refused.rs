//! Moves that do not begin.

use api::core::v1beta2::ClusterClass;
use api::k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use testbed::{Fuse, Management};

use crate::world::{World, options};

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_writes_nothing_and_what_stands_in_the_way_is_listed() {
    let world = World::with_cluster(1, 1).await;
    let (here, there) = (&world.here.management, &world.there.management);
    let fuse = Fuse::recorder();
    let (source, target) = (fuse.protect(&here.client), fuse.protect(&there.client));
    let report = mover::preview(&source, Some(&target), &options())
        .await
        .unwrap();
    assert_eq!(report.clusters, ["demo"]);
    assert_eq!(
        (report.problems.len(), report.counts()["Machine"]),
        (0, 2),
        "{report:#?}"
    );
    assert_eq!(fuse.writes(), [""; 0]);

    // A Secret of another cluster, with the name of ours.
    there.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "demo-ca"}, "stringData": {"x": "theirs"}})).await;
    let problems = mover::preview(&source, Some(&target), &options())
        .await
        .unwrap()
        .problems;
    assert_eq!(
        problems,
        [
            "Secret/demo-ca exists in the target and is another one: it is not overwritten; delete or rename it there"
        ]
    );
    let error = mover::to_cluster(&source, &target, &options(), &|_| {})
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("Secret/demo-ca exists in the target"),
        "{error}"
    );
    assert_eq!(fuse.writes(), [""; 0]);
    assert!(there.api::<Secret>().get("demo-ca").await.is_ok());
    let deleted = there
        .api::<Secret>()
        .delete("demo-ca", &DeleteParams::default())
        .await;
    drop(deleted.unwrap());

    let same = mover::preview(&source, Some(&source), &options())
        .await
        .unwrap()
        .problems;
    assert_eq!(same, ["source and target are the same cluster"]);

    // A machine more is under way.
    world.here.scale(2).await;
    testbed::eventually("the new machine", || async {
        let problems = mover::preview(&source, Some(&target), &options())
            .await
            .unwrap()
            .problems;
        let waits = problems
            .iter()
            .any(|problem| problem.contains("has no Node yet"));
        if waits {
            Ok(())
        } else {
            Err(format!("{problems:?}"))
        }
    })
    .await;
    assert_eq!(fuse.writes(), [""; 0]);
    world.here.scale(1).await;
    world.here.available(2).await;

    let patch = json!({"spec": {"paused": true}});
    here.merge::<api::core::v1beta2::Cluster>("demo", patch)
        .await;
    let problems = mover::preview(&source, Some(&target), &options())
        .await
        .unwrap()
        .problems;
    assert!(
        problems[0].starts_with("Cluster/demo is paused"),
        "{problems:?}"
    );
}

#[tokio::test]
async fn an_empty_move_names_the_namespaces_with_clusters_and_a_target_without_the_kinds_is_refused()
 {
    let bare = Management::open([]).await;
    let (source, target) = (
        Management::open(api::crds::all()).await,
        Management::open(api::crds::all()).await,
    );
    let nothing = mover::preview(&source.client, Some(&target.client), &options())
        .await
        .unwrap();
    assert_eq!(
        nothing.problems,
        ["there is nothing to move in namespace default of the source: it has no Cluster"]
    );
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"},
        "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": "c"}}});
    source.create(cluster).await;
    let elsewhere = mover::Options {
        namespace: "kube-public".to_owned(),
        ..options()
    };
    let nothing = mover::preview(&source.client, Some(&target.client), &elsewhere)
        .await
        .unwrap();
    assert!(
        nothing.problems[0]
            .ends_with("Namespaces with Clusters: default; choose one with --namespace"),
        "{:?}",
        nothing.problems
    );
    let unknown = mover::preview(&source.client, Some(&bare.client), &options())
        .await
        .unwrap()
        .problems;
    assert!(
        unknown.iter().any(|problem| problem
            .contains("the target does not know the kind Cluster of cluster.x-k8s.io")),
        "{unknown:?}"
    );
    assert!(
        unknown
            .iter()
            .any(|problem| problem.contains("is not provisioned")),
        "{unknown:?}"
    );
    let none = mover::roll_back(&source.client, None, &options(), &|_| {})
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(none, "no move of namespace default was cut off");
    let maps: Api<api::k8s_openapi::api::core::v1::ConfigMap> =
        Api::default_namespaced(source.client.clone());
    assert!(maps.get_opt("ferrostack-move").await.unwrap().is_none());
}

#[tokio::test]
async fn a_class_of_another_namespace_must_be_in_the_target_already() {
    let (source, target) = (
        Management::open(api::crds::all()).await,
        Management::open(api::crds::all()).await,
    );
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "team"},
        "spec": {"topology": {"classRef": {"name": "small", "namespace": "classes"}, "version": "v1.34.2",
            "controlPlane": {"replicas": 1}}}});
    source.create(cluster).await;
    let options = options();
    let problems = || async {
        let preview = mover::preview(&source.client, Some(&target.client), &options);
        let mut problems = preview.await.unwrap().problems;
        problems.retain(|problem| problem.contains("ClusterClass"));
        problems
    };
    let missing = "ClusterClass classes/small is of another namespace and does not move, and the target has none: create it there first";
    assert_eq!(problems().await, [missing]);
    let refused = mover::to_cluster(&source.client, &target.client, &options, &|_| {}).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains(missing), "{error}");

    let template = |kind: &str, group: &str| json!({"templateRef": {"apiVersion": format!("{group}.cluster.x-k8s.io/v1beta2"), "kind": kind, "name": "small"}});
    let namespace = json!({"metadata": {"name": "classes"}});
    Api::<Namespace>::all(target.client.clone())
        .create(
            &PostParams::default(),
            &serde_json::from_value(namespace).unwrap(),
        )
        .await
        .unwrap();
    let class = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": {"name": "small"},
        "spec": {"infrastructure": template("OpenStackClusterTemplate", "infrastructure"),
            "controlPlane": template("KubeadmControlPlaneTemplate", "controlplane")}});
    Api::<ClusterClass>::namespaced(target.client.clone(), "classes")
        .create(
            &PostParams::default(),
            &serde_json::from_value(class).unwrap(),
        )
        .await
        .unwrap();
    assert_eq!(problems().await, [""; 0]);
}
