//! Cluster API core, kubeadm bootstrap and kubeadm control plane.
//!
//! Behaviour follows the controllers of Cluster API (contract v1beta2). Providers are accessed by contract alone:
//! nothing here uses types of a provider, and no provider uses this crate.
//!
//! ```text
//!   cluster, machine, machineset, machinedeployment, machinehealthcheck   the controllers of cluster.x-k8s.io
//!   clusterresourceset   manifests that are applied to workload clusters
//!   clusterclass, managed   classes of clusters, and clusters with a topology
//!   kubeadm_config   bootstrap data of machines (bootstrap.cluster.x-k8s.io)
//!   control_plane    control planes of machines, with the members of their etcd (controlplane.cluster.x-k8s.io)
//!   kubeadm, pki, kubeconfig   configuration of kubeadm, keys and kubeconfigs of a cluster
//!   cloudinit, ignition   user data of machines
//!   external   objects of providers by {apiGroup, kind, name}: versions, watches, cloning
//!   remote     workload clusters: connections, probes, Nodes
//!   inplace    labels and annotations that follow a template
//!   update     updates of machines in place: their begin, and what stands in the way
//!   duties     independent parts of each reconcile
//!   connections  selection of the workload clusters to connect
//!   feed       a watch and a cache per kind, shared by all controllers
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::kube::Client;
use api::providers::Provider;
use futures::future::BoxFuture;
use operator::controller::Objects;
use operator::metrics::Metrics;
use tokio_util::sync::CancellationToken;

mod cluster;
mod clusterclass;
mod clusterresourceset;
mod connections;
mod counts;
mod duties;
mod machine;
mod machinedeployment;
mod machinehealthcheck;
mod machineset;
mod managed;
mod selector;

pub mod cloudinit;
pub mod control_plane;
pub mod external;
pub mod feed;
pub mod ignition;
pub mod kubeadm;
pub mod kubeadm_config;
pub mod kubeconfig;
pub mod pki;
pub mod remote;

mod context;
mod error;
pub mod inplace;
mod naming;
mod news;
mod owners;
mod pause;
mod references;
mod summary;
mod templates;
mod update;

pub use cluster::Patience;
pub use context::Context;
pub use error::Error;
pub use machine::Synced;
pub use update::Judge;

/// Finalizer of Clusters.
pub const CLUSTER_FINALIZER: &str = "cluster.cluster.x-k8s.io";
/// Finalizer of Machines.
pub const MACHINE_FINALIZER: &str = "machine.cluster.x-k8s.io";
/// Finalizer of MachineSets.
pub const MACHINE_SET_FINALIZER: &str = "cluster.x-k8s.io/machineset";
/// Finalizer of MachineDeployments.
pub const MACHINE_DEPLOYMENT_FINALIZER: &str = "cluster.x-k8s.io/machinedeployment";

/// The names of the controllers, in [`Options::limits`], in logs and in metrics.
pub const CONTROLLERS: [&str; 10] = [
    "cluster",
    "clusterclass",
    "clustertopology",
    "machine",
    "machineset",
    "machinedeployment",
    "machinehealthcheck",
    "clusterresourceset",
    "kubeadmconfig",
    "kubeadmcontrolplane",
];

/// Options of the controllers.
#[derive(Clone, Debug)]
pub struct Options {
    /// [`Metrics`] registry of the reconciles.
    pub metrics: Metrics,
    /// Restricts the watches to this namespace; all namespaces if unset.
    pub namespace: Option<String>,
    /// Creates the clients of workload clusters.
    pub connector: Arc<dyn remote::Connector>,
    /// Maximum number of concurrent reconciles per kind.
    pub concurrency: u16,
    /// Other maxima of single controllers, by [`CONTROLLERS`].
    pub limits: BTreeMap<&'static str, u16>,
    /// Maximum number of workload clusters in connection attempts or probes at a time.
    pub connections: u16,
    /// Timeouts for the programs in a cluster that is deleted.
    pub patience: Patience,
    /// Selection of the reconciled objects, and the interval for objects at rest.
    pub objects: Objects,
    /// Further labels and annotations that Machines pass to their Nodes.
    pub synced: Synced,
    /// [`Provider`]s with running controllers; other programs run the rest.
    pub providers: BTreeSet<Provider>,
    /// Judges which machines can be updated in place.
    pub in_place: Judge,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            metrics: Metrics::default(),
            namespace: None,
            connector: Arc::new(remote::KubeconfigConnector::default()),
            concurrency: 50,
            limits: BTreeMap::new(),
            connections: 100,
            patience: Patience::default(),
            objects: Objects::default(),
            synced: Synced::default(),
            providers: Provider::ALL.into_iter().collect(),
            in_place: api::in_place::obstacles,
        }
    }
}

/// Runs the controllers until `shutdown`, and returns after they have stopped.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) {
    run_in(Context::start(&client, options, shutdown)).await;
}

/// Runs the controllers in `context`. The caller may use the caches and connections of the [`Context`], too.
pub async fn run_in(context: Context) {
    let context = Arc::new(context);
    let controllers = controllers(&context);
    // Counts from an incomplete cache would be written to a status, and corrected right afterwards.
    context.synced().await;
    futures::future::join_all(controllers).await;
}

/// Runs only the controllers of ClusterClasses and of topologies until `shutdown`: the first consequences of a change
/// of a class or a topology.
pub async fn run_topologies(client: Client, options: Options, shutdown: CancellationToken) {
    let context = Arc::new(Context::start(&client, options, shutdown));
    let (classes, checks) = (context.feed(), context.feed());
    let controllers = [
        clusterclass::run(&context, &classes),
        managed::run(&context, &classes, &checks),
    ];
    context.synced().await;
    futures::future::join_all(controllers).await;
}

/// Futures of the controllers.
fn controllers(context: &Arc<Context>) -> Vec<BoxFuture<'static, ()>> {
    let has = |provider| context.options.providers.contains(&provider);
    let mut all = match has(Provider::Core) {
        true => core(context),
        false => vec![connections::follow(context)],
    };
    if !has(Provider::Bootstrap) && !has(Provider::ControlPlane) {
        return all;
    }
    let configs = context.feed();
    if has(Provider::Bootstrap) {
        let running = kubeadm_config::run(Arc::clone(context), configs.clone());
        all.push(Box::pin(running));
    }
    if has(Provider::ControlPlane) {
        all.push(Box::pin(control_plane::run(Arc::clone(context), configs)));
    }
    all
}

/// Controllers of cluster.x-k8s.io.
fn core(context: &Arc<Context>) -> Vec<BoxFuture<'static, ()>> {
    let (classes, checks) = (context.feed(), context.feed());
    vec![
        cluster::run(context),
        machine::run(context),
        machineset::run(context),
        machinedeployment::run(context),
        machinehealthcheck::run(context, &checks),
        clusterresourceset::run(context),
        clusterclass::run(context, &classes),
        managed::run(context, &classes, &checks),
    ]
}
