//! The kubeconfig of a Cluster without a control plane object.

use api::bootstrap::v1beta2::EncryptionAlgorithm;
use api::core::v1beta2::Cluster;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use clusterapi::pki::store;
use clusterapi::pki::{CA_DAYS, Purpose};

use crate::world::{World, cluster, eventually};

#[tokio::test(start_paused = true)]
async fn a_cluster_without_a_control_plane_object_gets_a_kubeconfig_from_its_ca() {
    let world = World::start().await;
    let mut objects = cluster("demo");
    objects.truncate(2);
    objects[0]["spec"]
        .as_object_mut()
        .unwrap()
        .remove("controlPlaneRef");
    world.apply(objects).await;
    let uid = eventually("the endpoint", || async {
        let cluster = world.api::<Cluster>().get("demo").await.unwrap();
        match cluster.endpoint() {
            Some(_) => Ok(cluster.uid().unwrap()),
            None => Err(format!("{:?}", cluster.status)),
        }
    })
    .await;
    let secrets = world.secrets();
    assert!(secrets.get_opt("demo-kubeconfig").await.unwrap().is_none());
    // The CA of a control plane that somebody else runs.
    let recipe = store::Recipe {
        owner: OwnerReference {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            kind: "Cluster".to_owned(),
            name: "demo".to_owned(),
            uid: uid.clone(),
            ..OwnerReference::default()
        },
        algorithm: Some(EncryptionAlgorithm::EcdsaP256),
        validity_days: CA_DAYS,
        except: vec![Purpose::Etcd, Purpose::FrontProxy, Purpose::ServiceAccount],
    };
    let created = store::ensure(&secrets, "demo", &recipe, Timestamp::now()).await;
    created.unwrap();
    let secret = eventually("the kubeconfig", || async {
        let found = secrets.get_opt("demo-kubeconfig").await.unwrap();
        found.ok_or_else(|| "none".to_owned())
    })
    .await;
    let owner = &secret.owner_references()[0];
    assert_eq!((owner.kind.as_str(), owner.controller), ("Cluster", None));
    assert_eq!(owner.uid, uid);
    assert_eq!(secret.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
    assert_eq!(secret.labels()["cluster.x-k8s.io/cluster-name"], "demo");
    let text = String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap();
    assert!(text.contains("https://127.0.0.2:6443"), "{text}");
}
