//! A simulated cloud, and the driver.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloud_conf::{Program, access};
use csi::{Driver, NamedCloud, Options};
use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use csi_spec::{
    CapacityRange, Controller, ControllerExpandVolumeRequest, ControllerModifyVolumeRequest,
    ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest, CreateSnapshotRequest,
    CreateVolumeGroupSnapshotRequest, CreateVolumeRequest, DeleteSnapshotRequest,
    DeleteVolumeGroupSnapshotRequest, DeleteVolumeRequest, GetVolumeGroupSnapshotRequest,
    GroupController, Snapshot, Volume, VolumeCapability, VolumeGroupSnapshot,
};
use grpc::{Code, Context, Status};
use openstack::config::{ApplicationCredentialRef, Credential, DomainRef, UserRef};
use openstack::identity::NewApplicationCredential;
use openstack::transport::{InProcess, Limits, SharedTransport};
use openstack::{CloudConfig, CloudPool, PoolOptions, Session, SessionOptions};
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options as CloudOptions};
use tokio::time::Instant;

const URL: &str = "http://cloud";
pub(crate) const GIB: i64 = 1 << 30;

pub(crate) struct World {
    pub(crate) cloud: Cloud,
    pub(crate) driver: Arc<Driver>,
    entry: &'static str,
    token: String,
    project: String,
}

impl World {
    pub(crate) async fn open() -> Self {
        Self::open_on(CloudOptions::default(), options()).await
    }

    pub(crate) async fn open_on(cloud: CloudOptions, options: Options) -> Self {
        Self::open_as(("demo", "simulated"), cloud, options).await
    }

    /// The driver has the cloud's administrator as its user.
    pub(crate) async fn open_as_administrator(options: Options) -> Self {
        let cloud = CloudOptions::default();
        Self::open_as(("admin", "simulated-admin"), cloud, options).await
    }

    /// A user, and its entry of clouds.yaml.
    async fn open_as(
        (user, entry): (&str, &'static str),
        mut cloud: CloudOptions,
        options: Options,
    ) -> Self {
        for name in [
            "instances",
            "cores",
            "ram",
            "port",
            "volumes",
            "gigabytes",
            "snapshots",
        ] {
            cloud.quotas.entry(name.to_owned()).or_insert(-1);
        }
        let cloud = Cloud::open(cloud).await.unwrap();
        restrict(&cloud, entry).await;
        let driver = driver(&cloud, entry, options);
        let (token, project) = log_in(&cloud, user).await;
        Self {
            cloud,
            driver,
            entry,
            token,
            project,
        }
    }

    /// Another replica, or the same after a restart.
    pub(crate) fn restart(&mut self) {
        self.driver = driver(&self.cloud, self.entry, options());
    }

    /// A replica with lists of its own.
    pub(crate) fn replica(&self) -> Arc<Driver> {
        driver(&self.cloud, self.entry, options())
    }

    /// The driver of another cluster on the same cloud.
    pub(crate) fn beside(&self, options: Options) -> Arc<Driver> {
        driver(&self.cloud, self.entry, options)
    }

    /// A server without network or image to speak of.
    pub(crate) async fn server(&self, name: &str) -> String {
        let first = async |path: &str, kind: &str| {
            let answer = self.request("GET", path, Value::Null).await;
            answer[kind][0]["id"].as_str().unwrap().to_owned()
        };
        let flavor = first("/compute/v2.1/flavors", "flavors").await;
        let image = first("/image/v2/images", "images").await;
        let server = json!({"server": {"name": name, "flavorRef": flavor, "imageRef": image, "networks": "none"}});
        let server = self.compute("POST", "/compute/v2.1/servers", server).await;
        let id = server["server"]["id"].as_str().unwrap().to_owned();
        for _ in 0..1000 {
            let path = format!("/compute/v2.1/servers/{id}");
            let server = self.request("GET", &path, Value::Null).await;
            if server["server"]["status"] == "ACTIVE" {
                return id;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("server {name} did not start");
    }

    pub(crate) async fn create(&self, request: CreateVolumeRequest) -> Result<Volume, Status> {
        let created = self.driver.create_volume(minutes(3), request).await;
        created.map(|it| it.volume.unwrap())
    }

    /// Creates a volume of some GiB.
    pub(crate) async fn volume(&self, name: &str, gib: i64) -> Volume {
        self.create(new_volume(name, gib)).await.unwrap()
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<(), Status> {
        let request = DeleteVolumeRequest {
            volume_id: id.to_owned(),
            ..DeleteVolumeRequest::default()
        };
        self.driver
            .delete_volume(minutes(3), request)
            .await
            .map(drop)
    }

    pub(crate) async fn attach(
        &self,
        id: &str,
        node: &str,
    ) -> Result<BTreeMap<String, String>, Status> {
        self.attach_as(id, node, Mode::SingleNodeWriter).await
    }

    pub(crate) async fn attach_as(
        &self,
        id: &str,
        node: &str,
        mode: Mode,
    ) -> Result<BTreeMap<String, String>, Status> {
        self.attach_for(id, node, capability(mode, false)).await
    }

    /// As a block volume that several nodes write.
    pub(crate) async fn attach_shared(
        &self,
        id: &str,
        node: &str,
    ) -> Result<BTreeMap<String, String>, Status> {
        let shared = capability(Mode::MultiNodeMultiWriter, true);
        self.attach_for(id, node, shared).await
    }

    async fn attach_for(
        &self,
        id: &str,
        node: &str,
        capability: VolumeCapability,
    ) -> Result<BTreeMap<String, String>, Status> {
        let request = ControllerPublishVolumeRequest {
            volume_id: id.to_owned(),
            node_id: node.to_owned(),
            volume_capability: Some(capability),
            ..ControllerPublishVolumeRequest::default()
        };
        let attached = self
            .driver
            .controller_publish_volume(minutes(3), request)
            .await;
        attached.map(|it| it.publish_context)
    }

    pub(crate) async fn detach(&self, id: &str, node: &str) -> Result<(), Status> {
        let request = ControllerUnpublishVolumeRequest {
            volume_id: id.to_owned(),
            node_id: node.to_owned(),
            ..ControllerUnpublishVolumeRequest::default()
        };
        self.driver
            .controller_unpublish_volume(minutes(3), request)
            .await
            .map(drop)
    }

    pub(crate) async fn snapshot(
        &self,
        name: &str,
        volume: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Snapshot, Status> {
        let request = CreateSnapshotRequest {
            name: name.to_owned(),
            source_volume_id: volume.to_owned(),
            parameters: pairs(parameters),
            ..CreateSnapshotRequest::default()
        };
        let taken = self.driver.create_snapshot(minutes(3), request).await;
        taken.map(|it| it.snapshot.unwrap())
    }

    pub(crate) async fn delete_snapshot(&self, id: &str) -> Result<(), Status> {
        let request = DeleteSnapshotRequest {
            snapshot_id: id.to_owned(),
            ..DeleteSnapshotRequest::default()
        };
        self.driver
            .delete_snapshot(minutes(3), request)
            .await
            .map(drop)
    }

    /// Makes a type of groups; returns its id.
    pub(crate) async fn group_type(&self, name: &str, specs: Value) -> String {
        let body = json!({"group_type": {"name": name, "group_specs": specs}});
        let created = self.administrate("POST", "/group_types", body).await;
        created["group_type"]["id"].as_str().unwrap().to_owned()
    }

    /// Snapshots of volumes at one moment, with the parameters of a class.
    pub(crate) async fn together(
        &self,
        name: &str,
        volumes: &[&str],
        class: &[(&str, &str)],
    ) -> Result<VolumeGroupSnapshot, Status> {
        let request = CreateVolumeGroupSnapshotRequest {
            name: name.to_owned(),
            source_volume_ids: volumes.iter().map(|id| (*id).to_owned()).collect(),
            parameters: pairs(class),
            ..CreateVolumeGroupSnapshotRequest::default()
        };
        let taken = self
            .driver
            .create_volume_group_snapshot(minutes(3), request);
        taken.await.map(|it| it.group_snapshot.unwrap())
    }

    pub(crate) async fn get_together(
        &self,
        id: &str,
        parts: &[&str],
    ) -> Result<VolumeGroupSnapshot, Status> {
        let request = GetVolumeGroupSnapshotRequest {
            group_snapshot_id: id.to_owned(),
            snapshot_ids: parts.iter().map(|id| (*id).to_owned()).collect(),
            ..GetVolumeGroupSnapshotRequest::default()
        };
        let found = self.driver.get_volume_group_snapshot(minutes(3), request);
        found.await.map(|it| it.group_snapshot.unwrap())
    }

    pub(crate) async fn delete_together(&self, id: &str, parts: &[&str]) -> Result<(), Status> {
        let request = DeleteVolumeGroupSnapshotRequest {
            group_snapshot_id: id.to_owned(),
            snapshot_ids: parts.iter().map(|id| (*id).to_owned()).collect(),
            ..DeleteVolumeGroupSnapshotRequest::default()
        };
        let deleted = self
            .driver
            .delete_volume_group_snapshot(minutes(3), request);
        deleted.await.map(drop)
    }

    /// Objects of the cloud, by kind: `volumes`, `snapshots`, `backups`, `groups`, `group_snapshots`.
    pub(crate) async fn all(&self, kind: &str) -> Vec<Value> {
        let path = self.volumes(&format!("/{kind}/detail?list_volume=true"));
        let list = self.cinder("GET", &path, Value::Null).await;
        list[kind].as_array().unwrap().clone()
    }

    /// The one of a kind with an id.
    pub(crate) async fn one(&self, kind: &str, id: &str) -> Value {
        let all = self.all(kind).await;
        all.into_iter()
            .find(|it| it["id"] == id)
            .unwrap_or_default()
    }

    /// The next requests to a route fail as `rule` says.
    pub(crate) async fn fault(&self, rule: Value) {
        self.request("POST", "/_simulator/faults", rule).await;
    }

    /// Plays a life with each class of faults at a route, which is met once. A refusal may end it; then a whole one
    /// follows. Nothing is left.
    pub(crate) async fn each_fault(
        &self,
        [service, method, route]: [&str; 3],
        life: impl AsyncFn() -> Result<(), Status>,
    ) {
        let statuses = [401, 403, 409, 429, 500, 503, 504];
        let mut faults = statuses.map(|status| json!({"status": status})).to_vec();
        faults.extend([json!({"drop": true}), json!({"garbage": true})]);
        for fault in faults {
            let status = fault["status"].as_u64();
            for after in [false, true] {
                // A definite refusal has changed nothing.
                if after && status.is_some_and(|status| status < 500) {
                    continue;
                }
                let what = format!("{method} {route} {fault} {after}");
                let mut rule = json!({"service": service, "method": method, "route": route, "count": 1,
                    "after_change": after});
                rule.as_object_mut()
                    .unwrap()
                    .extend(fault.as_object().unwrap().clone());
                self.fault(rule).await;
                let is_definite = matches!(status, Some(403 | 409));
                let ended = life().await;
                if let Err(refusal) = &ended {
                    assert!(is_definite, "{what}: {}", refusal.message);
                }
                if ended.is_err() || status == Some(403) {
                    self.request("DELETE", "/_simulator/faults", Value::Null)
                        .await;
                    life().await.unwrap();
                }
                self.assert_empty(&what).await;
            }
        }
    }

    /// Nothing of ours is left in Cinder.
    pub(crate) async fn assert_empty(&self, after: &str) {
        for kind in [
            "volumes",
            "snapshots",
            "backups",
            "groups",
            "group_snapshots",
        ] {
            let left = self.all(kind).await;
            assert!(left.is_empty(), "{after}: {left:?}");
        }
    }

    /// Something goes wrong in the cloud with the next volume, snapshot, backup or attachment.
    pub(crate) async fn trouble(&self, fault: &str) {
        let body = json!({"fault": fault, "count": 1});
        self.request("POST", "/_simulator/volume-faults", body)
            .await;
    }

    /// Deletes a server whose attachments stay in Cinder.
    pub(crate) async fn orphan(&self, server: &str) {
        self.trouble("attachment-outlives-server").await;
        let path = format!("/compute/v2.1/servers/{server}");
        self.request("DELETE", &path, Value::Null).await;
        for _ in 0..1000 {
            let list = self
                .request("GET", "/compute/v2.1/servers", Value::Null)
                .await;
            let servers = list["servers"].as_array().unwrap();
            if servers.iter().all(|it| it["id"] != server) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("server {server} is not deleted");
    }

    /// The id of the project.
    pub(crate) fn project(&self) -> &str {
        &self.project
    }

    pub(crate) async fn expand(&self, id: &str, gib: i64) -> Result<(), Status> {
        let request = ControllerExpandVolumeRequest {
            volume_id: id.to_owned(),
            capacity_range: Some(CapacityRange {
                required_bytes: gib * GIB,
                limit_bytes: 0,
            }),
            ..ControllerExpandVolumeRequest::default()
        };
        let grown = self.driver.controller_expand_volume(minutes(3), request);
        grown.await.map(drop)
    }

    /// The path of Cinder's API for the project.
    pub(crate) fn volumes(&self, path: &str) -> String {
        format!("/volume/v3/{}{path}", self.project)
    }

    /// The requests to the cloud since the last call of this, by operation, without logins.
    pub(crate) fn requests(&self) -> BTreeMap<String, u64> {
        let counted = self.cloud.requests();
        self.cloud.reset_requests();
        let of_project = counted.into_iter().filter(|it| it.service != "identity");
        of_project
            .map(|it| (format!("{} {}", it.method, it.route), it.count))
            .collect()
    }

    /// A request to Cinder of the cloud's administrator, who has a project of their own.
    pub(crate) async fn administrate(&self, method: &str, path: &str, body: Value) -> Value {
        let (token, project) = log_in(&self.cloud, "admin").await;
        let path = format!("/volume/v3/{project}{path}");
        let version = Some("volume 3.70");
        send(&self.cloud, &token, method, &path, body, version).await
    }

    /// Makes a type of volumes; returns its id.
    pub(crate) async fn volume_type(&self, name: &str, specs: Value) -> String {
        let body = json!({"volume_type": {"name": name, "extra_specs": specs}});
        let created = self.administrate("POST", "/types", body).await;
        created["volume_type"]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn modify(&self, id: &str, parameters: &[(&str, &str)]) -> Result<(), Status> {
        let request = ControllerModifyVolumeRequest {
            volume_id: id.to_owned(),
            mutable_parameters: pairs(parameters),
            ..ControllerModifyVolumeRequest::default()
        };
        let modified = self.driver.controller_modify_volume(minutes(3), request);
        modified.await.map(drop)
    }

    pub(crate) async fn request(&self, method: &str, path: &str, body: Value) -> Value {
        send(&self.cloud, &self.token, method, path, body, None).await
    }

    async fn compute(&self, method: &str, path: &str, body: Value) -> Value {
        send(
            &self.cloud,
            &self.token,
            method,
            path,
            body,
            Some("compute 2.60"),
        )
        .await
    }

    /// A request with a version of Cinder that has groups.
    pub(crate) async fn cinder(&self, method: &str, path: &str, body: Value) -> Value {
        let version = Some("volume 3.27");
        send(&self.cloud, &self.token, method, path, body, version).await
    }

    pub(crate) async fn with_version(&self, method: &str, path: &str, version: &str) -> Value {
        let version = Some(version);
        send(&self.cloud, &self.token, method, path, Value::Null, version).await
    }
}

/// Options of a cluster.
pub(crate) fn options() -> Options {
    Options {
        cluster: "kubernetes".to_owned(),
        ..Options::default()
    }
}

fn driver(cloud: &Cloud, entry: &str, options: Options) -> Arc<Driver> {
    let mut pool = PoolOptions::default();
    let transport: SharedTransport = Arc::new(InProcess::new(cloud.router(URL)));
    pool.session.transport = Some(transport);
    pool.intervals = csi::INTERVALS;
    pool.session.most_at_once = csi::MOST_AT_ONCE;
    let user = match entry {
        "simulated" => "demo",
        _ => "admin",
    };
    let user = UserRef::Named(user.to_owned(), DomainRef::Id("default".to_owned()));
    let credential = Credential::ApplicationCredential {
        which: ApplicationCredentialRef::Named(PROGRAM.name().to_owned(), user),
        secret: SECRET.into(),
    };
    let named = NamedCloud {
        name: String::new(),
        config: CloudConfig {
            credential,
            ..login(cloud, entry)
        },
    };
    Driver::new(CloudPool::new(pool), vec![named], options)
}

const PROGRAM: Program = Program::CinderCsi;
const SECRET: &str = "of the driver";

fn login(cloud: &Cloud, entry: &str) -> CloudConfig {
    CloudConfig::parse(&cloud.clouds_yaml(URL), entry).unwrap()
}

/// Makes the credential of the driver, with access rules for the requests that are said to be all: the services of the
/// cloud refuse any other.
async fn restrict(cloud: &Cloud, entry: &str) {
    let options = SessionOptions {
        transport: Some(transport(cloud)),
        ..SessionOptions::default()
    };
    let session = Session::connect(login(cloud, entry), &options)
        .await
        .unwrap();
    let mut places = Vec::new();
    for service in access::services(PROGRAM) {
        places.extend(session.place(service).await.unwrap());
    }
    let new = NewApplicationCredential {
        name: PROGRAM.name().to_owned(),
        description: String::new(),
        secret: SECRET.into(),
        roles: Vec::new(),
        expires_at: "2100-01-01T00:00:00Z".parse().unwrap(),
        access_rules: access::rules(PROGRAM, &places),
    };
    let identity = session.identity();
    identity.create_application_credential(&new).await.unwrap();
}

/// A call whose caller waits for some minutes.
pub(crate) fn minutes(minutes: u64) -> Context {
    Context {
        deadline: Some(Instant::now() + Duration::from_secs(minutes * 60)),
    }
}

pub(crate) fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

pub(crate) fn capability(mode: Mode, block: bool) -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: mode as i32 }),
        access_type: Some(match block {
            true => AccessType::Block(BlockVolume {}),
            false => AccessType::Mount(MountVolume::default()),
        }),
    }
}

/// A request for a volume of some GiB.
pub(crate) fn new_volume(name: &str, gib: i64) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(CapacityRange {
            required_bytes: gib * GIB,
            limit_bytes: 0,
        }),
        volume_capabilities: vec![capability(Mode::SingleNodeWriter, false)],
        parameters: pairs(&[
            ("csi.storage.k8s.io/pvc/name", "data-db-0"),
            ("csi.storage.k8s.io/pvc/namespace", "default"),
            ("csi.storage.k8s.io/pv/name", name),
        ]),
        ..CreateVolumeRequest::default()
    }
}

/// The code and the words of a refusal.
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Status>, code: Code, words: &str) {
    let status = result.unwrap_err();
    assert_eq!(status.code, code, "{}", status.message);
    assert!(status.message.contains(words), "{}", status.message);
}

/// The token of a user, and the id of the project of the same name.
async fn log_in(cloud: &Cloud, user: &str) -> (String, String) {
    let login = json!({"auth": {"identity": {"methods": ["password"], "password": {"user":
        {"name": user, "password": "secret", "domain": {"id": "default"}}}},
        "scope": {"project": {"name": user, "domain": {"id": "default"}}}}});
    let request = http::Request::post(format!("{URL}/identity/v3/auth/tokens"))
        .header("content-type", "application/json")
        .body(bytes::Bytes::from(login.to_string()))
        .unwrap();
    let answer = transport(cloud).send(request, limits()).await.unwrap();
    let body: Value = serde_json::from_slice(answer.body()).unwrap();
    let token = answer.headers()["x-subject-token"].to_str().unwrap();
    let project = body["token"]["project"]["id"].as_str().unwrap();
    (token.to_owned(), project.to_owned())
}

async fn send(
    cloud: &Cloud,
    token: &str,
    method: &str,
    path: &str,
    body: Value,
    version: Option<&str>,
) -> Value {
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let mut request = http::Request::builder()
        .method(method)
        .uri(format!("{URL}{path}"))
        .header("content-type", "application/json")
        .header("x-auth-token", token);
    if let Some(version) = version {
        request = request.header("openstack-api-version", version);
    }
    let request = request.body(bytes::Bytes::from(text)).unwrap();
    let answer = transport(cloud).send(request, limits()).await.unwrap();
    assert!(answer.status().is_success(), "{method} {path}: {answer:?}");
    serde_json::from_slice(answer.body()).unwrap_or_default()
}

fn transport(cloud: &Cloud) -> SharedTransport {
    Arc::new(InProcess::new(cloud.router(URL)))
}

fn limits() -> Limits {
    Limits::object(Duration::from_secs(60))
}
