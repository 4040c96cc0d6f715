//! Objects that violate validation rules added after them, and objects that cannot be decoded.

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use api::k8s_openapi::api::events::v1::Event;
use api::kube::ResourceExt;
use api::kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use api::kube::discovery::ApiResource;
use clusterapi::Options;
use operator::metrics::Metrics;
use serde_json::{Value, json};
use testbed::{Management, Running, eventually, invalid};

const NUMBER: i64 = 99_999_999_999;

fn run(management: &Management, metrics: &Metrics) -> Running {
    let options = Options {
        metrics: metrics.clone(),
        ..Options::default()
    };
    let client = management.client.clone();
    Running::start(|shutdown| clusterapi::run(client, options, shutdown))
}

fn cluster(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name}, "spec": spec})
}

/// Stores objects without validation.
async fn smuggle(management: &Management, objects: impl IntoIterator<Item = Value>) {
    management.enforce(false);
    management.apply(objects).await;
    management.enforce(true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_a_rule_is_edited_reconciled_and_deleted() {
    let management = Management::open(api::crds::all()).await;
    management
        .apply([cluster("demo", json!({"paused": false}))])
        .await;
    let groups = [
        api::core::crd::all(),
        api::bootstrap::crd::all(),
        api::controlplane::crd::all(),
    ];
    let objects = management.store_invalid(invalid(&groups.concat())).await;
    assert!(objects.len() > 20, "{}", objects.len());
    let _running = run(&management, &Metrics::default());
    assert!(objects.iter().any(|object| !object.decodable));
    let finalized = ["Cluster", "Machine", "MachineSet", "MachineDeployment"];
    management.reconcile_invalid(&objects, &finalized).await;
    management.delete_invalid(&objects).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_cannot_be_decoded_stops_no_other() {
    let management = Management::open(api::core::crd::all()).await;
    let topology = |replicas: Value| json!({"classRef": {"name": "c"}, "version": "v1.34.1", "controlPlane": {"replicas": replicas}});
    let bad = cluster("bad", json!({"topology": topology(json!(NUMBER))}));
    smuggle(&management, [bad]).await;
    let metrics = Metrics::default();
    let _running = run(&management, &metrics);
    management
        .apply([cluster("good", json!({"paused": false}))])
        .await;
    let finalized = |name: &'static str| {
        let clusters = management.api::<Cluster>();
        eventually("the cluster to be reconciled", move || {
            let clusters = clusters.clone();
            async move {
                let found = clusters
                    .get(name)
                    .await
                    .map_err(|error| error.to_string())?;
                let done = !found.finalizers().is_empty();
                done.then_some(()).ok_or_else(|| format!("{found:?}"))
            }
        })
    };
    finalized("good").await;
    eventually("an event", || async {
        let events = management.list::<Event>().await;
        let about = |event: &&Event| {
            event
                .regarding
                .as_ref()
                .and_then(|object| object.name.as_deref())
                == Some("bad")
        };
        let found = events.iter().find(about).ok_or("none")?;
        assert_eq!(found.reason.as_deref(), Some("CannotBeDecoded"));
        let note = found.note.clone().unwrap_or_default();
        assert!(
            note.starts_with("spec.topology.controlPlane.replicas: "),
            "{note}"
        );
        Ok(())
    })
    .await;
    let gauge = "ferrostack_undecodable_objects{watch=\"cluster-api\",kind=\"Cluster\"}";
    assert!(
        metrics.text().contains(&format!("{gauge} 1")),
        "{}",
        metrics.text()
    );
    // The repaired Cluster is reconciled. The topology is removed; it has never had an effect.
    let repair = Patch::Merge(json!({"spec": {"topology": null, "paused": false}}));
    let clusters = management.api::<Cluster>();
    clusters
        .patch("bad", &PatchParams::default(), &repair)
        .await
        .unwrap();
    finalized("bad").await;
    assert!(
        metrics.text().contains(&format!("{gauge} 0")),
        "{}",
        metrics.text()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_cannot_be_decoded_is_not_replaced() {
    let management = Management::open(api::crds::all()).await;
    let machine = json!({"clusterName": "demo", "version": "v1.34.1", "bootstrap": {"dataSecretName": "s"},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachineTemplate", "name": "t"}});
    let template = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachineTemplate",
        "metadata": {"name": "t"}, "spec": {"template": {"spec": {
            "flavor": {"filter": {"name": "f"}}, "image": {"filter": {"name": "i"}}}}}});
    let deployment = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
        "metadata": {"name": "md"}, "spec": {"clusterName": "demo", "replicas": 1, "selector": {},
            "template": {"spec": machine}}});
    management
        .apply([
            cluster("demo", json!({"paused": false})),
            template,
            deployment,
        ])
        .await;
    let _running = run(&management, &Metrics::default());
    let resource = ApiResource::erase::<Machine>(&());
    let machines = Api::<DynamicObject>::namespaced_with(
        management.client.clone(),
        testbed::NAMESPACE,
        &resource,
    );
    let count = |wanted: usize| {
        let machines = machines.clone();
        async move {
            let list = machines.list(&ListParams::default()).await.unwrap().items;
            let names = list.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
            let done = list.len() == wanted;
            done.then_some(names.clone())
                .ok_or_else(|| format!("{names:?}"))
        }
    };
    let names = eventually("a machine", || count(1)).await;
    let timeout = |seconds: Value| {
        Patch::Merge(json!({"spec": {"deletion": {"nodeDrainTimeoutSeconds": seconds}}}))
    };
    management.enforce(false);
    machines
        .patch(&names[0], &PatchParams::default(), &timeout(json!(NUMBER)))
        .await
        .unwrap();
    management.enforce(true);
    management
        .merge::<MachineDeployment>("md", json!({"spec": {"replicas": 2}}))
        .await;
    // The set is scaled, but creates no machine.
    eventually("the set to be scaled", || async {
        let sets = management.list::<MachineSet>().await;
        let replicas: Vec<_> = sets.iter().map(|set| set.spec.replicas).collect();
        (replicas == [Some(2)])
            .then_some(())
            .ok_or_else(|| format!("{replicas:?}"))
    })
    .await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(count(1).await.unwrap(), names);
    machines
        .patch(&names[0], &PatchParams::default(), &timeout(json!(60)))
        .await
        .unwrap();
    let names = eventually("a second machine", || count(2)).await;
    assert_eq!(names.len(), 2);
}

#[tokio::test]
async fn the_scale_of_a_control_plane_obeys_the_rules_of_its_replicas() {
    let management = Management::open(api::controlplane::crd::all()).await;
    let template = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachineTemplate", "name": "t"});
    let plane = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
        "metadata": {"name": "demo"}, "spec": {"replicas": 1, "version": "v1.34.1",
            "machineTemplate": {"spec": {"infrastructureRef": template}}}});
    management.apply([plane]).await;
    for version in ["v1beta1", "v1beta2"] {
        let mut resource = ApiResource::erase::<KubeadmControlPlane>(&());
        resource.version = version.to_owned();
        resource.api_version = format!("{}/{version}", resource.group);
        let client = management.client.clone();
        let planes = Api::<DynamicObject>::namespaced_with(client, testbed::NAMESPACE, &resource);
        let scale = async |replicas: i32| {
            let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            let params = PatchParams::default();
            planes
                .patch_subresource("scale", "demo", &params, &patch)
                .await
        };
        let refused = scale(2).await.unwrap_err().to_string();
        assert!(
            refused.contains("spec.replicas") && refused.contains("2 is even"),
            "{refused}"
        );
        scale(5).await.unwrap();
        scale(3).await.unwrap();
    }
    let plane = management
        .api::<KubeadmControlPlane>()
        .get("demo")
        .await
        .unwrap();
    assert_eq!(plane.spec.replicas, Some(3));
}
