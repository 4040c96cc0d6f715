//! Tests of the cloud by requests to its router, in process.

mod backups;
mod balancer;
mod balancer_ovn;
mod cluster;
mod compute;
mod directory;
mod durability;
mod factors;
mod faults;
mod guard;
mod identity;
mod image;
mod listing;
mod machines;
mod migrations;
mod network;
mod paging;
mod properties;
mod rebuild;
mod routes;
mod secrets;
mod subnet_pools;
mod trusts;
mod volume;
mod volume_attach;
mod volume_groups;
mod volume_sources;
mod volume_states;
mod volume_types;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Cloud, Options};

pub(super) const BASE: &str = "http://simulated";

/// A client of one user in one project.
#[derive(Clone)]
pub(super) struct Client {
    router: Router,
    pub(super) token: String,
    pub(super) project: String,
    pub(super) user: String,
}

/// A reply, decoded.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
    pub(super) text: String,
}

impl Client {
    pub(super) async fn login(cloud: &Cloud, user: &str) -> Self {
        let mut client = Self {
            router: cloud.router(BASE),
            token: String::new(),
            project: String::new(),
            user: String::new(),
        };
        let got = client
            .send(
                Method::POST,
                "/identity/v3/auth/tokens",
                &[],
                &password(user),
            )
            .await;
        assert_eq!(got.status, 201, "{}", got.text);
        client.token = got.headers["x-subject-token"].to_str().unwrap().to_owned();
        client.project = got.body["token"]["project"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        client.user = got.body["token"]["user"]["id"].as_str().unwrap().to_owned();
        client
    }

    pub(super) async fn get(&self, path: &str) -> Got {
        self.send(Method::GET, path, &[], &Value::Null).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Got {
        self.send(Method::POST, path, &[], &body).await
    }

    pub(super) async fn put(&self, path: &str, body: Value) -> Got {
        self.send(Method::PUT, path, &[], &body).await
    }

    pub(super) async fn delete(&self, path: &str) -> Got {
        self.send(Method::DELETE, path, &[], &Value::Null).await
    }

    /// POST that must succeed; returns the object under the only key.
    pub(super) async fn make(&self, path: &str, body: Value) -> Value {
        let got = self.post(path, body).await;
        assert!(
            (200..300).contains(&got.status),
            "POST {path}: {} {}",
            got.status,
            got.text
        );
        let map = got.body.as_object().cloned().unwrap_or_default();
        map.into_iter()
            .next()
            .map(|(_, value)| value)
            .unwrap_or_default()
    }

    /// Sends a GET that must succeed; returns the value under the first key without a list of links.
    pub(super) async fn fetch(&self, path: &str) -> Value {
        let got = self.get(path).await;
        assert_eq!(got.status, 200, "GET {path}: {}", got.text);
        let map = got.body.as_object().cloned().unwrap_or_default();
        map.into_iter()
            .find(|(name, _)| {
                !name.ends_with("links") && !["first", "next", "schema"].contains(&name.as_str())
            })
            .map(|(_, value)| value)
            .unwrap_or_default()
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Got {
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        self.raw(method, path, headers, bytes).await
    }

    pub(super) async fn raw(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Got {
        // In Cinder's paths, which contain a project, `x` stands for the caller's.
        let path = path.replace("/volume/v3/x/", &format!("/volume/v3/{}/", self.project));
        let mut request = Request::builder().method(method).uri(path);
        if !self.token.is_empty() {
            request = request.header("x-auth-token", &self.token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body
            .collect()
            .await
            .map(|body| body.to_bytes())
            .unwrap_or_default();
        Got {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

pub(super) fn password(user: &str) -> Value {
    json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": {
            "name": user, "domain": {"name": "Default"}, "password": "secret"}}},
        "scope": {"project": {"name": user, "domain": {"name": "Default"}}}}})
}

pub(super) async fn cloud() -> Cloud {
    Cloud::open(Options::default()).await.unwrap()
}

/// A cloud and its user demo.
pub(super) async fn demo() -> (Cloud, Client) {
    let cloud = cloud().await;
    let client = Client::login(&cloud, "demo").await;
    (cloud, client)
}

pub(super) fn id(value: &Value) -> String {
    value["id"]
        .as_str()
        .unwrap_or_else(|| panic!("no id in {value}"))
        .to_owned()
}

/// A network with one subnet, by its router connected to the external network.
pub(super) struct Net {
    pub(super) network: String,
    pub(super) subnet: String,
    pub(super) router: String,
    pub(super) external: String,
}

pub(super) async fn net(client: &Client, cidr: &str) -> Net {
    let external = client
        .fetch("/network/v2.0/networks?router:external=true")
        .await;
    let external = id(&external[0]);
    let network = id(&client
        .make(
            "/network/v2.0/networks",
            json!({"network": {"name": "net"}}),
        )
        .await);
    let subnet = client
        .make(
            "/network/v2.0/subnets",
            json!({"subnet": {"network_id": network, "ip_version": 4, "cidr": cidr}}),
        )
        .await;
    let subnet = id(&subnet);
    let router = client
        .make(
            "/network/v2.0/routers",
            json!({"router": {"name": "r", "external_gateway_info": {"network_id": external}}}),
        )
        .await;
    let router = id(&router);
    let path = format!("/network/v2.0/routers/{router}/add_router_interface");
    let got = client.put(&path, json!({"subnet_id": subnet})).await;
    assert_eq!(got.status, 200, "{}", got.text);
    Net {
        network,
        subnet,
        router,
        external,
    }
}

/// How long a step of a volume takes in a cloud of [`slow_volumes`].
pub(super) const STEP: std::time::Duration = std::time::Duration::from_secs(100);

/// Returns a cloud whose volumes change only when its clock is advanced, with the users demo and admin.
pub(super) async fn slow_volumes() -> (Cloud, Client, Client) {
    let timings = super::Timings {
        volume: STEP,
        ..super::Timings::default()
    };
    let options = Options {
        latency: super::Latency::Custom(Box::new(timings)),
        ..Options::default()
    };
    let cloud = Cloud::open(options).await.unwrap();
    let demo = Client::login(&cloud, "demo").await;
    let admin = Client::login(&cloud, "admin").await;
    (cloud, demo, admin)
}

impl Client {
    /// A request to Cinder at a microversion such as `3.27`; the path follows the project.
    pub(super) async fn cinder(
        &self,
        version: &str,
        method: Method,
        path: &str,
        body: Value,
    ) -> Got {
        let version = format!("volume {version}");
        let headers = [("openstack-api-version", version.as_str())];
        let path = format!("/volume/v3/{}/{path}", self.project);
        self.send(method, &path, &headers, &body).await
    }

    /// A new volume from these fields.
    pub(super) async fn new_volume(&self, fields: Value) -> String {
        let got = self
            .cinder("3.60", Method::POST, "volumes", json!({"volume": fields}))
            .await;
        assert_eq!(got.status, 202, "{}", got.text);
        id(&got.body["volume"])
    }

    pub(super) async fn volume(&self, id: &str) -> Value {
        let path = format!("volumes/{id}");
        let got = self.cinder("3.65", Method::GET, &path, Value::Null).await;
        got.body["volume"].clone()
    }

    /// The status of a volume, `-` without one.
    pub(super) async fn status(&self, id: &str) -> String {
        let volume = self.volume(id).await;
        volume["status"].as_str().unwrap_or("-").to_owned()
    }

    /// An action on a volume; returns status and text of the answer.
    pub(super) async fn act(&self, id: &str, action: Value) -> (u16, String) {
        let path = format!("volumes/{id}/action");
        let got = self.cinder("3.60", Method::POST, &path, action).await;
        (got.status, got.text)
    }

    /// The texts of the messages about a resource.
    pub(super) async fn messages(&self, id: &str) -> Vec<String> {
        let path = format!("messages?resource_uuid={id}");
        let got = self.cinder("3.5", Method::GET, &path, Value::Null).await;
        let all = got.body["messages"].as_array().cloned().unwrap_or_default();
        let text = |one: &Value| one["user_message"].as_str().unwrap().to_owned();
        all.iter().map(text).collect()
    }

    /// An ACTIVE server of this name.
    pub(super) async fn server(&self, name: &str) -> String {
        let image = id(&self.fetch("/image/v2/images?name=ubuntu-24.04").await[0]);
        let server = json!({"server": {"name": name, "flavorRef": "1", "imageRef": image, "networks": "none"}});
        id(&self.make("/compute/v2.1/servers", server).await)
    }

    /// Asks Nova to attach a volume.
    pub(super) async fn attach(&self, server: &str, volume: &str) -> Got {
        let path = format!("/compute/v2.1/servers/{server}/os-volume_attachments");
        let headers = [("openstack-api-version", "compute 2.89")];
        let body = json!({"volumeAttachment": {"volumeId": volume}});
        self.send(Method::POST, &path, &headers, &body).await
    }

    pub(super) async fn detach(&self, server: &str, volume: &str) -> Got {
        let path = format!("/compute/v2.1/servers/{server}/os-volume_attachments/{volume}");
        self.delete(&path).await
    }

    /// The volumes that Nova lists with a server.
    pub(super) async fn listed(&self, server: &str) -> Vec<Value> {
        let path = format!("/compute/v2.1/servers/{server}/os-volume_attachments");
        let headers = [("openstack-api-version", "compute 2.89")];
        let got = self.send(Method::GET, &path, &headers, &Value::Null).await;
        got.body["volumeAttachments"].as_array().unwrap().clone()
    }

    /// The attachments of a volume in Cinder.
    pub(super) async fn attachments(&self, volume: &str) -> Vec<Value> {
        let path = format!("attachments/detail?volume_id={volume}");
        let got = self.cinder("3.27", Method::GET, &path, Value::Null).await;
        got.body["attachments"].as_array().unwrap().clone()
    }

    /// Lets something go wrong once with a volume, snapshot or backup.
    pub(super) async fn trouble(&self, fault: &str) {
        let got = self
            .post(
                "/_simulator/volume-faults",
                json!({"fault": fault, "count": 1}),
            )
            .await;
        assert_eq!(got.status, 201, "{}", got.text);
    }
}
