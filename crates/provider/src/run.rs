//! Starting the controllers, and what wakes them.

use std::sync::Arc;

use api::core::v1beta2::Cluster;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use kube::runtime::controller::Controller;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use openstack::CloudPool;
use operator::controller::{self, Settings};
use operator::events::Recorder;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, owner};
use crate::options::Options;
use crate::{cluster, wake};

/// Runs the controllers of OpenStackCluster and OpenStackMachine until `shutdown`, and returns when
/// the reconciles under way are through.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) {
    let ctx = Arc::new(Context {
        clouds: CloudPool::new(options.clouds.clone()),
        recorder: Recorder::new(client.clone(), "cluster-api-provider-openstack"),
        client,
        options,
    });
    clusters(ctx, shutdown).await;
}

async fn clusters(ctx: Arc<Context>, shutdown: CancellationToken) {
    let filter = config(&ctx.options);
    let controller = Controller::new(all::<OpenStackCluster>(&ctx), filter);
    let (of_cluster, of_machine) = (controller.store(), controller.store());
    let changes = wake::clusters(ctx.clouds.changes(), controller.store());
    let controller = controller
        .watches(
            all::<Cluster>(&ctx),
            watcher::Config::default(),
            move |cluster| {
                owned_by(
                    &of_cluster,
                    &cluster.name_any(),
                    cluster.namespace().as_deref(),
                )
            },
        )
        .watches(
            all::<OpenStackMachine>(&ctx),
            watcher::Config::default(),
            move |machine| {
                let cluster = machine
                    .labels()
                    .get(api::names::CLUSTER_NAME_LABEL)
                    .cloned();
                let cluster = cluster.unwrap_or_default();
                owned_by(&of_machine, &cluster, machine.namespace().as_deref())
            },
        )
        .reconcile_on(changes);
    let settings = Settings {
        name: "openstackcluster",
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

fn all<K>(ctx: &Context) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match &ctx.options.namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    }
}
