//! Requests at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::routing::get;
use axum::{Json, Router};
use futures::future::join_all;
use serde_json::json;
use tokio::sync::Semaphore;

use super::count;
use crate::Session;
use crate::compute::ServerQuery;
use crate::tests::testing::{self, Keystone};

#[tokio::test]
async fn a_session_limits_its_concurrent_requests() {
    let (now, _) = count();
    let (most, highest) = count();
    let handler = move || {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            Json(json!({"server": {"id": "s"}}))
        }
    };
    let routes = Router::new().route("/compute/v2.1/servers/{id}", get(handler));
    let mut options = testing::options(&Keystone::default(), routes);
    options.most_at_once = 3;
    let session = Session::new(testing::config("secret"), &options).unwrap();
    let compute = session.compute();
    let results = join_all((0..20).map(|_| compute.server("s"))).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(highest(), 3);
}

#[tokio::test]
async fn a_list_does_not_wait_for_the_requests_of_others() {
    let gate = Arc::new(Semaphore::new(0));
    let (begun, has_begun) = count();
    let held = Arc::clone(&gate);
    let handler = move || {
        let (held, begun) = (Arc::clone(&held), Arc::clone(&begun));
        async move {
            begun.fetch_add(1, Ordering::SeqCst);
            let _permit = held.acquire().await;
            Json(json!({"server": {"id": "s"}}))
        }
    };
    let list = get(async || Json(json!({"servers": []})));
    let routes = Router::new()
        .route("/compute/v2.1/servers/{id}", get(handler))
        .route("/compute/v2.1/servers/detail", list);
    let mut options = testing::options(&Keystone::default(), routes);
    options.most_at_once = 1;
    let session = Session::new(testing::config("secret"), &options).unwrap();
    let compute = session.compute();
    let others = tokio::spawn(async move { join_all((0..3).map(|_| compute.server("s"))).await });
    while has_begun() == 0 {
        tokio::task::yield_now().await;
    }
    let listed = session.polling().compute();
    assert_eq!(listed.servers(&ServerQuery::default()).await.unwrap(), []);
    assert_eq!(has_begun(), 1, "the others wait for each other");
    gate.add_permits(1);
    assert!(others.await.unwrap().iter().all(Result::is_ok));
}
