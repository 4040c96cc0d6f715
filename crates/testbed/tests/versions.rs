//! GitOps that migrates from one version of a kind to another: the same manager applies first in one version, then in
//! the other. The API server then converts partial objects in both versions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};
use testbed::{Management, NAMESPACE};

const INFRA: &str = "infrastructure.cluster.x-k8s.io";

/// Applies a spec, and returns the spec of the object.
async fn apply(
    bed: &Management,
    (group, version, kind): (&str, &str, &str),
    spec: &Value,
) -> Value {
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let api: Api<DynamicObject> =
        Api::namespaced_with(bed.client.clone(), NAMESPACE, &ApiResource::from_gvk(&gvk));
    let object = json!({"apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": {"name": "x"}, "spec": spec});
    let params = PatchParams::apply("gitops");
    let applied = api.patch("x", &params, &Patch::Apply(&object)).await;
    let applied = applied.unwrap_or_else(|error| panic!("{object}: {error}"));
    applied.data["spec"].clone()
}

/// Applies `old` in v1beta1, then `new` in v1beta2, then `old` again, and checks that no applied field is lost.
async fn moves(bed: &Management, group: &str, kind: &str, old: Value, new: Value) {
    let older = (group, "v1beta1", kind);
    let newer = (group, "v1beta2", kind);
    apply(bed, older, &old).await;
    let spec = apply(bed, newer, &new).await;
    assert!(contains(&spec, &new), "applied {new}, got {spec}");
    let again = apply(bed, newer, &new).await;
    assert_eq!(again, spec, "the same apply changes nothing");
    let spec = apply(bed, older, &old).await;
    assert!(contains(&spec, &old), "applied {old}, got {spec}");
    let gvk = GroupVersionKind::gvk(group, "v1beta2", kind);
    let api: Api<DynamicObject> =
        Api::namespaced_with(bed.client.clone(), NAMESPACE, &ApiResource::from_gvk(&gvk));
    api.delete("x", &DeleteParams::default()).await.unwrap();
}

/// True if `all` contains `part`.
fn contains(all: &Value, part: &Value) -> bool {
    match (all, part) {
        (Value::Object(all), Value::Object(part)) => part
            .iter()
            .all(|(name, value)| all.get(name).is_some_and(|other| contains(other, value))),
        (Value::Array(all), Value::Array(part)) => {
            all.len() == part.len() && all.iter().zip(part).all(|(all, part)| contains(all, part))
        }
        _ => all == part,
    }
}

fn with(base: &Value, fields: Value) -> Value {
    let mut spec = base.clone();
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

#[tokio::test]
async fn a_cluster_moves_from_v1beta1_to_v1beta2_and_back() {
    let bed = Management::open(api::crds::all()).await;
    let base = json!({"identityRef": {"name": "s", "cloudName": "c"}});
    for (old, new) in [
        (json!({}), json!({})),
        (
            json!({"apiServerLoadBalancer": {}}),
            json!({"apiServer": {"managedLoadBalancer": {}}}),
        ),
        (
            json!({"apiServerLoadBalancer": {"monitor": {}}, "managedSecurityGroups": {}}),
            json!({"apiServer": {"managedLoadBalancer": {"monitor": {}}}, "managedSecurityGroups": {}}),
        ),
        (
            json!({"networkMTU": 1400, "managedSubnets": [{"cidr": "10.0.0.0/24"}],
                "disableExternalNetwork": true, "disableAPIServerFloatingIP": true,
                "bastion": {"enabled": false}}),
            json!({"managedNetwork": {"mtu": 1400}, "managedSubnets": [{"cidr": "10.0.0.0/24"}],
                "enableExternalNetwork": false, "apiServer": {"enableFloatingIP": false},
                "bastion": {"enabled": false}}),
        ),
        (
            json!({"externalRouterIPs": [{"subnet": {"filter": {"name": "a"}}}],
                "network": {"filter": {"name": "n"}}}),
            json!({"managedRouter": {"externalIPs": [{"subnet": {"filter": {"name": "a"}}}]},
                "network": {"filter": {"name": "n"}}}),
        ),
    ] {
        moves(
            &bed,
            INFRA,
            "OpenStackCluster",
            with(&base, old),
            with(&base, new),
        )
        .await;
    }
}

#[tokio::test]
async fn a_machine_template_moves_from_v1beta1_to_v1beta2_and_back() {
    let bed = Management::open(api::crds::all()).await;
    let id = "6c90b532-7ba0-418a-a276-5ae55060b5b0";
    let rest = json!({"image": {"id": id}, "rootVolume": {"sizeGiB": 5},
        "ports": [{"network": {"id": id}}], "serverMetadata": [{"key": "a", "value": "b"}]});
    for (old, new) in [
        (
            json!({"flavor": "m1"}),
            json!({"flavor": {"filter": {"name": "m1"}}}),
        ),
        (json!({"flavorID": "7"}), json!({"flavor": {"id": "7"}})),
    ] {
        let template = |spec: Value| json!({"template": {"spec": with(&rest, spec)}});
        moves(
            &bed,
            INFRA,
            "OpenStackMachineTemplate",
            template(old),
            template(new),
        )
        .await;
    }
}

#[tokio::test]
async fn the_kinds_of_cluster_api_move_from_v1beta1_to_v1beta2_and_back() {
    let bed = Management::open(api::crds::all()).await;
    moves(
        &bed,
        "bootstrap.cluster.x-k8s.io",
        "KubeadmConfig",
        json!({"clusterConfiguration": {"apiServer": {"extraArgs": {"v": "2"}}},
            "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": {"a": "b"}}}}),
        json!({"clusterConfiguration": {"apiServer": {"extraArgs": [{"name": "v", "value": "2"}]}},
            "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "a", "value": "b"}]}}}),
    )
    .await;
    let reference = json!({"kind": "K", "name": "n"});
    let old = with(
        &reference,
        json!({"apiVersion": format!("{INFRA}/v1beta1")}),
    );
    let new = with(&reference, json!({"apiGroup": INFRA}));
    let machine = |reference: Value| json!({"clusterName": "c", "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": reference});
    moves(
        &bed,
        "cluster.x-k8s.io",
        "Machine",
        with(&machine(old), json!({"nodeDrainTimeout": "5m0s"})),
        with(
            &machine(new),
            json!({"deletion": {"nodeDrainTimeoutSeconds": 300}}),
        ),
    )
    .await;
}
