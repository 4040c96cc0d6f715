//! A cloud controller manager for each workload cluster on the simulated cloud, in this process.
//!
//! The connections of the Cluster API controllers decide which managers run: one for each connected cluster, none for a
//! deleted cluster. All managers share sessions and lists of the cloud with the infrastructure provider. The manager of
//! a cluster steps aside while another process holds the Lease of cloud controller managers (docs/adr/0033).

mod lease;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use api::core::v1beta2::Cluster;
use api::infra::v1beta2::OpenStackCluster;
use ccm::{Clouds, Options, Settings};
use cloud_conf::CloudConf;
use clusterapi::feed::Feed;
use clusterapi::remote::{Change, ClusterKey, Remote};
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::runtime::WatchStreamExt;
use operator::client::Api;
use operator::metrics::Metrics;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::lease::{Observed, Standing};

/// Interval between reads of a cluster's credentials.
const REREAD: Duration = Duration::from_secs(300);
/// Interval between reads of unusable credentials.
const RETRY: Duration = Duration::from_secs(5);

/// Shared parts of the managers.
pub(super) struct Managers {
    /// [`Client`] of the management API.
    pub(super) client: Client,
    /// All [`Cluster`]s.
    pub(super) clusters: Feed<Cluster>,
    /// Connections to workload clusters.
    pub(super) remote: Remote,
    /// Sessions and lists of the cloud.
    pub(super) clouds: Clouds,
    /// Counts the reconciles of all managers.
    pub(super) metrics: Metrics,
    /// Keystone of the simulated cloud: clusters with another one have no manager.
    pub(super) auth_url: String,
}

impl Managers {
    /// Runs the managers until `stop`, and returns after their reconciles.
    pub(super) async fn run(self, stop: CancellationToken) {
        let managers = Arc::new(self);
        let mut changes = managers.remote.changes();
        let mut running: HashMap<ClusterKey, DropGuard> = HashMap::new();
        let tasks = TaskTracker::new();
        loop {
            let connected: HashSet<ClusterKey> = managers.remote.connected().into_iter().collect();
            running.retain(|cluster, _| connected.contains(cluster));
            for cluster in connected {
                running
                    .entry(cluster)
                    .or_insert_with_key(|cluster| managers.start(cluster, &tasks, &stop));
            }
            tokio::select! {
                () = stop.cancelled() => break,
                change = next(&mut changes) => match change {
                    // A new connection may have other credentials.
                    Some(Change::Disconnected(cluster)) => drop(running.remove(&cluster)),
                    Some(_) => {}
                    None => break,
                },
            }
        }
        drop(running);
        tasks.close();
        tasks.wait().await;
    }

    /// Starts the manager of a connected cluster, until the guard is dropped.
    fn start(
        self: &Arc<Self>,
        cluster: &ClusterKey,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> DropGuard {
        let stop = stop.child_token();
        if let Ok(workload) = self.remote.unnamed(cluster) {
            let managers = Arc::clone(self);
            let workload = operator::client::named(&workload, ccm::NAME);
            tasks.spawn(managers.manage(cluster.clone(), workload, stop.clone()));
        }
        stop.drop_guard()
    }

    /// Runs the manager of one cluster until `stop`.
    async fn manage(
        self: Arc<Self>,
        cluster: ClusterKey,
        workload: Client,
        stop: CancellationToken,
    ) {
        let first = stop
            .run_until_cancelled(self.first_settings(&cluster))
            .await;
        let Some(Some(settings)) = first else {
            return;
        };
        let (settings, receiver) = watch::channel(Arc::new(settings));
        let leases = Api::<Lease>::namespaced(workload.clone(), lease::NAMESPACE);
        let mut leases =
            std::pin::pin!(operator::watch::object(&leases, lease::NAME).default_backoff());
        let mut observed = Observed::default();
        let mut active: Option<Active> = None;
        let mut reread = interval_at(Instant::now() + REREAD, REREAD);
        loop {
            let standing = observed.standing(Instant::now());
            let freed = match &standing {
                Standing::Held { until, .. } => Some(*until),
                Standing::Unknown | Standing::Free => None,
            };
            match (standing, active.take()) {
                (Standing::Free, None) => {
                    active = Some(self.activate(&cluster, &workload, &receiver));
                }
                (Standing::Held { holder, .. }, Some(running)) => {
                    tracing::info!(%cluster, "{holder} is the cloud controller manager; this one stands by");
                    running.end().await;
                }
                (_, running) => active = running,
            }
            tokio::select! {
                () = stop.cancelled() => break,
                Some(seen) = leases.next() => match seen {
                    Ok(lease) => observed.see(lease, Instant::now()),
                    Err(error) => tracing::debug!(%cluster, "watch of the Lease: {error}"),
                },
                () = sleep_until(freed.unwrap_or_else(Instant::now)), if freed.is_some() => {}
                _ = reread.tick() => self.refresh(&cluster, &settings).await,
            }
        }
        if let Some(running) = active {
            running.end().await;
        }
    }

    /// Starts the controllers of a cluster.
    fn activate(
        &self,
        cluster: &ClusterKey,
        workload: &Client,
        settings: &watch::Receiver<Arc<Settings>>,
    ) -> Active {
        tracing::info!(%cluster, "starting the cloud controller manager");
        let options = Options {
            cluster_name: cluster.name.clone(),
            metrics: self.metrics.clone(),
            ..Options::new(settings.clone())
        };
        let (clouds, workload, stop) = (
            self.clouds.clone(),
            workload.clone(),
            CancellationToken::new(),
        );
        let ends = stop.clone();
        let task = tokio::spawn(async move { ccm::run_in(&clouds, workload, options, ends).await });
        Active { stop, task }
    }

    /// First readable [`Settings`]; `None` for a cluster outside of the simulated cloud.
    async fn first_settings(&self, cluster: &ClusterKey) -> Option<Settings> {
        let mut last = String::new();
        loop {
            match self.settings(cluster).await {
                Ok(settings) => return settings,
                Err(problem) => {
                    if problem != last {
                        tracing::warn!(%cluster, "no cloud controller manager yet: {problem}");
                    }
                    last = problem;
                }
            }
            sleep(RETRY).await;
        }
    }

    /// Reads the [`Settings`] again. Unreadable ones leave the current ones unchanged.
    async fn refresh(&self, cluster: &ClusterKey, settings: &watch::Sender<Arc<Settings>>) {
        match self.settings(cluster).await {
            Ok(Some(new)) => {
                settings.send_if_modified(|known| {
                    let network = |settings: &Settings| {
                        settings
                            .conf
                            .load_balancer
                            .placement
                            .floating_network_id
                            .clone()
                    };
                    let differ = known.cloud != new.cloud || network(known) != network(&new);
                    if differ {
                        *known = Arc::new(new);
                    }
                    differ
                });
            }
            Ok(None) => {}
            Err(problem) => tracing::debug!(%cluster, "the settings stay as they are: {problem}"),
        }
    }

    /// Credentials of the cluster's identity, and its external network for floating IPs.
    async fn settings(&self, cluster: &ClusterKey) -> Result<Option<Settings>, String> {
        let (namespace, name) = (&cluster.namespace, &cluster.name);
        let Some(infrastructure) = self
            .clusters
            .get(namespace, name)
            .and_then(|cluster| cluster.spec.infrastructure_ref.clone())
            .filter(|reference| reference.kind == "OpenStackCluster")
        else {
            return Ok(None);
        };
        let clusters = Api::<OpenStackCluster>::namespaced(self.client.clone(), namespace);
        let found = clusters.get_opt(&infrastructure.name).await;
        let found = found
            .map_err(|error| operator::words::of_request(&error))?
            .ok_or_else(|| {
                let name = &infrastructure.name;
                format!("OpenStackCluster {namespace}/{name} does not exist")
            })?;
        let identity = &found.spec.identity_ref;
        let cloud = provider::cloud_config(&self.client, namespace, identity).await;
        let cloud = cloud.map_err(|problem| problem.message)?;
        if cloud.auth_url != self.auth_url {
            return Ok(None);
        }
        let network = found.status.and_then(|status| status.external_network);
        let mut conf = CloudConf::default();
        conf.load_balancer.placement.floating_network_id =
            network.map(|network| network.id).unwrap_or_default();
        Ok(Some(Settings { conf, cloud }))
    }
}

/// The running controllers of a cluster.
struct Active {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Active {
    /// Ends the controllers after their running reconciles.
    async fn end(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::warn!("a cloud controller manager ended badly: {error}");
        }
    }
}

/// Next [`Change`] of a connection; changes of Nodes are left out.
async fn next(changes: &mut (impl futures::Stream<Item = Change> + Unpin)) -> Option<Change> {
    loop {
        match changes.next().await? {
            Change::Node { .. } => {}
            change => return Some(change),
        }
    }
}
