//! ClusterResourceSets: manifests that are applied to the workload cluster.

use std::time::Duration;

use api::addons::v1beta2::{ClusterResourceSet, ClusterResourceSetBinding};
use api::conditions;
use api::core::v1beta2::Cluster;
use api::k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use api::kube::ResourceExt;
use api::kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use testbed::written_at_rest;

use crate::world::{NS, World, eventually};

/// Intervals between kills, in writes. With Reconcile, an interrupted pass begins anew, and applying an object again
/// is a write, too: four objects and the record are the minimum for progress.
const WRITES: [(&str, &[usize]); 2] = [("ApplyOnce", &[1, 2, 3, 5]), ("Reconcile", &[5, 7])];

fn set(strategy: &str) -> Value {
    json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSet",
        "metadata": { "name": "base", "namespace": NS },
        "spec": {
            "strategy": strategy,
            "clusterSelector": { "matchLabels": { "addons": "base" } },
            "resources": [
                { "kind": "ConfigMap", "name": "manifests" },
                { "kind": "Secret", "name": "credentials" },
            ],
        },
    })
}

/// ConfigMap of the workload cluster, in a Namespace that comes later in the data.
fn manifests(color: &str) -> Value {
    let stream = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: extra}}\ndata: {{color: {color}}}\n\
         ---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: extra}}\n"
    );
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "agent" } },
    ]});
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "manifests", "namespace": NS },
        "data": { "a.yaml": stream, "b.json": list.to_string() },
    })
}

fn credentials(type_: &str) -> Value {
    let text =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: token}\nstringData: {password: hunter2}\n";
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "credentials", "namespace": NS },
        "type": type_, "stringData": { "secret.yaml": text },
    })
}

const TYPE: &str = "addons.cluster.x-k8s.io/resource-set";

async fn everything(world: &World, strategy: &str) {
    world.create(set(strategy)).await;
    world.create(manifests("red")).await;
    world.create(credentials(TYPE)).await;
    world.cluster(0).await;
    label(world).await;
}

async fn label(world: &World) {
    let labels = json!({ "metadata": { "labels": { "addons": "base" } } });
    world.merge::<Cluster>("demo", labels).await;
}

/// Waits for the condition with this status, and with `words` in the message.
async fn applied(world: &World, status: &str, words: &str) {
    eventually(
        &format!("ResourcesApplied {status} with {words}"),
        || async {
            let set = world.api::<ClusterResourceSet>().get("base").await.unwrap();
            let status_of = set.status.clone().unwrap_or_default();
            match conditions::find(&status_of.conditions, "ResourcesApplied") {
                Some(found) if found.status == status && found.message.contains(words) => Ok(()),
                _ => Err(format!("{:?}", set.status)),
            }
        },
    )
    .await;
}

fn settings(world: &World) -> Api<ConfigMap> {
    Api::namespaced(world.workload.clone(), "extra")
}

async fn color(world: &World) -> String {
    let found = settings(world).get("settings").await.unwrap();
    found.data.unwrap()["color"].clone()
}

async fn binding(world: &World) -> ClusterResourceSetBinding {
    let api = world.api::<ClusterResourceSetBinding>();
    api.get("demo").await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn all_documents_are_applied_when_the_cluster_connects_and_recorded() {
    let world = World::start().await;
    everything(&world, "ApplyOnce").await;
    applied(&world, "True", "").await;
    assert_eq!(color(&world).await, "red");
    let namespaces: Api<Namespace> = Api::all(world.workload.clone());
    assert!(namespaces.get_opt("extra").await.unwrap().is_some());
    let accounts: Api<ServiceAccount> = Api::namespaced(world.workload.clone(), NS);
    assert!(accounts.get_opt("agent").await.unwrap().is_some());
    let secrets: Api<Secret> = Api::namespaced(world.workload.clone(), NS);
    assert!(secrets.get_opt("token").await.unwrap().is_some());

    let set = world.api::<ClusterResourceSet>().get("base").await.unwrap();
    assert_eq!(set.finalizers(), ["addons.cluster.x-k8s.io"]);
    let binding = binding(&world).await;
    assert_eq!(binding.spec.cluster_name, "demo");
    let bound = binding.of_set("base");
    let names: Vec<_> = bound.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["manifests", "credentials"]);
    for entry in bound {
        let hash = entry.hash.as_deref().unwrap_or_default();
        assert!(
            entry.applied && hash.starts_with("sha256:") && entry.last_applied_time.is_some(),
            "{entry:?}"
        );
    }
    let configmap = world.api::<ConfigMap>().get("manifests").await.unwrap();
    let secret = world.api::<Secret>().get("credentials").await.unwrap();
    for owners in [
        binding.owner_references(),
        configmap.owner_references(),
        secret.owner_references(),
    ] {
        let [owner] = owners else {
            panic!("{owners:?}")
        };
        assert_eq!(
            (owner.kind.as_str(), owner.controller),
            ("ClusterResourceSet", None)
        );
        assert_eq!(Some(&owner.uid), set.metadata.uid.as_ref());
    }
}

#[tokio::test(start_paused = true)]
async fn apply_once_neither_changes_nor_restores_anything() {
    let world = World::start().await;
    everything(&world, "ApplyOnce").await;
    applied(&world, "True", "").await;
    let params = DeleteParams::default();
    drop(settings(&world).delete("settings", &params).await.unwrap());
    let data = json!({ "data": manifests("blue")["data"] });
    world.merge::<ConfigMap>("manifests", data).await;
    world.stop_provider();
    tokio::time::sleep(Duration::from_secs(1300)).await;
    let found = settings(&world).get_opt("settings").await.unwrap();
    assert_eq!(found, None);
}

#[tokio::test(start_paused = true)]
async fn reconcile_applies_what_has_changed_and_removes_fields_that_left() {
    let world = World::start().await;
    everything(&world, "Reconcile").await;
    applied(&world, "True", "").await;
    let before = binding(&world).await.of_set("base").to_vec();
    let mut changed = manifests("blue");
    let text = changed["data"]["a.yaml"].as_str().unwrap();
    changed["data"]["a.yaml"] = json!(text.replace("color: blue", "shade: blue"));
    let data = json!({ "data": changed["data"] });
    world.merge::<ConfigMap>("manifests", data).await;
    eventually("the change", || async {
        let found = settings(&world).get("settings").await.unwrap();
        let data = found.data.unwrap();
        if data.len() == 1 && data.get("shade").is_some_and(|shade| shade == "blue") {
            Ok(())
        } else {
            Err(format!("{data:?}"))
        }
    })
    .await;
    eventually("the record", || async {
        let after = binding(&world).await.of_set("base").to_vec();
        if after[0].hash != before[0].hash && after[1] == before[1] {
            Ok(())
        } else {
            Err(format!("{after:?}"))
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn problems_name_their_place_and_end_when_their_cause_does() {
    let world = World::start().await;
    world.create(set("ApplyOnce")).await;
    world.cluster(0).await;
    label(&world).await;
    applied(&world, "False", "ConfigMap manifests does not exist").await;
    world.create(credentials("Opaque")).await;
    let mut broken = manifests("red");
    broken["data"]["b.json"] =
        json!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: UPPER}\n");
    world.create(broken).await;
    applied(&world, "False", "Secret credentials has the type Opaque").await;
    let set = world.api::<ClusterResourceSet>().get("base").await.unwrap();
    let found = conditions::find(&set.status.as_ref().unwrap().conditions, "ResourcesApplied");
    assert_eq!(found.unwrap().reason, "WrongSecretType");
    // The other objects of the ConfigMap are applied, and the words are those of the API server.
    let place = "ConfigMap manifests, key b.json, document 1 (ServiceAccount UPPER): ";
    applied(&world, "False", place).await;
    applied(&world, "False", "metadata.name").await;
    assert_eq!(color(&world).await, "red");
    assert!(!binding(&world).await.of_set("base")[0].applied);

    world.delete::<Secret>("credentials").await;
    world.create(credentials(TYPE)).await;
    let data = json!({ "data": manifests("blue")["data"] });
    world.merge::<ConfigMap>("manifests", data).await;
    applied(&world, "True", "").await;
    // With ApplyOnce, what exists is left alone.
    assert_eq!(color(&world).await, "red");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_set_leaves_what_it_applied_and_a_binding_goes_with_its_cluster() {
    let world = World::start().await;
    everything(&world, "ApplyOnce").await;
    let mut other = set("ApplyOnce");
    other["metadata"]["name"] = json!("other");
    world.create(other).await;
    applied(&world, "True", "").await;
    eventually("both sets in the binding", || async {
        let binding = binding(&world).await;
        match binding.spec.bindings.as_deref() {
            Some([_, _]) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    world.delete::<ClusterResourceSet>("base").await;
    world.gone::<ClusterResourceSet>("base").await;
    let rest = binding(&world).await;
    assert!(rest.of_set("base").is_empty() && !rest.of_set("other").is_empty());
    assert_eq!(rest.owner_references().len(), 1);
    assert_eq!(color(&world).await, "red");
    world.delete::<Cluster>("demo").await;
    world.gone::<Cluster>("demo").await;
    world.gone::<ClusterResourceSetBinding>("demo").await;
    world.delete::<ClusterResourceSet>("other").await;
    world.gone::<ClusterResourceSet>("other").await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_set_applies_nothing() {
    let world = World::start().await;
    let mut paused = set("ApplyOnce");
    paused["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/paused": "" });
    world.create(paused).await;
    world.create(manifests("red")).await;
    world.create(credentials(TYPE)).await;
    world.cluster(1).await;
    label(&world).await;
    world.settled(1).await;
    let bindings = world.list::<ClusterResourceSetBinding>().await;
    assert!(bindings.is_empty(), "{bindings:?}");
    let resumed = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": null } } });
    world.merge::<ClusterResourceSet>("base", resumed).await;
    applied(&world, "True", "").await;
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_apply_everything() {
    for (strategy, writes) in WRITES {
        for &nth in writes {
            let world = World::open().await;
            everything(&world, strategy).await;
            let done = || applied(&world, "True", "");
            let kills = world.killed_at_every(nth, done).await;
            assert!(
                kills > 12 / nth,
                "only {kills} kills at each write number {nth}"
            );
            assert_eq!(color(&world).await, "red");
            let binding = binding(&world).await;
            assert!(binding.of_set("base").iter().all(|entry| entry.applied));
            assert_eq!(binding.of_set("base").len(), 2);

            world.delete::<ClusterResourceSet>("base").await;
            let gone = || world.gone::<ClusterResourceSet>("base");
            world.killed_at_every(nth, gone).await;
            let bindings = world.list::<ClusterResourceSetBinding>().await;
            assert!(bindings.is_empty(), "{bindings:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_at_rest_writes_nothing_and_reads_no_resource_again() {
    let world = World::start().await;
    everything(&world, "Reconcile").await;
    applied(&world, "True", "").await;
    let writes = written_at_rest(world.kill(), |fuse| world.run_with(fuse)).await;
    assert_eq!(writes, Vec::<String>::new());
    world.stop_provider();
    let (_running, reads) = world.run_counting();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let count = || {
        let reads = reads.lock().clone();
        let of = |what: &str| reads.iter().filter(|path| path.ends_with(what)).count();
        (of("/configmaps/manifests"), of("/secrets/credentials"))
    };
    // After the start, each is read once for its hash.
    assert_eq!(count(), (1, 1));
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(count(), (1, 1));
}
