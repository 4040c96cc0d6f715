//! `openstack upgrade`: upgrades a cloud to the next release, checks the upgrade, or aborts it.

use std::time::Duration;

use anyhow::{Context as _, bail};
use api::conditions;
use api::openstack::UPGRADE_CHECK;
use api::openstack::conditions::{Reason, Type};
use api::openstack::v1alpha1::{OpenStack, ReleaseStatus};
use deployer::upgrade::{self, Phase};
use deployer::{Cloud, Release, STEP, UID};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::site;
use super::up::HOPELESS;
use super::up::report::Report;
use crate::cli::OpenStackUpgrade;
use crate::environment::Environment;

/// Pause between two reads.
const PAUSE: Duration = Duration::from_millis(500);

/// Time for a controller to notice the deletion of a failed task.
const SEEN: Duration = Duration::from_secs(10);

/// Progress of an upgrade, in a line; empty without one.
pub(super) fn line(cloud: &OpenStack) -> String {
    let status = cloud.status.as_ref().and_then(|it| it.release.as_ref());
    let Some((status, from, to)) =
        status.and_then(|it| Some((it, it.from.as_deref()?, it.to.as_deref()?)))
    else {
        return String::new();
    };
    let over = status.phases.iter();
    let over = over.filter_map(|it| Some(format!("{} {} s", it.name, it.seconds?)));
    let over: Vec<String> = over.collect();
    let over = match over.is_empty() {
        true => String::new(),
        false => format!(" ({})", over.join(", ")),
    };
    match &status.phase {
        Some(phase) => format!("upgrade {from} → {to}: {phase}{over}"),
        None => format!("upgraded {from} → {to}{over}"),
    }
}

/// Command, with its cloud.
struct Upgrading<'a> {
    args: &'a OpenStackUpgrade,
    program: &'a str,
    client: &'a Client,
    api: Api<OpenStack>,
    shutdown: &'a CancellationToken,
}

/// Aim of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The cloud has this release, and is ready.
    Is(Release),
    /// The checks of this release pass.
    Checked(Release),
}

/// Upgrades a cloud, checks the upgrade, or aborts it.
pub(crate) async fn upgrade(
    args: &OpenStackUpgrade,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
    warn: impl Fn(&str),
) -> anyhow::Result<()> {
    let client = site::client(&args.cloud.place, environment).await?;
    let (name, namespace) = (&args.cloud.name, &args.cloud.namespace);
    let upgrading = Upgrading {
        args,
        program: &environment.program,
        client: &client,
        api: Api::namespaced(client.clone(), namespace),
        shutdown: &shutdown,
    };
    let found = upgrading.api.get_opt(name).await;
    let Some(cloud) = found.with_context(|| format!("cannot read OpenStack {namespace}/{name}"))?
    else {
        bail!(
            "there is no cloud {name} in namespace {namespace}: make one with `{} openstack up`",
            environment.program
        );
    };
    let mut report = Report::new(args.output.output, environment, &say);
    let Some(to) = args.to.as_deref() else {
        return upgrading.abort(&cloud, &mut report).await;
    };
    let to = Release::named(to).context("the release is unknown")?;
    for warning in judged(&cloud, to)? {
        warn(&warning);
    }
    match args.check {
        true => upgrading.check(&cloud, to, &mut report).await,
        false => upgrading.go(&cloud, to, &mut report).await,
    }
}

/// Phases with their tasks and programs.
pub(super) type Outline = Vec<(Phase, Vec<&'static str>)>;

/// Current [`Release`] of a cloud to upgrade, with the phases; `None` for a missing cloud, or one already in the
/// release of the plan.
pub(super) async fn planned(
    client: &Client,
    cloud: &Cloud,
) -> anyhow::Result<Option<(Release, Outline)>> {
    let api: Api<OpenStack> = Api::namespaced(client.clone(), &cloud.namespace);
    let there = match api.get_opt(&cloud.name).await {
        Ok(there) => there,
        // A cluster that never had a cloud has no such kind.
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => return Err(error).context("cannot read the cloud"),
    };
    let from = there.as_ref().and_then(current);
    let to = cloud.parameters.release;
    let from = from.filter(|from| *from != to && from.way_to(to).is_ok());
    Ok(from.map(|from| {
        (
            from,
            upgrade::outline(from, cloud.parameters.backup.is_some()),
        )
    }))
}

/// Phases of an upgrade as text.
pub(super) fn outlined(from: Release, to: Release, phases: &Outline) -> String {
    let mut text =
        format!("Upgrade {from} → {to}: all of this is so at its end, after these phases\n");
    for (phase, names) in phases {
        let names = match names.is_empty() {
            true => "-".to_owned(),
            false => names.join(", "),
        };
        text.push_str(&format!("  {:<9}{names}\n", phase.name()));
    }
    text.push_str("The way back by image ends with Expand.\n");
    text
}

/// Phases of an upgrade as a document: `from`, `to`, and each phase with its tasks and programs.
pub(super) fn document(from: Release, to: Release, phases: &Outline) -> Value {
    let phase = |(phase, names): &(Phase, Vec<&str>)| json!({"name": phase.name(), "steps": names, "leadsBack": phase.leads_back()});
    let phases: Vec<Value> = phases.iter().map(phase).collect();
    json!({"from": from.name(), "to": to.name(), "phases": phases})
}

fn release(cloud: &OpenStack) -> Option<&ReleaseStatus> {
    cloud.status.as_ref()?.release.as_ref()
}

/// The release of a cloud.
fn current(cloud: &OpenStack) -> Option<Release> {
    let recorded = release(cloud).and_then(|it| Release::named(&it.current));
    recorded.or_else(|| Release::named(&cloud.spec.release))
}

/// Checks by its parameters if a cloud can be upgraded to a release. Returns notes: options with another name.
///
/// # Errors
/// Reasons against the upgrade, with the field.
fn judged(cloud: &OpenStack, to: Release) -> anyhow::Result<Vec<String>> {
    let from = current(cloud).context("the release of the cloud is unknown")?;
    if from == to {
        return Ok(vec![]);
    }
    if let Err(why) = from.way_to(to) {
        bail!("release: {why}");
    }
    let mut document = serde_json::to_value(cloud)?;
    document["spec"]["release"] = to.name().into();
    let parameters = deployer::checked(&document).map_err(|errors| {
        let errors = errors.join("\n  ");
        anyhow::anyhow!("{to} does not take the parameters of the cloud:\n  {errors}")
    })?;
    let renamed = upgrade::renamed(&parameters, from).into_iter();
    let words = renamed.map(|it| {
        let patch = json!({"spec": it.patch});
        format!(
            "spec.{}: it is {} in {to}, where the old name goes on working; afterwards, the patch is {patch}",
            it.path, it.name
        )
    });
    Ok(words.collect())
}

impl Upgrading<'_> {
    async fn go(
        &self,
        cloud: &OpenStack,
        to: Release,
        report: &mut Report<'_>,
    ) -> anyhow::Result<()> {
        let is_wanted = cloud.spec.release == to.name();
        if current(cloud) == Some(to) && is_wanted {
            report.note(&format!("the cloud is of {to}; nothing is to be done"));
            return Ok(());
        }
        let again = try_again(self.client, cloud, |text| report.note(text)).await?;
        if !is_wanted {
            self.patch(&json!({"spec": {"release": to.name()}})).await?;
            report.note(&format!(
                "release: \"{to}\" is written; write it into the file of the cloud, too"
            ));
        }
        let grace = if again { SEEN } else { Duration::ZERO };
        self.wait(Until::Is(to), grace, report).await
    }

    /// Runs the checks. Only one former content of configuration files remains, as after every change.
    async fn check(
        &self,
        cloud: &OpenStack,
        to: Release,
        report: &mut Report<'_>,
    ) -> anyhow::Result<()> {
        if release(cloud).is_some_and(|it| it.phase.is_some()) {
            bail!("{}: it has its checks itself", line(cloud));
        }
        if current(cloud) == Some(to) {
            report.note(&format!("the cloud is of {to}; nothing is to be checked"));
            return Ok(());
        }
        let annotation =
            |value: Value| json!({"metadata": {"annotations": {UPGRADE_CHECK: value}}});
        self.patch(&annotation(to.name().into())).await?;
        let outcome = self.wait(Until::Checked(to), Duration::ZERO, report).await;
        self.patch(&annotation(Value::Null)).await?;
        self.forgotten().await?;
        outcome?;
        report.note(&format!(
            "the checks of {to} pass; nothing is changed. `{} openstack upgrade --to {to}` upgrades, and --abort takes that back until the phase Expand is over",
            self.program
        ));
        Ok(())
    }

    async fn abort(&self, cloud: &OpenStack, report: &mut Report<'_>) -> anyhow::Result<()> {
        let status = release(cloud).filter(|it| it.phase.is_some());
        let Some((status, phase)) =
            status.and_then(|it| Some((it, Phase::named(it.phase.as_deref()?)?)))
        else {
            bail!("no upgrade is under way: there is nothing to go back from");
        };
        let back =
            Release::named(&status.current).context("the release of the cloud is unknown")?;
        if !phase.leads_back() {
            let to = status.to.as_deref().unwrap_or_default();
            bail!(
                "the upgrade is in the phase {phase}, and programs of {to} have written: no way leads back to {back}. Mend what fails \
                 (`{0} openstack why`) and go on with `{0} openstack upgrade --to {to}`, or restore a backup of {back}",
                self.program
            );
        }
        self.patch(&json!({"spec": {"release": back.name()}}))
            .await?;
        self.wait(Until::Is(back), Duration::ZERO, report).await?;
        report.note(&format!("the cloud is of {back} again; what was expanded in its databases stays, and {back} runs with it"));
        Ok(())
    }

    async fn patch(&self, patch: &Value) -> anyhow::Result<()> {
        let name = &self.args.cloud.name;
        let done = self
            .api
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        match done {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) => bail!("nothing is changed: {}", status.message),
            Err(error) => Err(error).with_context(|| format!("cannot change OpenStack {name}")),
        }
    }

    /// Waits a while until the status has no check any more, since a check is no upgrade.
    async fn forgotten(&self) -> anyhow::Result<()> {
        let patience = tokio::time::Instant::now() + SEEN;
        while tokio::time::Instant::now() < patience {
            let cloud = self.api.get_opt(&self.args.cloud.name).await;
            let cloud = cloud.context("cannot read the cloud")?;
            let phase = cloud
                .as_ref()
                .and_then(release)
                .and_then(|it| it.phase.as_ref());
            if phase.is_none() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Shows changes until the aim is reached. A failure within `grace` may be an old one.
    async fn wait(
        &self,
        until: Until,
        grace: Duration,
        report: &mut Report<'_>,
    ) -> anyhow::Result<()> {
        let name = &self.args.cloud.name;
        let believed = tokio::time::Instant::now() + grace;
        let deadline = tokio::time::Instant::now() + self.args.timeout;
        let mut version = None;
        loop {
            let found = self
                .api
                .get_opt(name)
                .await
                .context("cannot read the cloud")?;
            let Some(cloud) = found else {
                bail!("the cloud {name} was deleted");
            };
            let last = match ended(&cloud, until, self.program) {
                Err(error) if tokio::time::Instant::now() < believed => Some(error.to_string()),
                last => last?,
            };
            match version == cloud.resource_version() {
                true => report.tick(),
                false => report.cloud(&cloud),
            }
            version = cloud.resource_version();
            let Some(last) = last else {
                return Ok(());
            };
            if tokio::time::Instant::now() > deadline {
                bail!(
                    "not done after {} s: {last}. Its controller goes on",
                    self.args.timeout.as_secs()
                );
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = self.shutdown.cancelled() => bail!("interrupted: {last}. Its controller goes on, and so does the same command"),
            }
        }
    }
}

/// Deletes the failed tasks of this cloud's upgrade, for the controller to run again. False if there were none.
async fn try_again(
    client: &Client,
    cloud: &OpenStack,
    mut note: impl FnMut(&str),
) -> anyhow::Result<bool> {
    let mut again = false;
    // Before the cloud has a uid it has no tasks.
    let Some(uid) = cloud.status.as_ref().and_then(|it| it.uid.as_deref()) else {
        return Ok(again);
    };
    let jobs: Api<Job> = Api::namespaced(client.clone(), &cloud.namespace().unwrap_or_default());
    let ours = ListParams::default().labels(&format!("{UID}={uid}"));
    let all = jobs.list(&ours).await.context("cannot list Jobs")?;
    for job in all.items {
        let step = job
            .labels()
            .get(STEP)
            .map(String::as_str)
            .unwrap_or_default();
        let conditions = job.status.as_ref().and_then(|it| it.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        let has_failed = conditions.any(|it| it.type_ == "Failed" && it.status == "True");
        if has_failed && upgrade::part(step).is_some() {
            let name = job.name_any();
            let mut seen = DeleteParams::background();
            seen.preconditions = Some(Preconditions {
                uid: job.uid(),
                resource_version: None,
            });
            let deleted = jobs.delete(&name, &seen).await;
            deleted.with_context(|| format!("cannot delete job {name}"))?;
            note(&format!("{step} had failed, and runs again"));
            again = true;
        }
    }
    Ok(again)
}

/// Reason why the aim is not reached; `None` when reached.
///
/// # Errors
/// Failures that need the user.
fn ended(cloud: &OpenStack, until: Until, program: &str) -> anyhow::Result<Option<String>> {
    let status = cloud.status.clone().unwrap_or_default();
    let begun = Some(
        "no controller has looked at it since: is `openstack up` or the manager running?"
            .to_owned(),
    );
    let ready = conditions::find(&status.conditions, Type::Ready);
    let (Some(ready), Some(release)) = (ready, &status.release) else {
        return Ok(begun);
    };
    let is_over = match until {
        Until::Is(wanted) => {
            release.current == wanted.name() && release.phase.is_none() && ready.status == "True"
        }
        Until::Checked(to) => {
            let check = release.phases.first();
            release.to.as_deref() == Some(to.name()) && check.is_some_and(|it| it.seconds.is_some())
        }
    };
    if status.observed_generation != cloud.metadata.generation {
        return Ok(begun);
    }
    if is_over {
        return Ok(None);
    }
    // An upgrade goes on with the last good certificate; what is wrong with the next one is all that is left in the end.
    let is_left = release.phase.is_none() && ready.reason == Reason::CertificateUnusable;
    if is_left || HOPELESS.iter().any(|it| ready.reason == *it) {
        bail!("{}", ready.message);
    }
    let tasks = conditions::find(&status.conditions, Type::TasksSucceeded);
    let phase = release.phase.as_deref().and_then(Phase::named);
    if let (Some(phase), Some(tasks)) = (phase, tasks.filter(|it| it.status == "False")) {
        let to = release.to.as_deref().unwrap_or_default();
        let advice = match (until, phase.leads_back()) {
            (Until::Checked(_), _) => "Nothing is changed".to_owned(),
            (Until::Is(_), true) => format!(
                "When it is mended, `{program} openstack upgrade --to {to}` goes on; `{program} openstack upgrade --abort` takes the cloud back"
            ),
            (Until::Is(_), false) => format!(
                "When it is mended, `{program} openstack upgrade --to {to}` goes on; there is no way back by image any more"
            ),
        };
        bail!("{phase} fails: {}. {advice}", tasks.message);
    }
    Ok(Some(
        format!("{} {}", line(cloud), ready.message)
            .trim()
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests;
