//! `plan`: writes to the cloud for clusters, and the room for them in the quota. Nothing is written.
//!
//! The objects of the namespace are copied into memory, files are applied there, and topologies are worked out, as by
//! `topology plan`. The writes come from the plans of the provider's controllers.
//!
//! ```text
//!   objects   existing and desired machines of a cluster (pure)
//!   forecast  writes, and the resources needed (pure)
//!   report    table and JSON (pure)
//! ```

mod forecast;
mod objects;
mod report;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use api::core::v1beta2::Machine;
use api::infra::v1beta2::{IdentityRef, OpenStackMachine};
use api::names::CLUSTER_NAME_LABEL;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::ListParams;
use openstack::inventory::Inventory;
use openstack::{CloudConfig, Kind, Service, View};
use operator::client::Api;

use self::forecast::Forecast;
use self::objects::Objects;
use crate::cli::{ConnectArgs, OutputArg, Plan, PlanCommand};
use crate::commands::audit;
use crate::commands::topology::copy::Copy;
use crate::commands::topology::differences::differences;
use crate::connect;
use crate::environment::Environment;
use crate::output::print;
use crate::source;

/// Runs the command.
pub(super) async fn execute(args: &Plan, environment: &Environment) -> anyhow::Result<ExitCode> {
    run(args, environment, print).await
}

/// Exit status of a plan with writes.
const CHANGES: u8 = 2;
/// Maximum age of lists of resources changed by people only.
const SLOW: Duration = Duration::from_secs(600);

/// Prints the plan. The exit status is 0 without any write, and 2 with writes.
///
/// # Errors
/// If a resource cannot be read, a spec cannot be built, or a quota has no room. Known facts are printed before.
pub(crate) async fn run(
    args: &Plan,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let (connect, _) = place(args);
    let client = connect::client(&connect.server, environment).await?;
    planned(args, &client, audit::connected, print).await
}

async fn planned(
    args: &Plan,
    client: &Client,
    open: impl AsyncFn(CloudConfig) -> anyhow::Result<Inventory>,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let (connect, output) = place(args);
    let wanted = match &args.command {
        Some(PlanCommand::Cluster(args)) => stored(client, connect, &args.name).await?,
        None => with_files(client, args).await?,
    };
    let mut forecasts = Vec::new();
    for cluster in &wanted.clusters {
        forecasts.push(of_cluster(client, &wanted, cluster, &open).await?);
    }
    wanted.copy.close().await;
    finish(output, &forecasts, &wanted.obstacles, print)
}

fn place(args: &Plan) -> (&ConnectArgs, OutputArg) {
    match &args.command {
        Some(PlanCommand::Cluster(args)) => (&args.connect, args.output),
        None => (&args.of_files.connect, args.of_files.output),
    }
}

/// Desired objects.
struct Wanted {
    namespace: String,
    objects: Objects,
    /// Names of the Clusters.
    clusters: BTreeSet<String>,
    /// Obstacles to topologies.
    obstacles: Vec<String>,
    /// [`Copy`] of the management cluster, with the Secrets of files.
    copy: Copy,
}

async fn stored(client: &Client, connect: &ConnectArgs, name: &str) -> anyhow::Result<Wanted> {
    let copy = Copy::for_namespace(client, &connect.namespace).await?;
    let objects = copy.objects().await?;
    if !objects.contains_key(&("Cluster".to_owned(), name.to_owned())) {
        let missing = status::clusters::missing(client, name, &connect.namespace).await?;
        bail!(
            "{missing}; a cluster that is being deleted has no plan: `ferrostack delete cluster {name} --dry-run` shows what goes"
        );
    }
    Ok(Wanted {
        namespace: connect.namespace.clone(),
        objects,
        clusters: BTreeSet::from([name.to_owned()]),
        obstacles: Vec::new(),
        copy,
    })
}

/// Stored objects with the objects of files over them, and the clusters concerned.
async fn with_files(client: &Client, args: &Plan) -> anyhow::Result<Wanted> {
    let mut documents = Vec::new();
    for file in &args.of_files.files {
        documents.extend(source::read_file(file)?);
    }
    let namespace = args.of_files.connect.namespace.as_str();
    let copy = Copy::for_namespace(client, namespace).await?;
    let before = copy.objects().await?;
    apply::all(copy.client(), &documents, namespace).await?;
    let obstacles = copy.reconcile().await?;
    let objects = copy.objects().await?;
    let of_documents = documents.iter().filter_map(|document| {
        let text = |path: &[&str]| document.text(path).to_owned();
        let cluster = match document.text(&["kind"]) {
            "Cluster" => text(&["metadata", "name"]),
            _ => text(&["metadata", "labels", CLUSTER_NAME_LABEL]),
        };
        (!cluster.is_empty()).then_some(cluster)
    });
    let changed = differences(&before, &objects);
    let changed = changed.into_iter().filter_map(|it| it.cluster);
    let mut clusters: BTreeSet<String> = of_documents.chain(changed).collect();
    clusters.retain(|name| objects.contains_key(&("Cluster".to_owned(), name.clone())));
    anyhow::ensure!(
        !clusters.is_empty(),
        "the files have no Cluster, and change none: there is nothing to plan"
    );
    Ok(Wanted {
        namespace: namespace.to_owned(),
        objects,
        clusters,
        obstacles,
        copy,
    })
}

async fn of_cluster(
    client: &Client,
    wanted: &Wanted,
    name: &str,
    open: &impl AsyncFn(CloudConfig) -> anyhow::Result<Inventory>,
) -> anyhow::Result<Forecast> {
    let Wanted {
        namespace, objects, ..
    } = wanted;
    let labelled = ListParams::default().labels(&format!("{CLUSTER_NAME_LABEL}={name}"));
    let machines = Api::<Machine>::namespaced(client.clone(), namespace);
    let machines = machines.list(&labelled).await?.items;
    let servers = Api::<OpenStackMachine>::namespaced(client.clone(), namespace);
    let servers = servers.list(&labelled).await?.items;
    let mut cluster = objects::Cluster::new(objects, name, machines, servers)?;
    if cluster.names_images() {
        let images = provider::available_images(client, namespace).await;
        cluster.images = images.context("cannot read the Images of ORC")?;
    }
    let identity = &cluster.infra.spec.identity_ref;
    let inventory = open(config(client, wanted, identity).await?).await?;
    let view = view(&inventory).await.context("cannot read the cloud")?;
    Ok(forecast::forecast(&cluster, &view))
}

/// [`CloudConfig`] of an [`IdentityRef`] whose Secret is in a file or stored.
async fn config(
    client: &Client,
    wanted: &Wanted,
    identity: &IdentityRef,
) -> anyhow::Result<CloudConfig> {
    let secrets = Api::<Secret>::namespaced(wanted.copy.client().clone(), &wanted.namespace);
    let is_new = secrets.get_opt(&identity.name).await?.is_some();
    let from = match is_new {
        true => wanted.copy.client(),
        false => client,
    };
    Ok(provider::cloud_config(from, &wanted.namespace, identity).await?)
}

/// Lists for all plans, as a [`View`].
async fn view(inventory: &Inventory) -> openstack::Result<Arc<View>> {
    audit::thing::view(inventory).await?;
    let mut kinds = vec![
        Kind::Flavors,
        Kind::Images,
        Kind::Zones,
        Kind::ServerGroups,
        Kind::SubnetPools,
        Kind::Quotas,
    ];
    if inventory.session().has(Service::LoadBalancer).await? {
        kinds.extend([
            Kind::Listeners,
            Kind::Pools,
            Kind::Members,
            Kind::Monitors,
            Kind::Providers,
            Kind::LbFlavors,
            Kind::LbZones,
        ]);
    }
    inventory.view(&kinds, SLOW).await
}

fn finish(
    output: OutputArg,
    forecasts: &[Forecast],
    obstacles: &[String],
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    print(&report::text(output.output, forecasts, obstacles)?)?;
    let broken: usize = forecasts.iter().map(|it| it.problems.len()).sum();
    let short = forecasts.iter().flat_map(Forecast::short).count();
    if broken + obstacles.len() > 0 {
        bail!("not everything can be planned: the plan says what");
    }
    if short > 0 {
        bail!("the project has no room for it: the plan says for what");
    }
    Ok(match forecasts.iter().all(|it| it.changes.is_empty()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(CHANGES),
    })
}
