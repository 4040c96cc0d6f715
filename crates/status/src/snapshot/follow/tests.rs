use std::sync::Arc;

use apiserver::ApiServer;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, GroupVersionKind, PostParams};
use operator::client::Api;
use serde_json::{Value, json};

use super::*;

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// A kind of another provider, whose objects have any fields.
fn definition(group: &str, version: &str, kind: &str) -> CustomResourceDefinition {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let lower = kind.to_lowercase();
    let definition = json!({
        "metadata": {"name": format!("{lower}s.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{lower}s"), "singular": lower, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}}],
        },
    });
    serde_json::from_value(definition).unwrap()
}

/// A management cluster with the core of Cluster API and the kinds of another provider, and none of ours.
async fn elsewhere() -> Client {
    let options = apiserver::Options {
        hooks: Arc::new(apiserver::NoHooks),
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let client = Client::new(server.in_process(), "default");
    let core = api::crds::all()
        .into_iter()
        .filter(|it| it.spec.group == "cluster.x-k8s.io");
    let others = [
        definition(INFRASTRUCTURE, "v1beta1", "DockerCluster"),
        definition(INFRASTRUCTURE, "v1beta1", "DockerMachine"),
        definition(INFRASTRUCTURE, "v1beta1", "DockerMachineTemplate"),
        definition("controlplane.cluster.x-k8s.io", "v1", "OtherControlPlane"),
        definition("bootstrap.cluster.x-k8s.io", "v1alpha1", "OtherConfig"),
        definition("cluster.x-k8s.io", "v1beta2", "MachinePool"),
    ];
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in core.chain(others) {
        api.create(&PostParams::default(), &definition)
            .await
            .unwrap();
    }
    client
}

async fn create(client: &Client, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let types = object.types.clone().unwrap();
    let (group, version) = types.api_version.split_once('/').unwrap();
    let kind = GroupVersionKind::gvk(group, version, &types.kind);
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&kind));
    api.create(&PostParams::default(), &object).await.unwrap();
}

fn reference(group: &str, kind: &str) -> Value {
    json!({"apiGroup": group, "kind": kind, "name": "a"})
}

async fn with_objects() -> Client {
    let client = elsewhere().await;
    let plane = "controlplane.cluster.x-k8s.io";
    create(
        &client,
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "a"}, "spec": {
            "infrastructureRef": reference(INFRASTRUCTURE, "DockerCluster"),
            "controlPlaneRef": reference(plane, "OtherControlPlane")}}),
    )
    .await;
    create(
        &client,
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "a"}, "spec": {
            "clusterName": "a",
            "infrastructureRef": reference(INFRASTRUCTURE, "DockerMachine"),
            "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io", "OtherConfig")}}}),
    )
    .await;
    for (group, version, kind) in [
        (INFRASTRUCTURE, "v1beta1", "DockerCluster"),
        (INFRASTRUCTURE, "v1beta1", "DockerMachine"),
        (INFRASTRUCTURE, "v1beta1", "DockerMachineTemplate"),
        (plane, "v1", "OtherControlPlane"),
        ("bootstrap.cluster.x-k8s.io", "v1alpha1", "OtherConfig"),
    ] {
        let spec = match kind {
            "OtherControlPlane" => {
                let template = json!({"apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": "DockerMachineTemplate", "name": "a"});
                json!({"machineTemplate": {"infrastructureRef": template}})
            }
            _ => json!({}),
        };
        let object = json!({"apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": {"name": "a"}, "spec": spec});
        create(&client, object).await;
    }
    client
}

async fn labels(client: &Client, wanted: Wanted) -> Vec<String> {
    let followed = Snapshot::follow(client, Some("default"), wanted)
        .await
        .unwrap();
    let items = followed.snapshot.items.iter();
    items.map(super::super::Item::label).collect()
}

#[tokio::test]
async fn references_lead_to_the_objects_of_any_provider() {
    let client = with_objects().await;
    let mut found = labels(&client, Wanted::default()).await;
    found.sort();
    let expected = [
        "Cluster/a",
        "DockerCluster/a",
        "DockerMachine/a",
        "Machine/a",
        "OtherConfig/a",
        "OtherControlPlane/a",
    ];
    assert_eq!(found, expected);
    let wanted = Wanted {
        templates: true,
        resource_sets: true,
    };
    let found = labels(&client, wanted).await;
    assert!(
        found.contains(&"DockerMachineTemplate/a".to_owned()),
        "{}",
        found.join(" ")
    );
}

#[tokio::test]
async fn kinds_that_the_api_server_does_not_have_are_left_out() {
    let client = elsewhere().await;
    let reference = reference(INFRASTRUCTURE, "NoSuchCluster");
    create(
        &client,
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "a"},
            "spec": {"infrastructureRef": reference}}),
    )
    .await;
    assert_eq!(labels(&client, Wanted::default()).await, ["Cluster/a"]);
    let plain = Snapshot::read(&client, Some("default")).await.unwrap();
    assert_eq!(plain.items.len(), 1);
}
