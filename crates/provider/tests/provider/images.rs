//! Images of the OpenStack Resource Controller, which is not there at first.

use std::time::Duration;

use api::infra::v1beta2::OpenStackCluster;
use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use openstack::Service;
use serde_json::{Value, json};
use testbed::Guard;
use tokio::time::Instant;

use crate::world::World;

const GROUP: &str = "openstack.k-orc.cloud";

/// Installs the definition of ORC.
async fn install(world: &World) {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("images.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Image", "listKind": "ImageList", "plural": "images", "singular": "image"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    let api = Api::<CustomResourceDefinition>::all(world.client.clone());
    api.create(&PostParams::default(), &definition)
        .await
        .unwrap();
}

fn images(world: &World) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1alpha1", "Image"));
    Api::namespaced_with(world.client.clone(), testbed::NAMESPACE, &kind)
}

async fn create(world: &World, name: &str) {
    let object = json!({"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Image",
        "metadata": {"name": name}, "spec": {"managementPolicy": "managed"}});
    let object = serde_json::from_value(object).unwrap();
    images(world)
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
}

/// Writes the status of an Image as ORC does.
async fn report(world: &World, name: &str, id: Option<&str>, available: &str, progressing: &str) {
    let condition = |type_: &str, status: &str| {
        json!({"type": type_, "status": status, "reason": "Test", "message": "uploading the disk",
            "lastTransitionTime": "2026-11-30T00:00:00Z", "observedGeneration": 1})
    };
    let status = json!({"status": {"id": id,
        "conditions": [condition("Available", available), condition("Progressing", progressing)]}});
    let patch = Patch::Merge(&status);
    let api = images(world);
    let written = api
        .patch_status(name, &PatchParams::default(), &patch)
        .await;
    written.unwrap();
}

async fn image(world: &World, name: &str) -> String {
    let all = world
        .request(Service::Image, "GET", "/images", Value::Null)
        .await;
    let all = all["images"].as_array().unwrap();
    let found = all.iter().find(|image| image["name"] == name).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

fn named(name: &str) -> Value {
    json!({"image": {"imageRef": {"name": name}}})
}

#[tokio::test(start_paused = true)]
async fn a_machine_boots_from_an_image_of_orc_as_soon_as_it_is_available() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, named("node")).await;
    let says = world.machine_says(
        "md-0",
        "InstanceReady",
        "install the OpenStack Resource Controller",
    );
    assert_eq!(says.await.reason, "DependencyFailed");
    install(&world).await;
    create(&world, "node").await;
    let says = world.machine_says("md-0", "InstanceReady", "ORC says nothing of it yet");
    assert_eq!(says.await.reason, "InstanceNotReady");
    // From here on the watch tells.
    let begun = Instant::now();
    let id = image(&world, "ubuntu-24.04").await;
    report(&world, "node", Some(&id), "False", "True").await;
    world
        .machine_says(
            "md-0",
            "InstanceReady",
            "is not available yet: uploading the disk",
        )
        .await;
    report(&world, "node", None, "False", "False").await;
    let says = world.machine_says(
        "md-0",
        "InstanceReady",
        "Image node of ORC failed: uploading the disk",
    );
    assert_eq!(says.await.reason, "DependencyFailed");
    assert_eq!(world.count("server"), 0);
    report(&world, "node", Some(&id), "True", "False").await;
    let machine = world.machine_ready("md-0").await;
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "{:?}",
        begun.elapsed()
    );
    let resolved = machine.status.unwrap().resolved.unwrap();
    assert_eq!(resolved.image_id.as_deref(), Some(id.as_str()));
    // The image is gone, and the machine stays.
    images(&world)
        .delete("node", &Default::default())
        .await
        .unwrap();
    world
        .poke::<api::infra::v1beta2::OpenStackMachine>("md-0")
        .await;
    world.machine_ready("md-0").await;
}

#[tokio::test(start_paused = true)]
async fn a_bastion_and_a_server_of_its_own_boot_from_images_of_orc() {
    let world = World::start().await;
    install(&world).await;
    let spec = json!({"flavor": {"filter": {"name": "m1.small"}}, "image": {"imageRef": {"name": "node"}}});
    world
        .cluster(json!({"bastion": {"enabled": true, "spec": spec}}))
        .await;
    world
        .cluster_says(
            "BastionReady",
            "bastion.spec.image.imageRef: Image node of ORC does not exist",
        )
        .await;
    assert_eq!(world.count("server"), 0);
    create(&world, "node").await;
    let id = image(&world, "ubuntu-24.04").await;
    report(&world, "node", Some(&id), "True", "False").await;
    let cluster = world.cluster_ready().await;
    let bastion = |cluster: OpenStackCluster| cluster.status.unwrap().bastion.and_then(|it| it.id);
    let first = bastion(cluster);
    assert!(first.is_some());
    // Another id under the name makes no other bastion.
    let other = image(&world, "flatcar-stable").await;
    report(&world, "node", Some(&other), "True", "False").await;
    world.poke::<OpenStackCluster>("demo").await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(bastion(world.cluster_ready().await), first);
    assert_eq!(world.count("server"), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_asks_for_images_of_orc_where_no_object_names_one() {
    let rules = include_str!("../../../../config/rbac/infrastructure.yaml");
    let role = format!("kind: ClusterRole\nmetadata: {{name: provider}}\nrules:\n{rules}");
    let guard = Guard::new(&role);
    let world = World::start_as(&guard).await;
    world.cluster(json!({})).await;
    world.machine("md-0", false, json!({})).await;
    world.machine_ready("md-0").await;
    let unused = guard.unused().into_iter();
    let unused: Vec<_> = unused.filter(|it| it.group == GROUP).collect();
    assert_eq!(unused.len(), 3, "{unused:?}");
}
