//! Endpoints for kubelets and monitoring: `/healthz`, `/readyz`, `/metrics`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use parking_lot::Mutex;

use crate::metrics::Metrics;

/// Readiness of a manager, or the reason why the manager is not ready.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<Mutex<Option<&'static str>>>);

impl Readiness {
    /// Creates a readiness of a manager that is not ready; `what` is the reason, such as `the API server`.
    pub fn waiting_for(what: &'static str) -> Self {
        Self(Arc::new(Mutex::new(Some(what))))
    }

    /// Sets the manager ready.
    pub fn ready(&self) {
        *self.0.lock() = None;
    }
}

/// Routes of `/healthz`, `/livez` (the process answers) and `/readyz` (503 until [`Readiness::ready`]).
pub fn router(readiness: Readiness) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .with_state(readiness)
}

/// Returns the route of `/metrics` in the OpenMetrics text format.
pub fn metrics(metrics: Metrics) -> Router {
    const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let text = |State(metrics): State<Metrics>| async move {
        ([(header::CONTENT_TYPE, TYPE)], metrics.text())
    };
    Router::new()
        .route("/metrics", get(text))
        .with_state(metrics)
}

async fn readyz(State(readiness): State<Readiness>) -> impl IntoResponse {
    match *readiness.0.lock() {
        None => (StatusCode::OK, "ok".to_owned()),
        Some(what) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("waiting for {what}"),
        ),
    }
}

#[cfg(test)]
mod tests;
