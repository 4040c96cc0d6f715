//! `up`: API server, controllers and cloud in one process, until Ctrl-C or until all clusters are ready.

pub(crate) mod background;
mod detach;
mod floating;
mod hints;
mod input;
mod install_ccm;
mod kept;
mod management;
mod managers;
mod picture;
mod progress;
mod users;
pub(crate) mod welcome;

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use api::printable;
use apiserver::Reviewer;
use installer::older::Older;
use kube::Client;
use openstack::config::CloudConfig;
use openstack::transport::Trust;
use openstack::{Kind, PoolOptions};
use operator::metrics::Metrics;
use status::observer::{self, observe};
use status::readiness::{self, Pending};
use status::snapshot::{self, Snapshot};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::input::Input;
use self::managers::Managers;
use self::progress::Progress;
use self::users::Users;
use self::welcome::Welcome;
use crate::cli::Up;
use crate::cloud;
use crate::connect;
use crate::data_dir::DataDir;
use crate::endpoints::{self, Endpoints, resume};
use crate::environment::Environment;
use crate::signals::stop_on_signal;
use crate::simulated::{self, Bodies, Setup, Simulated};

pub(crate) use self::management::{Management, Nodes, install_definitions};

/// Runs the command.
pub(super) async fn execute(args: &Up, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, stop_on_signal()?).await
}

/// Timeout of a shutdown for running reconciles.
const PATIENCE: Duration = Duration::from_secs(15);
/// Timeout of a shutdown for controllers just started: some wait for a first list, which never comes.
const PATIENCE_AT_FIRST: Duration = Duration::from_secs(2);
/// Longest time between two pictures.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Warning about clusters on a real cloud.
const UNMANAGED: &str = "no cloud controller manager is started on this cloud: without one in a cluster, its nodes have no \
    addresses and its control plane is not Available; --install-ccm installs it";

/// Rejects --install-ccm on a cloud with a manager of its own.
fn check_install(args: &Up) -> anyhow::Result<()> {
    if args.install_ccm.is_some() && args.cloud.is_none() {
        bail!(
            "--install-ccm is for a real cloud (--cloud NAME): for each cluster on the simulated one a cloud controller \
             manager runs in this process, and a second one in the cluster would have nothing to run on"
        );
    }
    Ok(())
}

/// Runs until `shutdown`, or with `--exit-when-ready` until all clusters are ready.
pub(crate) async fn run(
    args: &Up,
    environment: &Environment,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    if args.detach {
        return detach::run(args, environment, shutdown).await;
    }
    let started = Instant::now();
    check_install(args)?;
    let older = Older::named(&args.older.serve_versions)?;
    let input = Input::read(args, environment).await?;
    let data = connect::data_dir(&args.data_dir, environment)?;
    let flag = connect::data_dir_flag(environment, &data);
    let data = DataDir::open_when_free(&data, &flag).await?;
    let mut progress = Progress::new(args, environment, started);
    let mut endpoints = Endpoints::read(&data)?;
    endpoints.check_cloud(args, environment, &data)?;
    endpoints.check_simulated(args.simulated_listen)?;

    let stops = Stops::default();
    let (listener, address) = endpoints::listen(
        "the management API",
        "--listen",
        args.listen,
        endpoints.management,
    )
    .await?;
    endpoints.management = Some(address);
    let (simulated, config, reviewer) =
        start_cloud(args, environment, &data, &mut endpoints, &stops.servers).await?;
    endpoints.write(&data)?;
    let metrics = Metrics::default();
    let management = {
        let why = Some(Arc::new(management::not_run) as apiserver::NotRun);
        Management::start(
            &data,
            listener,
            &metrics,
            Nodes::None(why),
            reviewer,
            &older,
            stops.servers.clone(),
        )
        .await?
    };
    progress.say(&format!("management API at https://{address}"))?;
    match &simulated {
        Some(simulated) => progress.say(&format!("simulated OpenStack at {}", simulated.url))?,
        None => {
            progress.say(&format!(
                "OpenStack cloud {} at {}",
                config.name, config.auth_url
            ))?;
            if args.install_ccm.is_none() {
                progress.say(UNMANAGED)?;
            }
        }
    }
    let stop = &stops.controllers;
    let simulation = simulated.as_ref().map(|simulated| Simulation {
        hints: hints::of(simulated.world(), stop.clone()),
        auth_url: config.auth_url.clone(),
    });
    let client = &management.client;
    let connector = connect::to_workloads(environment);
    let mut controllers =
        start_controllers(args, client, connector, metrics.clone(), simulation, stop);
    if let Some(image) = args.install_ccm.clone() {
        let installing = install_ccm::run(client.clone(), image, metrics, stop.clone());
        controllers.spawn(installing);
    }
    let welcome = Welcome {
        environment,
        data: data.path(),
        simulator: simulated.as_ref().map(|simulated| simulated.url.as_str()),
        exits: args.exit_when_ready,
    };
    let has_begun = Cell::new(false);
    let work = async {
        let say = |text: &str| progress.say(text);
        input::apply(args, environment, input, client, &config, &data, say).await?;
        has_begun.set(true);
        // Only after the changes are applied: before that, clusters can be ready in their previous state.
        let snapshots = observe(client, observer::ours(), stop.clone());
        let disk = Disk::new(|| management.write_problem());
        follow(args, &mut progress, &welcome, (snapshots, disk), stop).await
    };
    let outcome = tokio::select! {
        biased;
        () = shutdown.cancelled() => Ok(Outcome::Interrupted),
        outcome = work => outcome,
    };
    let unwritten = management.write_problem();
    let patience = match has_begun.get() {
        true => PATIENCE,
        false => PATIENCE_AT_FIRST,
    };
    stops
        .all(patience, controllers, management, simulated)
        .await;
    match outcome? {
        Outcome::Ready => Ok(()),
        Outcome::Interrupted => {
            progress.leave();
            let command = resume(environment, data.path());
            progress.say(&format!("stopped; go on with: {command}"))?;
            Ok(())
        }
        Outcome::TimedOut(pending) => {
            bail!(
                "{}",
                not_ready(args.timeout, unwritten.as_deref(), &pending)
            )
        }
    }
}

/// Serves the API server of a data directory alone, at its former address.
pub(crate) async fn serve(
    data: &DataDir,
    metrics: &Metrics,
    nodes: Nodes,
    stop: &CancellationToken,
) -> anyhow::Result<Management> {
    let mut endpoints = Endpoints::read(data)?;
    let remembered = endpoints.management;
    let what = "the management API";
    let (listener, address) = endpoints::listen(what, "--listen", None, remembered).await?;
    endpoints.management = Some(address);
    endpoints.write(data)?;
    let older = Older::default();
    Management::start(data, listener, metrics, nodes, None, &older, stop.clone()).await
}

/// Listens for the OpenStack simulated behind the Pods of `data`: at the address of the first start, known from the
/// clouds.yaml of users.
pub(crate) async fn listen_for_openstack(data: &DataDir) -> anyhow::Result<(TcpListener, String)> {
    let mut endpoints = Endpoints::read(data)?;
    let remembered = endpoints.cloud;
    let what = "the simulated OpenStack";
    let (listener, address) = endpoints::listen(what, "--listen", None, remembered).await?;
    endpoints.cloud = Some(address);
    endpoints.behind_pods = true;
    endpoints.write(data)?;
    Ok((listener, openstack_url(address)))
}

fn openstack_url(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// URL of the OpenStack simulated behind the Pods of a data directory.
pub(crate) fn simulated_openstack(data: &Path) -> anyhow::Result<Option<String>> {
    Ok(endpoints::simulated(data)?.map(openstack_url))
}

/// Reason why `up` ended.
enum Outcome {
    Ready,
    Interrupted,
    TimedOut(Vec<Pending>),
}

/// Named cloud, or the simulated cloud, started here.
async fn start_cloud(
    args: &Up,
    environment: &Environment,
    data: &DataDir,
    endpoints: &mut Endpoints,
    stop: &CancellationToken,
) -> anyhow::Result<(Option<Simulated>, CloudConfig, Option<Arc<dyn Reviewer>>)> {
    if let Some(name) = &args.cloud {
        if args.runner.program.guest_runner.is_some() {
            bail!(
                "--guest-runner runs the servers of the simulated cloud; --cloud {name} is another one"
            );
        }
        let config = cloud::find(name, environment)?;
        endpoints.openstack = Some(name.clone());
        endpoints.cloud = None;
        endpoints.guest_runner = None;
        let trust = Trust {
            verify: config.verify,
            ca_pem: config.ca_pem.clone(),
            client_certificate: config.client_certificate.clone(),
        };
        let reviewer = reviewer(args, &config.auth_url, &trust)?;
        return Ok((None, config, reviewer));
    }
    let (listener, address) = endpoints::listen(
        "the simulated cloud",
        "--simulated-listen",
        args.simulated_listen,
        endpoints.cloud,
    )
    .await?;
    endpoints.cloud = Some(address);
    endpoints.openstack = None;
    let runner = args.runner.program.guest_runner.as_ref();
    // Relative paths are those of the directory in which this command runs.
    endpoints.guest_runner = runner
        .map(std::path::absolute)
        .transpose()
        .context("the path of --guest-runner")?;
    let plain = Trust {
        verify: true,
        ca_pem: None,
        client_certificate: None,
    };
    let url = format!("{}/identity/v3", openstack_url(address));
    let reviewer = reviewer(args, &url, &plain)?;
    let passwords = simulated::passwords(data)?;
    data.make_private("cloud.db")?;
    let floating = floating::Range::find(endpoints.floating, address);
    endpoints.floating = Some(floating.second_byte);
    let setup = Setup {
        store: Some(data.file("cloud.db")),
        guest_state: Some(data.file("guests")),
        latency: args.latency.clone(),
        seed: u64::from(address.port()),
        volume_zones: Vec::new(),
        floating: floating.second_byte,
        bodies: Bodies::new(
            &args.runner,
            || Ok(data.file("machines")),
            Bodies::Guests(reviewer.clone()),
        )?,
        passwords,
    };
    let simulated = Simulated::start(setup, listener, stop.clone()).await?;
    let stopped = stop.clone().cancelled_owned();
    tokio::spawn(async move {
        stopped.await;
        drop(floating);
    });
    data.write("clouds.yaml", &simulated.clouds_yaml)?;
    let config = CloudConfig::parse(&simulated.clouds_yaml, simulated::CLOUD)?;
    Ok((Some(simulated), config, reviewer))
}

/// [`Reviewer`] of the users of Keystone, if users of the clusters, too.
fn reviewer(args: &Up, url: &str, trust: &Trust) -> anyhow::Result<Option<Arc<dyn Reviewer>>> {
    let policy = args.keystone_policy_file.as_deref();
    let users = args.keystone_auth.then(|| Users::of(url, trust, policy));
    users.transpose()
}

/// Links of the controllers to a simulated cloud.
struct Simulation {
    hints: broadcast::Sender<Kind>,
    auth_url: String,
}

/// Starts the controllers, and for a simulated cloud the cloud controller managers of its clusters.
fn start_controllers(
    args: &Up,
    client: &Client,
    connector: Arc<dyn clusterapi::remote::Connector>,
    metrics: Metrics,
    simulation: Option<Simulation>,
    stop: &CancellationToken,
) -> JoinSet<()> {
    let core = clusterapi::Options {
        metrics: metrics.clone(),
        connector,
        ..clusterapi::Options::default()
    };
    let core = clusterapi::Context::start(client, core, stop.clone());
    let clouds = PoolOptions {
        hints: simulation.as_ref().map(|it| it.hints.clone()),
        ..PoolOptions::default()
    };
    let managers = simulation.map(|Simulation { auth_url, .. }| Managers {
        client: operator::client::named(client, ccm::NAME),
        clusters: core.clusters.clone(),
        remote: core.remote.clone(),
        clouds: ccm::Clouds::new(clouds.clone(), &metrics),
        metrics: metrics.clone(),
        auth_url,
    });
    let shared = managers.as_ref().map(|managers| {
        managers.clouds.register_requests(&metrics);
        managers.clouds.pool()
    });
    let infrastructure = provider::Options {
        bootstrap_timeout: args.bootstrap_timeout,
        clouds,
        shared,
        metrics,
        ..provider::Options::default()
    };
    let mut running = JoinSet::new();
    running.spawn(clusterapi::run_in(core));
    running.spawn(provider::run(client.clone(), infrastructure, stop.clone()));
    if let Some(managers) = managers {
        running.spawn(managers.run(stop.clone()));
    }
    running
}

/// Shows progress forever, or with `--exit-when-ready` until all clusters are ready, or until the timeout.
async fn follow(
    args: &Up,
    progress: &mut Progress,
    welcome: &Welcome<'_>,
    (mut snapshots, mut disk): (
        watch::Receiver<Arc<Snapshot>>,
        Disk<impl Fn() -> Option<String>>,
    ),
    stop: &CancellationToken,
) -> anyhow::Result<Outcome> {
    let deadline =
        (args.exit_when_ready || args.detach).then(|| tokio::time::Instant::now() + args.timeout);
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let mut welcomed = false;
    // The first snapshot is older than the first lists.
    let mut listed = false;
    loop {
        let began = tokio::time::Instant::now();
        let snapshot = Arc::clone(&snapshots.borrow_and_update());
        let is_empty = snapshot.of_kind(snapshot::Kind::Cluster).next().is_none();
        if listed && is_empty && deadline.is_none() {
            progress.nothing(&snapshot, welcome)?;
            welcomed = false;
        } else {
            progress.show(&snapshot)?;
        }
        let pending = readiness::pending(&snapshot);
        if pending.is_empty() && !welcomed {
            progress.ready(&snapshot, welcome)?;
            welcomed = true;
        }
        if pending.is_empty() && (args.exit_when_ready || args.detach) {
            return Ok(Outcome::Ready);
        }
        // A picture of many clusters takes its time. At most a twentieth of a core is spent on pictures.
        let pause = (began.elapsed() * 19).min(LONGEST_PAUSE);
        let _ = tokio::time::timeout(pause, stop.cancelled()).await;
        loop {
            tokio::select! {
                changed = snapshots.changed() => match changed {
                    Ok(()) => {
                        listed = true;
                        break;
                    }
                    // The watches end at a shutdown.
                    Err(_) if stop.is_cancelled() => return Ok(Outcome::Interrupted),
                    Err(source) => return Err(source).context("the watch of the clusters ended"),
                },
                _ = tick.tick() => {
                    if let Some(news) = disk.news() {
                        progress.say(&news)?;
                    }
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

/// Result of writes to the disk, which conditions of objects cannot report: conditions cannot be written either.
struct Disk<F> {
    problem: F,
    reported: Option<String>,
}

impl<F: Fn() -> Option<String>> Disk<F> {
    fn new(problem: F) -> Self {
        Self {
            problem,
            reported: None,
        }
    }

    /// Sentence about the disk, if the problem has changed.
    fn news(&mut self) -> Option<String> {
        let problem = (self.problem)();
        if problem == self.reported {
            return None;
        }
        self.reported = problem;
        Some(match &self.reported {
            Some(problem) => format!("nothing can be stored: {problem}"),
            None => "objects are stored again".to_owned(),
        })
    }
}

fn not_ready(timeout: Duration, unwritten: Option<&str>, pending: &[Pending]) -> String {
    let mut text = format!("not ready after {} s:", timeout.as_secs());
    if let Some(problem) = unwritten {
        text.push_str(&format!(
            "\n  nothing can be stored: {}",
            printable::line(problem)
        ));
    }
    for Pending { object, why } in pending {
        let line = format!("{object}: {why}");
        text.push_str(&format!("\n  {}", printable::line(&line)));
    }
    text
}

/// Tokens to stop the tasks of `up`. Signals do not reach the tasks directly: a controller without servers would report
/// missing answers, or wait.
#[derive(Default)]
struct Stops {
    controllers: CancellationToken,
    /// Token of the management API and the simulated cloud.
    servers: CancellationToken,
}

impl Stops {
    /// Stops the controllers after running reconciles, within `patience`, and then the servers.
    async fn all(
        self,
        patience: Duration,
        mut controllers: JoinSet<()>,
        management: Management,
        simulated: Option<Simulated>,
    ) {
        self.controllers.cancel();
        let ended = async { while controllers.join_next().await.is_some() {} };
        let mut in_time = tokio::time::timeout(patience, ended).await.is_ok();
        // Their watches would hold up the servers.
        controllers.shutdown().await;
        self.servers.cancel();
        let ended = async {
            management.stopped().await;
            if let Some(simulated) = simulated {
                simulated.stopped().await;
            }
        };
        in_time &= tokio::time::timeout(PATIENCE, ended).await.is_ok();
        if !in_time {
            tracing::warn!(
                "some work was still under way after {} s",
                patience.as_secs()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_once_and_so_is_its_end() {
        let problem = Cell::new(None);
        let read = || {
            let now: Option<&str> = problem.get();
            now.map(str::to_owned)
        };
        let mut disk = Disk::new(read);
        assert_eq!(disk.news(), None);
        problem.set(Some("there is no room"));
        let news = disk.news();
        assert_eq!(
            news.as_deref(),
            Some("nothing can be stored: there is no room")
        );
        assert_eq!(disk.news(), None);
        problem.set(None);
        assert_eq!(disk.news().as_deref(), Some("objects are stored again"));
    }

    #[test]
    fn what_is_not_ready_begins_with_a_disk_that_takes_nothing() {
        let pending = [Pending {
            object: "Cluster/demo".to_owned(),
            why: "the object has been modified".to_owned(),
        }];
        let limit = Duration::from_secs(5);
        assert_eq!(
            not_ready(limit, Some("there is no room"), &pending),
            "not ready after 5 s:\n  nothing can be stored: there is no room\n  Cluster/demo: the object has been modified"
        );
        assert_eq!(
            not_ready(limit, None, &pending),
            "not ready after 5 s:\n  Cluster/demo: the object has been modified"
        );
    }
}
