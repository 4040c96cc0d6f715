//! The permissions in config/rbac/openstack.yaml are the ones that the controller needs.

use std::collections::BTreeSet;

use api::openstack::v1alpha1::OpenStack;
use serde_json::{Value, json};
use testbed::Asked;

use crate::requests::Counter;
use crate::world::{CLOUD, World, start};

const MANIFESTS: &str = include_str!("../../../../config/rbac/openstack.yaml");

/// Permissions of the Role, and of the ClusterRole.
fn allowed() -> BTreeSet<Asked> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(MANIFESTS).unwrap();
    let is_role = |it: &&Value| it["kind"] == "Role" || it["kind"] == "ClusterRole";
    let roles = documents.iter().filter(is_role);
    let rules = roles.flat_map(|role| role["rules"].as_array().unwrap());
    let texts = |value: &Value| {
        let items = value.as_array().unwrap().iter();
        items
            .map(|it| it.as_str().unwrap().to_owned())
            .collect::<Vec<String>>()
    };
    let mut allowed = BTreeSet::new();
    for rule in rules {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    allowed.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    allowed
}

#[tokio::test(start_paused = true)]
async fn the_role_allows_what_the_controller_asks_for_in_the_life_of_a_cloud_and_no_more() {
    let world = World::open().await;
    let counter = Counter::default();
    let _controller = start(counter.of(&world.management.client));
    // A label that the simulated nodes have.
    let nodes = json!({"compute": {"kubernetes.io/os": "linux"}});
    let spec = json!({"release": "2026.1", "nodes": nodes, "compute": {"driver": "Libvirt"}});
    world.create(spec).await;
    world.ready().await;
    // Every kind of object changes: objects that restart after an option, and objects changed by somebody else.
    let config = json!({"DEFAULT": {"debug": true}});
    world
        .changed(json!({"spec": {"services": {"nova": {"config": config}}}}))
        .await;
    world.ready().await;
    for (group, kind) in [
        ("", "ConfigMap"),
        ("", "Secret"),
        ("", "Service"),
        ("", "PersistentVolumeClaim"),
        ("apps", "StatefulSet"),
        ("networking.k8s.io", "NetworkPolicy"),
    ] {
        world.drift(group, kind).await;
    }
    world.ready().await;
    world.ask_for_a_backup().await;
    world.delete(true).await;
    world.management.gone::<OpenStack>(CLOUD).await;
    let asked: BTreeSet<Asked> = counter.all().into_keys().collect();
    let allowed = allowed();
    let forbidden: Vec<&Asked> = asked.difference(&allowed).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
    // An undecodable object is an event; the verb for a forwarded port depends on the API server; operations are made and
    // removed at the times of schedules, which have tests of their own.
    let rare = |it: &&Asked| {
        it.1 == "events"
            || it.1 == "pods/portforward" && it.2 == "create"
            || it.1 == "openstackoperations" && matches!(it.2.as_str(), "create" | "delete")
    };
    let unused: Vec<&Asked> = allowed.difference(&asked).filter(|it| !rare(it)).collect();
    assert!(unused.is_empty(), "{unused:#?}");
}
