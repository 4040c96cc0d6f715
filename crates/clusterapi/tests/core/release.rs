//! Services and claims of a workload cluster are deleted through its API server before the machines.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::core::v1beta2::{Cluster, Machine};
use api::k8s_openapi::api::apps::v1::StatefulSet;
use api::k8s_openapi::api::core::v1::{
    Node, PersistentVolume, PersistentVolumeClaim, Pod, Service,
};
use api::k8s_openapi::api::events::v1::Event;
use api::kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use api::kube::core::NamespaceResourceScope;
use api::kube::discovery::ApiResource;
use api::kube::{self, Client, Resource, ResourceExt};
use clusterapi::Patience;
use clusterapi::remote::{ClusterKey, Connector};
use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::world::{Workload, World, eventually};

const DRIVER: &str = "cinder.csi.openstack.org";
const PROTECTION: &str = "kubernetes.io/pvc-protection";
const NONE: Patience = Patience {
    answer: Duration::ZERO,
    whole: Duration::ZERO,
};

async fn create<K>(world: &World, object: Value) -> DynamicObject
where
    K: Resource<DynamicType = ()>,
{
    let kind = ApiResource::erase::<K>(&());
    let api = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(world.workload.clone(), namespace, &kind),
        None => Api::all_with(world.workload.clone(), &kind),
    };
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap()
}

/// A Service with the finalizer of the cloud controller manager.
async fn service(world: &World, name: &str, type_: &str) {
    let finalizers = match type_ {
        "LoadBalancer" => json!(["service.kubernetes.io/load-balancer-cleanup"]),
        _ => json!([]),
    };
    create::<Service>(
        world,
        json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "finalizers": finalizers},
        "spec": {"type": type_, "ports": [{"port": 80}]}}),
    )
    .await;
}

fn claim_of(name: &str, volume: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "finalizers": [PROTECTION]},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}}})
}

/// Creates a claim with a volume, and a Pod that uses the claim.
async fn volume(world: &World, name: &str, policy: &str, driver: &str) {
    let volume = format!("pv-{name}");
    let claim = create::<PersistentVolumeClaim>(world, claim_of(name, &volume)).await;
    create::<PersistentVolume>(
        world,
        json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": volume, "annotations": {"pv.kubernetes.io/provisioned-by": driver}},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": policy,
            "csi": {"driver": driver, "volumeHandle": name},
            "claimRef": {"namespace": "default", "name": name, "uid": claim.uid()}}}),
    )
    .await;
    pod(world, &format!("pod-of-{name}"), name, None).await;
}

async fn pod(world: &World, name: &str, claim: &str, set: Option<&StatefulSet>) {
    let owners = set.map(|set| {
        json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set.name_any(),
            "uid": set.uid(), "controller": true}])
    });
    create::<Pod>(
        world,
        json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": owners.unwrap_or(json!([]))},
        "spec": {"containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}}),
    )
    .await;
}

/// A cluster with five Services and five volumes of claims, and what stays: a Service of another type, and a volume of another
/// driver.
async fn filled(world: &World, wanted: &str, policy: &str) {
    world.cluster(1).await;
    world.settled(1).await;
    let annotation =
        json!({"metadata": {"annotations": {"ferrostack.dev/delete-with-cluster": wanted}}});
    world.merge::<Cluster>("demo", annotation).await;
    for n in 0..5 {
        service(world, &format!("web-{n}"), "LoadBalancer").await;
        volume(world, &format!("data-{n}"), policy, DRIVER).await;
    }
    service(world, "inside", "ClusterIP").await;
    volume(world, "elsewhere", "Delete", "nfs.csi.k8s.io").await;
}

async fn names<K>(world: &World) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api = Api::<K>::all(world.workload.clone());
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.iter().map(ResourceExt::name_any).collect()
}

/// Remaining Services with load balancers, and remaining volumes of the driver.
async fn left(world: &World) -> (Vec<String>, Vec<String>) {
    let mut services = names::<Service>(world).await;
    services.retain(|name| name.starts_with("web-"));
    let mut volumes = names::<PersistentVolume>(world).await;
    volumes.retain(|name| name.starts_with("pv-data-"));
    (services, volumes)
}

async fn let_go<K>(client: &Client, object: &K) -> kube::Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let api = Api::<K>::namespaced(client.clone(), "default");
    let none = json!({"metadata": {"finalizers": null}});
    let patch = Patch::Merge(&none);
    api.patch(&object.name_any(), &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// One round of the cloud controller manager, of the protection of claims, and of the CSI driver, which cannot delete
/// a volume with a snapshot.
async fn round(client: &Client) -> kube::Result<()> {
    let services = Api::<Service>::all(client.clone());
    for service in services.list(&ListParams::default()).await?.items {
        if service.metadata.deletion_timestamp.is_some() {
            let_go(client, &service).await?;
        }
    }
    let pods = Api::<Pod>::all(client.clone());
    let pods = pods.list(&ListParams::default()).await?.items;
    let claims = Api::<PersistentVolumeClaim>::all(client.clone());
    let mut there = Vec::new();
    for claim in claims.list(&ListParams::default()).await?.items {
        let is_used = pods.iter().any(|pod| {
            let volumes = pod
                .spec
                .iter()
                .flat_map(|spec| spec.volumes.iter().flatten());
            let mut of_pod = volumes.filter_map(|it| it.persistent_volume_claim.as_ref());
            of_pod.any(|it| it.claim_name == claim.name_any())
        });
        if claim.metadata.deletion_timestamp.is_some() && !is_used {
            let_go(client, &claim).await?;
        } else {
            there.extend(claim.uid());
        }
    }
    let volumes = Api::<PersistentVolume>::all(client.clone());
    for volume in volumes.list(&ListParams::default()).await?.items {
        let name = volume.name_any();
        let spec = volume.spec.unwrap_or_default();
        let uid = spec.claim_ref.and_then(|it| it.uid).unwrap_or_default();
        let goes = spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete")
            && !there.contains(&uid)
            && !name.contains("snapshot");
        if goes {
            volumes.delete(&name, &Default::default()).await?;
        }
    }
    // The controller of StatefulSets: each has a Pod with a claim of its own.
    let sets = Api::<StatefulSet>::all(client.clone());
    for set in sets.list(&ListParams::default()).await?.items {
        let claim = format!("data-{}-0", set.name_any());
        let api = Api::<PersistentVolumeClaim>::namespaced(client.clone(), "default");
        if api.get_opt(&claim).await?.is_none() {
            let object = serde_json::from_value(claim_of(&claim, "pv-new")).unwrap();
            api.create(&PostParams::default(), &object).await?;
        }
    }
    Ok(())
}

/// The programs in the workload cluster.
fn programs(world: &World) -> tokio::task::JoinHandle<()> {
    let client = world.workload.clone();
    tokio::spawn(async move {
        loop {
            // The next round sees deletions in the meantime.
            let _ = round(&client).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
}

/// The warnings, as `Reason: note`.
async fn notes(world: &World) -> Vec<String> {
    let events = world.list::<Event>().await.into_iter();
    let warnings = events.filter(|event| event.type_.as_deref() == Some("Warning"));
    let text = |event: Event| {
        let of = |text: Option<String>| text.unwrap_or_default();
        format!("{}: {}", of(event.reason), of(event.note))
    };
    warnings.map(text).collect()
}

fn emptied(cluster: &Cluster) -> Option<String> {
    cluster.annotations().get("ferrostack.dev/emptied").cloned()
}

#[tokio::test(start_paused = true)]
async fn five_services_and_five_volumes_go_before_the_machines() {
    let world = World::start().await;
    filled(&world, "services,volumes", "Delete").await;
    world.delete::<Cluster>("demo").await;
    let says = eventually("the deletion of the first Service", || async {
        let cluster = world.api::<Cluster>().get("demo").await.unwrap();
        let conditions = cluster.status.unwrap_or_default().conditions;
        let found = api::conditions::find(&conditions, "Deleting").cloned();
        let found = found.filter(|it| it.reason == "WaitingForServicesAndVolumes");
        found.map(|it| it.message).ok_or(format!("{conditions:?}"))
    })
    .await;
    assert!(says.contains("* Services: default/web-0"), "{says}");
    assert_eq!(world.list::<Machine>().await.len(), 1);
    let programs = programs(&world);
    world.gone::<Cluster>("demo").await;
    programs.abort();
    assert_eq!(left(&world).await, (vec![], vec![]));
    assert_eq!(names::<PersistentVolume>(&world).await, ["pv-elsewhere"]);
    assert_eq!(names::<PersistentVolumeClaim>(&world).await, ["elsewhere"]);
    assert_eq!(names::<Pod>(&world).await, ["pod-of-elsewhere"]);
    assert!(
        names::<Service>(&world)
            .await
            .contains(&"inside".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_retained_stays_unless_all_are_to_be_deleted() {
    for (wanted, stays) in [("volumes", true), ("volumes=delete", false)] {
        let world = World::start().await;
        filled(&world, wanted, "Retain").await;
        let programs = programs(&world);
        world.delete::<Cluster>("demo").await;
        world.gone::<Cluster>("demo").await;
        programs.abort();
        let (services, volumes) = left(&world).await;
        assert_eq!(
            (services.len(), volumes.len()),
            (5, if stays { 5 } else { 0 })
        );
        assert_eq!(names::<Pod>(&world).await.len(), if stays { 6 } else { 1 });
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_write_nothing_is_left_and_the_machines_go_last() {
    for nth in [1, 3] {
        let world = World::start().await;
        filled(&world, "services,volumes=delete", "Retain").await;
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": "default"},
            "spec": {"serviceName": "db", "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        create::<StatefulSet>(&world, set).await;
        volume(&world, "data-db-0", "Delete", DRIVER).await;
        let sets = Api::<StatefulSet>::namespaced(world.workload.clone(), "default");
        let set = sets.get("db").await.unwrap();
        pod(&world, "db-0", "data-db-0", Some(&set)).await;
        world.kill().await;
        world.delete::<Cluster>("demo").await;
        let programs = programs(&world);
        let gone = || world.gone::<Cluster>("demo");
        let kills = world.killed_at_every(nth, gone).await;
        programs.abort();
        assert!(kills > 20 / nth, "only {kills} kills");
        assert_eq!(left(&world).await, (vec![], vec![]));
        assert_eq!(names::<StatefulSet>(&world).await, Vec::<String>::new());
        assert_eq!(names::<PersistentVolumeClaim>(&world).await, ["elsewhere"]);
    }
}

/// API server that may hang, and that has never existed if `dead`.
struct Silent {
    client: Client,
    hung: Arc<AtomicBool>,
    dead: bool,
}

impl Debug for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Silent")
    }
}

impl Connector for Silent {
    fn connect<'a>(
        &'a self,
        _cluster: &'a ClusterKey,
        _kubeconfig: &'a SecretString,
    ) -> BoxFuture<'a, Result<Client, String>> {
        let (inner, hung) = (self.client.clone(), Arc::clone(&self.hung));
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (client, hung) = (inner.clone(), Arc::clone(&hung));
            async move {
                if hung.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                client.send(request).await
            }
        });
        let client = match self.dead {
            true => Err("connection refused".to_owned()),
            false => Ok(Client::new(service, "default")),
        };
        async move { client }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_dead_or_hangs_does_not_stop_the_deletion() {
    for dead in [true, false] {
        let world = World::start().await;
        filled(&world, "services,volumes", "Delete").await;
        world.kill().await;
        let hung = Arc::new(AtomicBool::new(false));
        let silent = Silent {
            client: world.workload.clone(),
            hung: Arc::clone(&hung),
            dead,
        };
        world.run_over(Arc::new(silent), NONE);
        if !dead {
            eventually("the connection", || async {
                let cluster = world.api::<Cluster>().get("demo").await.unwrap();
                let conditions = cluster.status.unwrap_or_default().conditions;
                let is_connected = api::conditions::is_true(&conditions, "RemoteConnectionProbe");
                is_connected.then_some(()).ok_or(format!("{conditions:?}"))
            })
            .await;
            hung.store(true, Ordering::Relaxed);
        }
        world.delete::<Cluster>("demo").await;
        let note = eventually("the warning", || async {
            let notes = notes(&world).await;
            let mut found = notes.iter().filter(|it| it.contains("NotEmptied"));
            found.next().cloned().ok_or(format!("{notes:?}"))
        })
        .await;
        assert!(note.contains("does not answer"), "{note}");
        eventually("the annotation or the end", || async {
            let cluster = world.api::<Cluster>().get_opt("demo").await.unwrap();
            match cluster.as_ref().map(emptied) {
                None => Ok(()),
                Some(end) if end.as_deref() == Some("unanswered") => Ok(()),
                Some(other) => Err(format!("{other:?}")),
            }
        })
        .await;
        assert_eq!(left(&world).await.0.len(), 5);
        if dead {
            world.gone::<Cluster>("demo").await;
        }
    }
}

// Not with paused time, which may pass while the only look waits for its answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_with_a_snapshot_stops_the_deletion_for_a_bounded_time() {
    let world = World::start().await;
    filled(&world, "services,volumes", "Delete").await;
    volume(&world, "snapshot", "Delete", DRIVER).await;
    world.kill().await;
    let patience = Patience {
        whole: Duration::ZERO,
        ..Patience::default()
    };
    let line = Workload(world.workload.clone());
    world.run_over(Arc::new(line), patience);
    world.delete::<Cluster>("demo").await;
    let note = eventually("the warning", || async {
        let notes = notes(&world).await;
        let mut found = notes.iter().filter(|it| it.contains("NotEmptied"));
        found.next().cloned().ok_or(format!("{notes:?}"))
    })
    .await;
    assert!(note.contains("have not deleted all"), "{note}");
    world.gone::<Cluster>("demo").await;
    // All were asked to go, nonetheless.
    let claims = Api::<PersistentVolumeClaim>::all(world.workload.clone());
    let claims = claims.list(&ListParams::default()).await.unwrap().items;
    let stays = claims
        .iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none());
    let stays: Vec<_> = stays.map(ResourceExt::name_any).collect();
    assert_eq!(stays, ["elsewhere"]);
}

#[tokio::test(start_paused = true)]
async fn without_the_annotation_nothing_is_read_or_deleted_and_an_unknown_word_waits() {
    let world = World::start().await;
    filled(&world, "everything", "Delete").await;
    world.delete::<Cluster>("demo").await;
    eventually("the word in the condition", || async {
        let cluster = world.api::<Cluster>().get("demo").await.unwrap();
        let conditions = cluster.status.unwrap_or_default().conditions;
        let found = api::conditions::find(&conditions, "Deleting").cloned();
        let found = found.filter(|it| it.message.contains("`everything` is none of"));
        found.map(drop).ok_or(format!("{conditions:?}"))
    })
    .await;
    assert_eq!(world.list::<Machine>().await.len(), 1);
    let none = json!({"metadata": {"annotations": {"ferrostack.dev/delete-with-cluster": null}}});
    world.merge::<Cluster>("demo", none).await;
    world.gone::<Cluster>("demo").await;
    let (services, volumes) = left(&world).await;
    assert_eq!((services.len(), volumes.len()), (5, 5));
    assert!(names::<Node>(&world).await.len() <= 1);
}
