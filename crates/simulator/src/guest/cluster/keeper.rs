//! kube-controller-manager's part for nodes and bootstrap tokens: one task per cluster, with one timer, which is off
//! while nothing is pending.
//!
//! - bootstrap signer: `kube-public/cluster-info` is signed with every valid bootstrap token;
//! - node lifecycle: the Node of an unresponsive kubelet becomes `Ready=Unknown` after a grace period, and is tainted;
//! - kube-proxy and CoreDNS: see [`super::addons`];
//! - PodDisruptionBudgets: see [`super::disruption`];
//! - pod garbage collector: the pods of a deleted Node are deleted;
//! - kubelet: a terminating pod is removed at once, because there are no containers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use apiserver::InProcess;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::runtime::watcher::Event;
use kube::runtime::{PredicateConfig, WatchStreamExt as _, predicates};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::super::api::{Api, Error};
use super::super::jws;
use super::super::objects::kubeadm::{PUBLIC, SECRETS};
use super::super::objects::node::{self, NODES};
use super::super::objects::pods::{self, COMPONENTS, PODS};
use super::followed::followed;
use super::{addons, disruption};

/// Type of the Secrets of bootstrap tokens.
const TOKEN: &str = "bootstrap.kubernetes.io/token";
/// Prefix of a signature's key in `cluster-info`, before the id of the token.
const SIGNATURE: &str = "jws-kubeconfig-";

/// All pods of the cluster.
const ALL_PODS: &str = "/api/v1/pods";
/// Delay before a failed write is retried.
const RETRY: Duration = Duration::from_secs(1);
/// Delay before changes of nodes and pods are handled for the add-ons, so that many changes share one pass.
const ADD_ONS: Duration = Duration::from_millis(100);
/// Maximum number of deletions in one batch.
const BATCH: usize = 1024;

/// Change of a guest, for the keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The kubelet of this node runs.
    Up(String),
    /// The machine of this node is switched off.
    Down(String),
    /// The machine of this node is deleted.
    Gone(String),
    /// `cluster-info` has been written.
    Sign,
}

/// State of the task.
pub(crate) struct Keeper {
    server: InProcess,
    api: Api,
    signals: mpsc::UnboundedReceiver<Signal>,
    grace: Duration,
    /// Nodes with unresponsive kubelets, and the time at which each becomes unreachable.
    silent: BTreeMap<String, Instant>,
    /// When the next bootstrap token expires.
    expiry: Option<Instant>,
    /// Signals with failed writes.
    again: Vec<Signal>,
    /// Time of the retry.
    retry: Option<Instant>,
    /// When the pods of the add-ons are compared with the nodes, and the duration of the last time.
    add_ons: Option<Instant>,
    add_ons_took: Duration,
    /// True if there are PodDisruptionBudgets; and the time of the next update of their status.
    has_budgets: bool,
    budgets: Option<Instant>,
}

/// Change of Nodes.
enum NodeChange {
    Changed,
    /// One was deleted, or may have been.
    Deleted,
}

/// Change of pods.
enum PodChange {
    Terminating(PodOnNode),
    Deleted,
    Changed,
}

/// Content of a bootstrap token's Secret.
struct StoredToken {
    id: String,
    secret: SecretString,
    expires: Option<Timestamp>,
    signing: bool,
}

/// Pod and its node.
struct PodOnNode {
    path: String,
    node: String,
}

impl PodOnNode {
    fn from_pod(pod: &Value) -> Option<Self> {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
        let (namespace, name) = (text("/metadata/namespace")?, text("/metadata/name")?);
        Some(Self {
            path: format!("/api/v1/namespaces/{namespace}/pods/{name}"),
            node: text("/spec/nodeName").unwrap_or_default().to_owned(),
        })
    }
}

impl Keeper {
    pub(crate) fn new(
        server: InProcess,
        signals: mpsc::UnboundedReceiver<Signal>,
        grace: Duration,
    ) -> Self {
        let api = Api::new(server.clone(), "kube-controller-manager");
        Self {
            server,
            api,
            signals,
            grace,
            silent: BTreeMap::new(),
            expiry: None,
            again: Vec::new(),
            retry: None,
            add_ons: None,
            add_ons_took: Duration::ZERO,
            has_budgets: false,
            budgets: None,
        }
    }

    /// Runs until the cluster is dropped.
    pub(crate) async fn run(mut self) {
        let mut tokens = std::pin::pin!(token_changes(&self.server));
        let mut nodes = std::pin::pin!(node_changes(&self.server).ready_chunks(BATCH));
        let mut pods = std::pin::pin!(pod_changes(&self.server));
        let mut workloads = std::pin::pin!(workload_changes(&self.server));
        let mut budgets = std::pin::pin!(budget_changes(&self.server));
        loop {
            let timers = self
                .expiry
                .into_iter()
                .chain(self.retry)
                .chain(self.add_ons)
                .chain(self.budgets);
            let next = self.silent.values().copied().chain(timers).min();
            let result = tokio::select! {
                signal = self.signals.recv() => match signal {
                    Some(signal) => self.hear(signal).await,
                    None => return,
                },
                Some(()) = tokens.next() => self.sign().await,
                Some(changes) = nodes.next() => self.nodes(&changes).await,
                Some(change) = pods.next() => self.pod(&change).await,
                Some(()) = workloads.next() => {
                    self.add_ons_changed();
                    self.pods_changed();
                    Ok(())
                }
                Some(()) = budgets.next() => {
                    self.has_budgets = true;
                    self.pods_changed();
                    Ok(())
                }
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    self.on_time().await
                }
            };
            if let Err(error) = result {
                warn!("keeping a workload cluster: {error}");
            }
        }
    }

    async fn nodes(&mut self, changes: &[NodeChange]) -> Result<(), Error> {
        self.add_ons_changed();
        match changes
            .iter()
            .any(|change| matches!(change, NodeChange::Deleted))
        {
            true => self.collect_pods().await,
            false => Ok(()),
        }
    }

    async fn pod(&mut self, change: &PodChange) -> Result<(), Error> {
        self.pods_changed();
        if matches!(change, PodChange::Changed) {
            return Ok(());
        }
        self.add_ons_changed();
        match change {
            PodChange::Terminating(pod) => self.finish_pod(pod).await,
            PodChange::Deleted | PodChange::Changed => Ok(()),
        }
    }

    /// Counts the pods of budgets soon, if there are any.
    fn pods_changed(&mut self) {
        if self.has_budgets {
            let soon = Instant::now() + ADD_ONS;
            self.budgets = Some(self.budgets.map_or(soon, |due| due.min(soon)));
        }
    }

    async fn budgets(&mut self) -> Result<(), Error> {
        self.budgets = None;
        let done = disruption::reconcile(&self.api).await;
        self.budgets = match &done {
            Ok((_, again)) => again.map(|wait| Instant::now() + wait + RETRY),
            Err(_) => Some(Instant::now() + RETRY),
        };
        let (count, _) = done?;
        self.has_budgets = count > 0;
        Ok(())
    }

    /// Schedules a comparison of the add-ons with the nodes. The delay grows with the cluster, so that comparisons take
    /// only a fraction of the time.
    fn add_ons_changed(&mut self) {
        let delay = ADD_ONS + 10 * self.add_ons_took;
        self.add_ons.get_or_insert_with(|| Instant::now() + delay);
    }

    async fn add_ons(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        self.add_ons = None;
        let gone = self.silent.keys().cloned().collect();
        let done = addons::reconcile(&self.api, &gone).await;
        self.add_ons_took = started.elapsed();
        if done.is_err() {
            self.add_ons = Some(Instant::now() + RETRY);
        }
        done
    }

    /// Handles a [`Signal`]; a failed one is retried later.
    async fn hear(&mut self, signal: Signal) -> Result<(), Error> {
        let heard = self.heed(signal.clone()).await;
        if heard.is_err() {
            self.again.push(signal);
            self.retry = Some(Instant::now() + RETRY);
        }
        heard
    }

    async fn heed(&mut self, signal: Signal) -> Result<(), Error> {
        match signal {
            Signal::Up(node) => {
                self.silent.remove(&node);
                self.set_ready(&node, true).await
            }
            Signal::Down(node) => {
                self.silent
                    .entry(node)
                    .or_insert_with(|| Instant::now() + self.grace);
                Ok(())
            }
            Signal::Gone(node) => {
                let removed = self.remove_pods(&node).await;
                self.silent
                    .entry(node)
                    .or_insert_with(|| Instant::now() + self.grace);
                removed
            }
            Signal::Sign => self.sign().await,
        }
    }

    async fn on_time(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let due: Vec<String> = self
            .silent
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(node, _)| node.clone())
            .collect();
        for node in due {
            // Retried until the write succeeds.
            self.silent.insert(node.clone(), now + RETRY);
            self.set_ready(&node, false).await?;
            self.silent.remove(&node);
        }
        if self.retry.is_some_and(|at| at <= now) {
            self.retry = None;
            let mut failed = Ok(());
            for signal in std::mem::take(&mut self.again) {
                // A signal that fails again is retried, and does not block the others.
                failed = failed.and(self.hear(signal).await);
            }
            failed?;
        }
        if self.expiry.is_some_and(|at| at <= now) {
            self.sign().await?;
        }
        if self.add_ons.is_some_and(|at| at <= now) {
            self.add_ons().await?;
        }
        if self.budgets.is_some_and(|at| at <= now) {
            self.budgets().await?;
        }
        Ok(())
    }

    /// Sets the conditions of a Node, and the status of its mirror pods, by the state of its kubelet.
    async fn set_ready(&self, name: &str, ready: bool) -> Result<(), Error> {
        let path = format!("{NODES}/{name}");
        let Some(found) = self.api.get(&path).await? else {
            return Ok(());
        };
        let array = |pointer: &str| {
            found
                .pointer(pointer)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let now = Timestamp::now().to_string();
        let (conditions, taints) = (array("/status/conditions"), array("/spec/taints"));
        if node::is_ready(&conditions) == ready {
            return Ok(());
        }
        let (conditions, new_taints) = if ready {
            (
                node::recovered(&conditions, &now),
                node::reachable_taints(&taints),
            )
        } else {
            (
                node::silent(&conditions, &now),
                node::unreachable_taints(&taints, &now),
            )
        };
        if new_taints != taints {
            // At the version that was read: others remove taints, too.
            let version = &found["metadata"]["resourceVersion"];
            let patch = json!({
                "metadata": {"resourceVersion": version}, "spec": {"taints": new_taints},
            });
            self.api.patch(&path, &patch).await?;
        }
        self.api
            .patch_status(&path, &json!({"conditions": conditions}))
            .await?;
        for component in COMPONENTS {
            let path = format!("{PODS}/{component}-{name}");
            if let Some(pod) = self.api.get(&path).await? {
                self.api
                    .patch_status(&path, &pods::status(&pod, ready, &now))
                    .await?;
            }
        }
        if ready {
            self.finish_pods_on(name).await
        } else {
            Ok(())
        }
    }

    async fn remove_pods(&self, node: &str) -> Result<(), Error> {
        for pod in self
            .api
            .list(PODS)
            .await?
            .iter()
            .filter_map(PodOnNode::from_pod)
        {
            if pod.node == node {
                self.api.delete(&pod.path).await?;
            }
        }
        Ok(())
    }

    /// Deletes the pods of deleted Nodes.
    async fn collect_pods(&self) -> Result<(), Error> {
        let nodes: BTreeSet<String> = self
            .api
            .list(NODES)
            .await?
            .iter()
            .filter_map(|node| Some(node.pointer("/metadata/name")?.as_str()?.to_owned()))
            .collect();
        for pod in self
            .api
            .list(ALL_PODS)
            .await?
            .iter()
            .filter_map(PodOnNode::from_pod)
        {
            if !pod.node.is_empty() && !nodes.contains(&pod.node) {
                debug!(pod = pod.path, "removing a pod of a deleted node");
                self.api.delete(&pod.path).await?;
            }
        }
        Ok(())
    }

    /// Removes a terminating pod, if its kubelet runs or its Node does not exist.
    async fn finish_pod(&self, pod: &PodOnNode) -> Result<(), Error> {
        if !pod.node.is_empty()
            && let Some(node) = self.api.get(&format!("{NODES}/{}", pod.node)).await?
        {
            let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
            if conditions.is_some_and(|conditions| !node::is_ready(conditions)) {
                return Ok(());
            }
        }
        self.api.delete(&pod.path).await
    }

    /// Removes the pods that were deleted while their kubelet did not run.
    async fn finish_pods_on(&self, node: &str) -> Result<(), Error> {
        for pod in self.api.list(ALL_PODS).await? {
            if pod.pointer("/metadata/deletionTimestamp").is_some()
                && let Some(pod) = PodOnNode::from_pod(&pod).filter(|pod| pod.node == node)
            {
                self.api.delete(&pod.path).await?;
            }
        }
        Ok(())
    }

    /// Updates the signatures of `cluster-info` for the valid tokens.
    async fn sign(&mut self) -> Result<(), Error> {
        self.expiry = None;
        let path = format!("{PUBLIC}/cluster-info");
        let Some(info) = self.api.get(&path).await? else {
            return Ok(()); // kubeadm init has not created it yet; it signals when it has
        };
        let tokens: Vec<StoredToken> = self
            .api
            .list(SECRETS)
            .await?
            .iter()
            .filter_map(stored_token)
            .collect();
        let now = Timestamp::now();
        let next = tokens
            .iter()
            .filter_map(|token| token.expires)
            .filter(|at| *at > now)
            .min();
        self.expiry = next.map(|at| {
            let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
            Instant::now() + wait.min(Duration::from_secs(24 * 3600))
        });
        let patch = signature_patch(&info, &tokens, now);
        if !patch.is_empty() {
            self.api.patch(&path, &json!({"data": patch})).await?;
        }
        Ok(())
    }
}

/// Parses the Secret of a bootstrap token. `None` for other and for invalid Secrets.
fn stored_token(secret: &Value) -> Option<StoredToken> {
    (secret.get("type")? == TOKEN).then_some(())?;
    let field = |key: &str| {
        let text = secret.get("data")?.get(key)?.as_str()?;
        String::from_utf8(STANDARD.decode(text).ok()?).ok()
    };
    Some(StoredToken {
        id: field("token-id")?,
        secret: SecretString::from(field("token-secret")?),
        // An expiration that cannot be parsed counts as past, as in kube-apiserver.
        expires: field("expiration").map(|at| at.parse().unwrap_or(Timestamp::UNIX_EPOCH)),
        signing: field("usage-bootstrap-signing").is_some_and(|on| on == "true"),
    })
}

impl StoredToken {
    /// True if the token has not expired.
    fn is_valid(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|at| at > now)
    }
}

/// Returns the patch of `cluster-info` that leaves exactly the signatures of the valid signing tokens.
fn signature_patch(info: &Value, tokens: &[StoredToken], now: Timestamp) -> Map<String, Value> {
    let empty = Map::new();
    let data = info
        .get("data")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let Some(kubeconfig) = data.get("kubeconfig").and_then(Value::as_str) else {
        return Map::new();
    };
    let wanted: BTreeMap<String, String> = tokens
        .iter()
        .filter(|token| token.signing && token.is_valid(now))
        .map(|token| {
            (
                format!("{SIGNATURE}{}", token.id),
                jws::sign(kubeconfig, &token.id, &token.secret),
            )
        })
        .collect();
    let stale = data
        .keys()
        .filter(|key| key.starts_with(SIGNATURE) && !wanted.contains_key(*key))
        .map(|key| (key.clone(), Value::Null));
    let missing = wanted
        .iter()
        .filter(|(key, signature)| data.get(*key).and_then(Value::as_str) != Some(*signature))
        .map(|(key, signature)| (key.clone(), Value::from(signature.as_str())));
    stale.chain(missing).collect()
}

/// Returns a stream of the changes of bootstrap tokens.
fn token_changes(server: &InProcess) -> impl Stream<Item = ()> + Send + use<> {
    followed::<Secret>(server, Some("kube-system")).filter_map(|event| async {
        match event {
            Event::Apply(secret) | Event::Delete(secret) => {
                (secret.type_.as_deref() == Some(TOKEN)).then_some(())
            }
            Event::InitDone => Some(()),
            _ => None,
        }
    })
}

/// Returns the changes of Nodes. A new list counts as a deletion, since deletions may have been missed.
fn node_changes(server: &InProcess) -> impl Stream<Item = NodeChange> + Send + use<> {
    followed::<Node>(server, None).filter_map(|event| async move {
        match event {
            Event::Delete(_) | Event::InitDone => Some(NodeChange::Deleted),
            Event::Apply(_) => Some(NodeChange::Changed),
            _ => None,
        }
    })
}

/// Returns the changes of the workloads of kube-system, without changes of the status alone.
fn workload_changes(server: &InProcess) -> impl Stream<Item = ()> + Send + use<> {
    let namespace = Some("kube-system");
    let sets = followed::<DaemonSet>(server, namespace).map(Ok);
    let deployments = followed::<Deployment>(server, namespace).map(Ok);
    let sets = sets
        .applied_objects()
        .predicate_filter(predicates::generation, PredicateConfig::default())
        .map(drop);
    let deployments = deployments
        .applied_objects()
        .predicate_filter(predicates::generation, PredicateConfig::default())
        .map(drop);
    futures::stream::select(sets, deployments)
}

/// Returns the changes of PodDisruptionBudgets, without changes of the status alone.
fn budget_changes(server: &InProcess) -> impl Stream<Item = ()> + Send + use<> {
    followed::<PodDisruptionBudget>(server, None)
        .map(Ok)
        .touched_objects()
        .predicate_filter(predicates::generation, PredicateConfig::default())
        .map(drop)
}

/// Returns the terminating pods, the deletions and the other changes of pods.
fn pod_changes(server: &InProcess) -> impl Stream<Item = PodChange> + Send + use<> {
    followed::<Pod>(server, None).filter_map(|event| async {
        let pod = match event {
            Event::Apply(pod) | Event::InitApply(pod) => pod,
            Event::Delete(_) => return Some(PodChange::Deleted),
            _ => return None,
        };
        if pod.metadata.deletion_timestamp.is_none() {
            return Some(PodChange::Changed);
        }
        let (namespace, name) = (pod.metadata.namespace?, pod.metadata.name?);
        Some(PodChange::Terminating(PodOnNode {
            path: format!("/api/v1/namespaces/{namespace}/pods/{name}"),
            node: pod.spec.and_then(|spec| spec.node_name).unwrap_or_default(),
        }))
    })
}

#[cfg(test)]
mod tests;
