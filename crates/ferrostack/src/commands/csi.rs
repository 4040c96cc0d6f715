//! `cinder-csi-plugin`: the services of the Cinder CSI driver on a socket.

pub(crate) mod check;
mod claims;
mod clouds;
mod cluster;
mod identity;
pub(crate) mod listed;
pub(crate) mod manifests;
pub(crate) mod orphans;
mod reload;
mod serving;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use cloud_conf::{CloudConf, MetadataSource};
use csi::{Claims, ClusterUid, Driver, ZoneMap};
use csi_node::device::Search;
use csi_node::metadata::{Drives, Metadata, Service, Source};
use csi_node::node::Node;
use csi_node::registration;
use csi_spec::driver::{Plugin, Readiness, Served};
use csi_spec::{ControllerService, GroupControllerService, IdentityService, NodeService};
use grpc::{Limits, Services};
use operator::metrics::Metrics;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::clouds::Loaded;
use crate::cli::{CinderCsiPlugin, Csi};
use crate::environment::Environment;
use crate::footprint;
use crate::output::{answer_to, print};

/// Runs the command.
pub(super) async fn execute(args: &Csi, environment: &Environment) -> anyhow::Result<ExitCode> {
    match args {
        Csi::Check(args) => check::run(args, environment, print).await,
        Csi::Orphans(args) => {
            orphans::run(args, environment, print, answer_to).await?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Directory of the kernel with the disks of the machine, and their nodes.
const SYS: &str = "/sys";
const DEV: &str = "/dev";

/// Serves until `shutdown`, and then until the calls in flight have ended.
pub(crate) async fn run(
    args: &CinderCsiPlugin,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    for (flag, why) in args.without_effect() {
        say(&format!("{flag} has no effect: {why}"));
    }
    if !args.provide_controller_service && !args.provide_node_service {
        bail!(
            "there is nothing to serve: leave out --provide-controller-service=false or --provide-node-service=false"
        );
    }
    let loaded = clouds::load(&args.into(), environment)?;
    for warning in loaded.warnings() {
        say(&warning);
    }
    let claims = claims::of(args, environment).await?;
    // All tasks stop on `stop`, which is cancelled by `shutdown` and at the end of this function.
    let stop = shutdown.child_token();
    let _end = stop.clone().drop_guard();
    let metrics = Metrics::default();
    let listening = args.endpoint.listen().await?;
    let uid = ClusterUid::default();
    let cluster = Cluster {
        uid: uid.clone(),
        claims,
    };
    let (services, driver) = services(args, loaded, cluster, &metrics, &stop);
    serving::serve(args, listening.endpoint(), metrics, &stop, &say).await?;
    // The kubelet forgets a driver whose socket is gone: its removal is waited for.
    let tasks = TaskTracker::new();
    if args.provide_controller_service {
        let learning = identity::learn(uid, args.into(), environment.clone(), stop.clone());
        tasks.spawn(learning);
    }
    register(args, &tasks, &stop).await?;
    footprint::without_start();
    say(&format!("CSI at {}", listening.endpoint()));
    let services = Arc::new(services);
    let serving = listening.serve(services, Limits::default(), stop.clone());
    tokio::select! {
        () = serving => {}
        never = reload::watch(args, environment, driver.as_deref(), reload::EVERY) => match never {},
    }
    tasks.close();
    tasks.wait().await;
    say("stopped");
    Ok(())
}

/// Cluster of the controller half.
struct Cluster {
    uid: ClusterUid,
    claims: Option<Arc<dyn Claims>>,
}

/// [`Services`] requested by the flags, and the controller half if among them.
fn services(
    args: &CinderCsiPlugin,
    loaded: Loaded,
    cluster: Cluster,
    metrics: &Metrics,
    stop: &CancellationToken,
) -> (Services, Option<Arc<Driver>>) {
    let served = Served {
        // Of the driver, whichever process is asked: a node's is not alone.
        controller: true,
        groups: true,
        topology: args.with_topology,
    };
    let (mut services, mut readiness) = (Services::default(), Readiness::default());
    if args.provide_node_service {
        services = services.with(NodeService(Arc::new(node(args, &loaded.conf))));
    }
    let mut controlled = None;
    if args.provide_controller_service {
        let driver = controller(args, loaded, cluster, metrics);
        controlled = Some(Arc::clone(&driver));
        readiness = Readiness::from(driver.ready());
        let (connecting, stop) = (Arc::clone(&driver), stop.clone());
        tokio::spawn(async move { connecting.connect(stop).await });
        services = services
            .with(GroupControllerService(Arc::clone(&driver)))
            .with(ControllerService(driver));
    } else {
        // No cloud is asked.
        readiness.ready();
    }
    let plugin = Plugin::new(served, readiness);
    (services.with(IdentityService(Arc::new(plugin))), controlled)
}

/// Controller half, on the clouds in [`Loaded`].
fn controller(
    args: &CinderCsiPlugin,
    loaded: Loaded,
    cluster: Cluster,
    metrics: &Metrics,
) -> Arc<Driver> {
    let pool = clouds::pool(args, &loaded, metrics);
    let storage = loaded.conf.block_storage;
    let options = csi::Options {
        cluster: args.cluster.clone(),
        cluster_uid: cluster.uid,
        with_topology: args.with_topology,
        ignore_volume_az: storage.ignore_volume_az,
        zones: ZoneMap(storage.zone_map),
        claims: cluster.claims,
        alpha: args.alpha,
    };
    Driver::new(pool, loaded.clouds, options)
}

/// Node half, on the disks of this machine and the metadata of the server.
fn node(args: &CinderCsiPlugin, conf: &CloudConf) -> Node {
    let source = |source: &MetadataSource| match source {
        MetadataSource::ConfigDrive => Source::ConfigDrive,
        MetadataSource::MetadataService => Source::Service,
    };
    let order = args.on_node.order(conf).iter().map(source).collect();
    let metadata = Metadata::new(order, Drives::new(SYS, DEV), Service::default());
    let metadata = Arc::new(metadata);
    let disks = Search::new(SYS, DEV).with_addresses(metadata.addresses());
    let options = csi_node::node::Options {
        volume_limit: args.on_node.limit(conf).map(i64::from),
        topology: args.with_topology,
        additional_topology: args.additional_topology.iter().cloned().collect(),
        dev: DEV.into(),
        alpha: args.alpha,
    };
    Node::new(options, Arc::new(disks), metadata)
}

/// Announces the driver to the kubelet, if the flags have the socket's path for the kubelet; otherwise
/// node-driver-registrar announces the driver.
async fn register(
    args: &CinderCsiPlugin,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let Some(socket) = &args.kubelet_registration_path else {
        return Ok(());
    };
    let directory = &args.plugin_registration_path;
    let listening = registration::listen(directory).await;
    let listening = listening.context("the socket for the kubelet, --plugin-registration-path")?;
    tasks.spawn(registration::announce(
        socket.clone(),
        directory.clone(),
        listening,
        stop.clone(),
    ));
    Ok(())
}

#[cfg(test)]
mod tests;
