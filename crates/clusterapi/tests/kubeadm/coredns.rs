//! Upgrades of CoreDNS, with its Corefile.

use std::collections::BTreeMap;

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::k8s_openapi::api::apps::v1::Deployment;
use api::k8s_openapi::api::core::v1::ConfigMap;
use api::k8s_openapi::api::rbac::v1::ClusterRole;
use api::kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::world::{COREFILE, World, eventually};

const NEWEST: &str = "registry.k8s.io/coredns/coredns:v1.13.1";
/// With an option that CoreDNS had before 1.7.0.
const OLD: &str =
    ".:53 {\n    kubernetes cluster.local {\n       upstream\n       pods insecure\n    }\n}\n";

fn deployments(world: &World) -> Api<Deployment> {
    Api::namespaced(world.workload.clone(), "kube-system")
}

async fn map(world: &World, name: &str) -> BTreeMap<String, String> {
    let maps: Api<ConfigMap> = Api::namespaced(world.workload.clone(), "kube-system");
    maps.get(name).await.unwrap().data.unwrap_or_default()
}

async fn set_map(world: &World, data: Value) {
    let maps: Api<ConfigMap> = Api::namespaced(world.workload.clone(), "kube-system");
    let patch = Patch::Merge(json!({ "data": data }));
    maps.patch("coredns", &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// Replaces CoreDNS by an older one.
async fn set_image(world: &World, image: &str) {
    let pod = json!({"containers": [{"name": "coredns", "image": image}]});
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": pod}}}));
    let params = PatchParams::default();
    deployments(world)
        .patch("coredns", &params, &patch)
        .await
        .unwrap();
}

/// Waits until the Deployment has an image and reads the key `Corefile`.
async fn deployed(world: &World, image: &str) {
    eventually(image, || async {
        let found = deployments(world).get("coredns").await.unwrap();
        let pod = found.spec.template.spec.unwrap();
        let found = pod.containers[0].image.clone().unwrap();
        let volume = pod.volumes.unwrap().remove(0).config_map.unwrap();
        let key = volume.items.unwrap().remove(0).key;
        if found == image && key == "Corefile" {
            return Ok(());
        }
        Err(format!("{found} {key}"))
    })
    .await;
}

async fn upgrade(world: &World) {
    let version = json!({"spec": {"version": "v1.35.0"}});
    world.merge::<KubeadmControlPlane>("demo", version).await;
}

#[tokio::test(start_paused = true)]
async fn coredns_follows_the_version_of_the_control_plane() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let role = json!({"metadata": {"name": "system:coredns"}, "rules": [
        {"apiGroups": [""], "resources": ["endpoints"], "verbs": ["list", "watch"]},
    ]});
    let roles: Api<ClusterRole> = Api::all(world.workload.clone());
    let role = serde_json::from_value(role).unwrap();
    roles.create(&PostParams::default(), &role).await.unwrap();
    upgrade(&world).await;
    world.settled(1).await;
    deployed(&world, NEWEST).await;
    let data = map(&world, "coredns").await;
    assert_eq!(
        (data["Corefile"].as_str(), data["Corefile-backup"].as_str()),
        (COREFILE, COREFILE)
    );
    let rules = roles.get("system:coredns").await.unwrap().rules.unwrap();
    assert_eq!(rules.len(), 2, "{rules:?}");
    assert_eq!(rules[1].resources, Some(vec!["endpointslices".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_corefile_of_an_older_release_is_migrated_whenever_the_controllers_are_killed() {
    for nth in [1, 2, 3] {
        let world = World::start().await;
        world.cluster(1).await;
        world.settled(1).await;
        world.kill().await;
        set_map(&world, json!({"Corefile": OLD})).await;
        set_image(&world, "registry.k8s.io/coredns/coredns:v1.6.7").await;
        let upgraded = || deployed(&world, "registry.k8s.io/coredns/coredns:v1.12.1");
        let kills = world.killed_at_every(nth, upgraded).await;
        assert!(
            kills >= 4 / nth,
            "only {kills} kills at each write number {nth}"
        );
        let data = map(&world, "coredns").await;
        assert_eq!(data["Corefile"], OLD.replace("       upstream\n", ""));
        assert_eq!(data["Corefile-backup"], OLD);
    }
}

#[tokio::test(start_paused = true)]
async fn another_image_of_coredns_needs_no_new_machines() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let before = world.machine_names().await;
    let dns = json!({"imageRepository": "mirror.example.org/dns", "imageTag": "v1.13.0"});
    let configuration = json!({"clusterConfiguration": {"dns": dns}});
    let change = json!({"spec": {"kubeadmConfigSpec": configuration}});
    world.merge::<KubeadmControlPlane>("demo", change).await;
    deployed(&world, "mirror.example.org/dns/coredns:v1.13.0").await;
    world.settled(1).await;
    assert_eq!(world.machine_names().await, before);
    let stored = &map(&world, "kubeadm-config").await["ClusterConfiguration"];
    assert!(stored.contains("v1.13.0"), "{stored}");
}

#[tokio::test(start_paused = true)]
async fn coredns_stays_where_an_annotation_says_so() {
    let world = World::start().await;
    world.cluster(1).await;
    let skip =
        json!({"metadata": {"annotations": {"controlplane.cluster.x-k8s.io/skip-coredns": ""}}});
    world.merge::<KubeadmControlPlane>("demo", skip).await;
    world.settled(1).await;
    upgrade(&world).await;
    world.settled(1).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    deployed(&world, "registry.k8s.io/coredns/coredns:v1.12.1").await;
    assert!(!map(&world, "coredns").await.contains_key("Corefile-backup"));
}

#[tokio::test(start_paused = true)]
async fn a_corefile_that_cannot_be_migrated_is_a_condition_until_it_is_mended() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    set_image(&world, "registry.k8s.io/coredns/coredns:v1.7.0").await;
    set_map(
        &world,
        json!({"Corefile": OLD.replace("upstream", "transfer to *")}),
    )
    .await;
    upgrade(&world).await;
    let words = "no option transfer of plugin kubernetes any more";
    world.condition("CoreDNSUpToDate", "False", words).await;
    deployed(&world, "registry.k8s.io/coredns/coredns:v1.7.0").await;
    world.settled(1).await;
    set_map(&world, json!({"Corefile": COREFILE})).await;
    // The ConfigMap is not watched.
    tokio::time::sleep(std::time::Duration::from_secs(660)).await;
    deployed(&world, NEWEST).await;
    world.condition("CoreDNSUpToDate", "True", "").await;
}
