//! The APIs of a cloud on simulated nodes answer at one address, by the catalogue that the controller writes.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use simulator::nodes::Ending;
use testbed::eventually;
use tower::ServiceExt as _;

use crate::world::World;

const URL: &str = "http://127.0.0.1:9";

/// Status, token and body.
async fn ask(
    world: &World,
    method: &str,
    path: &str,
    token: &str,
    body: &Value,
) -> (u16, String, Value) {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("x-auth-token", token);
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let router = world.programs.gateway(URL);
    let answer = router.oneshot(request).await.unwrap();
    let token = answer.headers().get("x-subject-token");
    let token = token.map(|it| it.to_str().unwrap().to_owned());
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let words = || Value::from(String::from_utf8_lossy(&body).into_owned());
    let body = serde_json::from_slice(&body).unwrap_or_else(|_| words());
    (status, token.unwrap_or_default(), body)
}

async fn log_in(world: &World) -> (String, Value) {
    let secret = world.management.api::<Secret>().get("cloud-admin").await;
    let text = secret.unwrap().data.unwrap().remove("clouds.yaml").unwrap();
    let text = String::from_utf8(text.0).unwrap();
    assert!(
        text.contains("auth_url: \"http://keystone:5000/v3\""),
        "{text}"
    );
    let password = text.split("password: \"").nth(1).unwrap();
    let password = password.split('"').next().unwrap();
    let domain = json!({"id": "default"});
    let user = json!({"name": "admin", "domain": domain, "password": password});
    let body = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"name": "admin", "domain": domain}}}});
    let path = "/identity/v3/auth/tokens";
    let (status, token, body) = ask(world, "POST", path, "", &body).await;
    assert_eq!(status, 201, "{body}");
    (token, body["token"]["catalog"].clone())
}

#[tokio::test(start_paused = true)]
async fn every_endpoint_of_the_catalogue_answers_while_its_pod_is_ready() {
    let world = World::open().await;
    let _controller = world.controller();
    assert_eq!(
        ask(&world, "GET", "/identity/v3", "", &Value::Null).await.0,
        503
    );
    let storage = json!({"volumes": {"driver": "Fake"}});
    let services = json!({"octavia": {"enabled": true}});
    world
        .create(json!({"release": "2026.1", "storage": storage, "services": services}))
        .await;
    world.ready().await;
    let (token, catalog) = log_in(&world).await;
    let entries = catalog.as_array().unwrap();
    assert_eq!(entries.len(), 7, "{catalog:#}");
    for entry in entries {
        for endpoint in entry["endpoints"].as_array().unwrap() {
            let url = endpoint["url"].as_str().unwrap();
            let path = url.strip_prefix(URL).unwrap();
            // Cinder answers below the project alone.
            let is_cinder = entry["name"] == "cinder";
            let path = format!("{path}{}", if is_cinder { "/limits" } else { "" });
            let (status, _, body) = ask(&world, "GET", &path, &token, &Value::Null).await;
            assert!((200..=300).contains(&status), "{url}: {status} {body}");
        }
    }
    // The list has what the controller has written.
    let (_, _, all) = ask(
        &world,
        "GET",
        "/identity/v3/endpoints",
        &token,
        &Value::Null,
    )
    .await;
    assert!(all.to_string().contains("http://nova:8774/v2.1"), "{all}");
    // Both are one cloud: a network of one is visible in the other.
    let network = json!({"network": {"name": "net"}});
    let (status, ..) = ask(&world, "POST", "/network/v2.0/networks", &token, &network).await;
    assert_eq!(status, 201);
    let (_, _, servers) = ask(&world, "GET", "/compute/v2.1/servers", &token, &Value::Null).await;
    assert_eq!(servers["servers"], json!([]));
    let path = "/load-balancer/v2.0/lbaas/providers";
    let (_, _, all) = ask(&world, "GET", path, &token, &Value::Null).await;
    let names = all["providers"].as_array().unwrap().iter();
    assert_eq!(names.map(|it| &it["name"]).collect::<Vec<_>>(), ["ovn"]);
    assert_eq!(
        ask(&world, "GET", "/metric/v1", &token, &Value::Null)
            .await
            .0,
        404
    );

    let ending = Ending {
        status: 1,
        log: String::new(),
    };
    world.faults.container_ends("neutron-api", Some(ending));
    eventually("the API to be gone", || async {
        let (status, _, body) = ask(
            &world,
            "GET",
            "/network/v2.0/networks",
            &token,
            &Value::Null,
        )
        .await;
        let gone = status == 503 && body == "no Pod of neutron-api is ready\n";
        gone.then_some(()).ok_or(format!("{status} {body}"))
    })
    .await;
    world.faults.container_ends("neutron-api", None);
    eventually("the network to be there", || async {
        let (status, _, body) = ask(
            &world,
            "GET",
            "/network/v2.0/networks",
            &token,
            &Value::Null,
        )
        .await;
        let there = body["networks"][0]["name"] == "net";
        there.then_some(()).ok_or(format!("{status} {body}"))
    })
    .await;
}
