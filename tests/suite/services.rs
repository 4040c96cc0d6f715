//! Services of type LoadBalancer on simulated clusters: their addresses answer, and nothing of them is left.

use std::path::Path;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Secret, Service};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::main_job::{data, resources, wait_for_nodes, workload_client};
use crate::process::{Up, client, eventually, run, texts};

const SMALL: [&str; 4] = [
    "--control-plane-machine-count",
    "1",
    "--worker-machine-count",
    "1",
];

async fn create(client: &Client, name: &str, port: u16) {
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": port}]},
    }));
    let created = services
        .create(&PostParams::default(), &service.unwrap())
        .await;
    created.unwrap();
}

/// The Service, once it has an address, and the address.
async fn published(up: &Up, client: &Client, name: &str) -> (Service, String) {
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let what = format!("the address of {name}");
    let found = eventually(&what, || async {
        let service = services.get(name).await.ok()?;
        let status = service.status.clone()?.load_balancer?;
        let address = status.ingress?.first()?.ip.clone()?;
        Some((service, address))
    });
    tokio::time::timeout(crate::process::LIMIT, found)
        .await
        .unwrap_or_else(|_| panic!("{}", up.story()))
}

async fn answers(address: &str, port: u16) -> Option<String> {
    let answer = reqwest::get(format!("http://{address}:{port}/")).await;
    answer.ok()?.error_for_status().ok()?.text().await.ok()
}

/// The answers of all nodes at an address.
async fn answered_by(address: &str, port: u16, nodes: &[String]) {
    for node in nodes {
        eventually(&format!("an answer of {node}"), || async {
            let text = answers(address, port).await?;
            text.contains(&format!("node {node},")).then_some(())
        })
        .await;
    }
}

/// The nodes, each initialised: none has the taint, and each has what its server has.
async fn initialised(client: &Client, count: usize) -> Vec<Node> {
    let nodes: Api<Node> = Api::all(client.clone());
    wait_for_nodes(&nodes, count).await;
    eventually("initialised nodes", || async {
        let found = nodes.list(&ListParams::default()).await.ok()?.items;
        found.iter().all(is_initialised).then_some(found)
    })
    .await
}

fn is_initialised(node: &Node) -> bool {
    let node = serde_json::to_value(node).unwrap();
    let waits = node["spec"]["taints"].to_string().contains("uninitialized");
    let addresses = node["status"]["addresses"].to_string();
    let label = |name: &str| node["metadata"]["labels"][name].is_string();
    !waits
        && addresses.contains("InternalIP")
        && label("topology.kubernetes.io/region")
        && label("node.kubernetes.io/instance-type")
        && node["spec"]["providerID"]
            .as_str()
            .is_some_and(|id| id.starts_with("openstack:///"))
}

/// The workers: control plane nodes are excluded from load balancers.
fn workers(nodes: &[Node]) -> Vec<String> {
    let excluded = "node.kubernetes.io/exclude-from-external-load-balancers";
    let workers = nodes
        .iter()
        .filter(|node| !node.labels().contains_key(excluded));
    workers.map(ResourceExt::name_any).collect()
}

async fn delete_cluster(home: &Path, name: &str) {
    let data = data(home);
    let delete = ["delete", "cluster", name, "--wait", "--data-dir", &data];
    let (out, err) = texts(&run(home, &delete).await);
    assert!(
        out.contains(&format!("cluster {name} is gone")),
        "{out}{err}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_a_service_answers_and_nothing_is_left_of_it() {
    let home = tempfile::tempdir().unwrap();
    let mut up = Up::start(home.path(), &SMALL, &[]);
    let ready = up.ready().await;
    let simulator = ready["simulatedOpenStack"].as_str().unwrap().to_owned();
    let workload = workload_client(home.path()).await;
    let nodes = initialised(&workload, 2).await;
    let before = resources(&simulator).await;

    create(&workload, "web", 8080).await;
    let (service, address) = published(&up, &workload, "web").await;
    assert!(address.starts_with("127."), "{address}");
    answered_by(&address, 8080, &workers(&nodes)).await;
    let text = answers(&address, 8080).await.unwrap();
    assert!(
        text.starts_with("Service default/web, port 8080: "),
        "{text}"
    );

    // The credentials of the cloud are nowhere in the cluster.
    let secrets: Api<Secret> = Api::all(workload.clone());
    for secret in secrets.list(&ListParams::default()).await.unwrap() {
        let keys = secret.data.clone().unwrap_or_default();
        let values = keys.values().map(|value| String::from_utf8_lossy(&value.0));
        for value in values {
            assert!(!value.contains("auth_url"), "{}", secret.name_any());
        }
    }

    // A killed `up` goes on with what there is.
    up.kill().await;
    let mut up = Up::start(home.path(), &[], &[]);
    up.ready().await;
    create(&workload, "other", 8081).await;
    let (_, second) = published(&up, &workload, "other").await;
    answered_by(&second, 8081, &workers(&nodes)).await;
    let (again, same) = published(&up, &workload, "web").await;
    assert_eq!(same, address);
    let id = "loadbalancer.openstack.org/load-balancer-id";
    assert_eq!(again.annotations()[id], service.annotations()[id]);
    answered_by(&address, 8080, &workers(&nodes)).await;

    let services: Api<Service> = Api::default_namespaced(workload.clone());
    for name in ["web", "other"] {
        services
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }
    eventually("nothing of the Services", || async {
        (resources(&simulator).await == before).then_some(())
    })
    .await;
    eventually("no answer", || async {
        answers(&address, 8080).await.is_none().then_some(())
    })
    .await;
    delete_cluster(home.path(), "demo").await;
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_with_the_same_addresses_have_services_of_their_own() {
    let home = tempfile::tempdir().unwrap();
    let mut up = Up::start(home.path(), &SMALL, &[]);
    up.ready().await;
    up.kill().await;
    let args = [&SMALL[..], &["--cluster-name", "second"]].concat();
    let mut up = Up::start(home.path(), &args, &[]);
    up.ready().await;
    let mut found = Vec::new();
    for name in ["demo", "second"] {
        let data = data(home.path());
        let get = ["get", "kubeconfig", name, "--data-dir", &data];
        let (text, _) = texts(&run(home.path(), &get).await);
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        let workload = client(&path).await;
        let nodes = initialised(&workload, 2).await;
        create(&workload, "web", 8080).await;
        let (service, address) = published(&up, &workload, "web").await;
        found.push((workers(&nodes), service, address));
    }
    assert_ne!(found[0].2, found[1].2);
    for (nodes, _, address) in &found {
        answered_by(address, 8080, nodes).await;
        let text = answers(address, 8080).await.unwrap();
        assert!(nodes.iter().any(|node| text.contains(node)), "{text}");
    }
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manager_in_the_process_stands_by_while_another_one_holds_the_lease() {
    let home = tempfile::tempdir().unwrap();
    let mut up = Up::start(home.path(), &SMALL, &[]);
    up.ready().await;
    let workload = workload_client(home.path()).await;
    initialised(&workload, 2).await;
    let leases: Api<Lease> = Api::namespaced(workload.clone(), "kube-system");
    let lease = json!({
        "metadata": {"name": "cloud-controller-manager", "namespace": "kube-system"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600},
    });
    let lease = serde_json::from_value(lease).unwrap();
    leases.create(&PostParams::default(), &lease).await.unwrap();
    let log = home.path().join("log");
    eventually("the manager stands by", || async {
        let text = std::fs::read_to_string(&log).ok()?;
        let words = "another is the cloud controller manager; this one stands by";
        text.contains(words).then_some(())
    })
    .await;
    create(&workload, "web", 8080).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let services: Api<Service> = Api::default_namespaced(workload.clone());
    let service = services.get("web").await.unwrap();
    assert!(service.finalizers().is_empty(), "{service:?}");

    // Released, as when the other one ends.
    let released: Value = json!({"spec": {"holderIdentity": ""}});
    leases
        .patch(
            "cloud-controller-manager",
            &PatchParams::default(),
            &Patch::Merge(released),
        )
        .await
        .unwrap();
    published(&up, &workload, "web").await;
    up.stop().await;
}
