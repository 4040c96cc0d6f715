//! Objects kept by the server, and admission for the controllers of a real cluster.

use std::net::SocketAddr;
use std::time::Duration;

use apiserver::{ApiServer, Options, Store, Synchronous};
use serde_json::{Value, json};

use crate::pods::PODS;
use crate::support::*;

const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
const AUTHENTICATION: &str =
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";

fn authority() -> String {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().pem()
}

fn advertised(address: &str) -> Options {
    Options {
        kubernetes_service_port: Some(6443),
        advertised: Some(address.parse::<SocketAddr>().unwrap()),
        client_ca: Some(authority()),
        ..Options::default()
    }
}

/// Until a field of an object has a value.
async fn until(server: &ApiServer, path: &str, field: &str, wanted: &Value) {
    for _ in 0..30_000 {
        if get(server, path).await.1.pointer(field) == Some(wanted) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{path}: {:?}", get(server, path).await);
}

#[tokio::test]
async fn pods_find_the_server_where_it_is_advertised() {
    let server = ApiServer::open(advertised("10.250.0.1:6443"))
        .await
        .unwrap();
    let (_, endpoints) = get(&server, ENDPOINTS).await;
    let port = json!([{"name": "https", "port": 6443, "protocol": "TCP"}]);
    assert_eq!(
        endpoints["subsets"],
        json!([{"addresses": [{"ip": "10.250.0.1"}], "ports": port}])
    );
    assert_eq!(
        endpoints["metadata"]["labels"],
        json!({"endpointslice.kubernetes.io/skip-mirror": "true"})
    );
    let (_, slice) = get(&server, SLICE).await;
    assert_eq!(
        (&slice["addressType"], &slice["ports"]),
        (&json!("IPv4"), &port)
    );
    assert_eq!(
        slice["endpoints"],
        json!([{"addresses": ["10.250.0.1"], "conditions": {"ready": true}}])
    );
    assert_eq!(
        slice["metadata"]["labels"],
        json!({"kubernetes.io/service-name": "kubernetes"})
    );
    assert_eq!(
        slice["metadata"]["managedFields"][0]["manager"],
        "kube-apiserver"
    );

    // Without an address the Service leads nowhere.
    let server = ApiServer::open(Options {
        advertised: None,
        ..advertised("10.250.0.1:6443")
    });
    let server = server.await.unwrap();
    assert_eq!(get(&server, ENDPOINTS).await.0, 404);
    assert_eq!(get(&server, SLICE).await.0, 404);
}

#[tokio::test]
async fn what_the_server_keeps_of_itself_is_restored() {
    let options = advertised("10.250.0.1:6443");
    let ca = json!(options.client_ca);
    let server = ApiServer::open(options).await.unwrap();
    let service = "/api/v1/namespaces/default/services/kubernetes";
    for (path, field, wanted, other) in [
        (
            ENDPOINTS,
            "/subsets/0/addresses/0/ip",
            json!("10.250.0.1"),
            Some(
                json!({"subsets": [{"addresses": [{"ip": "192.0.2.9"}], "ports": [{"port": 1}]}]}),
            ),
        ),
        (
            SLICE,
            "/endpoints/0/addresses/0",
            json!("10.250.0.1"),
            Some(json!({"endpoints": [{"addresses": ["192.0.2.9"]}]})),
        ),
        (
            AUTHENTICATION,
            "/data/client-ca-file",
            ca,
            Some(json!({"data": {"client-ca-file": "other"}})),
        ),
        (service, "/spec/clusterIP", json!("10.96.0.1"), None),
    ] {
        until(&server, path, field, &wanted).await;
        if let Some(other) = other {
            let (code, answer) = patch(&server, path, MERGE, &other).await;
            assert_eq!(code, 200, "{answer}");
            until(&server, path, field, &wanted).await;
        }
        assert_eq!(delete(&server, path).await.0, 200, "{path}");
        until(&server, path, field, &wanted).await;
    }
}

#[tokio::test]
async fn a_server_that_moves_is_found_at_its_new_address() {
    let directory = tempfile::tempdir().unwrap();
    let stored = |address: &str| Options {
        store: Store::Sqlite {
            path: directory.path().join("objects.db"),
            synchronous: Synchronous::Normal,
        },
        ..advertised(address)
    };
    let server = ApiServer::open(stored("10.250.0.1:6443")).await.unwrap();
    server.close().await;
    let server = ApiServer::open(stored("10.250.0.2:6444")).await.unwrap();
    let (_, endpoints) = get(&server, ENDPOINTS).await;
    assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "10.250.0.2");
    let (_, slice) = get(&server, SLICE).await;
    assert_eq!(slice["ports"][0]["port"], 6444);
    server.close().await;
}

#[tokio::test]
async fn a_pod_has_the_priority_of_its_class() {
    let server = server().await;
    let pod = |name: &str, spec: Value| {
        let mut pod = json!({"metadata": {"name": name}, "spec": spec});
        pod["spec"]["containers"] = json!([{"name": "c", "image": "i"}]);
        pod
    };
    let critical = json!({"priorityClassName": "system-cluster-critical"});
    let (code, created) = post(&server, PODS, &pod("dns", critical)).await;
    assert_eq!(
        (code, &created["spec"]["priority"]),
        (201, &json!(2_000_000_000))
    );
    let (_, created) = post(&server, PODS, &pod("plain", json!({}))).await;
    assert_eq!(created["spec"]["priority"], 0);
    assert!(created["spec"]["priorityClassName"].is_null());

    for (spec, why) in [
        (
            json!({"priorityClassName": "absent"}),
            "no PriorityClass with name absent was found",
        ),
        (
            json!({"priority": 7}),
            "the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name",
        ),
    ] {
        let (code, status) = post(&server, PODS, &pod("wrong", spec)).await;
        assert_eq!(code, 403);
        assert_eq!(
            status["message"],
            format!("pods \"wrong\" is forbidden: {why}")
        );
    }

    let class = json!({
        "metadata": {"name": "usual"}, "value": 3, "globalDefault": true, "preemptionPolicy": "Never",
    });
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    assert_eq!(post(&server, classes, &class).await.0, 201);
    let (_, created) = post(&server, PODS, &pod("usual", json!({}))).await;
    let spec = &created["spec"];
    assert_eq!(
        (
            &spec["priorityClassName"],
            &spec["priority"],
            &spec["preemptionPolicy"]
        ),
        (&json!("usual"), &json!(3), &json!("Never"))
    );
}

#[tokio::test]
async fn a_node_gets_its_range_and_its_machine_once() {
    let server = server().await;
    let nodes = "/api/v1/nodes";
    let node = json!({"metadata": {"name": "n"}});
    assert_eq!(post(&server, nodes, &node).await.0, 201);
    let strategic = "application/strategic-merge-patch+json";
    let range = |range: &str| json!({"spec": {"podCIDR": range, "podCIDRs": [range]}});
    let path = "/api/v1/nodes/n";
    for _ in 0..2 {
        let (code, node) = patch(&server, path, strategic, &range("10.244.0.0/24")).await;
        assert_eq!(
            (code, &node["spec"]["podCIDRs"]),
            (200, &json!(["10.244.0.0/24"]))
        );
    }
    // The controller of ranges may not have seen its own change yet.
    let (code, status) = patch(&server, path, strategic, &range("10.244.1.0/24")).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    let machine = |id: &str| json!({"spec": {"providerID": id}});
    assert_eq!(
        patch(&server, path, MERGE, &machine("openstack:///a"))
            .await
            .0,
        200
    );
    let (code, status) = patch(&server, path, MERGE, &machine("openstack:///b")).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "Node \"n\" is invalid: spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid"
    );
    let one = json!({"metadata": {"name": "one"}, "spec": {"podCIDR": "10.244.3.0/24"}});
    let (_, created) = post(&server, nodes, &one).await;
    assert_eq!(created["spec"]["podCIDRs"], json!(["10.244.3.0/24"]));
}
