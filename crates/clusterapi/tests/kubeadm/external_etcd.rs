//! Control planes whose etcd is elsewhere.

use api::conditions;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::Secret;
use api::kube::ResourceExt;
use api::kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::served::authority;
use crate::world::{World, cluster};

/// A control plane with an external etcd.
fn external(replicas: i32) -> Vec<Value> {
    let etcd = json!({"external": {
        "endpoints": ["https://etcd.example.org:2379"],
        "caFile": "/etc/kubernetes/pki/etcd/ca.crt",
        "certFile": "/etc/etcd/client.crt",
        "keyFile": "/etc/etcd/client.key",
    }});
    let configuration = json!({"encryptionAlgorithm": "ECDSA-P256", "etcd": etcd});
    cluster(replicas, json!({"clusterConfiguration": configuration}))
}

/// Creates a Secret with a certificate and, for the client, its key.
async fn supply(world: &World, name: &str, with_key: bool) {
    let (certificate, key) = authority();
    let mut data = json!({"tls.crt": certificate});
    if with_key {
        data["tls.key"] = json!(key);
    }
    let secret =
        json!({"metadata": {"name": name}, "type": "cluster.x-k8s.io/secret", "stringData": data});
    let secret: Secret = serde_json::from_value(secret).unwrap();
    world
        .api::<Secret>()
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_certificates_of_an_external_etcd_are_waited_for_and_reach_the_machines() {
    let world = World::start().await;
    world.apply(external(1)).await;
    let missing = "Secret demo-etcd is missing: etcd is external";
    world
        .condition("CertificatesAvailable", "False", missing)
        .await;
    supply(&world, "demo-etcd", false).await;
    let missing = "Secret demo-apiserver-etcd-client is missing";
    world
        .condition("CertificatesAvailable", "False", missing)
        .await;
    assert!(world.list::<Machine>().await.is_empty());
    supply(&world, "demo-apiserver-etcd-client", true).await;
    world.settled(1).await;
    let machine = world.list::<Machine>().await.remove(0);
    let secrets: Api<Secret> = world.api();
    let data = secrets
        .get(&machine.name_any())
        .await
        .unwrap()
        .data
        .unwrap();
    let text = String::from_utf8(data["value"].0.clone()).unwrap();
    let document: Value = serde_saphyr::from_str(&text).unwrap();
    let files = document["write_files"].as_array().unwrap();
    let has = |path: &str| files.iter().any(|file| file["path"] == path);
    for path in [
        "/etc/kubernetes/pki/etcd/ca.crt",
        "/etc/etcd/client.crt",
        "/etc/etcd/client.key",
    ] {
        assert!(has(path), "{path}");
    }
    assert!(!has("/etc/kubernetes/pki/etcd/ca.key"));
}

#[tokio::test(start_paused = true)]
async fn members_of_an_external_etcd_are_nobodys_here() {
    let world = World::start().await;
    supply(&world, "demo-etcd", false).await;
    supply(&world, "demo-apiserver-etcd-client", true).await;
    // An even number is no problem: etcd does not run on the machines.
    world.apply(external(2)).await;
    world.settled(2).await;
    world
        .condition("EtcdClusterHealthy", "True", "etcd is external")
        .await;
    for machine in world.list::<Machine>().await {
        for type_ in ["EtcdPodHealthy", "EtcdMemberHealthy"] {
            assert!(
                conditions::find(machine.conditions(), type_).is_none(),
                "{type_}"
            );
        }
    }
    for change in [
        json!({"replicas": 3}),
        json!({"replicas": 1}),
        json!({"version": "v1.35.0"}),
    ] {
        let replicas = change["replicas"].as_u64().unwrap_or(1);
        world
            .merge::<KubeadmControlPlane>("demo", json!({ "spec": change }))
            .await;
        world.settled(usize::try_from(replicas).unwrap()).await;
    }
    assert_eq!(world.members.connections(), 0);
    let etcd = world.api::<Secret>().get("demo-etcd").await.unwrap();
    assert!(etcd.owner_references().is_empty(), "it is the user's");
}
