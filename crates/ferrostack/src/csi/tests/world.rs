//! A simulated cloud behind a socket.

use std::time::Duration;

use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options};
use tokio::net::TcpListener;

/// More than anything takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until something holds, which nothing tells.
pub(in crate::csi) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.unwrap();
}

pub(in crate::csi) struct World {
    url: String,
    http: reqwest::Client,
}

impl World {
    pub(in crate::csi) async fn open() -> Self {
        // Another test may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cloud = Cloud::open(Options::default()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = cloud.router(&url);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            url,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    /// A cloud.conf for it, with this password.
    pub(in crate::csi) fn conf(&self, password: &str) -> String {
        format!(
            "[Global]\nauth-url = {}/identity/v3\nusername = demo\npassword = {password}\n\
             tenant-name = demo\ndomain-name = Default\n",
            self.url
        )
    }

    async fn log_in(&self, user: &str) -> String {
        let login = json!({"auth": {"identity": {"methods": ["password"], "password": {"user":
            {"name": user, "password": "secret", "domain": {"id": "default"}}}},
            "scope": {"project": {"name": user, "domain": {"id": "default"}}}}});
        let url = format!("{}/identity/v3/auth/tokens", self.url);
        let request = self.http.post(url).body(login.to_string());
        let request = request.header("content-type", "application/json");
        let answer = request.send().await.unwrap();
        let token = answer.headers()["x-subject-token"].to_str().unwrap();
        token.to_owned()
    }

    /// Gives the user `demo` another password, which ends its tokens.
    pub(in crate::csi) async fn password(&self, password: &str) {
        let admin = self.log_in("admin").await;
        let users = self
            .send(&admin, "GET", "/identity/v3/users?name=demo", Value::Null)
            .await;
        let id = users["users"][0]["id"].as_str().unwrap();
        let path = format!("/identity/v3/users/{id}");
        let body = json!({"user": {"password": password}});
        self.send(&admin, "PATCH", &path, body).await;
    }

    async fn send(&self, token: &str, method: &str, path: &str, body: Value) -> Value {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.url))
            .header("content-type", "application/json")
            .header("openstack-api-version", "volume 3.47")
            .header("x-auth-token", token);
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let body = answer.bytes().await.unwrap();
        let text = String::from_utf8_lossy(&body);
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_slice(&body).unwrap_or_default()
    }
}
