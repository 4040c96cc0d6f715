//! Shared context of the controllers of this crate.

use std::sync::Arc;
use std::time::Duration;

use api::core::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::core::NamespaceResourceScope;
use api::kube::{Client, Resource};
use api::providers::Provider;
use operator::client::Api;
use operator::controller::Settings;
use operator::events::Recorder;
use operator::store::listed;
use operator::watch::Reports;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::external::External;
use crate::feed::{Feed, Indexed};
use crate::pki::versions::SecretVersions;
use crate::remote::{self, Remote};

/// Interval of warnings while the caches are not synced.
const SYNC_PATIENCE: Duration = Duration::from_secs(10);

/// Shared context of the controllers of this crate. Clones share watches and connections.
#[derive(Clone)]
pub struct Context {
    /// Name of the controller that uses this context.
    pub controller: &'static str,
    /// Client of the management cluster; the user agent has the name of the controller.
    pub client: Client,
    /// [`Options`] of the controllers.
    pub options: Options,
    /// Connections to workload clusters.
    pub remote: Remote,
    /// Versions of the Secrets of clusters, from a watch.
    pub secrets: SecretVersions,
    /// Access to objects of providers.
    pub external: External,
    /// All [`Cluster`]s.
    pub clusters: Feed<Cluster>,
    /// All [`Machine`]s.
    pub machines: Feed<Machine>,
    /// All [`MachineSet`]s; empty without the core provider.
    pub machinesets: Feed<MachineSet>,
    /// All [`MachineDeployment`]s; empty without the core provider.
    pub machinedeployments: Feed<MachineDeployment>,
    /// Event [`Recorder`] of the controller.
    pub events: Recorder,
    /// Stops all controllers and watches.
    pub shutdown: CancellationToken,
}

impl Context {
    /// Starts the shared watches.
    pub fn start(client: &Client, options: Options, shutdown: CancellationToken) -> Self {
        let client = remote::named(client, "clusterapi");
        // Other controllers do not read MachineSets and MachineDeployments.
        let of_core = shutdown.child_token();
        if !options.providers.contains(&Provider::Core) {
            of_core.cancel();
        }
        Self {
            controller: "clusterapi",
            events: Recorder::new(client.clone(), "clusterapi-controller"),
            remote: Remote::new(
                client.clone(),
                options.connector.clone(),
                options.connections,
                shutdown.clone(),
            ),
            secrets: SecretVersions::default(),
            external: External::new(
                client.clone(),
                options.namespace.clone(),
                options.metrics.clone(),
                shutdown.clone(),
            ),
            clusters: feed(&client, &options, &shutdown),
            machines: feed(&client, &options, &shutdown),
            machinesets: feed(&client, &options, &of_core),
            machinedeployments: feed(&client, &options, &of_core),
            client,
            options,
            shutdown,
        }
    }

    /// Same context for another controller.
    pub fn of(&self, controller: &'static str) -> Arc<Self> {
        let client = remote::named(&self.client, controller);
        Arc::new(Self {
            controller,
            remote: self.remote.of(controller),
            external: self.external.with_client(client.clone()),
            events: Recorder::new(client.clone(), &format!("{controller}-controller")),
            client,
            ..self.clone()
        })
    }

    /// Waits until the shared caches are synced, or until shutdown.
    pub async fn synced(&self) {
        let mut synced = Box::pin(async {
            listed(self.clusters.store()).await;
            listed(self.machines.store()).await;
            listed(self.machinesets.store()).await;
            listed(self.machinedeployments.store()).await;
        });
        let patient = async {
            while tokio::time::timeout(SYNC_PATIENCE, &mut synced)
                .await
                .is_err()
            {
                let kinds = "Clusters, Machines, MachineSets and MachineDeployments";
                tracing::warn!("{kinds} could not be listed yet; are their definitions installed?");
            }
        };
        self.shutdown.run_until_cancelled(patient).await;
    }

    /// Starts a [`Feed`] of another kind, within the namespace of the options.
    pub fn feed<K>(&self) -> Feed<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Indexed
            + Clone
            + DeserializeOwned
            + std::fmt::Debug
            + Send
            + Sync
            + 'static,
    {
        feed(&self.client, &self.options, &self.shutdown)
    }

    /// Objects of a kind in `namespace`.
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// [`Settings`] of the controller.
    pub fn settings(&self) -> Settings {
        Settings {
            name: self.controller,
            concurrency: self.concurrency(),
            objects: self.options.objects.clone(),
            metrics: self.options.metrics.clone(),
            shutdown: self.shutdown.clone(),
        }
    }

    /// Maximum number of concurrent reconciles of the controller.
    fn concurrency(&self) -> u16 {
        let of_controller = self.options.limits.get(self.controller).copied();
        of_controller.unwrap_or(self.options.concurrency)
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

fn feed<K>(client: &Client, options: &Options, shutdown: &CancellationToken) -> Feed<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Indexed
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
{
    let api = match &options.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let kind = K::kind(&()).to_lowercase();
    let reports = Reports {
        watch: "cluster-api",
        metrics: options.metrics.clone(),
        recorder: Some(Recorder::new(client.clone(), &format!("{kind}-controller"))),
    };
    Feed::start(api, (), reports, shutdown.clone())
}
