use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use tower::ServiceExt;

use super::{Readiness, metrics, router};
use crate::metrics::Metrics;

async fn get(router: Router, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_manager_is_alive_at_once_and_ready_when_it_is_set() {
    let readiness = Readiness::waiting_for("the API server");
    let served = router(readiness.clone());
    assert_eq!(
        get(served.clone(), "/healthz").await,
        (200, "ok".to_owned())
    );
    assert_eq!(
        get(served.clone(), "/readyz").await,
        (503, "waiting for the API server".to_owned())
    );
    readiness.ready();
    assert_eq!(get(served, "/readyz").await, (200, "ok".to_owned()));
}

#[tokio::test]
async fn metrics_count_reconciles() {
    let counted = Metrics::default();
    counted.observe("machine", Duration::from_millis(2), true);
    let (status, text) = get(metrics(counted), "/metrics").await;
    assert_eq!(status, 200);
    let line = "controller_runtime_reconcile_total{controller=\"machine\",result=\"success\"} 1";
    assert!(text.contains(line), "{text}");
}
