use http::Request;
use http_body_util::{BodyExt as _, Full};
use tower::ServiceExt as _;

use super::*;
use crate::{ApiServer, Options};

async fn create(server: ApiServer, service: Value) -> (u16, Value) {
    let request = Request::post("/api/v1/namespaces/default/services")
        .body(Full::new(bytes::Bytes::from(service.to_string())))
        .expect("a request");
    let answer = server
        .in_process()
        .oneshot(request)
        .await
        .expect("an answer");
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body");
    let body = serde_json::from_slice(&body.to_bytes()).expect("JSON");
    (code, body)
}

fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

async fn server() -> ApiServer {
    ApiServer::open(Options::default()).await.expect("a server")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn services_created_at_the_same_moment_share_no_address_and_no_node_port() {
    let server = server().await;
    let mut creates = tokio::task::JoinSet::new();
    for n in 0..60 {
        let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
        let spec = json!({"type": "NodePort", "ports": ports});
        creates.spawn(create(server.clone(), service(&format!("s{n}"), spec)));
        // Two requests ask for each address.
        let spec = json!({"type": "NodePort", "clusterIP": format!("10.96.0.{}", 10 + n / 2), "ports": [{"port": 80}]});
        creates.spawn(create(
            server.clone(),
            service(&format!("address-{n}"), spec),
        ));
        let ports = json!([{"port": 80, "nodePort": 30_000 + n / 2}]);
        let spec = json!({"type": "NodePort", "ports": ports});
        creates.spawn(create(server.clone(), service(&format!("port-{n}"), spec)));
    }
    let (mut codes, mut seen) = (HashMap::new(), HashSet::new());
    while let Some(answer) = creates.join_next().await {
        let (code, body) = answer.expect("a task");
        *codes.entry(code).or_insert(0) += 1;
        let found: HashSet<Claim> = claims(&body).into_iter().collect();
        for claim in found.into_iter().filter(|_| code == 201) {
            assert!(seen.insert(claim), "twice: {claim:?} in {body}");
        }
    }
    assert_eq!(codes, HashMap::from([(201, 60 + 30 + 30), (422, 60)]));
    let allocator = &server.core().services;
    assert!(
        allocator.reserved.lock().is_empty(),
        "something is still reserved"
    );
}

/// Several clients change one Service at the same time: none gets the error of a port in use.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_that_change_one_service_at_the_same_moment_keep_its_ports() {
    let server = server().await;
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    let spec = json!({"type": "NodePort", "ports": ports});
    let (code, before) = create(server.clone(), service("web", spec)).await;
    assert_eq!(code, 201, "{before}");
    let mut patches = tokio::task::JoinSet::new();
    for n in 0..200 {
        let patch = json!({"metadata": {"labels": {format!("n{n}"): "x"}}});
        let request = Request::patch("/api/v1/namespaces/default/services/web")
            .header("content-type", "application/merge-patch+json")
            .body(Full::new(bytes::Bytes::from(patch.to_string())))
            .expect("a request");
        patches.spawn(server.clone().in_process().oneshot(request));
    }
    while let Some(answer) = patches.join_next().await {
        let answer = answer.expect("a task").expect("an answer");
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("a body");
        let body: Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
        assert_eq!(
            (code, &body["spec"]["ports"]),
            (200, &before["spec"]["ports"]),
            "{body}"
        );
    }
}

#[tokio::test]
async fn an_exhausted_range_is_an_error_and_releases_reservations() {
    let server = server().await;
    let ports = |from: u32, count: u32| -> Value {
        let port = |n| json!({"name": format!("p{n}"), "port": n});
        (from..from + count).map(port).collect()
    };
    let node_ports = |count| json!({"type": "NodePort", "ports": ports(1, count)});
    let (code, body) = create(server.clone(), service("most", node_ports(2765))).await;
    assert_eq!(code, 201, "{body}");
    let (code, body) = create(server.clone(), service("more", node_ports(4))).await;
    assert_eq!((code, &body["reason"]), (500, &json!("InternalError")));
    assert_eq!(
        body["message"],
        "Internal error occurred: failed to allocate a nodePort: range is full"
    );
    let (code, body) = create(server.clone(), service("last", node_ports(3))).await;
    assert_eq!(code, 201, "{body}");
}

#[test]
fn values_for_static_allocation_are_allocated_last_and_none_twice() {
    let allocator = Arc::new(Allocator::default());
    let range = Range {
        numbers: 30_000..=30_009,
        last: 4,
        claim: Claim::Port,
    };
    let requests: Vec<Reservations> = (0..12).map(|_| allocator.reservations()).collect();
    let choice = |request: &Reservations| Choice {
        reserved: allocator.reserved.lock(),
        stored: HashSet::from([Claim::Port(30_005)]),
        request: request.request,
    };
    let chosen: Vec<Option<Claim>> = requests
        .iter()
        .map(|request| choice(request).any(&range, &HashSet::new()))
        .collect();
    let expected = [
        30_004, 30_006, 30_007, 30_008, 30_009, 30_000, 30_001, 30_002, 30_003,
    ];
    let mut expected: Vec<_> = expected.map(|port| Some(Claim::Port(port))).into();
    expected.resize(12, None);
    assert_eq!(chosen, expected);
    // A second choice of the same request returns the same value, and a dropped reservation is free.
    let again = choice(&requests[2]).any(&range, &HashSet::new());
    assert_eq!(again, Some(Claim::Port(30_007)));
    drop(requests);
    assert!(allocator.reserved.lock().is_empty());
}
