use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::client::Body;
use kube::{Client, Error};
use parking_lot::Mutex;

use super::{Requests, answered_within, counted, named};

/// User-Agents and paths of requests.
type Seen = Arc<Mutex<Vec<(String, String)>>>;

/// A client that records the User-Agent and the path of each request and answers none.
fn recording() -> (Client, Seen) {
    let seen = Seen::default();
    let noted = Arc::clone(&seen);
    let service = tower::service_fn(move |request: Request<Body>| {
        let agent = request.headers().get("user-agent");
        let agent = agent.map_or("", |agent| agent.to_str().unwrap()).to_owned();
        noted.lock().push((agent, request.uri().to_string()));
        async {
            let refusal = Response::builder().status(404);
            Ok::<_, Error>(refusal.body(Body::from(Vec::new())).unwrap())
        }
    });
    (Client::new(service, "default"), seen)
}

#[tokio::test]
async fn requests_are_counted_watches_apart_and_dry_runs_are_no_writes() {
    let (client, seen) = recording();
    let requests = Requests::default();
    let maps: Api<ConfigMap> = Api::namespaced(counted(&client, &requests), "default");
    let patch = Patch::Merge(serde_json::json!({}));
    let trial = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let _ = maps.list(&ListParams::default()).await;
    let _ = maps.patch("a", &trial, &patch).await;
    assert_eq!((requests.all(), requests.writes()), (2, 0));
    let _ = maps.patch("a", &PatchParams::default(), &patch).await;
    let _ = maps.delete("a", &DeleteParams::default()).await;
    assert_eq!((requests.all(), requests.writes()), (4, 2));
    assert_eq!(requests.watches(), 0);
    let _ = maps.watch(&WatchParams::default(), "0").await;
    assert_eq!((requests.all(), requests.watches()), (5, 1));
    assert_eq!(requests.writes(), 2);
    assert_eq!(seen.lock().len(), 5);
}

#[tokio::test]
async fn every_request_names_its_controller_and_every_write_its_field_manager() {
    let (client, seen) = recording();
    let maps: Api<ConfigMap> = Api::namespaced(named(&client, "ferrostack-test"), "default");
    let patch = Patch::Merge(serde_json::json!({}));
    let path = "/api/v1/namespaces/default/configmaps";
    let _ = maps.list(&ListParams::default()).await;
    let _ = maps
        .create(&PostParams::default(), &ConfigMap::default())
        .await;
    let _ = maps.patch("a", &PatchParams::default(), &patch).await;
    let _ = maps.patch("a", &PatchParams::apply("mine"), &patch).await;
    let _ = maps.delete("a", &DeleteParams::default()).await;
    let seen = seen.lock().clone();
    let agent = concat!("ferrostack-test/", env!("CARGO_PKG_VERSION"));
    assert!(seen.iter().all(|(seen, _)| seen == agent), "{seen:?}");
    let rest = |uri: &str| {
        let rest = uri.split_once(path).unwrap().1.replace("?&", "?");
        rest.trim_end_matches('?').to_owned()
    };
    let paths: Vec<_> = seen.iter().map(|(_, uri)| rest(uri)).collect();
    assert_eq!(
        paths,
        [
            "",
            "?fieldManager=ferrostack-test",
            "/a?fieldManager=ferrostack-test",
            "/a?fieldManager=mine",
            "/a",
        ]
    );
}

#[tokio::test]
async fn the_innermost_name_wins() {
    let (client, seen) = recording();
    let client = named(&named(&client, "outer"), "inner");
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let _ = maps
        .create(&PostParams::default(), &ConfigMap::default())
        .await;
    let (agent, path) = seen.lock().remove(0);
    assert!(agent.starts_with("inner/"), "{agent}");
    assert!(path.ends_with("?fieldManager=inner"), "{path}");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_never_answers_is_an_error_after_the_limit() {
    let silent = tower::service_fn(|_: Request<Body>| async {
        std::future::pending::<Result<Response<Body>, Error>>().await
    });
    let client = answered_within(&Client::new(silent, "default"), Duration::from_secs(10));
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let error = maps.list(&ListParams::default()).await.unwrap_err();
    let words = crate::words::chain(&error);
    assert!(words.contains("did not answer within 10 s"), "{words}");
}
