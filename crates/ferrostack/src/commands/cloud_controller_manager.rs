//! `cloud-controller-manager`: controllers of crate `ccm` against any Kubernetes cluster.

pub(crate) mod files;
pub(crate) mod manifests;
mod serving;
mod tls;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use ccm::{Controllers, Options, Routes, Settings};
use ipnet::IpNet;
use openstack::PoolOptions;
use openstack::session::{Session, SessionOptions};
use operator::election;
use operator::health::Readiness;
use operator::metrics::Metrics;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cli::CloudControllerManager;
use crate::commands::manager::{self, Won};
use crate::connect;
use crate::environment::Environment;
use crate::footprint;
use crate::output::say;
use crate::signals::stop_on_signal;

/// Runs the command.
pub(super) async fn execute(
    args: &CloudControllerManager,
    environment: &Environment,
) -> anyhow::Result<()> {
    run(args, environment, stop_on_signal()?, say).await
}

/// Interval between reads of cloud.conf, and of the files named there.
const RELOAD: Duration = Duration::from_secs(10);

/// Runs until `shutdown`, or until leadership is lost.
pub(crate) async fn run(
    args: &CloudControllerManager,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    for (flag, why) in args.idle.given() {
        say(&format!("{flag} has no effect: {why}"));
    }
    if environment.non_empty("OCCM_WAIT_LB_ACTIVE_STEPS").is_some() {
        say(
            "OCCM_WAIT_LB_ACTIVE_STEPS has no effect: nothing here waits for a load balancer in steps",
        );
    }
    let mut controllers = controllers(&args.controllers)?;
    controllers.route &= args.configure_cloud_routes;
    tls::check(args)?;
    let election = election(args);
    election.check()?;
    let files::Loaded { settings, warnings } = files::load(&args.cloud_config, environment)?;
    for warning in &warnings {
        say(&format!("{}: {warning}", args.cloud_config.display()));
    }
    let router = settings.conf.route.router_id.as_str();
    let cluster_cidrs = cluster_cidrs(args, if controllers.route { router } else { "" })?;
    let session = files::session_options(&settings.conf.metadata, &args.user_agent);
    log_in(&settings, &session).await?;
    let mut config = manager::config(
        args.kubeconfig.as_deref(),
        args.context.as_deref(),
        environment,
    )
    .await?;
    if let Some(master) = &args.master {
        config.cluster_url = master
            .parse()
            .with_context(|| format!("--master `{master}`"))?;
    }
    let client = connect::connected(config, "ferrostack-cloud-controller-manager")?;

    // All tasks stop on `stop`, which is cancelled by `shutdown` and at the end of this function.
    let stop = shutdown.child_token();
    let _end = stop.clone().drop_guard();
    let (readiness, metrics) = (Readiness::waiting_for("the API server"), Metrics::default());
    serving::serve(args, readiness.clone(), metrics.clone(), &stop, &say).await?;
    client
        .apiserver_version()
        .await
        .context("cannot reach the cluster of the kubeconfig")?;
    footprint::without_start();
    readiness.ready();

    let election = args.leader_elect.then_some(election);
    let Won::Leading(mut leader) = manager::stand(election, &client, &shutdown, &say).await? else {
        return Ok(());
    };
    let (sender, receiver) = tokio::sync::watch::channel(Arc::new(settings));
    let options = Options {
        controllers,
        cluster_name: args.cluster_name.clone(),
        regional: environment.variable("OS_CCM_REGIONAL") == Some("true"),
        node_monitor_period: args.node_monitor_period,
        node_status_update_frequency: args.node_status_update_frequency,
        routes: Routes {
            cluster_cidrs,
            period: args.route_reconciliation_period,
        },
        node_concurrency: args.concurrent_node_syncs,
        service_concurrency: args.concurrent_service_syncs,
        clouds: PoolOptions {
            session,
            ..PoolOptions::default()
        },
        metrics,
        ..Options::new(receiver)
    };
    let mut running = JoinSet::new();
    running.spawn(ccm::run(client, options, stop.clone()));
    let lost = tokio::select! {
        // The controllers end on `stop`, too, which is no failure.
        biased;
        () = shutdown.cancelled() => None,
        lost = manager::lost(&mut leader) => Some(lost),
        never = files::watch(&args.cloud_config, environment, sender, RELOAD) => match never {},
        _ = running.join_next() => bail!("the controllers stopped unexpectedly; the log has the reason"),
    };
    stop.cancel();
    if let Some(lost) = lost {
        // Without waiting for running reconciles, since another manager may be the leader already.
        bail!("leadership lost: {lost}. This manager exits; once restarted, it stands by");
    }
    manager::drain(&mut running, &mut leader).await?;
    if let Some(leader) = leader {
        leader.release().await;
    }
    say("stopped");
    Ok(())
}

/// Parses `*`, names, and `-name` for exclusions into [`Controllers`]; older names of the Go manager are accepted, too.
fn controllers(list: &[String]) -> anyhow::Result<Controllers> {
    const NAMES: [(&str, &str); 4] = [
        ("cloud-node-controller", "cloud-node"),
        ("cloud-node-lifecycle-controller", "cloud-node-lifecycle"),
        ("service-lb-controller", "service"),
        ("node-route-controller", "route"),
    ];
    let (mut on, mut off, mut all) = (BTreeSet::new(), BTreeSet::new(), false);
    for item in list
        .iter()
        .map(|item| item.trim())
        .filter(|item| !item.is_empty())
    {
        let (name, set) = match item.strip_prefix('-') {
            Some(name) => (name, &mut off),
            None => (item, &mut on),
        };
        let known = NAMES.iter().find(|(new, old)| *new == name || *old == name);
        match known {
            Some((name, _)) => drop(set.insert(*name)),
            None if name == "*" => all = true,
            None => {
                let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
                bail!(
                    "--controllers: `{name}` is not one of *, {}",
                    names.join(", ")
                );
            }
        }
    }
    let runs = |name: &str| !off.contains(name) && (all || on.contains(name));
    Ok(Controllers {
        node: runs("cloud-node-controller"),
        node_lifecycle: runs("cloud-node-lifecycle-controller"),
        service: runs("service-lb-controller"),
        route: runs("node-route-controller"),
    })
}

/// Ranges of pods: as in the Go manager, at most one of each family, and at least one with a router.
fn cluster_cidrs(args: &CloudControllerManager, router: &str) -> anyhow::Result<Vec<IpNet>> {
    let given = &args.cluster_cidr.0;
    let families: BTreeSet<bool> = given.iter().map(|cidr| cidr.addr().is_ipv4()).collect();
    if families.len() < given.len() {
        bail!("--cluster-cidr: at most one CIDR of IPv4 and one of IPv6 can be given");
    }
    if given.is_empty() && !router.is_empty() {
        bail!(
            "[Route] router-id of cloud.conf needs --cluster-cidr, the ranges of the pods; or turn routes off with \
             --configure-cloud-routes=false"
        );
    }
    Ok(given.iter().map(IpNet::trunc).collect())
}

/// Election with the Lease of the Go manager, so that never both managers are active at once.
fn election(args: &CloudControllerManager) -> election::Config {
    election::Config {
        namespace: args.leader_elect_resource_namespace.clone(),
        name: args.leader_elect_resource_name.clone(),
        identity: format!("ferrostack-{}", uuid::Uuid::new_v4()),
        lease_duration: args.leader_elect_lease_duration,
        renew_deadline: args.leader_elect_renew_deadline,
        retry_period: args.leader_elect_retry_period,
    }
}

/// Logs in. As in the Go manager, rejected credentials are fatal, and so are credentials without a project, which allow
/// nothing. A cloud without a response is not fatal: requests are repeated.
async fn log_in(settings: &Settings, options: &SessionOptions) -> anyhow::Result<()> {
    let connected = async {
        let session = Session::connect(settings.cloud.clone(), options).await?;
        match settings.cloud.credential.has_default_scope() {
            true => session.project_id().await.map(drop),
            false => Ok(()),
        }
    };
    match connected.await {
        Err(error) if error.is_temporary() => {
            tracing::warn!("the cloud does not answer yet: {error}");
            Ok(())
        }
        result => result.context("logging in to the cloud of cloud.conf"),
    }
}

#[cfg(test)]
mod tests {
    use openstack::transport::{InProcess, Limits, Transport};
    use serde_json::json;

    use super::*;
    use cloud_conf::Program;

    fn chosen(list: &str) -> Result<[bool; 4], String> {
        let list: Vec<String> = list.split(',').map(str::to_owned).collect();
        let chosen = controllers(&list).map_err(|error| error.to_string())?;
        Ok([
            chosen.node,
            chosen.node_lifecycle,
            chosen.service,
            chosen.route,
        ])
    }

    #[test]
    fn controllers_are_chosen_as_in_the_go_manager() {
        assert_eq!(chosen("*"), Ok([true; 4]));
        assert_eq!(
            chosen("*,-service-lb-controller"),
            Ok([true, true, false, true])
        );
        assert_eq!(chosen("-service,*"), Ok([true, true, false, true]));
        assert_eq!(
            chosen("cloud-node,cloud-node-lifecycle-controller"),
            Ok([true, true, false, false])
        );
        assert_eq!(chosen("route"), Ok([false, false, false, true]));
        assert_eq!(chosen(""), Ok([false; 4]));
        assert!(
            chosen("nodes")
                .unwrap_err()
                .contains("`nodes` is not one of *, cloud-node-controller")
        );
    }

    /// The ranges of the pods for the value of the flag and the router of cloud.conf.
    fn ranges(flag: &str, router: &str) -> Result<usize, String> {
        use clap::Parser;
        #[derive(Parser)]
        struct Command {
            #[command(flatten)]
            args: CloudControllerManager,
        }
        let flag = format!("--cluster-cidr={flag}");
        let words = ["ccm", "--cloud-config", "cloud.conf", &flag];
        let words = &words[..if flag == "--cluster-cidr=-" { 3 } else { 4 }];
        let command = Command::try_parse_from(words.iter()).map_err(|error| error.to_string())?;
        let ranges = cluster_cidrs(&command.args, router).map_err(|error| error.to_string())?;
        Ok(ranges.len())
    }

    #[test]
    fn a_router_needs_ranges_of_pods_of_different_families() {
        assert_eq!(ranges("-", ""), Ok(0), "without the flag");
        assert_eq!(ranges("", ""), Ok(0), "an empty one, as manifests have it");
        assert_eq!(ranges("10.244.0.0/16", "r"), Ok(1));
        assert_eq!(ranges("10.244.0.0/16,fd00:1::/56", "r"), Ok(2));
        for (flag, words) in [
            ("", "[Route] router-id of cloud.conf needs --cluster-cidr"),
            ("10.244.0.0/16,10.245.0.0/16", "at most one CIDR of IPv4"),
            (
                "10.244.0.0",
                "invalid value '10.244.0.0' for '--cluster-cidr",
            ),
        ] {
            let error = ranges(flag, "r").unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    const CLOUD: &str = "http://cloud";

    /// The outcome of the login at the start for a cloud.conf with this user and no tenant.
    async fn start(cloud: &simulator::cloud::Cloud, user: &str) -> Result<(), String> {
        let text = format!(
            "[Global]\nauth-url = {CLOUD}/identity/v3\nusername = {user}\npassword = secret\ndomain-name = Default\n"
        );
        let conf = cloud_conf::CloudConf::parse(&text, Program::CloudControllerManager);
        let conf = conf.unwrap().conf;
        let settings = Settings {
            cloud: conf.global.cloud(None).unwrap(),
            conf,
        };
        let options = SessionOptions {
            transport: Some(Arc::new(InProcess::new(cloud.router(CLOUD)))),
            ..SessionOptions::default()
        };
        let result = log_in(&settings, &options).await;
        result.map_err(|error| format!("{error:#}"))
    }

    #[tokio::test]
    async fn a_login_for_no_project_ends_the_manager_at_the_start_as_a_wrong_one_does() {
        let options = simulator::cloud::Options::default();
        let cloud = simulator::cloud::Cloud::open(options).await.unwrap();
        let transport = InProcess::new(cloud.router(CLOUD));
        let post = async |path: &str, token: &str, body: serde_json::Value| {
            let request = http::Request::post(format!("{CLOUD}/identity/v3/{path}"))
                .header("content-type", "application/json")
                .header("x-auth-token", token)
                .body(bytes::Bytes::from(body.to_string()))
                .unwrap();
            let answer = transport.send(request, Limits::object(Duration::from_secs(60)));
            let answer = answer.await.unwrap();
            assert_eq!(answer.status(), 201, "{path}");
            answer
        };
        let domain = json!({"name": "Default"});
        let login = json!({"auth": {"identity": {"methods": ["password"],
            "password": {"user": {"name": "admin", "password": "secret", "domain": domain}}},
            "scope": {"project": {"name": "admin", "domain": domain}}}});
        let answer = post("auth/tokens", "", login).await;
        let token = answer.headers()["x-subject-token"].to_str().unwrap();
        let loner = json!({"user": {"name": "loner", "password": "secret"}});
        post("users", token, loner).await;
        start(&cloud, "demo").await.unwrap();
        let error = start(&cloud, "loner").await.unwrap_err();
        assert!(
            error.contains("the login is for no project: name one"),
            "{error}"
        );
        let error = start(&cloud, "nobody").await.unwrap_err();
        assert!(
            error.contains("Keystone does not accept the credential"),
            "{error}"
        );
    }
}
