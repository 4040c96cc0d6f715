//! `openstack up`: makes or changes a cloud, and runs its controller.

mod detach;
mod lines;
pub(super) mod parameters;
pub(super) mod report;
mod tree;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use api::openstack::conditions::{Reason, Type};
use api::openstack::v1alpha1::OpenStack;
use api::{conditions, printable};
use deployer::Release;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use operator::client::Requests;
use operator::metrics::Metrics;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::parameters::Asked;
use self::report::Report;
use super::site::Site;
use super::{login, machine, status};
use crate::cli::{On, OpenStackUp, PlaceArgs};
use crate::connect::quoted_text;
use crate::environment::Environment;

const SIMULATED: &str = "simulated: nothing is started on this machine. A real OpenStack: --on this-machine, after `tests/kubernetes/node install`, \
     or a cluster of yours, which is named with --kubeconfig or --context";
/// Timeout of a shutdown for running reconciles.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs until `shutdown`, or with `--exit-when-ready` until the cloud is ready.
pub(crate) async fn up(
    args: &OpenStackUp,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
    warn: impl Fn(&str),
) -> anyhow::Result<()> {
    if args.detach {
        return detach::run(args, environment, shutdown, say).await;
    }
    let mut report = Report::new(args.output.output, environment, &say);
    let defaults = match args.on {
        Some(On::ThisMachine) => machine::defaults(),
        Some(On::Simulated) | None => Value::Null,
    };
    let asked = parameters::read(args.file.as_deref(), &args.set, &defaults)?;
    for warning in &asked.warnings {
        warn(warning);
    }
    let stop = shutdown.child_token();
    let _end = stop.clone().drop_guard();
    let metrics = Metrics::default();
    let place = cluster(args, &asked, environment, &mut report, &shutdown).await?;
    let Some(place) = place else {
        return Ok(());
    };
    let mut place = Site::open(&place, environment, &metrics, &stop).await?;
    if place.simulated.is_some() {
        report.note(SIMULATED);
        report.mark_simulated();
    }
    let (looked, looks) = watch::channel(false);
    let running = Running {
        looks,
        requests: Requests::default(),
    };
    let options = rollout::Options {
        namespace: Some(asked.namespace.clone()),
        metrics,
        requests: running.requests.clone(),
        looked: Some(Arc::new(looked)),
        ..rollout::Options::default()
    };
    let work = async {
        let client = place.client.clone();
        let changed = apply(&client, &asked).await?;
        report.note(changed);
        place.control(options, &stop);
        follow(args, &place, &asked, &mut report, running.clone()).await
    };
    let outcome = tokio::select! {
        outcome = work => outcome,
        () = shutdown.cancelled() => Ok(()),
    };
    stop.cancel();
    if tokio::time::timeout(PATIENCE, place.stopped())
        .await
        .is_err()
    {
        tracing::warn!(
            "some work was still under way after {} s",
            PATIENCE.as_secs()
        );
    }
    outcome?;
    if shutdown.is_cancelled() {
        report.stopped(&running.requests);
    }
    Ok(())
}

/// Cluster of the cloud, made first with `--on this-machine`; `None` after `shutdown`.
async fn cluster(
    args: &OpenStackUp,
    asked: &Asked,
    environment: &Environment,
    report: &mut Report<'_>,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<PlaceArgs>> {
    if args.on != Some(On::ThisMachine) {
        return Ok(Some(args.place.clone()));
    }
    let spec = &asked.object["spec"];
    let mut note = |text: &str| report.note(text);
    let kubeconfig = tokio::select! {
        made = machine::prepared(spec, &asked.filled, environment, &mut note) => made?,
        () = shutdown.cancelled() => return Ok(None),
    };
    Ok(Some(PlaceArgs {
        kubeconfig: Some(kubeconfig),
        ..args.place.clone()
    }))
}

/// Handles of the controller.
#[derive(Clone)]
struct Running {
    /// True once the controller has compared the cloud with the desired state.
    looks: watch::Receiver<bool>,
    /// Requests to the API server.
    requests: Requests,
}

/// Applies the CRD, the namespace and the object where different. Returns a description.
pub(super) async fn apply(client: &Client, asked: &Asked) -> anyhow::Result<&'static str> {
    let namespace = asked.namespace.as_str();
    let api: Api<OpenStack> = Api::namespaced(client.clone(), namespace);
    of_a_release_for_new_ones(&api, asked).await?;
    install(client).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = namespaces.get_opt(namespace).await;
    if found
        .with_context(|| format!("cannot read namespace {namespace}"))?
        .is_none()
    {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let object = serde_json::from_value(object)?;
        let created = namespaces.create(&PostParams::default(), &object).await;
        created.with_context(|| format!("cannot create namespace {namespace}"))?;
    }
    let title = format!("OpenStack {namespace}/{}", asked.name);
    let before = api.get_opt(&asked.name).await;
    let before = before.with_context(|| format!("cannot read {title}"))?;
    if before.is_none() {
        alone(&api, namespace).await?;
    }
    if let Some(before) = &before {
        stays(before)?;
    }
    if before.is_some() && asked.is_default {
        return Ok("the cloud is there; no parameters are given, and none are changed");
    }
    if before.is_some() && !asked.has_file {
        bail!(
            "--set is above a file: without one, the other parameters of the cloud {} would be lost. Name its file with -f",
            asked.name
        );
    }
    let params = PatchParams::apply("ferrostack").force();
    let applied = api
        .patch(&asked.name, &params, &Patch::Apply(&asked.object))
        .await;
    let applied = applied.map_err(|error| match error {
        kube::Error::Api(status) => anyhow::Error::msg(status.message),
        other => anyhow::Error::new(other).context(format!("cannot write {title}")),
    })?;
    Ok(match before {
        None => "the cloud is new",
        Some(before) if before.resource_version() == applied.resource_version() => {
            "the parameters are as before; nothing is written"
        }
        Some(_) => "the parameters are changed",
    })
}

/// Rejects parameters for a cloud that is being deleted.
///
/// # Errors
///
/// If the [`OpenStack`] object is being deleted.
fn stays(cloud: &OpenStack) -> anyhow::Result<()> {
    if cloud.metadata.deletion_timestamp.is_some() {
        bail!(
            "the cloud {} is being deleted: wait for the end of `ferrostack openstack delete`",
            cloud.name_any()
        );
    }
    Ok(())
}

/// Rejects a new cloud of a release without an upgrade to the next one.
///
/// # Errors
///
/// The release, and the [`Release`] to choose.
async fn of_a_release_for_new_ones(api: &Api<OpenStack>, asked: &Asked) -> anyhow::Result<()> {
    let name = asked.object["spec"]["release"].as_str();
    let release = name.and_then(Release::named);
    let Some(release) = release.filter(|it| !it.takes_new_clouds()) else {
        return Ok(());
    };
    match api.get_opt(&asked.name).await {
        Ok(Some(_)) => Ok(()),
        Err(error) if !matches!(&error, kube::Error::Api(status) if status.code == 404) => {
            Err(error).context("cannot ask whether the cloud is new")
        }
        Ok(None) | Err(_) => bail!(
            "release: no new cloud is made of {release}; those that are there go on. Take {}",
            Release::DEFAULT
        ),
    }
}

/// Rejects a second cloud in a namespace: every object of the namespace would have two owners.
///
/// # Errors
///
/// The existing cloud.
async fn alone(api: &Api<OpenStack>, namespace: &str) -> anyhow::Result<()> {
    let there = api.list(&ListParams::default().limit(1)).await;
    let there = match there {
        Ok(there) => there.items,
        // A cluster that never had a cloud has no such kind. Over a connection that looks like an object that is not there.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot list clouds in namespace {namespace}"));
        }
    };
    if let Some(cloud) = there.first() {
        bail!(
            "namespace {namespace} has the cloud {} already, and each needs a namespace for itself: give the new one another metadata.namespace",
            cloud.name_any()
        );
    }
    Ok(())
}

/// Asks the API server to check the object of the cloud, also by the existing one, in a dry run. Nothing is written.
///
/// # Errors
///
/// If the API server rejects the object, with its message, or if the namespace has another cloud.
pub(super) async fn judged(client: &Client, asked: &Asked) -> anyhow::Result<()> {
    let (name, namespace) = (asked.name.as_str(), asked.namespace.as_str());
    let title = format!("OpenStack {namespace}/{name}");
    let api: Api<OpenStack> = Api::namespaced(client.clone(), namespace);
    of_a_release_for_new_ones(&api, asked).await?;
    let params = PatchParams::apply("ferrostack").force().dry_run();
    match api.get_opt(name).await {
        Ok(Some(before)) => stays(&before)?,
        Ok(None) => alone(&api, namespace).await?,
        // A cluster that never had a cloud has no such kind.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {title}")),
    }
    match api.patch(name, &params, &Patch::Apply(&asked.object)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(kube::Error::Api(status)) => {
            bail!("the API server rejects {title}: {}", status.message)
        }
        Err(other) => Err(other).with_context(|| format!("cannot ask about {title}")),
    }
}

/// Reason why a cluster of this version cannot have the CRD: rules in CRDs are evaluated since Kubernetes 1.29.
fn too_old(version: &Info) -> Option<String> {
    // Some distributions add a sign: `29+`.
    let number = |text: &str| text.trim_end_matches('+').parse::<u32>().ok();
    let found = (number(&version.major)?, number(&version.minor)?);
    (found < (1, 29)).then(|| {
        format!(
            "the cluster has Kubernetes {}, which is too old: 1.29 or later is needed, whose API server evaluates the rules of the kind OpenStack",
            version.git_version
        )
    })
}

/// Installs the CRD in a cluster without it.
async fn install(client: &Client) -> anyhow::Result<()> {
    let version = client.apiserver_version().await;
    let version = version.context("cannot read the version of the cluster")?;
    if let Some(problem) = too_old(&version) {
        bail!(problem);
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in api::crds::of(&[api::openstack::GROUP]) {
        let name = definition.name_any();
        let found = definitions.get_opt(&name).await;
        let found =
            found.with_context(|| format!("cannot read CustomResourceDefinition {name}"))?;
        if found.is_none() {
            let created = definitions
                .create(&PostParams::default(), &definition)
                .await;
            created.with_context(|| format!("cannot create CustomResourceDefinition {name}"))?;
        }
    }
    let established = async {
        loop {
            let name = "openstacks.ferrostack.dev";
            let found = definitions.get_opt(name).await?;
            let status = found.and_then(|it| it.status).unwrap_or_default();
            let mut all = status.conditions.into_iter().flatten();
            if all.any(|it| it.type_ == "Established" && it.status == "True") {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let limit = Duration::from_secs(30);
    match tokio::time::timeout(limit, established).await {
        Ok(outcome) => outcome,
        Err(_) => bail!(
            "the API server does not establish the kind OpenStack: kubectl describe crd openstacks.ferrostack.dev"
        ),
    }
}

/// Reasons of Ready that need the user.
pub(super) const HOPELESS: [Reason; 2] = [Reason::Conflict, Reason::ConfigurationInvalid];

/// True if `up` ends for this reason of Ready. With an unusable certificate the controller in this program still
/// manages everything else, so only an `up` waiting for the cloud ends.
fn ends(reason: &str, exit_when_ready: bool) -> bool {
    HOPELESS.iter().any(|it| reason == *it)
        || exit_when_ready && reason == Reason::CertificateUnusable
}

/// Words for a paused cloud.
const PAUSED: &str = "is paused, and nothing is written to it; `paused: false` lets it go on";

/// Prints changes, forever or until all steps are ready. A status from before the controller's first look is shown, but
/// does not count.
async fn follow(
    args: &OpenStackUp,
    place: &Site,
    asked: &Asked,
    report: &mut Report<'_>,
    mut running: Running,
) -> anyhow::Result<()> {
    let api: Api<OpenStack> = Api::namespaced(place.client.clone(), &asked.namespace);
    let watched = || Box::pin(operator::watch::object(&api, &asked.name).default_backoff());
    let (mut events, mut has_looked) = (watched(), false);
    let (mut was_ready, mut was_paused, mut last) = (false, false, String::new());
    let mut noted = String::new();
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    let limit = match args.exit_when_ready {
        true => args.timeout,
        false => Duration::MAX,
    };
    let deadline = tokio::time::sleep(limit.min(Duration::from_secs(365 * 86_400)));
    let mut deadline = std::pin::pin!(deadline);
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            Ok(()) = running.looks.changed(), if !has_looked => {
                // The watch may be behind; another one begins with what is there now.
                (events, has_looked) = (watched(), true);
                continue;
            }
            _ = tick.tick() => {
                report.tick();
                continue;
            }
            () = &mut deadline => bail!("not ready after {} s: {last}", args.timeout.as_secs()),
        };
        let cloud = match event.context("the watch of the cloud ended")? {
            Ok(Some(cloud)) => cloud,
            Ok(None) if args.exit_when_ready => bail!("the cloud {} was deleted", asked.name),
            // Its API server may be in use.
            Ok(None) => {
                report.gone();
                was_ready = false;
                continue;
            }
            Err(watcher::Error::NoResourceVersion) => bail!("the API server is too old"),
            Err(error) => {
                tracing::debug!("the watch begins again: {error}");
                continue;
            }
        };
        let status = cloud.status.clone().unwrap_or_default();
        let is_current = has_looked && status.observed_generation == cloud.metadata.generation;
        let ready = conditions::find(&status.conditions, Type::Ready);
        let ready = ready.filter(|_| is_current);
        last = ready
            .map(|it| it.message.clone())
            .unwrap_or_else(|| last.clone());
        // What was observed before the pause stands in its status.
        let is_ready = ready.is_some_and(|it| it.status == "True") && !cloud.spec.paused;
        if !(is_ready && was_ready) {
            report.cloud(&cloud);
        }
        if cloud.spec.paused && is_current {
            if args.exit_when_ready {
                bail!("the cloud {} {PAUSED}", asked.name);
            }
            if !was_paused {
                report.note(&format!("the cloud {} {PAUSED}", asked.name));
            }
        } else if is_ready && !was_ready {
            announce(place, asked, report, &running.requests, &cloud).await?;
        } else if ready.is_some_and(|it| ends(&it.reason, args.exit_when_ready)) {
            bail!("{last}");
        } else if ready.is_some_and(|it| it.reason == Reason::CertificateUnusable) && noted != last
        {
            noted.clone_from(&last);
            report.note(&printable::line(&noted));
        }
        if is_ready {
            noted.clear();
        }
        was_paused = cloud.spec.paused && is_current;
        was_ready = is_ready;
        if is_ready && args.exit_when_ready {
            return Ok(());
        }
    }
}

/// Prints the readiness of the cloud, with commands, and with the dashboard of a real cloud.
async fn announce(
    place: &Site,
    asked: &Asked,
    report: &mut Report<'_>,
    requests: &Requests,
    cloud: &OpenStack,
) -> anyhow::Result<()> {
    let steps = cloud.status.as_ref().map_or(0, |it| it.steps.len());
    let dashboard = status::url(cloud).filter(|_| place.simulated.is_none());
    let (name, namespace, seconds) = (&asked.name, &asked.namespace, report.seconds());
    let file = match login::write(place, namespace, name).await {
        // The cloud is ready all the same.
        Err(error) if place.simulated.is_none() => {
            report.note(&format!("clouds.yaml is not written: {error:#}"));
            None
        }
        file => file?,
    };
    let command = match place.simulated {
        Some(_) => "catalog list",
        None => "server list",
    };
    let event = json!({"ready": {"name": name, "namespace": namespace, "seconds": seconds,
        "cloudsYaml": file, "dashboard": dashboard, "requests": report::counts(requests)}});
    let mut lines = vec![format!("{} {seconds:.1} s: {steps} steps", report::READY)];
    lines.extend(file.map(|file| {
        let file = quoted_text(&file);
        format!("OS_CLIENT_CONFIG_FILE={file} openstack --os-cloud {name} {command}")
    }));
    lines.extend(dashboard.map(|url| format!("dashboard: {url}")));
    report.ready(&event, lines);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_cannot_be_used_does_not_end_the_controller() {
        for (reason, waiting, following) in [
            (Reason::Conflict, true, true),
            (Reason::ConfigurationInvalid, true, true),
            (Reason::CertificateUnusable, true, false),
            (Reason::Progressing, false, false),
        ] {
            assert_eq!(ends(reason.as_str(), true), waiting, "{reason}");
            assert_eq!(ends(reason.as_str(), false), following, "{reason}");
        }
    }

    #[test]
    fn a_cluster_that_does_not_evaluate_the_rules_of_the_kind_is_too_old() {
        let version = |major: &str, minor: &str| Info {
            major: major.to_owned(),
            minor: minor.to_owned(),
            git_version: format!("v{major}.{minor}.0"),
            ..Info::default()
        };
        for (major, minor, old) in [
            ("1", "28", true),
            ("1", "28+", true),
            ("1", "29", false),
            ("1", "34+", false),
            ("2", "0", false),
            // Another way of counting is believed.
            ("", "", false),
        ] {
            assert_eq!(
                too_old(&version(major, minor)).is_some(),
                old,
                "{major}.{minor}"
            );
        }
        let words = too_old(&version("1", "24")).unwrap();
        assert!(
            words.contains("Kubernetes v1.24.0") && words.contains("1.29"),
            "{words}"
        );
    }
}
