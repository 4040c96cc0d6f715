//! A management cluster, a simulated cloud, and the provider between them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::api::events::v1::Event;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ListParams;
use kube::{Client, ResourceExt};
use openstack::transport::{InProcess, Limits, SharedTransport};
use openstack::{PoolOptions, Service, SessionOptions};
use provider::Options;
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options as CloudOptions};
use testbed::{Calls, Cut, Fuse, Kind, Management, Running};

pub(crate) use testbed::eventually;

const URL: &str = "http://cloud";
/// Longer than anything takes that has a cause, and several lists of the cloud. Time is paused, so that it passes when
/// nothing is left to do.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

type Resources = BTreeMap<String, BTreeMap<String, usize>>;

/// The environment of a test.
pub(crate) struct World {
    management: Management,
    pub(crate) cloud: Cloud,
    /// The resources of the cloud before the test.
    pub(crate) before: Resources,
    options: Options,
    /// The intervals in which the provider lists the cloud when nothing is pending: soon after a change, and at rest.
    pub(crate) idle: Duration,
    pub(crate) rest: Duration,
    /// The controllers, and the switch that cuts their connection to the cloud.
    running: Option<(Running, Cut)>,
}

impl Deref for World {
    type Target = Management;

    fn deref(&self) -> &Management {
        &self.management
    }
}

impl World {
    /// API server and cloud, without controllers.
    pub(crate) async fn open(cloud: CloudOptions) -> Self {
        let cloud = Cloud::open(cloud).await.unwrap();
        let management = Management::open(api::crds::all()).await;
        let before = cloud.resources();
        let world = Self {
            management,
            cloud,
            before,
            options: Options::default(),
            idle: Duration::from_secs(5),
            rest: Duration::from_secs(10),
            running: None,
        };
        world.credentials(&world.cloud.clouds_yaml(URL)).await;
        world
    }

    /// API server, controllers and the default cloud.
    pub(crate) async fn start() -> Self {
        let mut world = Self::open(CloudOptions::default()).await;
        world.run();
        world
    }

    /// As [`start`](Self::start), with controllers that have these roles alone.
    pub(crate) async fn start_as(guard: &testbed::Guard) -> Self {
        let mut world = Self::open(CloudOptions::default()).await;
        world.start_with(guard.of(&world.client));
        world
    }

    /// Another management cluster with the same cloud.
    pub(crate) async fn open_on(other: &World) -> Self {
        let mut world = Self::open(CloudOptions::default()).await;
        world.cloud = other.cloud.clone();
        world.run();
        world
    }

    /// A connection to the cloud.
    fn line(&self, cut: &Cut) -> SharedTransport {
        testbed::line(Arc::new(InProcess::new(self.cloud.router(URL))), cut)
    }

    /// A session of another user in the same project.
    pub(crate) async fn session(&self) -> openstack::Session {
        let config =
            openstack::CloudConfig::parse(&self.cloud.clouds_yaml(URL), "simulated").unwrap();
        self.session_of(config).await
    }

    /// A session with these credentials.
    pub(crate) async fn session_of(&self, config: openstack::CloudConfig) -> openstack::Session {
        let options = SessionOptions {
            transport: Some(self.line(&Cut::default())),
            ..SessionOptions::default()
        };
        openstack::Session::connect(config, &options).await.unwrap()
    }

    /// A request of another user in the same project, without the provider; returns the answer, null if it is empty.
    pub(crate) async fn request(
        &self,
        service: Service,
        method: &str,
        path: &str,
        body: Value,
    ) -> Value {
        self.request_of("demo", service, method, path, body).await
    }

    /// The same of a certain user, in the project of the same name.
    pub(crate) async fn request_of(
        &self,
        user: &str,
        service: Service,
        method: &str,
        path: &str,
        body: Value,
    ) -> Value {
        let session = self.session().await;
        let login = json!({"auth": {"identity": {"methods": ["password"], "password": {"user":
            {"name": user, "password": "secret", "domain": {"id": "default"}}}},
            "scope": {"project": {"name": user, "domain": {"id": "default"}}}}});
        let transport = self.line(&Cut::default());
        let send = |request: http::request::Builder, body: &Value| {
            let request = request.header("content-type", "application/json");
            let request = request.body(bytes::Bytes::from(body.to_string())).unwrap();
            transport.send(request, Limits::object(Duration::from_secs(60)))
        };
        let tokens = http::Request::post(format!("{URL}/identity/v3/auth/tokens"));
        let token = send(tokens, &login).await.unwrap();
        let base = session.endpoint(service).await.unwrap();
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            // Cinder refuses a version of another service alone.
            .header("openstack-api-version", "compute 2.79, volume 3.0")
            .header("x-auth-token", token.headers()["x-subject-token"].clone());
        let answer = send(request, &body).await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        serde_json::from_slice(answer.body()).unwrap_or_default()
    }

    /// Adds a fault to the cloud.
    pub(crate) async fn fault(&self, rule: Value) {
        let faults = http::Request::post(format!("{URL}/_simulator/faults"));
        self.control(faults, rule.to_string(), 201).await;
    }

    /// Makes servers fail.
    pub(crate) async fn server_fault(&self, rule: Value) {
        let faults = http::Request::post(format!("{URL}/_simulator/server-faults"));
        self.control(faults, rule.to_string(), 201).await;
    }

    /// Changes settings of the cloud.
    pub(crate) async fn settings(&self, settings: Value) {
        let request = http::Request::post(format!("{URL}/_simulator/settings"));
        self.control(request, settings.to_string(), 200).await;
    }

    /// Removes all faults of the cloud.
    pub(crate) async fn mend(&self) {
        let faults = http::Request::delete(format!("{URL}/_simulator/faults"));
        self.control(faults, String::new(), 204).await;
    }

    /// Sends a request of the operator of the cloud.
    async fn control(&self, request: http::request::Builder, body: String, status: u16) -> Value {
        let request = request.header("content-type", "application/json");
        let request = request.body(bytes::Bytes::from(body)).unwrap();
        let transport = self.line(&Cut::default());
        let answer = transport
            .send(request, Limits::object(Duration::from_secs(60)))
            .await
            .unwrap();
        assert_eq!(answer.status(), status, "{answer:?}");
        serde_json::from_slice(answer.body()).unwrap_or_default()
    }

    /// The number of the last requests, at most 1000, that the cloud has rejected.
    pub(crate) async fn rejected(&self) -> usize {
        let log = http::Request::get(format!("{URL}/_simulator/log?limit=1000"));
        let log = self.control(log, String::new(), 200).await;
        let entries = log["log"].as_array().unwrap().iter();
        entries
            .filter(|it| it["status"].as_u64() >= Some(400))
            .count()
    }

    /// Replaces an object by one with the same status, but without its annotations and finalizers, as tools do that
    /// replace an object by a manifest.
    pub(crate) async fn replace<K: Kind + serde::Serialize>(&self, name: &str) {
        let old = serde_json::to_value(self.api::<K>().get(name).await.unwrap()).unwrap();
        self.merge::<K>(name, json!({"metadata": {"finalizers": null}}))
            .await;
        self.delete::<K>(name).await;
        let kept = |field: &str| old["metadata"][field].clone();
        self.create(json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()),
            "metadata": {"name": name, "labels": kept("labels"),
                "ownerReferences": kept("ownerReferences")},
            "spec": old["spec"],
        }))
        .await;
        let status = json!({"status": old["status"]});
        let patch = kube::api::Patch::Merge(&status);
        let api = self.api::<K>();
        let stored = api.patch_status(name, &Default::default(), &patch).await;
        stored.unwrap();
    }

    /// Triggers a reconcile of an object, as its resync would.
    pub(crate) async fn poke<K: Kind>(&self, name: &str) {
        let patch =
            json!({"metadata": {"annotations": {"poked": uuid::Uuid::new_v4().to_string()}}});
        self.merge::<K>(name, patch).await;
    }

    /// Changes the options of the next start.
    pub(crate) fn options(&mut self, change: impl FnOnce(&mut Options)) {
        change(&mut self.options);
    }

    /// Starts the controllers.
    pub(crate) fn run(&mut self) {
        self.start_with(self.client.clone());
    }

    /// Starts the controllers, whose writes to the API server pass the fuse.
    pub(crate) fn run_behind(&mut self, fuse: &Fuse) {
        self.start_with(fuse.protect(&self.client));
    }

    fn start_with(&mut self, client: Client) {
        let cut = Cut::default();
        let session = SessionOptions {
            transport: Some(self.line(&cut)),
            ..SessionOptions::default()
        };
        let mut clouds = PoolOptions {
            session,
            ..PoolOptions::default()
        };
        // Changes of others in the cloud are noticed soon.
        clouds.intervals.idle = self.idle;
        clouds.intervals.rest = self.rest;
        let options = Options {
            clouds,
            ..self.options.clone()
        };
        let running = Running::start(|shutdown| provider::run(client, options, shutdown));
        self.running = Some((running, cut));
    }

    /// Stops the controllers at any point, as `kill -9` would.
    pub(crate) async fn kill(&mut self) {
        if let Some((running, cut)) = self.running.take() {
            cut.cut();
            running.kill().await;
        }
    }

    /// Cuts the connection to the cloud in the middle of the `nth` write from now on: the cloud executes it, and its
    /// response is lost. The returned value counts the writes.
    pub(crate) fn cut_at(&self, nth: u64) -> Calls {
        let (writes, at_write) = self.running.as_ref().unwrap().1.at_call(nth);
        self.cloud.on_write(move |_| at_write());
        writes
    }

    /// Creates or replaces the Secret with this clouds.yaml.
    pub(crate) async fn credentials(&self, clouds: &str) {
        let api = self.api::<Secret>();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "demo-cloud-config"},
            "stringData": {"clouds.yaml": clouds, "cacert": "\n"}});
        if api.get_opt("demo-cloud-config").await.unwrap().is_some() {
            self.merge::<Secret>("demo-cloud-config", secret).await;
        } else {
            self.create(secret).await;
        }
    }

    /// Creates Cluster `demo` and its OpenStackCluster, with `spec` merged into that of the default template.
    pub(crate) async fn cluster(&self, spec: Value) {
        self.cluster_called("demo", spec).await;
    }

    /// The same with another name.
    pub(crate) async fn cluster_called(&self, name: &str, spec: Value) {
        self.create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
                "kind": "OpenStackCluster", "name": name}},
        }))
        .await;
        let owner = self.owner("Cluster", name).await;
        let mut object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster",
            "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": name},
                "ownerReferences": [owner]},
            "spec": {
                "identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"},
                "apiServer": {"managedLoadBalancer": {}},
                "managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["8.8.8.8"]}],
                "managedSecurityGroups": {"clusterNodesSecurityGroupRules": [
                    {"name": "BGP", "direction": "ingress", "etherType": "IPv4", "protocol": "tcp",
                     "portRangeMin": 179, "portRangeMax": 179, "remoteManagedGroups": ["controlplane", "worker"]},
                    {"name": "IP-in-IP", "direction": "ingress", "etherType": "IPv4", "protocol": "4",
                     "remoteManagedGroups": ["controlplane", "worker"]},
                ]},
            },
        });
        for (name, value) in spec.as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
        self.create(object).await;
    }

    /// Creates a Machine, its bootstrap data and its OpenStackMachine, with `spec` merged into that of the default
    /// template.
    pub(crate) async fn machine(&self, name: &str, control_plane: bool, spec: Value) {
        self.machine_of("demo", name, control_plane, spec).await;
    }

    /// The same in another cluster.
    pub(crate) async fn machine_of(
        &self,
        cluster: &str,
        name: &str,
        control_plane: bool,
        spec: Value,
    ) {
        let mut labels = json!({"cluster.x-k8s.io/cluster-name": cluster});
        if control_plane {
            labels["cluster.x-k8s.io/control-plane"] = json!("");
        }
        self.create(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"value": "#cloud-config\n"}}),
        )
        .await;
        self.create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": name, "labels": labels},
            "spec": {"clusterName": cluster, "bootstrap": {"dataSecretName": name},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "OpenStackMachine", "name": name}},
        }))
        .await;
        let owner = self.owner("Machine", name).await;
        let mut object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachine",
            "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
            "spec": {"flavor": {"filter": {"name": "m1.small"}},
                "image": {"filter": {"name": "ubuntu-24.04"}}},
        });
        for (name, value) in spec.as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
        self.create(object).await;
    }

    async fn owner(&self, kind: &str, name: &str) -> Value {
        let uid = match kind {
            "Cluster" => self.api::<Cluster>().get(name).await.unwrap().uid(),
            _ => self.api::<Machine>().get(name).await.unwrap().uid(),
        };
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": uid, "controller": true})
    }

    /// Deletes a machine as Cluster API does: first the OpenStackMachine, then the Machine.
    pub(crate) async fn delete_machine(&self, name: &str) {
        self.delete::<OpenStackMachine>(name).await;
        self.gone::<OpenStackMachine>(name).await;
        self.delete::<Machine>(name).await;
    }

    /// Waits until OpenStackCluster `demo` is ready.
    pub(crate) async fn cluster_ready(&self) -> OpenStackCluster {
        eventually("the cluster", || async {
            let object = self.api::<OpenStackCluster>().get("demo").await.unwrap();
            let status = object.status.clone().unwrap_or_default();
            let ready = api::conditions::is_true(&status.conditions, "Ready");
            if ready {
                Ok(object)
            } else {
                Err(listed(&status.conditions))
            }
        })
        .await
    }

    /// Waits until an OpenStackMachine is ready.
    pub(crate) async fn machine_ready(&self, name: &str) -> OpenStackMachine {
        eventually(&format!("machine {name}"), || async {
            let object = self.api::<OpenStackMachine>().get(name).await.unwrap();
            let status = object.status.clone().unwrap_or_default();
            let ready = api::conditions::is_true(&status.conditions, "Ready");
            if ready {
                Ok(object)
            } else {
                Err(listed(&status.conditions))
            }
        })
        .await
    }

    /// Waits until the message of a condition of the cluster contains `words`.
    pub(crate) async fn cluster_says(&self, type_: &str, words: &str) -> Condition {
        eventually(&format!("{type_}: {words}"), || async {
            let object = self.api::<OpenStackCluster>().get("demo").await.unwrap();
            says(&object.status.unwrap_or_default().conditions, type_, words)
        })
        .await
    }

    /// Waits until the message of a condition of a machine contains `words`.
    pub(crate) async fn machine_says(&self, name: &str, type_: &str, words: &str) -> Condition {
        eventually(&format!("{type_}: {words}"), || async {
            let object = self.api::<OpenStackMachine>().get(name).await.unwrap();
            says(&object.status.unwrap_or_default().conditions, type_, words)
        })
        .await
    }

    /// The reasons of all events.
    pub(crate) async fn events(&self) -> Vec<String> {
        let events = self
            .api::<Event>()
            .list(&ListParams::default())
            .await
            .unwrap();
        events
            .items
            .into_iter()
            .filter_map(|event| event.reason)
            .collect()
    }

    /// The events of a type about `name`, as `Reason: note`.
    pub(crate) async fn notes(&self, name: &str, type_: &str) -> Vec<String> {
        let events = self.list::<Event>().await.into_iter();
        let about = events.filter(|event| {
            let object = event.regarding.as_ref();
            object.and_then(|object| object.name.as_deref()) == Some(name)
                && event.type_.as_deref() == Some(type_)
        });
        about
            .map(|event| {
                let text = |text: Option<String>| text.unwrap_or_default();
                format!("{}: {}", text(event.reason), text(event.note))
            })
            .collect()
    }

    /// Creates a worker in a failure domain.
    pub(crate) async fn machine_in(&self, domain: &str, name: &str) {
        // The provider waits for the bootstrap data, so that the domain is set in time.
        let spec = json!({"spec": {"failureDomain": domain}});
        let cluster = json!({"spec": {"paused": true}});
        self.merge::<Cluster>("demo", cluster).await;
        self.machine(name, false, json!({})).await;
        self.merge::<Machine>(name, spec).await;
        let cluster = json!({"spec": {"paused": false}});
        self.merge::<Cluster>("demo", cluster).await;
    }

    /// The number of writes, without those of Keystone (logins), by method and path: `POST /v2.0/ports`.
    pub(crate) fn writes(&self) -> BTreeMap<String, u64> {
        let counts = self.cloud.requests().into_iter();
        counts
            .filter(|count| count.service != "identity" && count.method != "GET")
            .map(|count| (format!("{} {}", count.method, count.route), count.count))
            .collect()
    }

    /// The number of resources of a type in project demo.
    pub(crate) fn count(&self, type_: &str) -> usize {
        self.cloud
            .resources()
            .get("demo")
            .and_then(|all| all.get(type_))
            .copied()
            .unwrap_or(0)
    }

    /// The resources that did not exist before the test.
    pub(crate) fn left_over(&self) -> Resources {
        let mut now = self.cloud.resources();
        for (project, types) in &mut now {
            let before = self.before.get(project);
            types.retain(|type_, count| {
                let known = before
                    .and_then(|types| types.get(type_))
                    .copied()
                    .unwrap_or(0);
                *count = count.saturating_sub(known);
                *count > 0
            });
        }
        now.retain(|_, types| !types.is_empty());
        now
    }
}

fn says(conditions: &[Condition], type_: &str, words: &str) -> Result<Condition, String> {
    let found = conditions
        .iter()
        .find(|c| c.type_ == type_ && c.message.contains(words));
    found.cloned().ok_or_else(|| listed(conditions))
}

/// Conditions, one per line.
pub(crate) fn listed(conditions: &[Condition]) -> String {
    let line = |c: &Condition| format!("\n  {}={} {}: {}", c.type_, c.status, c.reason, c.message);
    conditions.iter().map(line).collect()
}
