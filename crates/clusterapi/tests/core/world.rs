//! A management cluster, a workload cluster, and a provider that is one task.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use api::core::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use api::k8s_openapi::api::core::v1::{Namespace, Node, Secret};
use api::kube;
use api::kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use api::kube::{Client, ResourceExt};
use api::names::{
    UPDATE_FAILED_ANNOTATION, UPDATE_IN_PROGRESS_ANNOTATION, UPDATED_IN_PLACE_ANNOTATION,
};
use apiserver::ApiServer;
use clusterapi::remote::{ClusterKey, Connector};
use clusterapi::{Options, Patience};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::{Value, json};
use testbed::{Fuse, Management, Running, fake_definition, killed_at_every};
use tokio_util::sync::CancellationToken;

pub(crate) use testbed::{NAMESPACE as NS, eventually};

/// The kinds of the provider, with their groups.
const KINDS: [(&str, &str); 8] = [
    ("infrastructure.cluster.x-k8s.io", "FakeCluster"),
    ("infrastructure.cluster.x-k8s.io", "FakeClusterTemplate"),
    ("infrastructure.cluster.x-k8s.io", "FakeMachine"),
    ("infrastructure.cluster.x-k8s.io", "FakeMachineTemplate"),
    ("bootstrap.cluster.x-k8s.io", "FakeConfig"),
    ("bootstrap.cluster.x-k8s.io", "FakeConfigTemplate"),
    ("controlplane.cluster.x-k8s.io", "FakeControlPlane"),
    ("controlplane.cluster.x-k8s.io", "FakeControlPlaneTemplate"),
];

/// Annotation of a FakeControlPlane that is not upgraded.
pub(crate) const NO_UPGRADE: &str = "fake/no-upgrade";

/// The environment of a test.
pub(crate) struct World {
    management: Management,
    pub(crate) workload: Client,
    /// Names of objects in the order of the removal of their finalizers by the provider.
    pub(crate) gone: Arc<Mutex<Vec<String>>>,
    provider: CancellationToken,
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

/// A connection to the workload cluster.
pub(crate) struct Workload(pub(crate) Client);

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
        async move { Ok(client) }.boxed()
    }
}

impl World {
    /// Both clusters and the provider, but no controllers.
    pub(crate) async fn open() -> Self {
        let fakes = KINDS.map(|(group, kind)| fake_definition(group, kind));
        let groups = [api::core::crd::all(), api::addons::crd::all()];
        let management = Management::open(groups.into_iter().flatten().chain(fakes)).await;
        let namespaces: Api<Namespace> = Api::all(management.client.clone());
        assert!(namespaces.get_opt(NS).await.unwrap().is_some());
        let workload = ApiServer::open(apiserver::Options::default())
            .await
            .unwrap();
        let workload = Client::new(workload.in_process(), NS);
        let gone = Arc::default();
        let provider = CancellationToken::new();
        let task = play(
            management.client.clone(),
            workload.clone(),
            Arc::clone(&gone),
        );
        tokio::spawn(provider.clone().run_until_cancelled_owned(task));
        Self {
            management,
            workload,
            gone,
            provider,
            controllers: Mutex::default(),
        }
    }

    /// Both clusters, the provider and the controllers.
    pub(crate) async fn start() -> Self {
        let world = Self::open().await;
        world.run();
        world
    }

    /// The Secrets, as the controllers write them.
    pub(crate) fn secrets(&self) -> operator::client::Api<Secret> {
        operator::client::Api::namespaced(self.client.clone(), NS)
    }

    /// Starts the controllers.
    pub(crate) fn run(&self) {
        *self.controllers.lock() = Some(self.run_with(&Fuse::recorder()));
    }

    /// Starts controllers with a record of their reads of the management cluster, by path.
    pub(crate) fn run_counting(&self) -> (Running, Arc<Mutex<Vec<String>>>) {
        let reads = Arc::<Mutex<Vec<String>>>::default();
        let (inner, record) = (self.client.clone(), Arc::clone(&reads));
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            if request.method() == http::Method::GET {
                record.lock().push(request.uri().path().to_owned());
            }
            let client = inner.clone();
            async move { client.send(request).await }
        });
        let client = Client::new(service, NS);
        let workload = self.workload.clone();
        (Self::start_controllers(client, workload), reads)
    }

    /// Starts the controllers; `refuse` is the code and the reason by which the management cluster refuses a request.
    pub(crate) fn run_refused(
        &self,
        refuse: impl Fn(&http::Method, &str) -> Option<(u16, &'static str)> + Send + Sync + 'static,
    ) {
        let (inner, refuse) = (self.client.clone(), Arc::new(refuse));
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let refused = refuse(request.method(), request.uri().path());
            let client = inner.clone();
            async move {
                let Some((code, reason)) = refused else {
                    return client.send(request).await;
                };
                let status = json!({
                    "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code,
                    "reason": reason, "message": "refused by the test",
                });
                let body = kube::client::Body::from(status.to_string().into_bytes());
                let response = http::Response::builder().status(code).body(body);
                Ok::<_, kube::Error>(response.unwrap())
            }
        });
        let running = Self::start_controllers(Client::new(service, NS), self.workload.clone());
        *self.controllers.lock() = Some(running);
    }

    /// Starts controllers behind a fuse.
    pub(crate) fn run_with(&self, fuse: &Fuse) -> Running {
        let client = fuse.protect(&self.client);
        Self::start_controllers(client, fuse.protect(&self.workload))
    }

    /// Starts the controllers with another connection to the workload cluster, and other patience with it.
    pub(crate) fn run_over(&self, connector: Arc<dyn Connector>, patience: Patience) {
        let options = Options {
            connector,
            patience,
            concurrency: 8,
            ..Options::default()
        };
        let client = self.client.clone();
        let running = Running::start(|shutdown| clusterapi::run(client, options, shutdown));
        *self.controllers.lock() = Some(running);
    }

    fn start_controllers(client: Client, workload: Client) -> Running {
        let options = Options {
            connector: Arc::new(Workload(workload)),
            concurrency: 8,
            in_place: differences,
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

    /// Stops the provider, which otherwise polls forever.
    pub(crate) fn stop_provider(&self) {
        self.provider.cancel();
    }

    pub(crate) fn fake(&self, kind: &str) -> Api<DynamicObject> {
        fake(&self.client, kind)
    }

    /// A Cluster `demo` with a control plane, and a MachineDeployment `demo-md` with this many workers.
    pub(crate) async fn cluster(&self, workers: i32) {
        self.apply(cluster("demo")).await;
        self.apply(deployment("demo", workers)).await;
    }

    pub(crate) async fn nodes(&self) -> Vec<Node> {
        Api::all(self.workload.clone())
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
    }

    /// Waits until the MachineDeployment `demo-md` has exactly this many available machines, and all others are gone.
    pub(crate) async fn settled(&self, workers: i32) {
        eventually(&format!("{workers} workers"), || async {
            let deployment = self
                .api::<MachineDeployment>()
                .get("demo-md")
                .await
                .unwrap();
            let status = deployment.status.clone().unwrap_or_default();
            let sets = self.list::<MachineSet>().await;
            let machines = self.list::<Machine>().await;
            let fakes = self
                .fake("FakeMachine")
                .list(&ListParams::default())
                .await
                .unwrap();
            let configs = self
                .fake("FakeConfig")
                .list(&ListParams::default())
                .await
                .unwrap();
            let all = usize::try_from(workers).unwrap();
            let done = status.available_replicas == Some(workers)
                && status.replicas == Some(workers)
                && status.up_to_date_replicas == Some(workers)
                && status.observed_generation == deployment.metadata.generation
                && sets.len() == 1
                && machines.len() == all
                && fakes.items.len() == all
                && configs.items.len() == all;
            let seen = format!(
                "{status:?}\nsets {:?}\nmachines {:#?}\nfakes {:?} configs {:?}",
                sets.iter()
                    .map(|s| (s.name_any(), s.spec.replicas, s.status.clone()))
                    .collect::<Vec<_>>(),
                machines
                    .iter()
                    .map(|m| (m.name_any(), m.status.clone()))
                    .collect::<Vec<_>>(),
                fakes
                    .items
                    .iter()
                    .map(ResourceExt::name_any)
                    .collect::<Vec<_>>(),
                configs.items.len(),
            );
            if done { Ok(()) } else { Err(seen) }
        })
        .await;
    }
}

fn fake(client: &Client, kind: &str) -> Api<DynamicObject> {
    let (group, _) = KINDS.iter().find(|(_, known)| *known == kind).unwrap();
    testbed::fake(client, group, kind)
}

/// A Cluster with infrastructure and control plane.
pub(crate) fn cluster(name: &str) -> Vec<Value> {
    let infrastructure = "infrastructure.cluster.x-k8s.io";
    let control_plane = "controlplane.cluster.x-k8s.io";
    vec![
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": name, "namespace": NS },
            "spec": {
                "infrastructureRef":
                    { "apiGroup": infrastructure, "kind": "FakeCluster", "name": name },
                "controlPlaneRef":
                    { "apiGroup": control_plane, "kind": "FakeControlPlane", "name": name },
            },
        }),
        json!({
            "apiVersion": format!("{infrastructure}/v1"), "kind": "FakeCluster",
            "metadata": { "name": name, "namespace": NS }, "spec": {},
        }),
        json!({
            "apiVersion": format!("{control_plane}/v1"), "kind": "FakeControlPlane",
            "metadata": { "name": name, "namespace": NS },
            "spec": { "replicas": 1, "version": "v1.34.1" },
        }),
    ]
}

/// The MachineDeployment `<cluster>-md` and its templates.
pub(crate) fn deployment(cluster: &str, replicas: i32) -> Vec<Value> {
    let name = format!("{cluster}-md");
    vec![
        json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1", "kind": "FakeConfigTemplate",
            "metadata": { "name": name, "namespace": NS },
            "spec": { "template": { "spec": { "words": "join" } } },
        }),
        machine_template(&name),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
            "metadata": { "name": name, "namespace": NS },
            "spec": {
                "clusterName": cluster, "replicas": replicas,
                "selector": { "matchLabels": { "pool": name } },
                "template": {
                    "metadata": { "labels": {
                        "pool": name, "node-role.kubernetes.io/worker": "", "plain": "stays",
                    }},
                    "spec": {
                        "clusterName": cluster, "version": "v1.34.1",
                        "bootstrap": { "configRef": {
                            "apiGroup": "bootstrap.cluster.x-k8s.io",
                            "kind": "FakeConfigTemplate", "name": name,
                        }},
                        "infrastructureRef": {
                            "apiGroup": "infrastructure.cluster.x-k8s.io",
                            "kind": "FakeMachineTemplate", "name": name,
                        },
                    },
                },
            },
        }),
    ]
}

pub(crate) fn machine_template(name: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "FakeMachineTemplate",
        "metadata": { "name": name, "namespace": NS },
        "spec": { "template": { "spec": { "flavor": "small" } } },
    })
}

/// Provider: polls its objects, and does at once what the contract requires.
async fn play(client: Client, workload: Client, gone: Arc<Mutex<Vec<String>>>) {
    loop {
        for kind in [
            "FakeCluster",
            "FakeControlPlane",
            "FakeConfig",
            "FakeMachine",
        ] {
            let api = fake(&client, kind);
            let Ok(list) = api.list(&ListParams::default()).await else {
                continue;
            };
            for object in list.items {
                // After a conflict, the next round retries.
                let _ = step(&client, &workload, &api, kind, object, &gone).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}

async fn step(
    client: &Client,
    workload: &Client,
    api: &Api<DynamicObject>,
    kind: &str,
    object: DynamicObject,
    gone: &Mutex<Vec<String>>,
) -> kube::Result<()> {
    let name = object.name_any();
    let version = object.resource_version();
    let guarded = |mut patch: Value| {
        patch["metadata"]["resourceVersion"] = json!(version);
        Patch::Merge(patch)
    };
    let params = PatchParams::default();
    if object.metadata.deletion_timestamp.is_some() {
        if !object.finalizers().is_empty() {
            gone.lock().push(format!("{kind}/{name}"));
            api.patch(
                &name,
                &params,
                &guarded(json!({ "metadata": { "finalizers": null } })),
            )
            .await?;
        }
        return Ok(());
    }
    let owner = object
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true));
    let waits_for = if kind == "FakeMachine" || kind == "FakeConfig" {
        "Machine"
    } else {
        "Cluster"
    };
    let Some(owner) = owner.filter(|owner| owner.kind == waits_for) else {
        return Ok(());
    };
    if object.finalizers().is_empty() {
        api.patch(
            &name,
            &params,
            &guarded(json!({ "metadata": { "finalizers": ["fake/provider"] } })),
        )
        .await?;
        return Ok(());
    }
    if object.data.pointer("/status/initialization").is_some() {
        if kind == "FakeMachine" {
            return rebuild(workload, api, &object).await;
        }
        return upgrade(api, kind, &object).await;
    }
    let done = match kind {
        "FakeCluster" => {
            let endpoint = json!({ "controlPlaneEndpoint": { "host": "127.0.0.2", "port": 6443 } });
            api.patch(&name, &params, &Patch::Merge(json!({ "spec": endpoint })))
                .await?;
            json!({ "initialization": { "provisioned": true } })
        }
        "FakeControlPlane" => {
            let secrets: Api<Secret> = Api::namespaced(client.clone(), NS);
            let secret = json!({
                "metadata": {
                    "name": format!("{}-kubeconfig", owner.name), "namespace": NS,
                    "labels": { "cluster.x-k8s.io/cluster-name": owner.name },
                },
                "type": "cluster.x-k8s.io/secret",
                "stringData": { "value": "unused" },
            });
            let secret = serde_json::from_value(secret).unwrap();
            let _ = secrets.create(&PostParams::default(), &secret).await;
            json!({
                "initialization": { "controlPlaneInitialized": true },
                "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "upToDateReplicas": 1,
                "versions": [{ "version": object.data["spec"]["version"], "replicas": 1 }],
                "conditions": [{ "type": "Available", "status": "True", "reason": "Available" }],
            })
        }
        "FakeConfig" => {
            json!({ "initialization": { "dataSecretCreated": true }, "dataSecretName": name })
        }
        _ => {
            let machines: Api<Machine> = Api::namespaced(client.clone(), NS);
            let Some(machine) = machines.get_opt(&owner.name).await? else {
                return Ok(());
            };
            if machine.spec.bootstrap.data_secret_name.is_none() {
                return Ok(());
            }
            let id = format!("fake:///{}", object.uid().unwrap());
            api.patch(
                &name,
                &params,
                &Patch::Merge(json!({ "spec": { "providerID": id } })),
            )
            .await?;
            join(workload, &name, &id).await?;
            json!({
                "initialization": { "provisioned": true },
                "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
            })
        }
    };
    api.patch_status(&name, &params, &Patch::Merge(json!({ "status": done })))
        .await?;
    Ok(())
}

/// Upgrades a control plane at once, unless a test holds it.
async fn upgrade(api: &Api<DynamicObject>, kind: &str, object: &DynamicObject) -> kube::Result<()> {
    let (wanted, has) = (
        &object.data["spec"]["version"],
        &object.data["status"]["versions"],
    );
    let stays = object.annotations().contains_key(NO_UPGRADE);
    if kind != "FakeControlPlane" || stays || has[0]["version"] == *wanted {
        return Ok(());
    }
    let status = json!({ "status": { "versions": [{ "version": wanted, "replicas": 1 }] } });
    let params = PatchParams::default();
    let name = object.name_any();
    api.patch_status(&name, &params, &Patch::Merge(status))
        .await
        .map(drop)
}

/// Fields of a FakeMachine for which it has to be replaced: all but its image.
fn differences(_kind: &str, have: &Value, want: &Value) -> Vec<String> {
    let fields = ["flavor", "ports"];
    let differ = fields
        .into_iter()
        .filter(|field| have[field] != want[field]);
    differ
        .map(|field| format!("spec.{field} differs"))
        .collect()
}

/// Annotation of a FakeMachine: names of the Secrets from which it was rebuilt.
pub(crate) const REBUILDS: &str = "fake/rebuilds";
/// Annotation of a FakeMachine that cannot be rebuilt.
pub(crate) const BROKEN: &str = "fake/broken";

/// Rebuilds a machine on request. As with kubeadm, a Node that is there keeps the machine from joining.
async fn rebuild(
    workload: &Client,
    api: &Api<DynamicObject>,
    object: &DynamicObject,
) -> kube::Result<()> {
    let name = object.name_any();
    let Some(secret) = object.annotations().get(UPDATE_IN_PROGRESS_ANNOTATION) else {
        return Ok(());
    };
    let nodes: Api<Node> = Api::all(workload.clone());
    let is_refused = object.annotations().contains_key(UPDATE_FAILED_ANNOTATION);
    if is_refused || nodes.get_opt(&name).await?.is_some() {
        return Ok(());
    }
    let mut annotations = if object.annotations().contains_key(BROKEN) {
        json!({ UPDATE_FAILED_ANNOTATION: format!("{secret} the disk is broken") })
    } else {
        let id = object.data["spec"]["providerID"].as_str().unwrap();
        join(workload, &name, id).await?;
        json!({ UPDATED_IN_PLACE_ANNOTATION: secret, UPDATE_IN_PROGRESS_ANNOTATION: null })
    };
    let before = object.annotations().get(REBUILDS);
    let all: Vec<_> = before.into_iter().chain([secret]).cloned().collect();
    annotations[REBUILDS] = json!(all.join(","));
    let patch = json!({ "metadata": {
        "resourceVersion": object.resource_version(), "annotations": annotations,
    }});
    api.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map(drop)
}

/// Registers a Node, as a kubelet does.
async fn join(workload: &Client, name: &str, provider_id: &str) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(workload.clone());
    let node = json!({
        "metadata": { "name": name },
        "spec": { "providerID": provider_id, "taints": [
            { "key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule" },
        ]},
    });
    let node = serde_json::from_value(node).unwrap();
    match nodes.create(&PostParams::default(), &node).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        other => drop(other?),
    }
    let ready = json!({ "status": { "conditions": [
        { "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready" },
    ]}});
    nodes
        .patch_status(name, &PatchParams::default(), &Patch::Merge(ready))
        .await
        .map(|_| ())
}

/// The names and UIDs of machines.
pub(crate) fn uids(machines: &[Machine]) -> BTreeMap<String, String> {
    machines
        .iter()
        .map(|machine| (machine.name_any(), machine.uid().unwrap()))
        .collect()
}

/// The status and reason of the condition of this type.
pub(crate) fn condition(cluster: &Cluster, type_: &str) -> (String, String) {
    let found = api::conditions::find(cluster.conditions(), type_);
    found.map_or_else(Default::default, |found| {
        (found.status.clone(), found.message.clone())
    })
}
