//! A small cloud for tests: Keystone and the routes of a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::{CloudConfig, InProcess, Metrics, Session, SessionOptions};

/// Base URL of the cloud; no server listens there.
pub(crate) const URL: &str = "http://cloud.test";

/// The state of the Keystone of the test cloud.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keystone {
    logins: Arc<AtomicUsize>,
}

impl Keystone {
    /// The number of logins.
    pub(crate) fn logins(&self) -> usize {
        self.logins.load(Ordering::SeqCst)
    }

    /// The currently valid token.
    pub(crate) fn current(&self) -> String {
        format!("token-{}", self.logins())
    }

    /// True if a request carries the valid token.
    pub(crate) fn accepts(&self, headers: &HeaderMap) -> bool {
        headers
            .get("x-auth-token")
            .is_some_and(|token| token == self.current().as_str())
    }

    /// The identity service.
    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route("/identity/v3/auth/tokens", post(log_in))
            .with_state(self.clone())
    }
}

/// Logs in; the password `wrong` is rejected.
async fn log_in(State(keystone): State<Keystone>, Json(body): Json<Value>) -> Response {
    // Lets other requests arrive during this login.
    tokio::task::yield_now().await;
    let password = &body["auth"]["identity"]["password"]["user"]["password"];
    keystone.logins.fetch_add(1, Ordering::SeqCst);
    if password == "wrong" {
        let error = json!({"error": {"code": 401, "title": "Unauthorized",
            "message": "The request you have made requires authentication."}});
        return (StatusCode::UNAUTHORIZED, Json(error)).into_response();
    }
    let public = |kind: &str, path: &str| {
        json!({"type": kind, "name": kind, "endpoints": [
            {"interface": "internal", "region": "one", "region_id": "one", "url": "http://inside"},
            {"interface": "public", "region": "one", "region_id": "one",
             "url": format!("{URL}{path}")},
            {"interface": "public", "region": "two", "region_id": "two",
             "url": format!("http://two.test{path}")},
        ]})
    };
    let token = json!({"token": {
        "issued_at": "2026-01-01T00:00:00.000000Z",
        "expires_at": "2026-01-01T01:00:00.000000Z",
        "project": {"id": "p1", "name": "demo", "domain": {"id": "default", "name": "Default"}},
        "user": {"id": "u1", "name": "demo", "password_expires_at": null},
        "roles": [{"id": "r", "name": "member"}],
        "catalog": [
            public("compute", "/compute/v2.1"),
            public("network", "/network"),
            public("image", "/image/"),
            public("volumev3", "/volume/v3/p1"),
            public("load-balancer", "/load-balancer"),
        ],
    }});
    (
        StatusCode::CREATED,
        [("x-subject-token", keystone.current())],
        Json(token),
    )
        .into_response()
}

/// Nova's answer about an object that does not exist.
pub(crate) fn absent(what: &str) -> (StatusCode, Json<Value>) {
    let message = format!("{what} could not be found.");
    let fault = json!({"itemNotFound": {"code": 404, "message": message}});
    (StatusCode::NOT_FOUND, Json(fault))
}

/// A configuration for the test cloud.
pub(crate) fn config(password: &str) -> CloudConfig {
    let text = format!(
        "clouds: {{test: {{auth: {{auth_url: '{URL}/identity', username: demo, \
         password: '{password}', project_name: demo}}, region_name: one}}}}"
    );
    CloudConfig::parse(&text, "test").unwrap()
}

/// Options whose transport calls `routes`.
pub(crate) fn options(keystone: &Keystone, routes: Router) -> SessionOptions {
    let router = routes.merge(keystone.router());
    SessionOptions {
        transport: Some(Arc::new(InProcess::new(router))),
        metrics: Metrics::default(),
        ..SessionOptions::default()
    }
}

/// A session with a cloud that has `routes` beside Keystone.
pub(crate) fn session(routes: Router) -> Session {
    Session::new(config("secret"), &options(&Keystone::default(), routes)).unwrap()
}
