//! `manager`: the controllers against any Kubernetes cluster.
//!
//! The embedded API server converts, defaults and validates the built-in kinds in process. For a kube-apiserver, the
//! manager serves webhooks, issues the certificate and registers the address. With `--providers` a manager serves some
//! of the kinds, beside another program's controllers of the others.

mod certificate;
mod definitions;
mod diagnostics;
mod migration;
mod outlasting;
mod ownership;
mod registration;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use api::providers::Provider;
use installer::subset::Subset;
use kube::{Client, Config};
use operator::controller::Objects;
use operator::election::{self, Leader, Lost};
use operator::health::{self, Readiness};
use operator::metrics::Metrics;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use self::certificate::{Served, Source};
use self::outlasting::Outlasting;
use self::registration::Registration;
use crate::cli::{Election, Manager};
use crate::connect;
use crate::environment::Environment;
use crate::footprint;
use crate::output::say;
use crate::serve;
use crate::signals::stop_on_signal;

/// Runs the command.
pub(super) async fn execute(args: &Manager, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, stop_on_signal()?, say).await
}

/// The Lease of leader election of a manager of all providers.
const LEASE: &str = "controller-leader-election-ferrostack";
/// How long a shutdown waits for running reconciles.
const PATIENCE: Duration = Duration::from_secs(15);
/// Longest file of `--ca-certs`, in bytes: all authorities of a system need a fifth.
const LONGEST_CA: u64 = 1 << 20;

/// Runs until `shutdown`, or until leadership is lost.
pub(crate) async fn run(
    args: &Manager,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let config = config(
        args.kubeconfig.as_deref(),
        args.context.as_deref(),
        environment,
    )
    .await?;
    let namespace = args.election.leader_election_namespace.clone();
    let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
    let clouds = args.openstack_namespace.as_ref();
    let subset = Subset::new(args.providers.iter().map(|it| it.0), clouds.is_some());
    check(args, &subset)?;
    for (flag, why) in args.idle.given() {
        say(&format!("{flag} has no effect: {why}"));
    }
    let ca = args.ca_certs.as_deref().map(authorities).transpose()?;
    let election = election(&args.election, &namespace, &subset);
    election.check()?;
    let client = connect::connected(config, "ferrostack-manager")?;

    // The controllers stop on `stop`, which is cancelled by `shutdown` and at the end of this function; what is served goes
    // on until `outlasting` ends.
    let stop = shutdown.child_token();
    let _end = stop.clone().drop_guard();
    let delay = args.shutdown_delay_duration.unwrap_or_default();
    let mut outlasting = Outlasting::begin(&shutdown, delay);
    let (readiness, metrics) = (Readiness::waiting_for("the API server"), Metrics::default());
    let health = health::router(readiness.clone());
    let served = outlasting.stop().clone();
    serve::plain("health", args.health_addr, health, &served, &say).await?;
    diagnostics::serve(args, &client, metrics.clone(), &served, &say).await?;
    definitions::check(&client, &subset).await?;
    let url = args.webhook_url.as_deref();
    let files = args.webhook_cert_dir.as_deref();
    let source = Source::open(&client, &subset, &namespace, url, files).await?;
    let source = Arc::new(source);
    let webhooks = serve_webhooks(args, &client, &subset, &source, &served, &say).await?;
    outlasting.waits_for(webhooks);
    footprint::without_start();
    readiness.ready();

    let election = args.election.leader_elect.then_some(election);
    let mut leader = match stand(election, &client, &shutdown, &say).await? {
        Won::Stopped => {
            outlasting.end().await;
            return Ok(());
        }
        Won::Leading(leader) => leader,
    };
    let registration = Registration::new(&subset, &namespace, url);
    let authorities = source.authorities().await?;
    registration.write(&client, authorities.as_deref()).await?;
    let (mut core, infrastructure) = options(args, &subset, metrics.clone(), ca);
    if let Some(core) = &mut core {
        core.connector = connect::to_workloads(environment);
    }
    let mut running = controllers(&client, core, infrastructure, &stop);
    if let Some(namespace) = clouds {
        let clouds = rollout::Options {
            namespace: Some(namespace.clone()),
            metrics,
            ..rollout::Options::default()
        };
        running.spawn(rollout::run(client.clone(), clouds, stop.clone()));
    }
    let is_migrated = migration::is_wanted(&args.skip_crd_migration_phases);
    let beside = async {
        tokio::select! {
            never = registration.keep(&client, &source) => match never {},
            () = migration::run(&client, &subset, &say), if is_migrated => {}
        }
        registration.keep(&client, &source).await
    };
    let lost = tokio::select! {
        // The controllers end on `stop`, too, which is no failure.
        biased;
        () = shutdown.cancelled() => None,
        lost = lost(&mut leader) => Some(lost),
        never = beside => match never {},
        _ = running.join_next() => bail!("the controllers stopped unexpectedly; the log has the reason"),
    };
    stop.cancel();
    if let Some(lost) = lost {
        // Without waiting for running reconciles, since another manager may be the leader already.
        bail!("leadership lost: {lost}. This manager exits; once restarted, it stands by");
    }
    drain(&mut running, &mut leader).await?;
    if let Some(leader) = leader {
        leader.release().await;
    }
    outlasting.end().await;
    say("stopped");
    Ok(())
}

/// Webhooks of the kinds of a [`Subset`].
fn webhooks(client: &Client, subset: &Subset) -> axum::Router {
    let judge = operator::webhook::Judge {
        validate: ::management::validate,
        beside: ::management::cluster::class_of,
        default: ::management::cluster::default_by,
        judge: ::management::cluster::validate_by,
    };
    operator::webhook::router(client.clone(), judge, subset.groups())
}

/// Serves the webhooks with the current certificate. The task ends after `stop` and the reviews under way.
async fn serve_webhooks(
    args: &Manager,
    client: &Client,
    subset: &Subset,
    source: &Arc<Source>,
    stop: &CancellationToken,
    say: &impl Fn(&str),
) -> anyhow::Result<JoinHandle<()>> {
    let webhooks = webhooks(client, subset);
    let served = Served::open(source).await?;
    let current = served.current();
    let serving =
        serve::tls_by("webhooks", args.webhook_addr, current, webhooks, stop, say).await?;
    let (source, stop) = (Arc::clone(source), stop.clone());
    tokio::spawn(async move { stop.run_until_cancelled(served.follow(&source)).await });
    Ok(serving)
}

/// Controllers of the [`Provider`]s with options.
pub(crate) fn controllers(
    client: &Client,
    core: Option<clusterapi::Options>,
    infrastructure: Option<provider::Options>,
    stop: &CancellationToken,
) -> JoinSet<()> {
    let mut running = JoinSet::new();
    if let Some(core) = core {
        running.spawn(clusterapi::run(client.clone(), core, stop.clone()));
    }
    if let Some(infrastructure) = infrastructure {
        running.spawn(provider::run(client.clone(), infrastructure, stop.clone()));
    }
    running
}

/// `--kubeconfig`, `KUBECONFIG`, or the service account of the pod, in that order.
pub(crate) async fn config(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    environment: &Environment,
) -> anyhow::Result<Config> {
    let paths: Vec<PathBuf> = match (kubeconfig, environment.non_empty("KUBECONFIG")) {
        (Some(path), _) => vec![path.to_owned()],
        (None, Some(paths)) => std::env::split_paths(paths).collect(),
        (None, None) => Vec::new(),
    };
    let config = if paths.is_empty() {
        if let Some(context) = context {
            bail!(
                "--context {context} is one of a kubeconfig: name the file with --kubeconfig or KUBECONFIG"
            );
        }
        const NOT_IN_A_POD: &str = "neither --kubeconfig nor KUBECONFIG is set, and this process is not running in a pod with a \
            service account";
        // The cause would be this variable, which nobody sets by hand.
        if environment.non_empty("KUBERNETES_SERVICE_HOST").is_none() {
            bail!(NOT_IN_A_POD);
        }
        let mut config = Config::incluster().context(NOT_IN_A_POD)?;
        config.proxy_url = environment.proxies().to(&config.cluster_url).cloned();
        config
    } else {
        let kubeconfig = connect::read(&paths)?;
        let options = connect::in_context(&kubeconfig, context)?;
        operator::client::configured(kubeconfig, &options, &environment.proxies())
            .await
            .context("the kubeconfig cannot be used")?
    };
    Ok(config)
}

fn election(args: &Election, namespace: &str, subset: &Subset) -> election::Config {
    election::Config {
        namespace: namespace.to_owned(),
        name: subset.named(LEASE),
        identity: format!("ferrostack-{}", uuid::Uuid::new_v4()),
        lease_duration: args.leader_elect_lease_duration,
        renew_deadline: args.leader_elect_renew_deadline,
        retry_period: args.leader_elect_retry_period,
    }
}

/// Refuses a flag without an effect.
fn check(args: &Manager, subset: &Subset) -> anyhow::Result<()> {
    let lost = args.ineffective(|provider| subset.has(provider));
    let Some(flag) = lost.first() else {
        return Ok(());
    };
    bail!(
        "--{flag} would have no effect: it is about controllers that this manager does not run (--providers {})",
        subset.names(",")
    )
}

/// The certificates of `--ca-certs`, in PEM.
fn authorities(path: &Path) -> anyhow::Result<String> {
    let file = path.display();
    let mut text = String::new();
    let opened = std::fs::File::open(path);
    let read = opened.and_then(|it| it.take(LONGEST_CA + 1).read_to_string(&mut text));
    let read = read.with_context(|| format!("--ca-certs {file} cannot be read"))?;
    anyhow::ensure!(
        read as u64 <= LONGEST_CA,
        "--ca-certs {file} has more than {LONGEST_CA} bytes"
    );
    anyhow::ensure!(
        text.contains("-----BEGIN CERTIFICATE-----"),
        "--ca-certs {file} has no certificate in PEM (-----BEGIN CERTIFICATE-----)"
    );
    Ok(text)
}

fn options(
    args: &Manager,
    subset: &Subset,
    metrics: Metrics,
    ca: Option<String>,
) -> (Option<clusterapi::Options>, Option<provider::Options>) {
    let objects = Objects {
        filter: args.watch_filter.clone(),
        resync: args.sync_period,
    };
    let mut core = clusterapi::Options {
        metrics: metrics.clone(),
        namespace: args.namespace.clone(),
        limits: args.concurrency.limits(),
        objects: objects.clone(),
        synced: clusterapi::Synced {
            labels: args.additional_sync_machine_labels.clone(),
            annotations: args.additional_sync_machine_annotations.clone(),
        },
        providers: subset.providers().clone(),
        ..clusterapi::Options::default()
    };
    if let Some(clusters) = args.concurrency.clustercache_concurrency {
        core.connections = clusters;
    }
    let defaults = provider::Options::default();
    let of_clusters = args.concurrency.openstackcluster_concurrency;
    let of_machines = args.concurrency.openstackmachine_concurrency;
    let timeout = args.bootstrap_timeout;
    let infrastructure = provider::Options {
        namespace: args.namespace.clone(),
        objects,
        cluster_concurrency: of_clusters.unwrap_or(defaults.cluster_concurrency),
        machine_concurrency: of_machines.unwrap_or(defaults.machine_concurrency),
        bootstrap_timeout: timeout.unwrap_or(defaults.bootstrap_timeout),
        ca,
        metrics,
        ..defaults
    };
    (
        subset.has_clusterapi().then_some(core),
        subset
            .has(Provider::Infrastructure)
            .then_some(infrastructure),
    )
}

/// Outcome of leader election; without election, the manager is the leader at once.
pub(crate) enum Won {
    Leading(Option<Leader>),
    Stopped,
}

/// Takes part in the election, if any, until this process is the leader.
pub(crate) async fn stand(
    election: Option<election::Config>,
    client: &Client,
    shutdown: &CancellationToken,
    say: &impl Fn(&str),
) -> anyhow::Result<Won> {
    let Some(election) = election else {
        say("leading, without election");
        return Ok(Won::Leading(None));
    };
    let title = format!("{}/{}", election.namespace, election.name);
    let identity = election.identity.clone();
    say(&format!("standing for election on the Lease {title}"));
    let elected = election::elected(client.clone(), election);
    let Some(leader) = shutdown.run_until_cancelled(elected).await else {
        return Ok(Won::Stopped);
    };
    say(&format!("leading as {identity}"));
    Ok(Won::Leading(Some(leader?)))
}

/// Waits until leadership is lost: forever without election.
pub(crate) async fn lost(leader: &mut Option<Leader>) -> Lost {
    match leader {
        Some(leader) => leader.lost().await,
        None => std::future::pending().await,
    }
}

/// Waits for running reconciles, at most [`PATIENCE`], while renewing the Lease.
pub(crate) async fn drain(
    running: &mut JoinSet<()>,
    leader: &mut Option<Leader>,
) -> anyhow::Result<()> {
    let ended = async { while running.join_next().await.is_some() {} };
    tokio::select! {
        () = ended => Ok(()),
        lost = lost(leader) => bail!("leadership lost while stopping: {lost}"),
        () = tokio::time::sleep(PATIENCE) => {
            tracing::warn!("some reconciles were still running after {} s", PATIENCE.as_secs());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
