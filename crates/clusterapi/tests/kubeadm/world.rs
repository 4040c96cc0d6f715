//! A management cluster, a workload cluster, and machines that boot from their user data.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::apps::v1::Deployment;
use api::k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use api::kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use api::kube::core::NamespaceResourceScope;
use api::kube::{Client, Resource, ResourceExt};
use clusterapi::Options;
use clusterapi::remote::{ClusterKey, Connector};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testbed::{Fuse, Management, Running, fake_definition, killed_at_every};
use tokio_util::sync::CancellationToken;

use crate::members::{self, Members};

pub(crate) use testbed::{NAMESPACE as NS, eventually};

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const KINDS: [&str; 3] = ["FakeCluster", "FakeMachine", "FakeMachineTemplate"];

/// The environment of a test.
pub(crate) struct World {
    management: Management,
    pub(crate) workload: Client,
    /// The etcd members of the machines.
    pub(crate) members: Members,
    provider: CancellationToken,
    /// Provider of infrastructure and the programs on its machines, without the etcd members.
    play: CancellationToken,
    controllers: Mutex<Option<Running>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.provider.cancel();
    }
}

impl Deref for World {
    type Target = Management;

    fn deref(&self) -> &Management {
        &self.management
    }
}

struct Workload(Client);

impl Debug for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Workload")
    }
}

impl Connector for Workload {
    fn connect<'a>(
        &'a self,
        _cluster: &'a ClusterKey,
        _kubeconfig: &'a SecretString,
    ) -> BoxFuture<'a, Result<Client, String>> {
        let client = self.0.clone();
        // No connection before `kubeadm init` has run.
        async move {
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
            match maps.get_opt("kubeadm-config").await {
                Ok(Some(_)) => Ok(client),
                _ => Err("connection refused".to_owned()),
            }
        }
        .boxed()
    }
}

impl World {
    /// Both clusters and the provider, but no controllers.
    pub(crate) async fn open() -> Self {
        let groups = [
            api::core::crd::all(),
            api::addons::crd::all(),
            api::bootstrap::crd::all(),
            api::controlplane::crd::all(),
        ];
        let fakes = KINDS.map(|kind| fake_definition(INFRASTRUCTURE, kind));
        let management = Management::open(groups.into_iter().flatten().chain(fakes)).await;
        let provider = CancellationToken::new();
        let (members, workload) = Members::serve(provider.clone()).await;
        let play = Play {
            client: management.client.clone(),
            workload: workload.clone(),
            members: members.clone(),
        };
        let task = play.run();
        let play = provider.child_token();
        tokio::spawn(play.clone().run_until_cancelled_owned(task));
        Self {
            management,
            workload,
            members,
            provider,
            play,
            controllers: Mutex::default(),
        }
    }

    /// Both clusters, the provider and the controllers.
    pub(crate) async fn start() -> Self {
        let world = Self::open().await;
        world.run();
        world
    }

    /// Starts the controllers.
    pub(crate) fn run(&self) {
        *self.controllers.lock() = Some(self.run_with(&Fuse::recorder()));
    }

    /// Nothing changes on machines any more, and none comes or goes; members of etcd answer as before.
    pub(crate) fn stop_machines(&self) {
        self.play.cancel();
    }

    /// Starts controllers behind a fuse.
    pub(crate) fn run_with(&self, fuse: &Fuse) -> Running {
        let client = fuse.protect(&self.client);
        let options = Options {
            connector: Arc::new(Workload(fuse.protect(&self.workload))),
            concurrency: 8,
            ..Options::default()
        };
        Running::start(|shutdown| clusterapi::run(client, options, shutdown))
    }

    /// Runs the controllers until they are at `rest`, killed at each of their `nth` writes; returns the number of
    /// kills.
    pub(crate) async fn killed_at_every<F>(&self, nth: usize, rest: impl Fn() -> F) -> usize
    where
        F: Future<Output = ()>,
    {
        killed_at_every(nth, |fuse| self.run_with(fuse), rest).await
    }

    /// Stops the controllers at any point, as `kill -9` does.
    pub(crate) async fn kill(&self) {
        let running = self.controllers.lock().take();
        if let Some(running) = running {
            running.kill().await;
        }
    }

    pub(crate) fn fake(&self, kind: &str) -> Api<DynamicObject> {
        fake(&self.client, kind)
    }

    /// A Cluster `demo` whose control plane has `replicas` machines.
    pub(crate) async fn cluster(&self, replicas: i32) {
        // ECDSA keys: RSA keys take seconds without optimisation.
        let config = json!({"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}});
        self.apply(cluster(replicas, config)).await;
    }

    pub(crate) async fn nodes(&self) -> Vec<Node> {
        Api::all(self.workload.clone())
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
    }

    /// Waits until a condition of the control plane has this status, and `words` in the message.
    pub(crate) async fn condition(&self, type_: &str, status: &str, words: &str) {
        eventually(&format!("{type_} {status}: {words}"), || async {
            let plane = self.api::<KubeadmControlPlane>().get("demo").await.unwrap();
            let conditions = plane.status.unwrap_or_default().conditions;
            let found = api::conditions::find(&conditions, type_).cloned();
            match found {
                Some(it) if it.status == status && it.message.contains(words) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// The names of all Machines, sorted.
    pub(crate) async fn machine_names(&self) -> Vec<String> {
        let machines = self.list::<Machine>().await;
        let mut names: Vec<_> = machines.iter().map(ResourceExt::name_any).collect();
        names.sort();
        names
    }

    /// Waits until the control plane has exactly this many available and up-to-date machines, and all others are gone.
    pub(crate) async fn settled(&self, replicas: usize) -> KubeadmControlPlane {
        eventually(&format!("{replicas} control plane machines"), || async {
            let plane = self.api::<KubeadmControlPlane>().get("demo").await.unwrap();
            let status = plane.status.clone().unwrap_or_default();
            let machines = self.list::<Machine>().await;
            let configs = self.list::<api::bootstrap::v1beta2::KubeadmConfig>().await;
            let fakes = self
                .fake("FakeMachine")
                .list(&ListParams::default())
                .await
                .unwrap();
            let count = i32::try_from(replicas).ok();
            let done = status.available_replicas == count
                && status.replicas == count
                && status.up_to_date_replicas == count
                && status.observed_generation == plane.metadata.generation
                && machines.len() == replicas
                && configs.len() == replicas
                && fakes.items.len() == replicas
                && self.nodes().await.len() == replicas;
            if done {
                return Ok(plane);
            }
            Err(format!(
                "{status:#?}\n{:#?}\nconfigs {:#?}\nfakes {}",
                machines
                    .iter()
                    .map(|m| (m.name_any(), &m.status))
                    .collect::<Vec<_>>(),
                configs
                    .iter()
                    .map(|c| (c.name_any(), &c.status))
                    .collect::<Vec<_>>(),
                fakes.items.len()
            ))
        })
        .await
    }
}

fn fake(client: &Client, kind: &str) -> Api<DynamicObject> {
    testbed::fake(client, INFRASTRUCTURE, kind)
}

/// Cluster `demo` with the objects that its control plane requires.
pub(crate) fn cluster(replicas: i32, config: Value) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "demo", "namespace": NS},
            "spec": {
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"},
                "infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "FakeCluster", "name": "demo"},
                "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "demo"},
            },
        }),
        json!({
            "apiVersion": format!("{INFRASTRUCTURE}/v1"), "kind": "FakeCluster",
            "metadata": {"name": "demo", "namespace": NS}, "spec": {},
        }),
        template("demo"),
        json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "demo", "namespace": NS},
            "spec": {
                "replicas": replicas, "version": "v1.34.1",
                "kubeadmConfigSpec": config,
                "machineTemplate": {"spec": {"infrastructureRef": {
                    "apiGroup": INFRASTRUCTURE, "kind": "FakeMachineTemplate", "name": "demo",
                }}},
            },
        }),
    ]
}

/// A template whose machines get no server.
pub(crate) const NO_SERVER: &str = "no-server";
/// Template of machines with a server that never joins.
pub(crate) const NEVER_JOINS: &str = "never-joins";

pub(crate) fn template(name: &str) -> Value {
    json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1"), "kind": "FakeMachineTemplate",
        "metadata": {"name": name, "namespace": NS},
        "spec": {"template": {"spec": {"flavor": name}}},
    })
}

/// The simulated provider and machines.
struct Play {
    client: Client,
    workload: Client,
    members: Members,
}

impl Play {
    async fn run(self) {
        loop {
            for kind in ["FakeCluster", "FakeMachine"] {
                let objects = fake(&self.client, kind);
                let Ok(list) = objects.list(&ListParams::default()).await else {
                    continue;
                };
                for object in list.items {
                    // After a conflict, the next round retries.
                    let _ = step(&self, kind, object).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    }
}

async fn step(play: &Play, kind: &str, object: DynamicObject) -> kube::Result<()> {
    let (client, workload) = (&play.client, &play.workload);
    let (name, params, api) = (
        object.name_any(),
        PatchParams::default(),
        fake(client, kind),
    );
    if object.metadata.deletion_timestamp.is_some() {
        // The etcd member stays in the member list.
        play.members.switch_off(&name);
        let stopped = stop(workload, &name).await;
        // Without a quorum the Pods remain, because the API server rejects writes.
        if play.members.etcd.takes_writes().is_ok() {
            stopped?;
        }
        let clear = json!({"metadata": {"finalizers": null}});
        return api
            .patch(&name, &params, &Patch::Merge(clear))
            .await
            .map(drop);
    }
    let waits_for = if kind == "FakeMachine" {
        "Machine"
    } else {
        "Cluster"
    };
    let owners = object.owner_references();
    let Some(owner) = owners.iter().find(|owner| owner.kind == waits_for) else {
        return Ok(());
    };
    if object.finalizers().is_empty() {
        let finalizer = json!({"metadata": {"finalizers": ["fake/provider"]}});
        return api
            .patch(&name, &params, &Patch::Merge(finalizer))
            .await
            .map(drop);
    }
    let status = |field: &str| object.data.pointer(&format!("/status/{field}"));
    if status("initialization").is_some() && status("joining").is_none() {
        return Ok(());
    }
    if kind == "FakeCluster" {
        let endpoint =
            json!({"spec": {"controlPlaneEndpoint": {"host": "127.0.0.2", "port": 6443}}});
        api.patch(&name, &params, &Patch::Merge(endpoint)).await?;
        let domains = json!([{"name": "a", "controlPlane": true}, {"name": "b", "controlPlane": true}, {"name": "w"}]);
        let status =
            json!({"status": {"initialization": {"provisioned": true}, "failureDomains": domains}});
        return api
            .patch_status(&name, &params, &Patch::Merge(status))
            .await
            .map(drop);
    }
    let machines: Api<Machine> = Api::namespaced(client.clone(), NS);
    let Some(machine) = machines.get_opt(&owner.name).await? else {
        return Ok(());
    };
    let Some(data) = &machine.spec.bootstrap.data_secret_name else {
        return Ok(());
    };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NS);
    let Some(secret) = secrets.get_opt(data).await? else {
        return Ok(());
    };
    let user_data = String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap();
    let flavor = object.data.pointer("/spec/flavor").and_then(Value::as_str);
    if flavor == Some(NO_SERVER) {
        return Ok(());
    }
    let id = format!("fake:///{}", object.uid().unwrap());
    api.patch(
        &name,
        &params,
        &Patch::Merge(json!({"spec": {"providerID": id}})),
    )
    .await?;
    let version = machine.spec.version.clone().unwrap_or_default();
    let booted =
        flavor != Some(NEVER_JOINS) && boot(play, &name, &id, &version, &user_data).await?;
    // The server is there while kubeadm tries to join.
    let joining = match (booted, user_data.contains("kubeadm join")) {
        (false, false) => return Ok(()),
        (true, _) => Value::Null,
        (false, true) => Value::Bool(true),
    };
    let address = json!({"type": "InternalIP", "address": members::address(&name)});
    let status = json!({"status": {
        "initialization": {"provisioned": true}, "addresses": [address], "joining": joining,
    }});
    api.patch_status(&name, &params, &Patch::Merge(status))
        .await
        .map(drop)
}

/// Does what cloud-init and kubeadm do with the user data; false if kubeadm fails.
async fn boot(
    play: &Play,
    name: &str,
    provider_id: &str,
    version: &str,
    user_data: &str,
) -> kube::Result<bool> {
    let workload = &play.workload;
    assert!(
        user_data.starts_with("## template: jinja\n#cloud-config\n"),
        "{user_data}"
    );
    let document: Value = serde_saphyr::from_str(user_data).unwrap();
    let file = |path: &str| {
        let files = document["write_files"].as_array().unwrap();
        files
            .iter()
            .find(|file| file["path"] == path)
            .map(|file| file["content"].as_str().unwrap().to_owned())
    };
    let init = user_data.contains("kubeadm init");
    let authority = || {
        let path = |end| format!("/etc/kubernetes/pki/etcd/ca.{end}");
        Some((file(&path("crt"))?, file(&path("key"))?))
    };
    if init {
        assert!(
            file("/etc/kubernetes/pki/ca.key")
                .unwrap()
                .contains("PRIVATE KEY")
        );
        let kubeadm = file("/run/kubeadm/kubeadm.yaml").unwrap();
        let cluster = kubeadm
            .split("---\n")
            .find(|d| d.contains("ClusterConfiguration"))
            .unwrap();
        match authority() {
            Some(authority) => play.members.init(name, &authority),
            None => play.members.without_etcd(name),
        }
        node(workload, name, provider_id).await?;
        pods(workload, name, version, authority().is_some()).await?;
        let map = json!({
            "metadata": {"name": "kubeadm-config", "namespace": "kube-system"},
            "data": {"ClusterConfiguration": cluster},
        });
        create::<ConfigMap>(workload, map).await?;
        coredns(workload).await?;
        return Ok(true);
    }
    let kubeadm = file("/run/kubeadm/kubeadm-join-config.yaml").unwrap();
    let join: Value = serde_saphyr::from_str(&kubeadm).unwrap();
    let token = &join["discovery"]["bootstrapToken"];
    assert!(
        token["caCertHashes"][0]
            .as_str()
            .unwrap()
            .starts_with("sha256:"),
        "{kubeadm}"
    );
    let id = token["token"].as_str().unwrap().split('.').next().unwrap();
    let tokens: Api<Secret> = Api::namespaced(workload.clone(), "kube-system");
    if tokens
        .get_opt(&format!("bootstrap-token-{id}"))
        .await?
        .is_none()
    {
        return Ok(false);
    }
    if join.get("controlPlane").is_some() {
        // kubeadm retries; here the next round does.
        let joined = match authority() {
            Some(authority) => play.members.join(name, &authority),
            None => {
                play.members.without_etcd(name);
                true
            }
        };
        if !joined {
            return Ok(false);
        }
    }
    node(workload, name, provider_id).await?;
    if join.get("controlPlane").is_some() {
        pods(workload, name, version, authority().is_some()).await?;
    }
    Ok(true)
}

/// The Corefile of kubeadm, in short.
pub(crate) const COREFILE: &str = ".:53 {\n    errors\n    kubernetes cluster.local {\n       pods insecure\n    }\n    forward . /etc/resolv.conf\n    cache 30\n    reload\n}\n";

/// CoreDNS, as `kubeadm init` of Kubernetes 1.34 deploys it.
async fn coredns(workload: &Client) -> kube::Result<()> {
    let labels = json!({"k8s-app": "kube-dns"});
    let items = json!([{"key": "Corefile", "path": "Corefile"}]);
    let pod = json!({
        "containers": [{"name": "coredns", "image": "registry.k8s.io/coredns/coredns:v1.12.1"}],
        "volumes": [{"name": "config-volume", "configMap": {"name": "coredns", "items": items}}],
    });
    let metadata = json!({"name": "coredns", "namespace": "kube-system"});
    let deployment = json!({"metadata": metadata, "spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }});
    let map = json!({"metadata": metadata, "data": {"Corefile": COREFILE}});
    create::<ConfigMap>(workload, map).await?;
    create::<Deployment>(workload, deployment).await
}

async fn node(workload: &Client, name: &str, provider_id: &str) -> kube::Result<()> {
    let node = json!({
        "metadata": {"name": name, "labels": {"node-role.kubernetes.io/control-plane": ""}},
        "spec": {"providerID": provider_id},
    });
    let nodes: Api<Node> = Api::all(workload.clone());
    let node = serde_json::from_value(node).unwrap();
    match nodes.create(&PostParams::default(), &node).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        other => drop(other?),
    }
    let addresses = json!([{"type": "Hostname", "address": name}]);
    let ready = json!({"status": {"addresses": addresses, "conditions": [
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"},
    ]}});
    nodes
        .patch_status(name, &PatchParams::default(), &Patch::Merge(ready))
        .await
        .map(drop)
}

const COMPONENTS: [&str; 4] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "etcd",
];

async fn pods(workload: &Client, node: &str, version: &str, etcd: bool) -> kube::Result<()> {
    for component in COMPONENTS.into_iter().filter(|it| etcd || *it != "etcd") {
        let pod = json!({
            "metadata": {
                "name": format!("{component}-{node}"), "namespace": "kube-system",
                "labels": {"component": component, "tier": "control-plane"},
                "annotations": {"kubernetes.io/config.mirror": "hash"},
            },
            "spec": {"nodeName": node, "containers": [{"name": component, "image": format!("x:{version}")}]},
        });
        create::<Pod>(workload, pod).await?;
        set_ready(workload, component, node, true).await?;
    }
    Ok(())
}

/// Sets the condition `Ready` of a static Pod.
async fn set_ready(
    workload: &Client,
    component: &str,
    node: &str,
    ready: bool,
) -> kube::Result<()> {
    let pods: Api<Pod> = Api::namespaced(workload.clone(), "kube-system");
    let status = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": if ready { "True" } else { "False" }},
    ]}});
    let name = format!("{component}-{node}");
    pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .map(drop)
}

/// Deletes the Pods of a machine that is gone.
async fn stop(workload: &Client, node: &str) -> kube::Result<()> {
    let pods: Api<Pod> = Api::namespaced(workload.clone(), "kube-system");
    for component in COMPONENTS {
        let now = DeleteParams::default().grace_period(0);
        match pods.delete(&format!("{component}-{node}"), &now).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other?),
        }
    }
    Ok(())
}

async fn create<K>(workload: &Client, object: Value) -> kube::Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + serde::Serialize,
{
    let api: Api<K> = Api::namespaced(workload.clone(), "kube-system");
    let object: K = serde_json::from_value(object).unwrap();
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        other => other.map(drop),
    }
}
