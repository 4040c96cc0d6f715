//! Starting the controllers, and what wakes them.

use std::sync::Arc;

use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use openstack::CloudPool;
use operator::controller::{self, Settings};
use operator::decode::Decoded;
use operator::events::Recorder;
use operator::watch::{self, Reports};
use tokio_util::sync::CancellationToken;

use crate::context::{Context, owner};
use crate::machine::console::Consoles;
use crate::options::Options;
use crate::{cluster, machine, wake};

/// The names of the controllers, in logs and metrics.
const CLUSTERS: &str = "openstackcluster";
const MACHINES: &str = "openstackmachine";

/// Runs the controllers of OpenStackCluster and OpenStackMachine until `shutdown`, and returns when
/// the reconciles under way are through.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) {
    let clouds = CloudPool::new(options.clouds.clone());
    let context = |controller: &str| {
        let client = operator::client::named(&client, &format!("ferrostack-{controller}"));
        Arc::new(Context {
            clouds: clouds.clone(),
            recorder: Recorder::new(client.clone(), "cluster-api-provider-openstack"),
            client,
            options: options.clone(),
            consoles: Consoles::default(),
        })
    };
    tokio::join!(
        clusters(context("openstackcluster"), shutdown.clone()),
        machines(context("openstackmachine"), shutdown)
    );
}

async fn machines(ctx: Arc<Context>, shutdown: CancellationToken) {
    let controller = watch::controller::<OpenStackMachine>(
        all(&ctx),
        config(&ctx.options),
        reports(&ctx, MACHINES, true),
    );
    let (of_cluster, of_infra) = (controller.store(), controller.store());
    let changes = wake::machines(ctx.clouds.changes(), controller.store());
    let controller = controller
        .watches_stream(
            watch::touched::<Machine>(all(&ctx), reports(&ctx, MACHINES, false)),
            |machine| {
                let reference = &machine.spec.infrastructure_ref;
                let namespace = machine.namespace().unwrap_or_default();
                (reference.kind == "OpenStackMachine")
                    .then(|| ObjectRef::new(&reference.name).within(&namespace))
            },
        )
        .watches_stream(
            watch::touched::<Cluster>(all(&ctx), reports(&ctx, MACHINES, false)),
            move |cluster| {
                members_of(
                    &of_cluster,
                    &cluster.name_any(),
                    cluster.namespace().as_deref(),
                )
            },
        )
        .watches_stream(
            watch::touched::<OpenStackCluster>(all(&ctx), reports(&ctx, MACHINES, false)),
            move |infra| {
                let label = infra
                    .labels()
                    .get(api::names::CLUSTER_NAME_LABEL)
                    .map(String::as_str);
                let cluster = owner(&infra, "Cluster").or(label).unwrap_or_default();
                members_of(&of_infra, cluster, infra.namespace().as_deref())
            },
        )
        .reconcile_on(changes);
    let settings = Settings {
        name: MACHINES,
        concurrency: ctx.options.machine_concurrency,
        metrics: ctx.options.metrics.clone(),
        shutdown,
    };
    controller::run(controller, machine::reconcile, ctx, settings).await;
}

/// The OpenStackMachines of a Cluster.
fn members_of(
    store: &Store<OpenStackMachine>,
    cluster: &str,
    namespace: Option<&str>,
) -> Vec<ObjectRef<OpenStackMachine>> {
    let belongs = |object: &OpenStackMachine| {
        let label = object
            .labels()
            .get(api::names::CLUSTER_NAME_LABEL)
            .map(String::as_str);
        object.namespace().as_deref() == namespace && label == Some(cluster)
    };
    let objects = store.state();
    let found = objects.iter().filter(|object| belongs(object));
    found
        .map(|object| ObjectRef::from_obj(object.as_ref()))
        .collect()
}

async fn clusters(ctx: Arc<Context>, shutdown: CancellationToken) {
    let controller = watch::controller::<OpenStackCluster>(
        all(&ctx),
        config(&ctx.options),
        reports(&ctx, CLUSTERS, true),
    );
    let (of_cluster, of_machine) = (controller.store(), controller.store());
    let changes = wake::clusters(ctx.clouds.changes(), controller.store());
    let controller = controller
        .watches_stream(
            watch::touched::<Cluster>(all(&ctx), reports(&ctx, CLUSTERS, false)),
            move |cluster| {
                owned_by(
                    &of_cluster,
                    &cluster.name_any(),
                    cluster.namespace().as_deref(),
                )
            },
        )
        .watches_stream(
            watch::touched::<OpenStackMachine>(all(&ctx), reports(&ctx, CLUSTERS, false)),
            move |machine| {
                // What workers do does not concern the cluster, but that they go.
                let concerns = machine
                    .labels()
                    .contains_key(api::names::CONTROL_PLANE_LABEL)
                    || machine.metadata.deletion_timestamp.is_some();
                let cluster = machine
                    .labels()
                    .get(api::names::CLUSTER_NAME_LABEL)
                    .cloned();
                let cluster = cluster.unwrap_or_default();
                match concerns {
                    true => owned_by(&of_machine, &cluster, machine.namespace().as_deref()),
                    false => Vec::new(),
                }
            },
        )
        .reconcile_on(changes);
    let settings = Settings {
        name: CLUSTERS,
        concurrency: ctx.options.cluster_concurrency,
        metrics: ctx.options.metrics.clone(),
        shutdown,
    };
    controller::run(controller, cluster::reconcile, ctx, settings).await;
}

/// The OpenStackClusters of a Cluster.
fn owned_by(
    store: &Store<OpenStackCluster>,
    cluster: &str,
    namespace: Option<&str>,
) -> Vec<ObjectRef<OpenStackCluster>> {
    let belongs = |object: &OpenStackCluster| {
        let label = object
            .labels()
            .get(api::names::CLUSTER_NAME_LABEL)
            .map(String::as_str);
        object.namespace().as_deref() == namespace
            && (owner(object, "Cluster") == Some(cluster) || label == Some(cluster))
    };
    let objects = store.state();
    let found = objects.iter().filter(|object| belongs(object));
    found
        .map(|object| ObjectRef::from_obj(object.as_ref()))
        .collect()
}

/// What the options let us see of a kind of ours.
fn config(options: &Options) -> watcher::Config {
    let config = watcher::Config::default();
    match &options.watch_filter {
        Some(value) => config.labels(&format!("{}={value}", api::names::WATCH_FILTER_LABEL)),
        None => config,
    }
}

/// How the watches of a controller report what cannot be decoded; events come from the controller of the kind alone.
fn reports(ctx: &Context, watch: &'static str, events: bool) -> Reports {
    Reports {
        watch,
        metrics: ctx.options.metrics.clone(),
        recorder: events.then(|| ctx.recorder.clone()),
    }
}

fn all<K>(ctx: &Context) -> Api<Decoded<K>>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match &ctx.options.namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    }
}
