//! Task that maintains the connection to one workload cluster.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::{Namespace, Node, Secret};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::runtime::reflector::{Store, store::Writer};
use api::kube::runtime::{WatchStreamExt, watcher};
use api::kube::{Client, ResourceExt};
use api::printable;
use futures::StreamExt;
use operator::client::Api;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::sync::{Notify, SemaphorePermit};
use tokio_util::sync::DropGuard;
use tracing::{debug, info};

use super::{Change, ClusterKey, Health, Remote, named, secret_name};

/// Interval and timeout of the probes, and the number of consecutive failures that end a connection.
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
const PROBE_FAILURES: u32 = 5;
/// Timeout of the first list of Nodes.
const SYNC_TIMEOUT: Duration = Duration::from_secs(300);

/// An established connection.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) nodes: Store<Node>,
}

impl Link {
    /// Client with the user agent of `controller`. Clients are not cached: each has a task and a queue of its own,
    /// and there may be a thousand connections with a dozen controllers.
    pub(super) fn client_of(&self, controller: &'static str) -> Client {
        named(&self.client, controller)
    }
}

/// Tracked cluster; the drop ends the task.
pub(super) struct Handle {
    shared: Arc<Shared>,
    _stop: DropGuard,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Notify,
    rotated: Notify,
}

#[derive(Default)]
struct State {
    link: Option<Link>,
    health: Health,
    /// Latest resourceVersion of the kubeconfig Secret from a watch.
    kubeconfig: Option<String>,
}

impl Handle {
    pub(super) fn health(&self) -> Health {
        self.shared.state.lock().health.clone()
    }

    pub(super) fn wake(&self) {
        self.shared.wake.notify_one();
    }

    pub(super) fn kubeconfig_is(&self, version: &str) {
        self.shared.state.lock().kubeconfig = Some(version.to_owned());
        self.shared.rotated.notify_one();
    }

    /// Reads from the connection; without one, returns the last error.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Link) -> T) -> Result<T, Option<String>> {
        let state = self.shared.state.lock();
        match &state.link {
            Some(link) => Ok(read(link)),
            None => Err(state.health.problem.clone()),
        }
    }
}

/// Starts to connect to `cluster`.
pub(super) fn start(remote: Remote, cluster: ClusterKey) -> Handle {
    let stop = remote.inner.shutdown.child_token();
    let shared = Arc::new(Shared::default());
    shared.state.lock().health.since = Some(Timestamp::now());
    let task = Task {
        remote,
        cluster,
        shared: Arc::clone(&shared),
    };
    let guard = stop.clone().drop_guard();
    tokio::spawn(async move { stop.run_until_cancelled(task.run()).await });
    Handle {
        shared,
        _stop: guard,
    }
}

struct Task {
    remote: Remote,
    cluster: ClusterKey,
    shared: Arc<Shared>,
}

impl Task {
    /// Connects, and reconnects after each failure; never returns.
    async fn run(self) {
        let mut failures = 0_u32;
        let mut answered_once = false;
        loop {
            let problem = match self.connect().await {
                Ok((client, kubeconfig)) => {
                    (failures, answered_once) = (0, true);
                    self.stay(client, kubeconfig).await
                }
                Err(problem) => problem,
            };
            self.disconnected(problem);
            failures = failures.saturating_add(1);
            tokio::select! {
                () = tokio::time::sleep(pause(failures, answered_once)) => {}
                () = self.shared.wake.notified() => {}
            }
        }
    }

    /// Reads the [`Kubeconfig`] and probes the cluster once.
    async fn connect(&self) -> Result<(Client, Kubeconfig), String> {
        let _turn = self.turn().await;
        let kubeconfig = self.kubeconfig().await?;
        let connector = &self.remote.inner.connector;
        let client = connector.connect(&self.cluster, &kubeconfig.text).await?;
        probe(&client).await?;
        if let Some(uid) = uid(&client).await {
            self.shared.state.lock().health.uid = Some(uid);
        }
        Ok((client, kubeconfig))
    }

    /// Permit for this cluster; `None` only after the semaphore is closed.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.remote.inner.turns.acquire().await.ok()
    }

    /// Probes the cluster, with a permit.
    async fn probe(&self, client: &Client) -> Result<(), String> {
        let _turn = self.turn().await;
        probe(client).await
    }

    async fn kubeconfig(&self) -> Result<Kubeconfig, String> {
        let name = secret_name(&self.cluster.name);
        let secrets: Api<Secret> = Api::namespaced(
            self.remote.inner.management.clone(),
            &self.cluster.namespace,
        );
        let secret = secrets
            .get_opt(&name)
            .await
            .map_err(|source| {
                let why = operator::words::chain(&source);
                format!("Secret {name} cannot be read: {why}")
            })?
            .ok_or_else(|| format!("Secret {name} does not exist yet"))?;
        let version = secret.resource_version().unwrap_or_default();
        let value = secret.data.and_then(|mut data| data.remove("value"));
        let text = value
            .and_then(|value| String::from_utf8(value.0).ok())
            .ok_or_else(|| format!("Secret {name} has no kubeconfig under the key `value`"))?;
        Ok(Kubeconfig {
            text: SecretString::from(text),
            version,
        })
    }

    /// Watches Nodes and probes the cluster until the connection is lost; returns the cause.
    async fn stay(&self, client: Client, kubeconfig: Kubeconfig) -> String {
        let mut writer = Writer::<Node>::default();
        let nodes = writer.as_reader();
        let mut events = operator::watch::objects(
            &Api::<Node>::all(client.clone()),
            // Not from the cache of the API server: such a list has all Nodes at once, and a page is limited.
            watcher::Config::default(),
        )
        .default_backoff()
        .boxed();
        let mut probes = tokio::time::interval(PROBE_EVERY);
        probes.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        probes.reset();
        let sync_deadline = tokio::time::Instant::now() + SYNC_TIMEOUT;
        let (mut failures, mut synced) = (0, false);
        loop {
            tokio::select! {
                Some(event) = events.next() => match event {
                    Ok(event) => {
                        let event = event.modify(slim);
                        writer.apply_watcher_event(&event);
                        if matches!(event, watcher::Event::InitDone) && !synced {
                            synced = true;
                            self.connected(Link {
                                client: client.clone(),
                                nodes: nodes.clone(),
                            });
                        }
                        self.forward(event, &nodes);
                    }
                    Err(source) => {
                        let why = operator::words::chain(&source);
                        debug!(cluster = %self.cluster, "watch of Nodes: {why}");
                    }
                },
                _ = probes.tick() => {
                    match self.probe(&client).await {
                        Ok(()) => {
                            failures = 0;
                            self.answered();
                        }
                        Err(problem) => {
                            failures += 1;
                            self.shared.state.lock().health.problem = Some(problem.clone());
                            if failures >= PROBE_FAILURES {
                                return problem;
                            }
                        }
                    }
                    if !synced && tokio::time::Instant::now() > sync_deadline {
                        return "its Nodes could not be listed".to_owned();
                    }
                }
                () = self.shared.rotated.notified() => {
                    // A changed kubeconfig has new credentials: reconnect with them.
                    if self.is_rotated(&kubeconfig.version) {
                        return "its kubeconfig changed".to_owned();
                    }
                }
            }
        }
    }

    fn is_rotated(&self, used: &str) -> bool {
        let newest = self.shared.state.lock().kubeconfig.clone();
        newest.is_some_and(|newest| is_newer(&newest, used))
    }

    fn connected(&self, link: Link) {
        self.shared.state.lock().link = Some(link);
        self.answered();
        info!(cluster = %self.cluster, "connected to the workload cluster");
        self.remote.notify(&Change::Connected(self.cluster.clone()));
    }

    fn answered(&self) {
        let mut state = self.shared.state.lock();
        let connected = state.link.is_some();
        let health = &mut state.health;
        (health.connected, health.problem) = (connected, None);
        health.last_success = Some(Timestamp::now());
    }

    fn disconnected(&self, problem: String) {
        let mut state = self.shared.state.lock();
        let was_connected = state.link.take().is_some();
        state.health.connected = false;
        debug!(cluster = %self.cluster, "not connected: {problem}");
        let is_first = state.health.problem.replace(problem).is_none();
        drop(state);
        if was_connected || is_first {
            self.remote
                .notify(&Change::Disconnected(self.cluster.clone()));
        }
    }

    fn forward(&self, event: watcher::Event<Node>, nodes: &Store<Node>) {
        let notify = |node: &Node| {
            self.remote.notify(&Change::Node {
                cluster: self.cluster.clone(),
                name: node.name_any(),
                provider_id: node.spec.as_ref().and_then(|spec| spec.provider_id.clone()),
            });
        };
        match event {
            watcher::Event::Apply(node) | watcher::Event::Delete(node) => notify(&node),
            watcher::Event::InitDone => nodes.state().iter().for_each(|node| notify(node)),
            watcher::Event::Init | watcher::Event::InitApply(_) => {}
        }
    }
}

/// True if the resourceVersion `newest` is newer than `used`. A watch may be older than a read, so an older version
/// is ignored.
fn is_newer(newest: &str, used: &str) -> bool {
    match (newest.parse::<u64>(), used.parse::<u64>()) {
        (Ok(newest), Ok(used)) => newest > used,
        _ => newest != used,
    }
}

struct Kubeconfig {
    text: SecretString,
    version: String,
}

/// Sends `GET /`, as upstream's probe does.
async fn probe(client: &Client) -> Result<(), String> {
    let request = http::Request::get("/")
        .body(Vec::new())
        .map_err(|source| source.to_string())?;
    let answer = tokio::time::timeout(PROBE_TIMEOUT, client.request_text(request)).await;
    match answer {
        Ok(Ok(_)) => Ok(()),
        // A 404 still shows that the API server responds and accepts the credentials.
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(()),
        Ok(Err(source)) => Err(operator::words::chain(&source)),
        Err(_) => Err(format!("no answer within {} s", PROBE_TIMEOUT.as_secs())),
    }
}

/// Uid of the namespace kube-system; `None` without an answer. Tenants control the answer: anything but a UUID is
/// `None`.
async fn uid(client: &Client) -> Option<String> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let asking = namespaces.get_metadata_opt("kube-system");
    let answer = tokio::time::timeout(PROBE_TIMEOUT, asking).await;
    let uid = answer.ok()?.ok()??.uid()?;
    api::names::is_uuid(&uid).then_some(uid)
}

/// Maximum number of characters of a kept text of a Node, apart from messages. Versions of kernels and images of
/// systems are the longest.
const LONGEST: usize = 256;

/// Removes unused fields, and cuts texts that a Machine or a message may quote. Tenants control the content of a
/// [`Node`].
fn slim(node: &mut Node) {
    node.metadata.managed_fields = None;
    let Some(status) = node.status.as_mut() else {
        return;
    };
    status.images = None;
    if let Some(info) = status.node_info.as_mut() {
        let texts = [
            &mut info.architecture,
            &mut info.boot_id,
            &mut info.container_runtime_version,
            &mut info.kernel_version,
            &mut info.kube_proxy_version,
            &mut info.kubelet_version,
            &mut info.machine_id,
            &mut info.operating_system,
            &mut info.os_image,
            &mut info.system_uuid,
        ];
        texts.into_iter().for_each(|text| cut(text, LONGEST));
    }
    for condition in status.conditions.iter_mut().flatten() {
        for text in [&mut condition.message, &mut condition.reason] {
            text.iter_mut()
                .for_each(|text| cut(text, printable::MESSAGE_LIMIT));
        }
    }
    for address in status.addresses.iter_mut().flatten() {
        cut(&mut address.address, LONGEST);
    }
}

fn cut(text: &mut String, limit: usize) {
    if let Cow::Owned(shorter) = printable::bounded(text, limit) {
        *text = shorter;
    }
}

/// Backoff after the `failures`-th consecutive failure: up to 3 s before the first response of the cluster (it is
/// booting), up to 30 s afterwards.
fn pause(failures: u32, answered_once: bool) -> Duration {
    let (first, longest) = if answered_once {
        (1_000, 30_000)
    } else {
        (250, 3_000)
    };
    Duration::from_millis((first << failures.saturating_sub(1).min(8)).min(longest))
}

#[cfg(test)]
mod tests;
