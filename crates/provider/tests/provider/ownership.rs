//! Who acts on what in the cloud: an object never touches what belongs to another, whatever its owner writes into it.

use api::core::v1beta2::Machine;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::api::core::v1::Namespace;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DynamicObject, Patch, PostParams};
use kube::discovery::ApiResource;
use kube::{Api, ResourceExt};
use provider::cluster::FINALIZER as OF_CLUSTER;
use provider::identity::{CLUSTER_ID, MACHINE_ID};
use provider::machine::FINALIZER as OF_MACHINE;
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;
use testbed::Kind;

use crate::world::{World, eventually, listed};

/// A second tenant with credentials of the same project.
pub(crate) const OTHER: &str = "other";

/// Cluster `demo` with machine `md-0`, both ready, and a namespace of another tenant.
async fn two_tenants() -> (World, OpenStackCluster, OpenStackMachine) {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, json!({})).await;
    let machine = world.machine_ready("md-0").await;
    let cluster = world.cluster_ready().await;
    second_tenant(&world).await;
    (world, cluster, machine)
}

/// The namespace of another tenant, with a Secret `stolen`: credentials of the same project.
pub(crate) async fn second_tenant(world: &World) {
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": OTHER}})).unwrap();
    let namespaces = Api::<Namespace>::all(world.client.clone());
    let created = namespaces.create(&PostParams::default(), &namespace).await;
    created.unwrap();
    let clouds = world.cloud.clouds_yaml("http://cloud");
    make(world, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "stolen", "namespace": OTHER},
        "stringData": {"clouds.yaml": clouds}})).await;
}

/// Creates an object in any namespace, with its status.
pub(crate) async fn make(world: &World, object: Value) {
    let typed: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let types = typed.types.clone().unwrap();
    let gvk = kube::core::GroupVersionKind::try_from(&types).unwrap();
    let namespace = typed.namespace().unwrap_or_else(|| "default".to_owned());
    let resource = ApiResource::from_gvk(&gvk);
    let api = Api::<DynamicObject>::namespaced_with(world.client.clone(), &namespace, &resource);
    api.create(&PostParams::default(), &typed).await.unwrap();
    if object.get("status").is_some_and(|status| !status.is_null()) {
        let status = json!({"status": object["status"]});
        let patch = Patch::Merge(&status);
        let stored = api
            .patch_status(&typed.name_any(), &Default::default(), &patch)
            .await;
        stored.unwrap();
    }
}

/// The conditions of an object, once one of them has `words`.
async fn says<K: Kind>(world: &World, namespace: &str, name: &str, words: &str) -> String {
    eventually(words, || async {
        let value = raw::<K>(world, namespace, name).await;
        let conditions = value["status"]["conditions"].clone();
        let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
        let text = listed(&conditions);
        match text.contains(words) {
            true => Ok(text),
            false => Err(text),
        }
    })
    .await
}

/// An object as JSON.
pub(crate) async fn raw<K: Kind>(world: &World, namespace: &str, name: &str) -> Value {
    let gvk = kube::core::GroupVersionKind::gvk(&K::group(&()), &K::version(&()), &K::kind(&()));
    let resource = ApiResource::from_gvk_with_plural(&gvk, &K::plural(&()));
    let api = Api::<DynamicObject>::namespaced_with(world.client.clone(), namespace, &resource);
    serde_json::to_value(api.get(name).await.unwrap()).unwrap()
}

/// A copy of an object as `kubectl get -o yaml`, an editor and `kubectl create` make it.
async fn copy<K: Kind>(
    world: &World,
    of: &str,
    namespace: &str,
    name: &str,
    change: impl Fn(&mut Value),
) {
    let mut object = raw::<K>(world, "default", of).await;
    let kept = |field: &str| object["metadata"][field].clone();
    object["metadata"] = json!({"name": name, "namespace": namespace, "labels": kept("labels"),
        "annotations": kept("annotations"), "finalizers": kept("finalizers"),
        "ownerReferences": kept("ownerReferences")});
    change(&mut object);
    make(world, object).await;
}

pub(crate) async fn delete<K: Kind>(world: &World, namespace: &str, name: &str) {
    let api = Api::<K>::namespaced(world.client.clone(), namespace);
    api.delete(name, &Default::default()).await.unwrap();
}

/// Removes the finalizers of an object, and waits until it is gone.
pub(crate) async fn release<K: Kind>(world: &World, namespace: &str, name: &str) {
    let api = Api::<K>::namespaced(world.client.clone(), namespace);
    let patch = json!({"metadata": {"finalizers": null}});
    let patched = api
        .patch(name, &Default::default(), &Patch::Merge(&patch))
        .await;
    patched.unwrap();
    eventually("it to be gone", || async {
        let left = api.get_opt(name).await.unwrap();
        left.map_or(Ok(()), |_| Err("it is there".to_owned()))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_namespace_deletes_nothing_that_it_names() {
    let (world, cluster, machine) = two_tenants().await;
    let before = world.cloud.resources();
    let writes = world.writes();
    let id = machine
        .status
        .as_ref()
        .unwrap()
        .instance_id
        .clone()
        .unwrap();
    let of_cluster = cluster.annotations()[CLUSTER_ID].clone();
    let of_machine = machine.annotations()[MACHINE_ID].clone();
    let identity = json!({"name": "stolen", "cloudName": "simulated"});
    let object = |name: &str, annotations: Value, provider_id: Option<String>, status: Value| {
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachine",
            "metadata": {"name": name, "namespace": OTHER, "finalizers": [OF_MACHINE],
                "annotations": annotations, "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
            "spec": {"flavor": {"filter": {"name": "m1.small"}}, "image": {"filter": {"name": "ubuntu-24.04"}},
                "identityRef": identity, "providerID": provider_id},
            "status": status})
    };
    let by_id = || Some(format!("openstack:///{id}"));
    let status = json!({"instanceID": id});
    let both = json!({CLUSTER_ID: of_cluster, MACHINE_ID: of_machine});
    // Each row is what a tenant writes into a machine of a namespace of his own.
    let without_cluster = [
        ("by-provider-id", json!({}), by_id(), Value::Null),
        ("by-status", json!({}), None, status.clone()),
        ("md-0", json!({}), by_id(), status.clone()),
        (
            "by-cluster",
            json!({CLUSTER_ID: of_cluster}),
            by_id(),
            Value::Null,
        ),
        ("by-annotations", both.clone(), by_id(), status.clone()),
    ];
    for (name, annotations, provider_id, status) in without_cluster {
        make(&world, object(name, annotations, provider_id, status)).await;
        delete::<OpenStackMachine>(&world, OTHER, name).await;
        says::<OpenStackMachine>(&world, OTHER, name, "Deleting=True").await;
        says::<OpenStackMachine>(&world, OTHER, name, "nothing").await;
        assert_eq!(world.cloud.resources(), before, "{name}");
    }
    says::<OpenStackMachine>(
        &world,
        "default",
        "md-0",
        "other/by-annotations has the same",
    )
    .await;
    for name in [
        "by-provider-id",
        "by-status",
        "md-0",
        "by-cluster",
        "by-annotations",
    ] {
        release::<OpenStackMachine>(&world, OTHER, name).await;
    }
    world.machine_ready("md-0").await;
    assert_eq!(world.writes(), writes);

    // With an OpenStackCluster of his own, whose identity he copies, too.
    make(&world, json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "demo", "namespace": OTHER}, "spec": {"infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": "demo"}}})).await;
    copy::<OpenStackCluster>(&world, "demo", OTHER, "demo", |object| {
        object["spec"]["identityRef"] = identity.clone();
        object["metadata"]["ownerReferences"] = Value::Null;
    })
    .await;
    for (name, namespace) in [("demo", OTHER), ("demo", "default")] {
        says::<OpenStackCluster>(&world, namespace, name, "has the same annotation").await;
    }
    make(
        &world,
        object("md-0", both.clone(), by_id(), status.clone()),
    )
    .await;
    make(&world, object("lost", json!({}), by_id(), status.clone())).await;
    for name in ["md-0", "lost"] {
        delete::<OpenStackMachine>(&world, OTHER, name).await;
        says::<OpenStackMachine>(&world, OTHER, name, "Deleting=True").await;
    }
    delete::<OpenStackCluster>(&world, OTHER, "demo").await;
    says::<OpenStackCluster>(&world, OTHER, "demo", "Deleting=True").await;
    assert_eq!(world.cloud.resources(), before);
    assert_eq!(world.writes(), writes);

    // What the tenant made can be removed, and the original goes on.
    for name in ["md-0", "lost"] {
        release::<OpenStackMachine>(&world, OTHER, name).await;
    }
    release::<OpenStackCluster>(&world, OTHER, "demo").await;
    world.cluster_ready().await;
    world.machine_ready("md-0").await;
    world.delete_machine("md-0").await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_machine_deletes_nothing() {
    let (world, _, _) = two_tenants().await;
    let before = world.cloud.resources();
    for (namespace, name, annotated) in [
        ("default", "copy", true),
        ("default", "lost", false),
        (OTHER, "md-0", true),
    ] {
        copy::<OpenStackMachine>(&world, "md-0", namespace, name, |object| {
            if !annotated {
                object["metadata"]["annotations"] = Value::Null;
            }
        })
        .await;
        if annotated {
            let words = format!("{namespace}/{name} has the same annotation");
            says::<OpenStackMachine>(&world, "default", "md-0", &words).await;
            let events = world.notes("md-0", "Warning").await;
            assert!(
                events.iter().any(|event| event.contains(&words)),
                "{events:?}"
            );
        }
        delete::<OpenStackMachine>(&world, namespace, name).await;
        says::<OpenStackMachine>(&world, namespace, name, "Deleting=True").await;
        assert_eq!(world.cloud.resources(), before, "{namespace}/{name}");
        release::<OpenStackMachine>(&world, namespace, name).await;
        world.machine_ready("md-0").await;
    }
    world.delete_machine("md-0").await;
    assert_eq!(world.count("server"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_manager_of_one_namespace_sees_copies_in_others() {
    let (mut world, _, _) = two_tenants().await;
    world.kill().await;
    let before = world.cloud.resources();
    copy::<OpenStackCluster>(&world, "demo", OTHER, "copy", |object| {
        object["metadata"]["ownerReferences"] = Value::Null;
        object["spec"]["identityRef"]["name"] = json!("stolen");
    })
    .await;
    delete::<OpenStackCluster>(&world, OTHER, "copy").await;
    world.options(|options| options.namespace = Some(OTHER.to_owned()));
    world.run();
    let words = "OpenStackCluster default/demo has the same annotation";
    says::<OpenStackCluster>(&world, OTHER, "copy", words).await;
    assert_eq!(world.cloud.resources(), before);
    release::<OpenStackCluster>(&world, OTHER, "copy").await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_cluster_is_another_one_now_touches_nothing() {
    let (mut world, _, machine) = two_tenants().await;
    world.kill().await;
    let before = (world.count("server"), world.count("port"));
    // The OpenStackCluster is made anew, by force, and gets an identity of its own.
    let without = json!({"metadata": {"finalizers": null}});
    world.merge::<OpenStackCluster>("demo", without).await;
    world.delete::<OpenStackCluster>("demo").await;
    world.delete::<OpenStackMachine>("md-0").await;
    world.delete::<Machine>("md-0").await;
    world.run();
    world
        .machine_says(
            "md-0",
            "Deleting",
            "OpenStackCluster of the machine is gone",
        )
        .await;
    let other = uuid::Uuid::new_v4().to_string();
    make(&world, json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster",
        "metadata": {"name": "demo", "namespace": "default", "finalizers": [OF_CLUSTER],
            "annotations": {CLUSTER_ID: other}, "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
        "spec": {"identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"}}})).await;
    world
        .machine_says("md-0", "Deleting", &machine.annotations()[CLUSTER_ID])
        .await;
    let after = (world.count("server"), world.count("port"));
    assert_eq!(after, before);
}

#[tokio::test(start_paused = true)]
async fn a_machine_goes_after_its_cluster_object_is_gone() {
    let world = World::open(CloudOptions::default()).await;
    let mut world = world;
    world.run();
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("cp-0", true, json!({})).await;
    world.machine_ready("cp-0").await;
    world.delete::<api::core::v1beta2::Cluster>("demo").await;
    world.delete_machine("cp-0").await;
    assert_eq!(world.count("server"), 0);
}

/// Waits until a deleted object is gone, or reports what it waits for.
async fn settled<K: Kind>(world: &World, namespace: &str, name: &str) {
    let api = Api::<K>::namespaced(world.client.clone(), namespace);
    eventually(name, || async {
        if api.get_opt(name).await.unwrap().is_none() {
            return Ok(());
        }
        let value = raw::<K>(world, namespace, name).await;
        let conditions = value["status"]["conditions"].clone();
        let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
        match api::conditions::is_true(&conditions, "Deleting") {
            true => Ok(()),
            false => Err(listed(&conditions)),
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_cluster_of_another_namespace_takes_nothing_that_it_names() {
    let (world, cluster, _) = two_tenants().await;
    let before = world.cloud.resources();
    let writes = world.writes();
    let status = serde_json::to_value(cluster.status.unwrap()).unwrap();
    // Each row names one thing of another cluster; the last one everything.
    let parts = [
        vec!["network"],
        vec!["router"],
        vec!["controlPlaneSecurityGroup"],
        vec!["workerSecurityGroup"],
        vec!["apiServerManagedLoadBalancer"],
        vec![
            "network",
            "router",
            "controlPlaneSecurityGroup",
            "workerSecurityGroup",
            "apiServerManagedLoadBalancer",
        ],
    ];
    for (index, parts) in parts.iter().enumerate() {
        let name = format!("thief-{index}");
        let mut named = json!({});
        for part in parts {
            assert!(!status[part].is_null(), "{part}");
            named[part] = status[part].clone();
        }
        make(&world, json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster",
            "metadata": {"name": name, "namespace": OTHER, "finalizers": [OF_CLUSTER],
                "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
            "spec": {"identityRef": {"name": "stolen", "cloudName": "simulated"},
                "apiServer": {"managedLoadBalancer": {}}, "managedSubnets": [{"cidr": "10.6.0.0/24"}]},
            "status": named})).await;
        delete::<OpenStackCluster>(&world, OTHER, &name).await;
        settled::<OpenStackCluster>(&world, OTHER, &name).await;
        assert_eq!(world.cloud.resources(), before, "{parts:?}");
    }
    assert_eq!(world.writes(), writes);
    world.cluster_ready().await;
    world.machine_ready("md-0").await;
}
