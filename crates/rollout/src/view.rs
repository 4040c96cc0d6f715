//! Objects in the namespaces of clouds, from watches: every object of the kinds of a cloud, and Pods.

use std::collections::HashMap;
use std::sync::Arc;

use api::openstack::GROUP;
use api::openstack::v1alpha1::API_VERSION;
use deployer::ObjectKind;
use deployer::drain::BUDGET;
use futures::StreamExt as _;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::reflector::{self, Store, store::Writer};
use kube::runtime::{WatchStreamExt as _, watcher};
use operator::client::Api;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::problem::Problem;

mod nodes;

use self::nodes::Nodes;

/// The kind of operations.
const OPERATION: &str = "OpenStackOperation";

/// Store of the watches of a kind.
struct Kind {
    name: &'static str,
    api_version: &'static str,
    store: Store<DynamicObject>,
}

/// Objects of the watched namespaces.
#[derive(Clone)]
pub(crate) struct View {
    kinds: Arc<Vec<Kind>>,
    nodes: Nodes,
    converted: Arc<Mutex<HashMap<String, Converted>>>,
}

/// Last answer of [`View::of`] for a namespace: an object that has not changed is not converted again.
#[derive(Default)]
struct Converted {
    /// Objects in the stores, in the order of [`Seen::into_all`].
    from: Vec<Arc<DynamicObject>>,
    seen: Arc<Seen>,
}

/// Objects of one namespace.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// Objects of the [`ObjectKind`]s, without Pods.
    pub(crate) objects: Vec<Value>,
    /// OpenStackOperations.
    pub(crate) operations: Vec<Value>,
    /// Pods.
    pub(crate) pods: Vec<Value>,
    /// PodDisruptionBudgets.
    pub(crate) budgets: Vec<Value>,
    /// Nodes of the cluster; `None` before the first list.
    pub(crate) nodes: Option<Vec<Value>>,
}

impl View {
    /// Starts the watches in `tasks`. Each change sends a message to `changed`, unless one is pending.
    pub(crate) fn start(
        client: &Client,
        namespace: Option<&str>,
        changed: &mpsc::Sender<()>,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let clouds = ObjectKind::ALL.map(|it| (it.group(), it.name(), it.api_version()));
        let others = [
            ("", "Pod", "v1"),
            (GROUP, OPERATION, API_VERSION),
            ("policy", BUDGET, "policy/v1"),
        ];
        let all = clouds.into_iter().chain(others);
        let kinds = all.map(|(group, name, api_version)| {
            let resource =
                ApiResource::from_gvk(&GroupVersionKind::gvk(group, version(api_version), name));
            let api: Api<DynamicObject> = match namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            let writer = Writer::new(resource);
            let store = writer.as_reader();
            tasks.spawn(watch(api, writer, changed.clone()));
            Kind {
                name,
                api_version,
                store,
            }
        });
        Self {
            kinds: Arc::new(kinds.collect()),
            nodes: Nodes::start(client, changed, tasks),
            converted: Arc::default(),
        }
    }

    /// Waits until every watch has listed its kind.
    pub(crate) async fn ready(&self) {
        for kind in self.kinds.iter() {
            // The end of the watches is also the end of the controller.
            operator::store::listed(&kind.store).await;
        }
    }

    /// OpenStackOperations of a namespace, after the first list.
    pub(crate) async fn operations(&self, namespace: &str) -> Result<Vec<Value>, Problem> {
        self.ready().await;
        Ok(self.of(namespace)?.operations.clone())
    }

    /// Objects of a namespace.
    pub(crate) fn of(&self, namespace: &str) -> Result<Arc<Seen>, Problem> {
        let mut all = self.converted.lock();
        let before = all.remove(namespace).unwrap_or_default();
        // The other controller of clouds may still read the last answer.
        let values = Arc::unwrap_or_clone(before.seen).into_all();
        let addresses = before.from.iter().map(Arc::as_ptr);
        // `before.from` lives on until the end of the function, so that no new object has the address of an old one.
        let mut known: HashMap<*const DynamicObject, Value> = addresses.zip(values).collect();
        let mut seen = Seen {
            nodes: self.nodes.all(),
            ..Seen::default()
        };
        let mut from = Vec::new();
        for kind in self.kinds.iter() {
            let into = seen.objects_of(kind.name);
            for object in kind.store.state() {
                if object.metadata.namespace.as_deref() != Some(namespace) {
                    continue;
                }
                into.push(match known.remove(&Arc::as_ptr(&object)) {
                    Some(known) => known,
                    None => kind.converted(&object)?,
                });
                from.push(object);
            }
        }
        let seen = Arc::new(seen);
        let answer = Arc::clone(&seen);
        all.insert(namespace.to_owned(), Converted { from, seen });
        Ok(answer)
    }

    /// Forgets the namespace of a deleted cloud.
    pub(crate) fn forget(&self, namespace: &str) {
        self.converted.lock().remove(namespace);
    }
}

impl Kind {
    /// JSON of an object.
    fn converted(&self, object: &DynamicObject) -> Result<Value, Problem> {
        let mut object = serde_json::to_value(object)
            .map_err(|error| Problem::Malformed(format!("{}: {error}", self.name)))?;
        // The items of a list lack both fields.
        object["kind"] = self.name.into();
        object["apiVersion"] = self.api_version.into();
        Ok(object)
    }
}

impl Seen {
    /// List for the objects of a kind.
    fn objects_of(&mut self, kind: &str) -> &mut Vec<Value> {
        match kind {
            "Pod" => &mut self.pods,
            OPERATION => &mut self.operations,
            BUDGET => &mut self.budgets,
            _ => &mut self.objects,
        }
    }

    /// All objects, in the order of the kinds of a [`View`].
    fn into_all(self) -> impl Iterator<Item = Value> {
        let all = [self.objects, self.pods, self.operations, self.budgets];
        all.into_iter().flatten()
    }
}

/// The version in an `apiVersion`.
fn version(api_version: &'static str) -> &'static str {
    api_version.rsplit('/').next().unwrap_or_default()
}

async fn watch(api: Api<DynamicObject>, writer: Writer<DynamicObject>, changed: mpsc::Sender<()>) {
    let events = operator::watch::objects(&api, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(reflector::reflector(writer, events));
    while let Some(event) = events.next().await {
        match event {
            // A full channel holds an unread message: its reader will see this change, too.
            Ok(_) => {
                let _ = changed.try_send(());
            }
            Err(error) => {
                tracing::debug!("a watch begins again: {}", operator::words::chain(&error));
            }
        }
    }
}
