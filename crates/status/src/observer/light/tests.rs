use serde_json::json;

use super::*;
use crate::snapshot::tests::item;
use crate::snapshot::{Item, Snapshot};
use crate::{readiness, tree};

/// Display of these objects by `up`.
fn displayed(items: Vec<Item>) -> String {
    let snapshot = Snapshot::from(items);
    let trees = snapshot
        .of_kind(Kind::Cluster)
        .map(|cluster| tree::of_cluster(&snapshot, cluster, tree::Selection::default()));
    let trees: Vec<String> = trees
        .map(|tree| serde_json::to_string(&tree).unwrap())
        .collect();
    let pending = readiness::pending(&snapshot);
    let pending: Vec<_> = pending.iter().map(|it| (&it.object, &it.why)).collect();
    serde_json::to_string(&(trees, pending)).unwrap()
}

/// The objects of a cluster with much that is not displayed.
fn objects() -> Vec<Item> {
    let object = |kind: Kind, name: &str, owner: &str, spec: Value, status: Value| {
        let mut status = status;
        status["deprecated"] =
            json!({"v1beta1": {"conditions": [{"type": "Ready", "status": "True"}]}});
        status["conditions"] = json!([
            {"type": "Ready", "status": "False", "reason": "NotReady", "message": format!("{name} is not ready")},
            {"type": "Available", "status": "False", "reason": "NotAvailable", "message": ""},
        ]);
        let owners = match owner {
            "" => json!([]),
            uid => json!([{"apiVersion": "v1", "kind": "A", "name": uid, "uid": uid}]),
        };
        let metadata = json!({
            "name": name, "namespace": "default", "uid": name, "ownerReferences": owners,
            "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
            "annotations": {"long": "text"},
        });
        item(
            kind,
            json!({"metadata": metadata, "spec": spec, "status": status}),
        )
    };
    let reference = |group: &str, kind: &str, name: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": name});
    vec![
        object(
            Kind::Cluster,
            "demo",
            "",
            json!({
                "infrastructureRef": reference("infrastructure", "OpenStackCluster", "infra"),
                "controlPlaneRef": reference("controlplane", "KubeadmControlPlane", "plane"),
            }),
            json!({"phase": "Provisioning"}),
        ),
        object(
            Kind::OpenStackCluster,
            "infra",
            "demo",
            json!({"managedSubnets": [{"cidr": "10.6.0.0/24"}], "identityRef": {"name": "cloud"}}),
            json!({"network": {"id": "n"}, "phase": "Pending", "ready": false}),
        ),
        object(
            Kind::KubeadmControlPlane,
            "plane",
            "demo",
            json!({"replicas": 1, "version": "v1.34.1", "kubeadmConfigSpec": {"files": [{"path": "/a", "content": "text ".repeat(400)}]}}),
            json!({"replicas": 1, "readyReplicas": 0, "availableReplicas": 0}),
        ),
        object(
            Kind::Machine,
            "machine",
            "plane",
            json!({"infrastructureRef": reference("infrastructure", "OpenStackMachine", "server"), "version": "v1.34.1"}),
            json!({"phase": "Provisioning", "nodeRef": {"name": "node"}}),
        ),
        object(
            Kind::OpenStackMachine,
            "server",
            "machine",
            json!({"providerID": "openstack:///1", "image": {"id": "i"}, "ports": [{"network": {"id": "n"}}]}),
            json!({"addresses": [{"address": "10.6.0.1"}], "phase": "Pending"}),
        ),
    ]
}

#[test]
fn what_is_displayed_is_that_of_the_whole_objects() {
    let light = objects().into_iter().map(|item| {
        let mut object = DynamicObject::clone(&item.object);
        lighten(&item.kind.resource(), &mut object);
        Item::new(&item.kind.resource(), object)
    });
    let light: Vec<Item> = light.collect();
    let bytes = |items: &[Item]| {
        let text = items.iter().map(|it| serde_json::to_string(&*it.object));
        text.map(|text| text.unwrap().len()).sum::<usize>()
    };
    assert!(bytes(&light) < bytes(&objects()) * 3 / 4);
    assert_eq!(displayed(light), displayed(objects()));
}

#[test]
fn a_pause_and_an_address_inside_of_the_cloud_are_displayed() {
    let lightened = |items: &[Item]| {
        let light = items.iter().map(|item| {
            let mut object = DynamicObject::clone(&item.object);
            lighten(&item.kind.resource(), &mut object);
            Item::new(&item.kind.resource(), object)
        });
        displayed(light.collect())
    };
    let mut paused = objects();
    let cluster = std::sync::Arc::make_mut(&mut paused[0].object);
    let annotations = cluster.metadata.annotations.get_or_insert_default();
    annotations.insert(PAUSED.to_owned(), String::new());
    let text = lightened(&paused);
    assert!(text.contains("paused by the annotation"), "{text}");
    let silent = readiness::reach::tests::silent();
    let silent: Vec<Item> = silent.items.iter().cloned().collect();
    let text = lightened(&silent);
    assert!(text.contains("which is inside of the cloud"), "{text}");
}
