//! A simulated cloud behind a socket, and an API server in the process.

use std::sync::Arc;
use std::time::Duration;

use apiserver::ApiServer;
use kube::Client;
use kube::api::{DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use operator::client::Api;
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options};
use tokio::net::TcpListener;

/// More than anything takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until something holds, which nothing tells.
pub(in crate::commands::csi) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.unwrap();
}

pub(in crate::commands::csi) struct World {
    url: String,
    pub(in crate::commands::csi) client: Client,
    http: reqwest::Client,
    /// Of the user and the project `demo`.
    token: String,
    project: String,
}

impl World {
    pub(in crate::commands::csi) async fn open() -> Self {
        // Another test may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cloud = Cloud::open(Options::default()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = cloud.router(&url);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let options = apiserver::Options {
            hooks: Arc::new(apiserver::NoHooks),
            ..apiserver::Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        let mut world = Self {
            url,
            client: Client::new(server.in_process(), "default"),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            token: String::new(),
            project: String::new(),
        };
        (world.token, world.project) = world.log_in("demo").await;
        world
    }

    /// A cloud.conf for it, with this password.
    pub(in crate::commands::csi) fn conf(&self, password: &str) -> String {
        format!(
            "[Global]\nauth-url = {}/identity/v3\nusername = demo\npassword = {password}\n\
             tenant-name = demo\ndomain-name = Default\n",
            self.url
        )
    }

    async fn log_in(&self, user: &str) -> (String, String) {
        let login = json!({"auth": {"identity": {"methods": ["password"], "password": {"user":
            {"name": user, "password": "secret", "domain": {"id": "default"}}}},
            "scope": {"project": {"name": user, "domain": {"id": "default"}}}}});
        let url = format!("{}/identity/v3/auth/tokens", self.url);
        let request = self.http.post(url).body(login.to_string());
        let request = request.header("content-type", "application/json");
        let answer = request.send().await.unwrap();
        let token = answer.headers()["x-subject-token"].to_str().unwrap();
        let token = token.to_owned();
        let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        let project = body["token"]["project"]["id"].as_str().unwrap();
        (token, project.to_owned())
    }

    /// Gives the user `demo` another password, which ends its tokens.
    pub(in crate::commands::csi) async fn password(&self, password: &str) {
        let (admin, _) = self.log_in("admin").await;
        let users = self
            .send(&admin, "GET", "/identity/v3/users?name=demo", Value::Null)
            .await;
        let id = users["users"][0]["id"].as_str().unwrap();
        let path = format!("/identity/v3/users/{id}");
        let body = json!({"user": {"password": password}});
        self.send(&admin, "PATCH", &path, body).await;
    }

    /// Changes Cinder's quotas of the project.
    pub(in crate::commands::csi) async fn quota(&self, quotas: Value) {
        let (admin, project) = self.log_in("admin").await;
        let path = format!("/volume/v3/{project}/os-quota-sets/{}", self.project);
        self.send(&admin, "PUT", &path, json!({"quota_set": quotas}))
            .await;
    }

    /// Asks Cinder as the project's member; `path` follows the project.
    pub(in crate::commands::csi) async fn cinder(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> Value {
        let path = format!("/volume/v3/{}{path}", self.project);
        self.send(&self.token, method, &path, body).await
    }

    /// Creates a volume, a snapshot or a backup, and returns its id when it is available.
    pub(in crate::commands::csi) async fn available(&self, kind: &str, object: Value) -> String {
        let created = self
            .cinder("POST", &format!("/{kind}s"), json!({kind: object}))
            .await;
        let id = created[kind]["id"].as_str().unwrap().to_owned();
        let path = format!("/{kind}s/{id}");
        until(async || {
            let now = self.cinder("GET", &path, Value::Null).await;
            now[kind]["status"] == "available"
        })
        .await;
        id
    }

    /// The ids of all volumes, snapshots or backups.
    pub(in crate::commands::csi) async fn ids(&self, kind: &str) -> Vec<String> {
        let kinds = format!("{kind}s");
        let listed = self.cinder("GET", &format!("/{kinds}"), Value::Null).await;
        let listed = listed[&kinds].as_array().unwrap().iter();
        let mut ids: Vec<String> = listed
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    }

    /// Installs a kind of CRDs without a schema.
    pub(in crate::commands::csi) async fn install(&self, group: &str, kind: &str, scope: &str) {
        let plural = format!("{}s", kind.to_lowercase()).replace("classs", "classes");
        let schema = json!({"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        self.create(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}"), "annotations":
                {"api-approved.kubernetes.io": "https://github.com/kubernetes-csi/external-snapshotter"}},
            "spec": {"group": group, "scope": scope, "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}}))
            .await;
    }

    /// Creates a PersistentVolume of a volume.
    pub(in crate::commands::csi) async fn persistent_volume(&self, name: &str, handle: &str) {
        self.create(
            json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": handle}}}),
        )
        .await;
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

    /// Creates an object in the API server.
    pub(in crate::commands::csi) async fn create(&self, object: Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = text(&object["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let gvk = GroupVersionKind::gvk(group, version, &text(&object["kind"]));
        let resource = ApiResource::from_gvk(&gvk);
        let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let created = serde_json::from_value(object.clone()).unwrap();
        let created = api.create(&PostParams::default(), &created).await;
        created.unwrap_or_else(|error| panic!("{error}: {object}"));
    }
}
