//! A management cluster with simulated nodes, and questions about a cloud in it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use api::conditions;
use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use api::openstack::conditions::Type;
use api::openstack::v1alpha1::OpenStack;
use apiserver::Kubelet;
use bytes::Bytes;
use deployer::ObjectKind;
use futures::FutureExt as _;
use http::{Method, Request, Response};
use http_body_util::Full;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Client, ResourceExt as _};
use operator::metrics::Metrics;
use rollout::{Options, Rendered};
use serde_json::{Value, json};
use simulator::nodes::{self, Answering, Faults, Programs};
use testbed::{Fuse, Management, NAMESPACE, Running, eventually};

/// The name of the cloud.
pub(crate) const CLOUD: &str = "cloud";
/// Much longer than any step with a cause. Time is paused, so it passes only when nothing is left to do.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Definitions of the kinds of the controller, decoded once for all tests of a process.
static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> =
    LazyLock::new(|| api::crds::of(&[api::openstack::GROUP]));

/// A management cluster with simulated nodes.
pub(crate) struct World {
    pub(crate) management: Management,
    pub(crate) faults: Faults,
    pub(crate) programs: Programs,
    rendered: Rendered,
    _nodes: Running,
}

impl World {
    pub(crate) async fn open() -> Self {
        Self::from_names(&["node-0"]).await
    }

    /// A management cluster with these nodes.
    pub(crate) async fn from_names(names: &[&str]) -> Self {
        let faults = Faults::default();
        let programs = Programs::new(&faults);
        let kubelet = Some(Arc::new(programs.clone()) as Arc<dyn Kubelet>);
        let management = Management::open_with(DEFINITIONS.iter().cloned(), kubelet).await;
        programs.serve(management.client.clone());
        let options = nodes::Options {
            faults: faults.clone(),
            nodes: names.iter().map(|it| (*it).to_owned()).collect(),
            ..nodes::Options::default()
        };
        let client = management.client.clone();
        let nodes = Running::start(|stop| nodes::run(client, options, stop));
        Self {
            management,
            faults,
            programs,
            rendered: Rendered::default(),
            _nodes: nodes,
        }
    }

    pub(crate) fn controller(&self) -> Running {
        self.programs.guard(None);
        self.running()
    }

    /// A controller whose reconciles are counted.
    pub(crate) fn controller_counted(&self, metrics: &Metrics) -> Running {
        self.programs.guard(None);
        let options = Options {
            metrics: metrics.clone(),
            ..self.options()
        };
        let client = self.management.client.clone();
        Running::start(|stop| rollout::run(client, options, stop))
    }

    /// Starts a controller, with the present gates in front of the programs.
    pub(crate) fn running(&self) -> Running {
        let client = self.management.client.clone();
        let options = self.options();
        Running::start(|stop| rollout::run(client, options, stop))
    }

    /// Options of the next controller. What former ones have rendered for the same cloud is not rendered again: a hundred
    /// kills have the time of a hundred certificates otherwise.
    pub(crate) fn options(&self) -> Options {
        Options {
            namespace: Some(NAMESPACE.to_owned()),
            rendered: self.rendered.clone(),
            ..Options::default()
        }
    }

    pub(crate) fn controller_with(&self, fuse: &Fuse) -> Running {
        let writes = fuse.clone();
        let gate = move |request: Request<Bytes>, answering: Answering| {
            let fuse = writes.clone();
            let is_read = request.method() == Method::GET;
            let is_login = request.uri().path() == "/v3/auth/tokens";
            let write = (!is_read && !is_login)
                .then(|| format!("{} {}", request.method(), request.uri().path()));
            let stored = |answer: &Option<Response<Full<Bytes>>>| {
                answer.as_ref().is_some_and(|it| it.status().is_success())
            };
            async move { fuse.pass(write, answering, stored).await }.boxed()
        };
        self.programs.guard(Some(Arc::new(gate)));
        let client = fuse.protect(&self.management.client);
        let options = self.options();
        Running::start(|stop| rollout::run(client, options, stop))
    }

    /// Answer of RabbitMQ at a path of the management API.
    pub(crate) fn broker(&self, path: &str) -> Value {
        let answer = self.programs.broker("GET", path, &Value::Null);
        answer.map(|(_, body)| body).unwrap_or_default()
    }

    /// Answer of Keystone at a path of the API.
    pub(crate) fn identity(&self, path: &str) -> Value {
        let answer = self.programs.identity("GET", path, &Value::Null);
        answer.map(|(_, body)| body).unwrap_or_default()
    }

    /// Changes Keystone behind the back of the controller.
    pub(crate) fn change_identity(&self, method: &str, path: &str, body: &Value) {
        let (status, body) = self.programs.identity(method, path, body).unwrap();
        assert!((200..300).contains(&status), "{status} {body}");
    }

    /// Changes RabbitMQ behind the back of the controller.
    pub(crate) fn change_broker(&self, method: &str, path: &str, body: &Value) {
        let (status, body) = self.programs.broker(method, path, body).unwrap();
        assert!((200..300).contains(&status), "{status} {body}");
    }

    pub(crate) async fn create(&self, spec: Value) {
        self.management.create(object(spec)).await;
    }

    pub(crate) async fn cloud(&self) -> OpenStack {
        self.management.api::<OpenStack>().get(CLOUD).await.unwrap()
    }

    /// Waits until the condition has this status for the current spec, and returns the message.
    pub(crate) async fn condition(&self, type_: Type, status: &str) -> String {
        eventually(&format!("{type_} to be {status}"), || async {
            let cloud = self.cloud().await;
            let seen = cloud.status.unwrap_or_default();
            let found = conditions::find(&seen.conditions, type_);
            let is_current = seen.observed_generation == cloud.metadata.generation;
            match found.filter(|it| it.status == status && is_current) {
                Some(found) => Ok(found.message.clone()),
                None => Err(format!("{found:?}")),
            }
        })
        .await
    }

    pub(crate) async fn ready(&self) {
        self.condition(Type::Ready, "True").await;
    }

    pub(crate) async fn changed(&self, patch: Value) {
        self.management.merge::<OpenStack>(CLOUD, patch).await;
    }

    /// Every object of a kind in the namespace.
    pub(crate) async fn list(&self, group: &str, kind: &str) -> Vec<Value> {
        list(&self.management.client, group, kind).await
    }

    /// Kind and name of everything that carries the uid of a cloud.
    pub(crate) async fn owned(&self) -> Vec<String> {
        let mut found = Vec::new();
        for kind in ObjectKind::ALL {
            for object in self.list(kind.group(), kind.name()).await {
                if !object["metadata"]["labels"]["ferrostack.dev/cloud-uid"].is_null() {
                    let name = object["metadata"]["name"].as_str().unwrap();
                    found.push(format!("{} {name}", kind.name()));
                }
            }
        }
        found.sort();
        found
    }

    /// The Pods of workloads: the uid of each by its program.
    pub(crate) async fn serving(&self) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pod in self.list("", "Pod").await {
            if pod["spec"]["restartPolicy"] == "Always" {
                let program = &pod["metadata"]["labels"]["app.kubernetes.io/name"];
                let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
                found
                    .entry(program.as_str().unwrap().to_owned())
                    .or_default()
                    .push(uid);
            }
        }
        for uids in found.values_mut() {
            uids.sort();
        }
        found
    }

    /// Plan for the cloud in its present state.
    pub(crate) async fn plan(&self) -> deployer::Plan {
        let (_, _, graph, objects) = self.desired().await;
        deployer::plan(&graph, &objects)
    }

    /// The same, compared with what RabbitMQ and Keystone have.
    pub(crate) async fn compared(&self) -> deployer::Plan {
        let (cloud, held, graph, objects) = self.desired().await;
        let mut plan = deployer::plan(&graph, &objects);
        let pods = self.list("", "Pod").await;
        let client = &self.management.client;
        let found = rollout::compared(client, &cloud, &graph, &held, &pods).await;
        for step in graph.steps.iter().filter(|it| it.accounts.is_some()) {
            let found = found[&step.name].as_ref().map_err(String::as_str);
            let store = step.accounts.as_ref().unwrap().store();
            plan.compare(&step.name, store, found);
        }
        plan
    }

    /// Desired objects, and existing ones.
    pub(crate) async fn wanted(&self) -> (deployer::Graph, Vec<Value>) {
        let (_, _, graph, objects) = self.desired().await;
        (graph, objects)
    }

    async fn desired(
        &self,
    ) -> (
        deployer::Cloud,
        deployer::Credentials,
        deployer::Graph,
        Vec<Value>,
    ) {
        let document = serde_json::to_value(self.cloud().await).unwrap();
        let (parameters, _) = deployer::Parameters::read(&document).unwrap();
        let cloud = deployer::Cloud::new(&document, parameters).unwrap();
        let mut objects = Vec::new();
        for kind in ObjectKind::ALL {
            for mut object in self.list(kind.group(), kind.name()).await {
                object["kind"] = kind.name().into();
                object["apiVersion"] = kind.api_version().into();
                objects.push(object);
            }
        }
        let held = deployer::Credentials::complete(&cloud.name, &objects, || 0);
        let graph = deployer::desired(&cloud, &held);
        (cloud, held, graph, objects)
    }

    /// Asserts that nothing is left to do, and that no container was ever restarted.
    pub(crate) async fn assert_at_rest(&self) {
        let plan = self.plan().await;
        assert!(plan.is_empty() && plan.conflicts.is_empty(), "{plan:#?}");
        for pod in self.list("", "Pod").await {
            let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
            assert_eq!(*restarts, 0, "{pod:#}");
        }
    }

    /// Removes a label of the controller from one of the cloud's objects of a kind, and waits for its return.
    pub(crate) async fn drift(&self, group: &str, kind: &str) {
        let label = deployer::PART_OF;
        let ours = |it: &Value| !it["metadata"]["labels"][deployer::UID].is_null();
        let mut all = self.list(group, kind).await;
        all.retain(ours);
        let name = all.last().unwrap()["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let client = self.management.client.clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &resource);
        let patch = json!({"metadata": {"labels": {label: "other"}}});
        let params = kube::api::PatchParams::default();
        let patched = api
            .patch(&name, &params, &kube::api::Patch::Merge(patch))
            .await;
        patched.unwrap();
        eventually(&format!("the label of {kind} {name}"), || async {
            let object = api.get(&name).await.unwrap();
            let found = object.labels().get(label).cloned();
            (found.as_deref() == Some(CLOUD))
                .then_some(())
                .ok_or(format!("{found:?}"))
        })
        .await;
    }

    /// Deletes the cloud, with its data or without.
    pub(crate) async fn delete(&self, purge: bool) {
        if purge {
            let annotations = json!({api::openstack::PURGE_DATA: "true"});
            self.changed(json!({"metadata": {"annotations": annotations}}))
                .await;
        }
        self.management.delete::<OpenStack>(CLOUD).await;
    }
}

pub(crate) fn start(client: Client) -> Running {
    let options = Options {
        namespace: Some(NAMESPACE.to_owned()),
        ..Options::default()
    };
    Running::start(|stop| rollout::run(client, options, stop))
}

/// Starts a controller, and waits until it has compared everything with the desired state.
pub(crate) async fn looked(client: Client) -> Running {
    let (sender, mut looks) = tokio::sync::watch::channel(false);
    let options = Options {
        namespace: Some(NAMESPACE.to_owned()),
        looked: Some(Arc::new(sender)),
        ..Options::default()
    };
    let running = Running::start(|stop| rollout::run(client, options, stop));
    looks.wait_for(|it| *it).await.unwrap();
    running
}

/// A spec with everything that a cloud can have.
pub(crate) fn full() -> Value {
    json!({
        "release": "2026.1",
        "network": {"physical": [{"name": "public"}]},
        "compute": {"driver": "Fake", "fake": {"hypervisors": 2, "zones": ["az1", "az2"]}},
        "exposure": {"mode": "Edge", "host": "192.0.2.7"},
    })
}

pub(crate) fn object(spec: Value) -> Value {
    json!({
        "apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack",
        "metadata": {"name": CLOUD, "namespace": NAMESPACE}, "spec": spec,
    })
}

pub(crate) async fn list(client: &Client, group: &str, kind: &str) -> Vec<Value> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
    let all = api.list(&ListParams::default()).await.unwrap();
    let all = all.items.into_iter();
    all.inspect(|it| assert!(!it.name_any().is_empty()))
        .map(|it| serde_json::to_value(it).unwrap())
        .collect()
}
