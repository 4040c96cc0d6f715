//! A watch, not a timer, notices objects created just after their user.

use std::time::Duration;

use api::core::v1beta2::{Cluster, MachineSet};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use clusterapi::pki::store;
use clusterapi::pki::{CA_DAYS, Purpose};
use tokio::time::Instant;

use crate::world::{World, cluster, deployment, eventually};

/// After this, retries of an error are a minute apart.
const LONG: Duration = Duration::from_secs(120);
/// Maximum delay of a watch; in paused time, only pauses count.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn a_template_that_comes_after_its_deployment_gives_machines_at_once() {
    let world = World::start().await;
    world.apply(cluster("demo")).await;
    let mut objects = deployment("demo", 2);
    // The config template and that of the infrastructure come before the deployment in the list.
    let late = objects.remove(1);
    world.apply(objects).await;
    eventually("the set", || async {
        let sets = world.list::<MachineSet>().await;
        sets.first().map(|_| ()).ok_or_else(|| "none".to_owned())
    })
    .await;
    tokio::time::sleep(LONG).await;
    let begun = Instant::now();
    world.apply([late]).await;
    world.settled(2).await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_ca_that_comes_after_its_cluster_gives_a_kubeconfig_at_once() {
    let world = World::start().await;
    let mut objects = cluster("demo");
    objects.truncate(2);
    let spec = objects[0]["spec"].as_object_mut().unwrap();
    spec.remove("controlPlaneRef");
    world.apply(objects).await;
    let uid = eventually("the endpoint", || async {
        let cluster = world.api::<Cluster>().get("demo").await.unwrap();
        match cluster.endpoint() {
            Some(_) => Ok(cluster.uid().unwrap()),
            None => Err(format!("{:?}", cluster.status)),
        }
    })
    .await;
    // Not at the end of an interval of a timer.
    tokio::time::sleep(LONG + Duration::from_secs(1)).await;
    let recipe = store::Recipe {
        owner: OwnerReference {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            kind: "Cluster".to_owned(),
            name: "demo".to_owned(),
            uid,
            ..OwnerReference::default()
        },
        algorithm: None,
        validity_days: CA_DAYS,
        except: vec![Purpose::Etcd, Purpose::FrontProxy, Purpose::ServiceAccount],
    };
    let secrets = world.secrets();
    let created = store::ensure(&secrets, "demo", &recipe, Timestamp::now()).await;
    created.unwrap();
    let begun = Instant::now();
    eventually("the kubeconfig", || async {
        let found = secrets.get_opt("demo-kubeconfig").await.unwrap();
        found.map(drop).ok_or_else(|| "none".to_owned())
    })
    .await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}
