//! Certificates, kubeconfig, bootstrap data.

use api::bootstrap::v1beta2::{EncryptionAlgorithm, KubeadmConfig};
use api::conditions;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::kube::api::{Api, PostParams};
use clusterapi::pki::{KeyMaterial, Purpose, generate};
use secrecy::ExposeSecret;
use serde_json::json;
use testbed::Fuse;

use crate::world::{World, cluster, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_made_once_and_belong_to_the_control_plane() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let secrets: Api<Secret> = world.api();
    let mut before = Vec::new();
    for suffix in ["ca", "etcd", "proxy", "sa", "kubeconfig"] {
        let secret = secrets.get(&format!("demo-{suffix}")).await.unwrap();
        assert_eq!(secret.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
        assert_eq!(secret.labels()["cluster.x-k8s.io/cluster-name"], "demo");
        assert_eq!(secret.owner_references()[0].kind, "KubeadmControlPlane");
        before.push(secret);
    }
    let sa = String::from_utf8(before[3].data.as_ref().unwrap()["tls.crt"].0.clone()).unwrap();
    assert!(sa.starts_with("-----BEGIN PUBLIC KEY-----"), "{sa}");
    world.kill().await;
    world.run();
    world
        .merge::<KubeadmControlPlane>("demo", json!({"spec": {"replicas": 3}}))
        .await;
    world.settled(3).await;
    for secret in before {
        assert_eq!(
            secrets.get(&secret.name_any()).await.unwrap().data,
            secret.data
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_that_are_in_order_are_not_read_again() {
    let world = World::open().await;
    let fuse = Fuse::recorder();
    let _running = world.run_with(&fuse);
    world.cluster(1).await;
    world.settled(1).await;
    let names = [
        "demo-ca",
        "demo-etcd",
        "demo-proxy",
        "demo-sa",
        "demo-kubeconfig",
    ];
    let reads = || {
        let mut reads = fuse.reads();
        reads.retain(|path| {
            names
                .iter()
                .any(|name| path.ends_with(&format!("/secrets/{name}")))
        });
        reads
    };
    let mut before = Vec::new();
    for round in ["0", "1", "2", "3"] {
        let labels =
            json!({"spec": {"machineTemplate": {"metadata": {"labels": {"round": round}}}}});
        world.merge::<KubeadmControlPlane>("demo", labels).await;
        eventually("a reconcile", || async {
            let machines = world.list::<Machine>().await;
            match machines[0].labels().get("round") {
                Some(found) if found == round => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        if round == "0" {
            before = reads();
        }
    }
    assert!(!before.is_empty());
    assert_eq!(reads(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_template_of_the_machines_belongs_to_the_cluster() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let template = world.fake("FakeMachineTemplate").get("demo").await.unwrap();
    let owner = &template.owner_references()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.name.as_str()),
        ("Cluster", "demo")
    );
    assert_eq!(owner.controller, None);
    assert_eq!(template.labels()["cluster.x-k8s.io/cluster-name"], "demo");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_keys_that_others_than_the_control_plane_see_are_rsa_by_default() {
    let world = World::start().await;
    world
        .apply(cluster(1, json!({"format": "cloud-config"})))
        .await;
    world.settled(1).await;
    let secrets: Api<Secret> = world.api();
    for (suffix, is_rsa) in [
        ("ca", true),
        ("sa", true),
        ("etcd", false),
        ("proxy", false),
    ] {
        let secret = secrets.get(&format!("demo-{suffix}")).await.unwrap();
        let key = secret.data.unwrap()["tls.key"].0.clone();
        let key = String::from_utf8(key).unwrap();
        assert_eq!(
            key.starts_with("-----BEGIN RSA PRIVATE KEY-----"),
            is_rsa,
            "{suffix}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_certificate_of_a_running_cluster_is_reported_and_not_replaced() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    world.delete::<Secret>("demo-etcd").await;
    eventually("the loss to be reported", || async {
        let plane = world
            .api::<KubeadmControlPlane>()
            .get("demo")
            .await
            .unwrap();
        let found = plane.status.unwrap().conditions;
        let found = conditions::find(&found, "CertificatesAvailable")
            .cloned()
            .unwrap();
        if found.message.contains("demo-etcd") {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await;
    let secrets: Api<Secret> = world.api();
    assert!(secrets.get_opt("demo-etcd").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_for_the_data_is_named_and_awaited() {
    let world = World::start().await;
    let config = json!({
        "clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P384"},
        "files": [{"path": "/etc/kubernetes/cloud.conf", "contentFrom": {"secret": {"name": "cloud", "key": "conf"}}}],
    });
    world.apply(cluster(1, config)).await;
    eventually("the condition to name the secret", || async {
        let Some(config) = world.list::<KubeadmConfig>().await.into_iter().next() else {
            return Err("no KubeadmConfig".to_owned());
        };
        let list = config.status.unwrap_or_default().conditions;
        let found = conditions::find(&list, "DataSecretAvailable").cloned();
        match found {
            Some(found) if found.message.contains("secret cloud with key conf") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let secret =
        json!({"metadata": {"name": "cloud"}, "stringData": {"conf": "[Global]\nx = 1\n"}});
    let secrets: Api<Secret> = world.api();
    let secret = serde_json::from_value(secret).unwrap();
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    world.settled(1).await;
    let data = world
        .list::<KubeadmConfig>()
        .await
        .remove(0)
        .status
        .unwrap()
        .data_secret_name;
    let data = secrets.get(&data.unwrap()).await.unwrap().data.unwrap();
    let text = String::from_utf8(data["value"].0.clone()).unwrap();
    assert!(text.contains("/etc/kubernetes/cloud.conf"), "{text}");
    assert_eq!(data["format"].0, b"cloud-config");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ignition_cannot_express_is_refused_with_its_field() {
    let world = World::start().await;
    let motd = json!({"path": "/etc/motd", "encoding": "gzip", "content": "x"});
    let config = json!({
        "format": "ignition", "files": [motd],
        "clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"},
    });
    world.apply(cluster(1, config)).await;
    let why = "spec.files[0].encoding: cannot be used with the format ignition";
    eventually("the condition to say so", || async {
        let configs = world.list::<KubeadmConfig>().await;
        let status = configs
            .first()
            .and_then(|config| config.status.clone())
            .unwrap_or_default();
        match conditions::find(&status.conditions, "DataSecretAvailable") {
            Some(found) if found.message.contains(why) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_a_user_that_cannot_be_used_is_reported_and_awaited() {
    let world = World::start().await;
    let material = |purpose| {
        let now = Timestamp::now();
        generate(purpose, EncryptionAlgorithm::EcdsaP256, 365, now).unwrap()
    };
    let (ca, other) = (material(Purpose::Cluster), material(Purpose::Cluster));
    let secrets: Api<Secret> = world.api();
    let key = |of: &KeyMaterial| of.private.as_ref().unwrap().expose_secret().to_owned();
    let secret = json!({
        "metadata": {"name": "demo-ca", "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
        "type": "cluster.x-k8s.io/secret",
        "stringData": {"tls.crt": &*ca.public, "tls.key": key(&other)},
    });
    let secret = serde_json::from_value(secret).unwrap();
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    world.cluster(1).await;
    let why = "tls.key of secret demo-ca does not belong to what is stored in tls.crt";
    world.condition("CertificatesAvailable", "False", why).await;
    assert!(world.list::<Machine>().await.is_empty());
    let mended = json!({"stringData": {"tls.key": key(&ca)}});
    world.merge::<Secret>("demo-ca", mended).await;
    world.settled(1).await;
}
