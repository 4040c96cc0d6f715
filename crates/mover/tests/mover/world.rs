//! Two management clusters, one cloud with guests, and controllers on both.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use api::core::v1beta2::{Cluster, Machine, MachineDeployment};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use ipnet::Ipv4Net;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use mover::Options;
use openstack::transport::InProcess;
use openstack::{PoolOptions, SessionOptions};
use serde_json::{Value, json};
use simulator::cloud::{self, Cloud};
use simulator::guest::{self, Guests};
use testbed::{Management, NAMESPACE, Running, eventually};
use tokio_util::sync::CancellationToken;

const URL: &str = "http://cloud";
const IMAGE: &str = "node";
/// Lock of `kubeadm init`, released at some time afterwards.
pub(crate) const LOCK: &str = "demo-lock";

/// Each cloud of this test process has floating IPs from a range of its own.
static NEXT_RANGE: AtomicU8 = AtomicU8::new(1);

pub(crate) type Resources = BTreeMap<String, BTreeMap<String, usize>>;

/// One management cluster with its controllers.
pub(crate) struct Place {
    pub(crate) management: Management,
    running: Option<Running>,
}

/// The environment of a test.
pub(crate) struct World {
    pub(crate) cloud: Cloud,
    pub(crate) before: Resources,
    /// The writes to the cloud so far.
    pub(crate) writes: Arc<AtomicUsize>,
    pub(crate) here: Place,
    pub(crate) there: Place,
    external: String,
    stop: CancellationToken,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    /// Both sides with their controllers, and no cluster.
    pub(crate) async fn open() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let range = NEXT_RANGE.fetch_add(1, Ordering::Relaxed);
        let process = u8::try_from(std::process::id() % 60).unwrap();
        let first = Ipv4Addr::new(127, 130 + process, range, 0);
        let options = cloud::Options {
            external_cidr: Ipv4Net::new(first, 24).unwrap(),
            images: vec![IMAGE.to_owned()],
            ..cloud::Options::default()
        };
        let cloud = Cloud::open(options).await.unwrap();
        let stop = CancellationToken::new();
        let guests = Guests::start(cloud.world(), guest::Options::default(), stop.clone());
        cloud.set_console(move |server| guests.console(server));
        let writes = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&writes);
        cloud.on_write(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let config = openstack::CloudConfig::parse(&cloud.clouds_yaml(URL), "simulated").unwrap();
        let session = openstack::Session::connect(config, &session_options(&cloud))
            .await
            .unwrap();
        let networks = session
            .network()
            .networks(&[("router:external", "true")])
            .await
            .unwrap();
        Self {
            before: cloud.resources(),
            writes,
            here: Place::open(&cloud).await,
            there: Place::open(&cloud).await,
            external: networks[0].id.clone(),
            stop,
            cloud,
        }
    }

    /// Adds cluster `demo` to this side, with this many running machines.
    pub(crate) async fn with_cluster(control_plane: usize, workers: usize) -> Self {
        let world = Self::open().await;
        world
            .here
            .management
            .apply(world.manifests(control_plane, workers))
            .await;
        world.here.available(control_plane + workers).await;
        world
    }

    /// Moves from one side to the other.
    pub(crate) async fn go(&self, options: &Options) -> Result<mover::Report, mover::Error> {
        let (here, there) = (&self.here.management.client, &self.there.management.client);
        mover::to_cluster(here, there, options, &|_| {}).await
    }

    /// The objects of a cluster with credentials, templates, control plane and workers.
    pub(crate) fn manifests(&self, control_plane: usize, workers: usize) -> Vec<Value> {
        const CORE: &str = "cluster.x-k8s.io/v1beta2";
        const INFRA: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
        let reference = |group: &str, kind: &str, name: &str| json!({"apiGroup": group, "kind": kind, "name": name});
        let infra = "infrastructure.cluster.x-k8s.io";
        let nodes = json!({"kubeletExtraArgs": [
            {"name": "provider-id", "value": "openstack:///'{{ instance_id }}'"}], "name": "{{ local_hostname }}"});
        let identity = json!({"name": "demo-cloud-config", "cloudName": "simulated"});
        let template = |name: &str, flavor: &str| {
            json!({"apiVersion": INFRA, "kind": "OpenStackMachineTemplate", "metadata": {"name": name},
                "spec": {"template": {"spec": {"flavor": {"filter": {"name": flavor}}, "image": {"filter": {"name": IMAGE}}}}}})
        };
        vec![
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "demo-cloud-config"},
                "stringData": {"clouds.yaml": self.cloud.clouds_yaml(URL), "cacert": "\n"}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "unrelated"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon"}, "data": {"a.yaml":
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-a-set, namespace: default}\n"}}),
            json!({"apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSet", "metadata": {"name": "addons"},
                "spec": {"clusterSelector": {"matchLabels": {"addons": "yes"}}, "resources": [{"kind": "ConfigMap", "name": "addon"}],
                    "strategy": "ApplyOnce"}}),
            json!({"apiVersion": CORE, "kind": "Cluster", "metadata": {"name": "demo", "labels": {"addons": "yes"}}, "spec": {
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"},
                "infrastructureRef": reference(infra, "OpenStackCluster", "demo"),
                "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "KubeadmControlPlane", "demo-cp")}}),
            json!({"apiVersion": INFRA, "kind": "OpenStackCluster", "metadata": {"name": "demo"}, "spec": {
                "identityRef": identity, "externalNetwork": {"id": self.external},
                "apiServer": {"managedLoadBalancer": {}},
                "managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["9.9.9.9"]}],
                "managedSecurityGroups": {}}}),
            template("demo-cp", "m1.medium"),
            template("demo-md", "m1.small"),
            json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "metadata": {"name": "demo-cp"},
                "spec": {"replicas": control_plane, "version": "v1.34.2",
                    "machineTemplate": {"metadata": {"labels": {"from-the-template": "yes"}},
                        "spec": {"infrastructureRef": reference(infra, "OpenStackMachineTemplate", "demo-cp")}},
                    "kubeadmConfigSpec": {"initConfiguration": {"nodeRegistration": nodes}, "joinConfiguration": {"nodeRegistration": nodes}}}}),
            json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate", "metadata": {"name": "demo-md"},
                "spec": {"template": {"spec": {"joinConfiguration": {"nodeRegistration": nodes}}}}}),
            json!({"apiVersion": CORE, "kind": "MachineDeployment", "metadata": {"name": "demo-md"}, "spec": {
                "clusterName": "demo", "replicas": workers,
                "template": {"spec": {"clusterName": "demo", "version": "v1.34.2",
                    "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate", "demo-md")},
                    "infrastructureRef": reference(infra, "OpenStackMachineTemplate", "demo-md")}}}}),
            json!({"apiVersion": CORE, "kind": "MachineHealthCheck", "metadata": {"name": "demo"}, "spec": {
                "clusterName": "demo", "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": "demo-md"}},
                "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 600}]}}}),
        ]
    }

    pub(crate) fn resources(&self) -> Resources {
        self.cloud.resources()
    }

    pub(crate) fn written(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// Deletes the cluster on the other side, and waits until the cloud is as before.
    pub(crate) async fn deleted_without_a_trace(&self) {
        let there = &self.there.management;
        there.delete::<Cluster>("demo").await;
        there.gone::<Cluster>("demo").await;
        assert_eq!(self.resources(), self.before);
    }

    /// Exchanges the sides.
    pub(crate) fn turn(&mut self) {
        std::mem::swap(&mut self.here, &mut self.there);
    }
}

fn session_options(cloud: &Cloud) -> SessionOptions {
    SessionOptions {
        transport: Some(Arc::new(InProcess::new(cloud.router(URL)))),
        ..SessionOptions::default()
    }
}

/// The options of a test's move.
pub(crate) fn options() -> Options {
    Options {
        namespace: NAMESPACE.to_owned(),
        confirm_within: Duration::from_secs(120),
        stop: CancellationToken::new(),
    }
}

impl Place {
    async fn open(cloud: &Cloud) -> Self {
        let management = Management::open(api::crds::all()).await;
        let mut place = Self {
            management,
            running: None,
        };
        place.run(cloud);
        place
    }

    /// Starts the controllers.
    pub(crate) fn run(&mut self, cloud: &Cloud) {
        let mut clouds = PoolOptions {
            session: session_options(cloud),
            ..PoolOptions::default()
        };
        clouds.intervals.idle = Duration::from_millis(500);
        clouds.intervals.rest = Duration::from_millis(500);
        let infrastructure = provider::Options {
            clouds,
            ..provider::Options::default()
        };
        let client = self.management.client.clone();
        self.running = Some(Running::start(|stop| async move {
            let core =
                clusterapi::run(client.clone(), clusterapi::Options::default(), stop.clone());
            futures::future::join(core, provider::run(client, infrastructure, stop)).await;
        }));
    }

    /// Stops the controllers.
    pub(crate) async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill().await;
        }
    }

    /// Waits until the cluster is available, with so many machines that run.
    pub(crate) async fn available(&self, machines: usize) {
        eventually("the cluster", || async {
            let cluster = self
                .management
                .api::<Cluster>()
                .get("demo")
                .await
                .map_err(|e| e.to_string())?;
            let object = serde_json::to_value(&cluster).unwrap();
            let conditions = object["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let available = conditions
                .iter()
                .any(|c| c["type"] == "Available" && c["status"] == "True");
            let phases: Vec<String> = self
                .management
                .list::<Machine>()
                .await
                .iter()
                .map(|machine| {
                    serde_json::to_value(machine).unwrap()["status"]["phase"].to_string()
                })
                .collect();
            let running = phases
                .iter()
                .filter(|phase| *phase == "\"Running\"")
                .count();
            let set = self
                .management
                .api::<api::addons::v1beta2::ClusterResourceSetBinding>()
                .get_opt("demo")
                .await
                .unwrap();
            if available
                && running == machines
                && phases.len() == machines
                && set.is_some()
                && cluster.spec.paused != Some(true)
            {
                return Ok(());
            }
            Err(format!("{phases:?} {conditions:#?}"))
        })
        .await;
    }

    /// True if there is a Cluster that controllers may work on.
    pub(crate) async fn is_active(&self) -> bool {
        let clusters = self.management.list::<Cluster>().await;
        clusters
            .iter()
            .any(|cluster| cluster.spec.paused != Some(true))
    }

    /// All objects of Cluster API, Secrets and ConfigMaps, as `KIND/NAME`, without what is no part of a cluster.
    pub(crate) async fn objects(&self) -> BTreeMap<String, Value> {
        let mut found = BTreeMap::new();
        let mut resources: Vec<ApiResource> = api::crds::all()
            .iter()
            .filter(|crd| crd.spec.scope == "Namespaced")
            .map(|crd| {
                let version = crd
                    .spec
                    .versions
                    .iter()
                    .find(|version| version.storage)
                    .unwrap();
                let kind =
                    GroupVersionKind::gvk(&crd.spec.group, &version.name, &crd.spec.names.kind);
                ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural)
            })
            .collect();
        resources.push(ApiResource::erase::<Secret>(&()));
        resources.push(ApiResource::erase::<ConfigMap>(&()));
        for resource in resources {
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.management.client.clone(), NAMESPACE, &resource);
            for object in api.list(&ListParams::default()).await.unwrap() {
                let name = object.name_any();
                if !["unrelated", "kube-root-ca.crt", LOCK].contains(&name.as_str()) {
                    let json = serde_json::to_value(&object).unwrap();
                    found.insert(format!("{}/{name}", resource.kind), json);
                }
            }
        }
        found
    }

    /// The ids that the cloud gave: of network, router, balancer and servers.
    pub(crate) async fn ids(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for cluster in self.management.list::<OpenStackCluster>().await {
            let status = serde_json::to_value(cluster.status).unwrap();
            for part in ["network", "router", "apiServerManagedLoadBalancer"] {
                ids.push(status[part]["id"].as_str().unwrap_or_default().to_owned());
            }
        }
        for machine in self.management.list::<OpenStackMachine>().await {
            let machine = serde_json::to_value(machine).unwrap();
            ids.push(
                machine["spec"]["providerID"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
        ids.sort();
        ids
    }

    pub(crate) async fn scale(&self, replicas: usize) {
        let patch = json!({"spec": {"replicas": replicas}});
        self.management
            .merge::<MachineDeployment>("demo-md", patch)
            .await;
    }
}
