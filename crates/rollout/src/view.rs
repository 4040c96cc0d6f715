//! Objects in the namespaces of clouds, from watches: every object of the kinds of a cloud, and Pods.

use std::sync::Arc;

use api::openstack::GROUP;
use api::openstack::v1alpha1::API_VERSION;
use deployer::ObjectKind;
use deployer::drain::BUDGET;
use futures::StreamExt as _;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::reflector::{self, Store, store::Writer};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use operator::client::Api;
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
}

/// Objects of one namespace.
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
        Ok(self.of(namespace)?.operations)
    }

    /// Objects of a namespace.
    pub(crate) fn of(&self, namespace: &str) -> Result<Seen, Problem> {
        let mut seen = Seen {
            objects: Vec::new(),
            operations: Vec::new(),
            pods: Vec::new(),
            budgets: Vec::new(),
            nodes: self.nodes.all(),
        };
        for kind in self.kinds.iter() {
            let into = match kind.name {
                "Pod" => &mut seen.pods,
                OPERATION => &mut seen.operations,
                BUDGET => &mut seen.budgets,
                _ => &mut seen.objects,
            };
            for object in kind.store.state() {
                if object.namespace().as_deref() != Some(namespace) {
                    continue;
                }
                let mut object = serde_json::to_value(&*object)
                    .map_err(|error| Problem::Malformed(format!("{}: {error}", kind.name)))?;
                // The items of a list lack both fields.
                object["kind"] = kind.name.into();
                object["apiVersion"] = kind.api_version.into();
                into.push(object);
            }
        }
        Ok(seen)
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
