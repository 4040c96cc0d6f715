//! A cluster, a simulated cloud, and the manager that connects them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::{Node, Service};
use api::k8s_openapi::api::events::v1::Event;
use ccm::{Options, Settings};
use cloud_conf::{CloudConf, Program, access};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use openstack::config::{ApplicationCredentialRef, Credential, DomainRef, UserRef};
use openstack::identity::NewApplicationCredential;
use openstack::transport::{InProcess, Limits, SharedTransport};
use openstack::{CloudConfig, PoolOptions, Session, SessionOptions};
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options as CloudOptions};
use testbed::{Calls, Cut, Management, Running};
use tokio::sync::watch;

pub(crate) use testbed::eventually;

const URL: &str = "http://cloud";
const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// The environment of a test.
pub(crate) struct World {
    pub(crate) cluster: Management,
    pub(crate) cloud: Cloud,
    pub(crate) settings: watch::Sender<Arc<Settings>>,
    options: Options,
    running: Option<(Running, Cut)>,
    /// Client of the manager, if different from the cluster's.
    pub(crate) client: Option<Client>,
    /// True if the manager sees an older Octavia, with one address for each load balancer.
    pub(crate) has_older_octavia: bool,
    /// True for load balancers of the driver ovn.
    has_ovn: bool,
    /// True if cloud.conf asks for a security group of each Service.
    pub(crate) manages_groups: bool,
    token: String,
    pub(crate) network: String,
    pub(crate) subnet: String,
    flavors: BTreeMap<String, String>,
    image: String,
}

impl World {
    /// Cluster and cloud with a network, and `conf` in addition to `[Global]` in cloud.conf, without a manager.
    pub(crate) async fn open(conf: &str) -> Self {
        Self::open_on(CloudOptions::default(), conf).await
    }

    /// The same on a cloud with other options.
    pub(crate) async fn open_on(mut options: CloudOptions, conf: &str) -> Self {
        let unlimited = ["instances", "cores", "ram", "port"].map(|name| (name.to_owned(), -1));
        options.quotas.extend(unlimited);
        let cloud = Cloud::open(options).await.unwrap();
        let cluster = Management::open([]).await;
        restrict(&cloud).await;
        let settings = settings(&cloud, conf);
        let (sender, receiver) = watch::channel(Arc::new(settings));
        let mut options = Options::new(receiver);
        options.node_status_update_frequency = Duration::from_secs(30);
        // Changes of others in the cloud are noticed soon.
        options.clouds.intervals.idle = Duration::from_secs(5);
        options.clouds.intervals.rest = Duration::from_secs(10);
        let mut world = Self {
            cluster,
            cloud,
            settings: sender,
            options,
            running: None,
            client: None,
            has_older_octavia: false,
            has_ovn: conf.contains("lb-provider = ovn"),
            manages_groups: conf.contains("manage-security-groups = true"),
            token: String::new(),
            network: String::new(),
            subnet: String::new(),
            flavors: BTreeMap::new(),
            image: String::new(),
        };
        world.furnish().await;
        world
    }

    /// Cluster, cloud and manager.
    pub(crate) async fn start(conf: &str) -> Self {
        let mut world = Self::open(conf).await;
        world.run();
        world
    }

    /// Cluster, cloud and manager, with a way out of the network and initialised workers.
    pub(crate) async fn serving(conf: &str, workers: &[&str]) -> Self {
        let world = Self::start(conf).await;
        world.route_out().await;
        for name in workers {
            world.worker(name).await;
        }
        world
    }

    async fn furnish(&mut self) {
        let id = |answer: &Value, kind: &str| answer[kind]["id"].as_str().unwrap().to_owned();
        self.token = self.log_in().await;
        let network = json!({"network": {"name": "nodes"}});
        let network = self
            .request("POST", "/network/v2.0/networks", network)
            .await;
        self.network = id(&network, "network");
        let subnet =
            json!({"subnet": {"network_id": self.network, "cidr": "10.0.0.0/16", "ip_version": 4}});
        let subnet = self.request("POST", "/network/v2.0/subnets", subnet).await;
        self.subnet = id(&subnet, "subnet");
        let flavors = self
            .request("GET", "/compute/v2.1/flavors", Value::Null)
            .await;
        for flavor in flavors["flavors"].as_array().unwrap() {
            let text = |key: &str| flavor[key].as_str().unwrap().to_owned();
            self.flavors.insert(text("name"), text("id"));
        }
        let images = self.request("GET", "/image/v2/images", Value::Null).await;
        self.image = images["images"][0]["id"].as_str().unwrap().to_owned();
    }

    /// The id of the external network.
    pub(crate) async fn external_network(&self) -> Value {
        let path = "/network/v2.0/networks?router:external=true";
        let external = self.request("GET", path, Value::Null).await;
        external["networks"][0]["id"].clone()
    }

    /// The id of the external network with this name.
    pub(crate) async fn external_network_named(&self, name: &str) -> String {
        let path = format!("/network/v2.0/networks?router:external=true&name={name}");
        let external = self.request("GET", &path, Value::Null).await;
        external["networks"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Lets the project see the subnets of the external network, as in clouds that share it.
    pub(crate) async fn share_external_network(&self) {
        let id = self.external_network().await;
        let path = format!("/network/v2.0/networks/{}", id.as_str().unwrap());
        let change = json!({"network": {"shared": true}});
        self.administer("PUT", &path, change).await;
    }

    /// Connects the network to the external one, so that floating IPs can be used; returns the id of the router.
    pub(crate) async fn route_out(&self) -> String {
        let external = self.external_network().await;
        self.route_out_to(&external).await
    }

    /// The same to an external network with this id.
    pub(crate) async fn route_out_to(&self, external: &Value) -> String {
        let router =
            json!({"router": {"name": "r", "external_gateway_info": {"network_id": external}}});
        let router = self.request("POST", "/network/v2.0/routers", router).await;
        let router = router["router"]["id"].as_str().unwrap().to_owned();
        let path = format!("/network/v2.0/routers/{router}/add_router_interface");
        self.request("PUT", &path, json!({"subnet_id": self.subnet}))
            .await;
        router
    }

    /// A server and its Node, initialised and ready.
    pub(crate) async fn worker(&self, name: &str) {
        self.server(name).await;
        self.node(name).await;
        self.node_where(name, |node| {
            !addresses(node).is_empty()
                && !taints(node)
                    .iter()
                    .any(|taint| taint.ends_with("uninitialized"))
        })
        .await;
        self.ready(name, "True").await;
    }

    /// Creates a Service of type LoadBalancer for these ports, with `fields` added.
    pub(crate) async fn service(&self, name: &str, ports: &[(&str, u16)], fields: Value) {
        let mut service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
            "type": "LoadBalancer", "selector": {"app": name}, "ports": ports_of(ports)}});
        for part in ["metadata", "spec"] {
            for (key, value) in fields[part].as_object().into_iter().flatten() {
                service[part][key] = value.clone();
            }
        }
        self.cluster.create(service).await;
    }

    /// Deletes a Service, and waits until the manager has released it.
    pub(crate) async fn delete_service(&self, name: &str) {
        self.cluster.delete::<Service>(name).await;
        self.cluster.gone::<Service>(name).await;
    }

    /// Waits until a Service has an address and its annotations, and returns it.
    pub(crate) async fn published(&self, name: &str) -> Service {
        eventually(&format!("the address of {name}"), || async {
            let service = self.cluster.api::<Service>().get(name).await.unwrap();
            let recorded = service
                .annotations()
                .contains_key("loadbalancer.openstack.org/load-balancer-address");
            match ip(&service).is_empty() || !recorded {
                false => Ok(service),
                true => Err(format!(
                    "{}\n{:?}",
                    serde_json::to_string(&service).unwrap(),
                    self.requests()
                )),
            }
        })
        .await
    }

    /// Octavia's resources of a kind, such as `loadbalancers`.
    pub(crate) async fn octavia(&self, kind: &str) -> Vec<Value> {
        let all = self
            .request(
                "GET",
                &format!("/load-balancer/v2.0/lbaas/{kind}"),
                Value::Null,
            )
            .await;
        all[kind].as_array().unwrap().clone()
    }

    /// The names of the members of all pools.
    pub(crate) async fn members(&self) -> Vec<String> {
        let all = self.all_members().await;
        let name = |member: &Value| member["name"].as_str().unwrap().to_owned();
        let mut names: Vec<_> = all.iter().map(name).collect();
        names.sort();
        names
    }

    /// The members of all pools.
    pub(crate) async fn all_members(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for pool in self.octavia("pools").await {
            let path = format!(
                "/load-balancer/v2.0/lbaas/pools/{}/members",
                pool["id"].as_str().unwrap()
            );
            let answer = self.send(&self.token, "GET", &path, Value::Null).await;
            // The pool may be deleted since it was listed.
            let members: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
            all.extend(members["members"].as_array().into_iter().flatten().cloned());
        }
        all
    }

    /// Waits until the pools have these members.
    pub(crate) async fn members_are(&self, expected: &[&str]) {
        eventually(&format!("the members {expected:?}"), || async {
            let members = self.members().await;
            (members == expected)
                .then_some(())
                .ok_or_else(|| format!("{members:?}"))
        })
        .await;
    }

    /// Waits until all load balancers can be changed, and the manager has nothing to do for them.
    pub(crate) async fn changeable(&self) {
        eventually("load balancers that can be changed", || {
            let counted = self.writes();
            async move {
                tokio::time::sleep(Duration::from_secs(30)).await;
                let all = self.octavia("loadbalancers").await;
                let is = |balancer: &Value| balancer["provisioning_status"] == "ACTIVE";
                let settled = !all.is_empty() && all.iter().all(is) && self.writes() == counted;
                settled.then_some(()).ok_or_else(|| format!("{all:?}"))
            }
        })
        .await;
    }

    pub(crate) async fn floating_ips(&self) -> Vec<Value> {
        let all = self
            .request("GET", "/network/v2.0/floatingips", Value::Null)
            .await;
        all["floatingips"].as_array().unwrap().clone()
    }

    /// The requests that change something in the cloud.
    pub(crate) fn writes(&self) -> BTreeMap<String, u64> {
        let mut all = self.requests();
        all.retain(|request, _| !request.starts_with("GET") && !request.contains("identity"));
        all
    }

    async fn log_in(&self) -> String {
        self.log_in_as("demo", "demo").await
    }

    async fn log_in_as(&self, user: &str, project: &str) -> String {
        let login = json!({"auth": {"identity": {"methods": ["password"], "password": {"user":
            {"name": user, "password": "secret", "domain": {"id": "default"}}}},
            "scope": {"project": {"name": project, "domain": {"id": "default"}}}}});
        let request = http::Request::post(format!("{URL}/identity/v3/auth/tokens"))
            .header("content-type", "application/json")
            .body(bytes::Bytes::from(login.to_string()))
            .unwrap();
        let transport = testbed::line(
            Arc::new(InProcess::new(self.cloud.router(URL))),
            &Cut::default(),
        );
        let answer = transport
            .send(request, Limits::object(Duration::from_secs(60)))
            .await
            .unwrap();
        answer.headers()["x-subject-token"]
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// A request of the cloud's administrator.
    pub(crate) async fn administer(&self, method: &str, path: &str, body: Value) -> Value {
        let token = self.log_in_as("admin", "admin").await;
        self.request_with(&token, method, path, body).await
    }

    /// A request of another user in the same project, without the manager.
    pub(crate) async fn request(&self, method: &str, path: &str, body: Value) -> Value {
        self.request_with(&self.token, method, path, body).await
    }

    async fn request_with(&self, token: &str, method: &str, path: &str, body: Value) -> Value {
        let answer = self.send(token, method, path, body).await;
        assert!(answer.status().is_success(), "{method} {path}: {answer:?}");
        serde_json::from_slice(answer.body()).unwrap_or_default()
    }

    async fn send(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Value,
    ) -> http::Response<bytes::Bytes> {
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        // Host names can be chosen from 2.90 on.
        let version = match body["server"]["hostname"].is_string() {
            true => "compute 2.90",
            false => "compute 2.60",
        };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{URL}{path}"))
            .header("content-type", "application/json")
            .header("openstack-api-version", version)
            .header("x-auth-token", token)
            .body(bytes::Bytes::from(text))
            .unwrap();
        let transport = testbed::line(
            Arc::new(InProcess::new(self.cloud.router(URL))),
            &Cut::default(),
        );
        transport
            .send(request, Limits::object(Duration::from_secs(60)))
            .await
            .unwrap()
    }

    /// Changes the options of the next start.
    pub(crate) fn options(&mut self, change: impl FnOnce(&mut Options)) {
        change(&mut self.options);
    }

    /// The metrics of the manager.
    pub(crate) fn metrics(&self) -> String {
        self.options.metrics.text()
    }

    /// Starts the manager.
    pub(crate) fn run(&mut self) {
        let cut = Cut::default();
        let mut cloud: SharedTransport = Arc::new(InProcess::new(self.cloud.router(URL)));
        if self.has_older_octavia {
            cloud = Arc::new(crate::older::Older(cloud));
        }
        if self.has_ovn {
            cloud = Arc::new(crate::ovn::Ovn(cloud));
        }
        let transport = testbed::line(cloud, &cut);
        let mut options = self.options.clone();
        options.clouds = PoolOptions {
            session: SessionOptions {
                transport: Some(transport),
                ..SessionOptions::default()
            },
            intervals: options.clouds.intervals,
            ..PoolOptions::default()
        };
        let client = self.client.as_ref().unwrap_or(&self.cluster.client).clone();
        let running = Running::start(|shutdown| ccm::run(client, options, shutdown));
        self.running = Some((running, cut));
    }

    /// Stops the manager at any point, as `kill -9` would.
    pub(crate) async fn kill(&mut self) {
        if let Some((running, cut)) = self.running.take() {
            cut.cut();
            running.kill().await;
        }
    }

    /// Cuts the connection to the cloud in the middle of the `nth` write from now on: the cloud executes the write,
    /// and the response is lost. The returned value counts the writes.
    pub(crate) fn cut_at(&self, nth: u64) -> Calls {
        let (writes, at_write) = self.running.as_ref().unwrap().1.at_call(nth);
        self.cloud.on_write(move |_| at_write());
        writes
    }

    /// A server of project demo, and its id.
    pub(crate) async fn server(&self, name: &str) -> String {
        self.server_with(name, json!({})).await
    }

    /// A server with `fields` added to the usual ones.
    pub(crate) async fn server_with(&self, name: &str, fields: Value) -> String {
        let mut server = json!({"name": name, "flavorRef": self.flavors["m1.small"], "imageRef": self.image,
            "networks": [{"uuid": self.network}]});
        for (key, value) in fields.as_object().unwrap() {
            server[key] = value.clone();
        }
        let answer = self
            .request("POST", "/compute/v2.1/servers", json!({"server": server}))
            .await;
        answer["server"]["id"].as_str().unwrap().to_owned()
    }

    /// An action of Nova, such as `os-stop`.
    pub(crate) async fn act(&self, server: &str, action: Value) {
        self.request(
            "POST",
            &format!("/compute/v2.1/servers/{server}/action"),
            action,
        )
        .await;
    }

    pub(crate) async fn delete_server(&self, id: &str) {
        self.request(
            "DELETE",
            &format!("/compute/v2.1/servers/{id}"),
            Value::Null,
        )
        .await;
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.cluster.client.clone())
    }

    /// Creates a Node as registered by a kubelet: tainted, not ready, and with the host name as the only address.
    pub(crate) async fn node(&self, name: &str) {
        let node = json!({
            "metadata": {"name": name},
            "spec": {"taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}]},
        });
        let node: Node = serde_json::from_value(node).unwrap();
        self.nodes()
            .create(&PostParams::default(), &node)
            .await
            .unwrap();
        self.ready(name, "False").await;
    }

    /// Sets the Ready condition, as the kubelet does or in its place the node controller.
    pub(crate) async fn ready(&self, name: &str, status: &str) {
        let time = "2026-01-01T00:00:00Z";
        let patch = json!({"status": {"conditions": [{"type": "Ready", "status": status, "reason": "Kubelet",
            "message": "", "lastTransitionTime": time, "lastHeartbeatTime": time}]}});
        let patch = Patch::Merge(patch);
        self.nodes()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Waits until `check` returns true for a Node.
    pub(crate) async fn node_where(&self, name: &str, check: impl Fn(&Node) -> bool) -> Node {
        eventually(&format!("node {name}"), || async {
            let node = self.nodes().get(name).await.unwrap();
            match check(&node) {
                true => Ok(node),
                false => Err(serde_json::to_string(&node).unwrap()),
            }
        })
        .await
    }

    /// Excludes a Node from load balancers.
    pub(crate) async fn exclude(&self, name: &str) {
        self.label(name, EXCLUDE, json!("true")).await;
    }

    /// Lets a Node be a member again.
    pub(crate) async fn include(&self, name: &str) {
        self.label(name, EXCLUDE, Value::Null).await;
    }

    /// Sets a label of a Node, or removes it.
    pub(crate) async fn label(&self, node: &str, label: &str, value: Value) {
        let patch = Patch::Merge(json!({"metadata": {"labels": {label: value}}}));
        self.nodes()
            .patch(node, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn node_gone(&self, name: &str) {
        eventually(&format!("{name} to go"), || async {
            match self.nodes().get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(node) => Err(serde_json::to_string(&node).unwrap()),
            }
        })
        .await;
    }

    /// The number of events about an object with a reason.
    pub(crate) async fn count_events(&self, about: &str, reason: &str) -> usize {
        let events: Api<Event> = Api::all(self.cluster.client.clone());
        let list = events.list(&ListParams::default()).await.unwrap().items;
        let is = |event: &&Event| {
            event.reason.as_deref() == Some(reason)
                && event.regarding.as_ref().and_then(|r| r.name.as_deref()) == Some(about)
        };
        list.iter().filter(is).count()
    }

    /// Waits for an event, and returns its note.
    pub(crate) async fn event(&self, about: &str, reason: &str) -> String {
        self.event_with(about, reason, "").await
    }

    /// The first event with this text: earlier ones can have the same reason.
    pub(crate) async fn event_with(&self, about: &str, reason: &str, text: &str) -> String {
        let events: Api<Event> = Api::all(self.cluster.client.clone());
        eventually(&format!("event {reason} about {about}"), || async {
            let list = events.list(&ListParams::default()).await.unwrap().items;
            let is = |event: &&Event| {
                event.reason.as_deref() == Some(reason)
                    && event.regarding.as_ref().and_then(|r| r.name.as_deref()) == Some(about)
                    && event.note.as_ref().is_some_and(|note| note.contains(text))
            };
            let found = list.iter().find(is).and_then(|event| event.note.clone());
            found.ok_or_else(|| {
                let reasons: Vec<_> = list
                    .iter()
                    .filter_map(|event| {
                        Some(format!(
                            "{}: {}",
                            event.reason.as_ref()?,
                            event.note.as_ref()?
                        ))
                    })
                    .collect();
                reasons.join(", ")
            })
        })
        .await
    }

    /// Requests to OpenStack since the counts were reset, logins and discovery included: `GET compute /servers/detail`.
    pub(crate) fn requests(&self) -> BTreeMap<String, u64> {
        let counts = self.cloud.requests().into_iter();
        counts
            .map(|count| {
                (
                    format!("{} {} {}", count.method, count.service, count.route),
                    count.count,
                )
            })
            .collect()
    }
}

/// The settings for a cloud.conf with `conf` in addition to the credentials.
pub(crate) fn settings(cloud: &Cloud, conf: &str) -> Settings {
    let login = login(cloud);
    let text = format!("[Global]\nuse-clouds = true\n{conf}");
    let user = UserRef::Named("demo".to_owned(), DomainRef::Id("default".to_owned()));
    let credential = Credential::ApplicationCredential {
        which: ApplicationCredentialRef::Named(PROGRAM.name().to_owned(), user),
        secret: SECRET.into(),
    };
    Settings {
        conf: CloudConf::parse(&text, PROGRAM).unwrap().conf,
        cloud: CloudConfig {
            credential,
            ..login
        },
    }
}

const PROGRAM: Program = Program::CloudControllerManager;
const SECRET: &str = "of the manager";

fn login(cloud: &Cloud) -> CloudConfig {
    CloudConfig::parse(&cloud.clouds_yaml(URL), "simulated").unwrap()
}

/// Makes the credential of the manager, in place of a former one, with access rules for the requests that are said to be
/// all: the services of the cloud refuse any other. It has the roles that the user has now.
pub(crate) async fn restrict(cloud: &Cloud) {
    let transport: SharedTransport = Arc::new(InProcess::new(cloud.router(URL)));
    let options = SessionOptions {
        transport: Some(transport),
        ..SessionOptions::default()
    };
    let session = Session::connect(login(cloud), &options).await.unwrap();
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
    for known in identity.application_credentials().await.unwrap() {
        let deleted = identity.delete_application_credential(&known.id).await;
        deleted.unwrap();
    }
    identity.create_application_credential(&new).await.unwrap();
}

/// The keys of a Node's taints.
pub(crate) fn taints(node: &Node) -> Vec<&str> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.map_or(Vec::new(), |taints| {
        taints.iter().map(|taint| taint.key.as_str()).collect()
    })
}

/// A Node's addresses, as `InternalIP 10.0.0.5`.
pub(crate) fn addresses(node: &Node) -> Vec<String> {
    let addresses = node
        .status
        .as_ref()
        .and_then(|status| status.addresses.as_ref());
    addresses.map_or(Vec::new(), |list| {
        list.iter()
            .map(|a| format!("{} {}", a.type_, a.address))
            .collect()
    })
}

/// A label of a Node.
pub(crate) fn label<'a>(node: &'a Node, name: &str) -> &'a str {
    node.labels().get(name).map_or("", String::as_str)
}

/// Ports of a Service by protocol and number.
pub(crate) fn ports_of(ports: &[(&str, u16)]) -> Value {
    let port = |(protocol, port): &(&str, u16)| json!({"name": format!("{}-{port}", protocol.to_lowercase()), "protocol": protocol, "port": port});
    ports.iter().map(port).collect()
}

/// The published address.
pub(crate) fn ip(service: &Service) -> String {
    let status = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let ingress = status.and_then(|status| status.ingress.as_ref()?.first().cloned());
    ingress
        .and_then(|ingress| ingress.ip.or(ingress.hostname))
        .unwrap_or_default()
}
