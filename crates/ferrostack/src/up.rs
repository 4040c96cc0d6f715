//! `up`: API server, controllers and cloud in one process, until Ctrl-C or until all is ready.

pub(crate) mod cloud;
mod endpoints;
mod management;
mod observer;
pub(crate) mod pki;
mod progress;
mod welcome;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use kube::Client;
use openstack::config::CloudConfig;
use operator::metrics::Metrics;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::endpoints::Endpoints;
use self::management::Management;
use self::progress::Progress;
use self::welcome::Welcome;
use crate::apply;
use crate::cli::Up;
use crate::connect;
use crate::data_dir::DataDir;
use crate::environment::Environment;
use crate::generate::{Source, check_name};
use crate::manager;
use crate::manifest::{self, Document};
use crate::readiness::{self, Pending};
use crate::simulated::{self, Setup, Simulated};
use crate::snapshot::{Kind, Snapshot};

/// How long a stop waits for reconciles that are under way.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs until `shutdown`, or until all is ready when `--exit-when-ready` was given.
pub(crate) async fn run(
    args: &Up,
    environment: &Environment,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let started = Instant::now();
    check_name(&args.cluster_name)?;
    let documents = read_files(&args.files)?;
    let data = DataDir::open(&connect::data_dir(&args.data_dir, environment))?;
    let mut progress = Progress::new(args.output.output, environment.terminal, started);
    let mut endpoints = Endpoints::read(&data)?;

    // Everything below stops on `stop`, which follows `shutdown` and the end of this function.
    let stop = shutdown.child_token();
    let (listener, address) =
        endpoints::listen("the management API", args.listen, endpoints.management).await?;
    endpoints.management = Some(address);
    let (simulated, config) = start_cloud(args, environment, &data, &mut endpoints, &stop).await?;
    endpoints.write(&data)?;
    let metrics = Metrics::default();
    let management = Management::start(&data, listener, &metrics, stop.clone()).await?;
    progress.say(&format!("management API at https://{address}"))?;
    match &simulated {
        Some(simulated) => progress.say(&format!("simulated OpenStack at {}", simulated.url))?,
        None => progress.say(&format!(
            "OpenStack cloud {} at {}",
            config.name, config.auth_url
        ))?,
    }
    let controllers = start_controllers(args, &management.client, metrics, &stop);
    let snapshots = observer::observe(&management.client, stop.clone());

    let welcome = Welcome {
        program: &environment.program,
        data: &data,
        simulator: simulated.as_ref().map(|simulated| simulated.url.as_str()),
    };
    let work = async {
        apply_input(args, environment, documents, &management.client, &config).await?;
        follow(args, &mut progress, &welcome, snapshots, &stop).await
    };
    let outcome = tokio::select! {
        outcome = work => outcome,
        () = shutdown.cancelled() => Ok(Outcome::Interrupted),
    };
    stop.cancel();
    let stopped = stop_all(controllers, management, simulated);
    if tokio::time::timeout(PATIENCE, stopped).await.is_err() {
        tracing::warn!(
            "some work was still under way after {} s",
            PATIENCE.as_secs()
        );
    }
    match outcome? {
        Outcome::Ready => Ok(()),
        Outcome::Interrupted => {
            progress.leave();
            progress.say("stopped; `up` with the same data directory resumes")?;
            Ok(())
        }
        Outcome::TimedOut(pending) => bail!("{}", not_ready(args.timeout, &pending)),
    }
}

/// How `up` ended.
enum Outcome {
    Ready,
    Interrupted,
    TimedOut(Vec<Pending>),
}

fn read_files(files: &[PathBuf]) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    for path in files {
        documents.extend(manifest::read_file(path)?);
    }
    Ok(documents)
}

/// The named cloud, or the simulated one, started.
async fn start_cloud(
    args: &Up,
    environment: &Environment,
    data: &DataDir,
    endpoints: &mut Endpoints,
    stop: &CancellationToken,
) -> anyhow::Result<(Option<Simulated>, CloudConfig)> {
    if let Some(name) = &args.cloud {
        return Ok((None, cloud::find(name, environment)?));
    }
    let (listener, address) =
        endpoints::listen("the simulated cloud", None, endpoints.cloud).await?;
    endpoints.cloud = Some(address);
    let floating = *endpoints
        .floating
        .get_or_insert_with(|| cloud::floating_range(address));
    let setup = Setup {
        store: Some(data.file("cloud.db")),
        guest_state: Some(data.file("guests")),
        latency: args.latency.clone(),
        seed: u64::from(address.port()),
        floating,
        guests: true,
    };
    let simulated = Simulated::start(setup, listener, stop.clone()).await?;
    data.write("clouds.yaml", &simulated.clouds_yaml)?;
    let config = CloudConfig::parse(&simulated.clouds_yaml, simulated::CLOUD)?;
    Ok((Some(simulated), config))
}

fn start_controllers(
    args: &Up,
    client: &Client,
    metrics: Metrics,
    stop: &CancellationToken,
) -> JoinSet<()> {
    let core = clusterapi::Options {
        metrics: metrics.clone(),
        ..clusterapi::Options::default()
    };
    let infrastructure = provider::Options {
        bootstrap_timeout: args.bootstrap_timeout,
        metrics,
        ..provider::Options::default()
    };
    manager::controllers(client, core, infrastructure, stop)
}

/// Applies the given manifests; without any, and with no Cluster stored, those of the default one.
async fn apply_input(
    args: &Up,
    environment: &Environment,
    mut documents: Vec<Document>,
    client: &Client,
    config: &CloudConfig,
) -> anyhow::Result<()> {
    let namespace = args
        .cluster
        .target_namespace
        .as_deref()
        .unwrap_or("default");
    if documents.is_empty() {
        let stored = Snapshot::read(client, None).await?;
        if stored.of_kind(Kind::Cluster).next().is_some() {
            return Ok(());
        }
        let mut fallback = cloud::variables(config).await?;
        if args.cloud.is_none() {
            fallback.extend(cloud::simulated_defaults());
        }
        for count in ["CONTROL_PLANE_MACHINE_COUNT", "WORKER_MACHINE_COUNT"] {
            fallback
                .entry(count.to_owned())
                .or_insert_with(|| "3".to_owned());
        }
        let source = Source::new(&args.cluster_name, &args.cluster, environment, fallback)?;
        documents = manifest::read(&source.name, &source.render()?)?;
    }
    apply::all(client, &documents, namespace)
        .await
        .context("the manifests were rejected")
}

/// Shows progress for ever; with `--exit-when-ready` until all is ready, or until the timeout.
async fn follow(
    args: &Up,
    progress: &mut Progress,
    welcome: &Welcome<'_>,
    mut snapshots: watch::Receiver<Arc<Snapshot>>,
    stop: &CancellationToken,
) -> anyhow::Result<Outcome> {
    let deadline = args
        .exit_when_ready
        .then(|| tokio::time::Instant::now() + args.timeout);
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let mut welcomed = false;
    loop {
        let snapshot = Arc::clone(&snapshots.borrow_and_update());
        progress.show(&snapshot)?;
        let pending = readiness::pending(&snapshot);
        if pending.is_empty() && !welcomed {
            progress.ready(&snapshot, welcome)?;
            welcomed = true;
        }
        if pending.is_empty() && args.exit_when_ready {
            return Ok(Outcome::Ready);
        }
        loop {
            tokio::select! {
                changed = snapshots.changed() => match changed {
                    Ok(()) => break,
                    // The watches end with everything else.
                    Err(_) if stop.is_cancelled() => return Ok(Outcome::Interrupted),
                    Err(source) => return Err(source).context("the watch of the clusters ended"),
                },
                _ = tick.tick() => {
                    if deadline.is_some_and(|deadline| tokio::time::Instant::now() >= deadline) {
                        return Ok(Outcome::TimedOut(pending));
                    }
                    if progress.is_ticking() {
                        break;
                    }
                }
            }
        }
    }
}

fn not_ready(timeout: Duration, pending: &[Pending]) -> String {
    let mut text = format!("not ready after {} s:", timeout.as_secs());
    for Pending { object, why } in pending {
        text.push_str(&format!("\n  {object}: {why}"));
    }
    text
}

async fn stop_all(
    mut controllers: JoinSet<()>,
    management: Management,
    simulated: Option<Simulated>,
) {
    while controllers.join_next().await.is_some() {}
    management.stopped().await;
    if let Some(simulated) = simulated {
        simulated.stopped().await;
    }
}
