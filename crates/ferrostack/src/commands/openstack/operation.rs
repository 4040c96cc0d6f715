//! `openstack backup`, `openstack restore` and `openstack rotate`: creation, display and wait for an operation on a
//! cloud.

use std::time::Duration;

use anyhow::{Context as _, bail};
use api::openstack::operation::{
    Backup, FAILED, OpenStackOperation, OpenStackOperationSpec, OpenStackOperationStatus, Restore,
    Rotate, SUCCEEDED,
};
use api::openstack::v1alpha1::OpenStack;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::site;
use crate::cli::{CloudArgs, OpenStackBackup, OpenStackRestore, OpenStackRotate, Output};
use crate::environment::Environment;

/// Pause between two reads.
const PAUSE: Duration = Duration::from_millis(500);

/// Command, with the format of its output.
pub(crate) struct Asked<'a> {
    cloud: &'a CloudArgs,
    what: What<'a>,
    timeout: Duration,
    output: Output,
}

/// Type of the operation.
#[derive(Clone, Copy)]
enum What<'a> {
    /// Backup of this name; by default a name made from the time.
    Backup(Option<&'a str>),
    /// A restore of this backup.
    Restore(&'a str),
    /// Rotation of these accounts; of all if empty.
    Rotate(&'a [String]),
}

impl<'a> From<&'a OpenStackBackup> for Asked<'a> {
    fn from(args: &'a OpenStackBackup) -> Self {
        Self {
            cloud: &args.cloud,
            what: What::Backup(args.backup_name.as_deref()),
            timeout: args.timeout,
            output: args.output.output,
        }
    }
}

impl<'a> From<&'a OpenStackRestore> for Asked<'a> {
    fn from(args: &'a OpenStackRestore) -> Self {
        Self {
            cloud: &args.cloud,
            what: What::Restore(&args.backup),
            timeout: args.timeout,
            output: args.output.output,
        }
    }
}

impl<'a> From<&'a OpenStackRotate> for Asked<'a> {
    fn from(args: &'a OpenStackRotate) -> Self {
        Self {
            cloud: &args.cloud,
            what: What::Rotate(&args.only),
            timeout: args.timeout,
            output: args.output.output,
        }
    }
}

/// Backs up or restores a cloud, or rotates its passwords.
pub(crate) async fn operate<'a>(
    args: impl Into<Asked<'a>>,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    args.into().run(environment, &shutdown, &say).await
}

impl Asked<'_> {
    async fn run(
        &self,
        environment: &Environment,
        shutdown: &CancellationToken,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<()> {
        let client = site::client(&self.cloud.place, environment).await?;
        self.judged(&client, environment).await?;
        let api: Api<OpenStackOperation> = Api::namespaced(client, &self.cloud.namespace);
        if let What::Rotate(_) = self.what {
            self.alone(&api).await?;
        }
        let object = self.object(Timestamp::now());
        let created = api.create(&PostParams::default(), &object).await;
        let created = match created {
            Ok(created) => created,
            Err(kube::Error::Api(status)) if status.is_already_exists() => bail!(
                "there is an operation {} already: give it another name, or try again",
                object.name_any()
            ),
            Err(kube::Error::Api(status)) => bail!("nothing is begun: {}", status.message),
            Err(error) => return Err(error).context("cannot create an OpenStackOperation"),
        };
        self.wait(&api, &created, shutdown, say).await
    }

    /// Checks that the cloud can do the operation, to report missing parameters before anything is created.
    async fn judged(&self, client: &Client, environment: &Environment) -> anyhow::Result<()> {
        let (name, namespace) = (&self.cloud.name, &self.cloud.namespace);
        let api: Api<OpenStack> = Api::namespaced(client.clone(), namespace);
        let found = api.get_opt(name).await;
        let found = found.with_context(|| format!("cannot read OpenStack {namespace}/{name}"))?;
        let Some(cloud) = found else {
            bail!(
                "there is no cloud {name} in namespace {namespace}: make one with `{} openstack up`",
                environment.program
            );
        };
        if let What::Rotate(_) = self.what {
            let release = cloud.status.and_then(|it| it.release).unwrap_or_default();
            if let (Some(to), Some(phase)) = (release.to, release.phase) {
                bail!("the cloud {name} is on its way to {to} ({phase}): rotate when it is there");
            }
        } else if cloud.spec.backup.is_none() {
            bail!(
                "spec.backup of the cloud {name} is not set: claimName names the volume, and certificate whom its keys are encrypted to"
            );
        }
        Ok(())
    }

    /// Refuses to begin while another operation on the cloud is not over.
    async fn alone(&self, api: &Api<OpenStackOperation>) -> anyhow::Result<()> {
        let all = api.list(&ListParams::default()).await;
        let all = all.context("cannot list the operations on the cloud")?;
        let is_open = |it: &&OpenStackOperation| {
            let status = it.status.as_ref();
            it.spec.openstack == self.cloud.name
                && !status.is_some_and(OpenStackOperationStatus::is_over)
        };
        match all.items.iter().find(is_open) {
            None => Ok(()),
            Some(other) => bail!(
                "operation {} on the cloud is not over: rotate when it is",
                other.name_any()
            ),
        }
    }

    fn object(&self, now: Timestamp) -> OpenStackOperation {
        let stamped = |word: &str| {
            let time = now.strftime("%Y%m%d-%H%M%S");
            format!("{}{word}-{time}", self.cloud.name)
        };
        let name = match self.what {
            What::Backup(Some(name)) => name.to_owned(),
            What::Backup(None) => stamped(""),
            What::Restore(_) => stamped("-restore"),
            What::Rotate(_) => stamped("-rotate"),
        };
        let mut spec = OpenStackOperationSpec {
            openstack: self.cloud.name.clone(),
            ..OpenStackOperationSpec::default()
        };
        match self.what {
            What::Backup(_) => spec.backup = Some(Backup::default()),
            What::Restore(from) => {
                let from = from.to_owned();
                spec.restore = Some(Restore { from });
            }
            What::Rotate(only) => {
                let only = only.to_vec();
                spec.rotate = Some(Rotate { only });
            }
        }
        OpenStackOperation {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(self.cloud.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        }
    }

    /// Shows changes until the operation is over.
    async fn wait(
        &self,
        api: &Api<OpenStackOperation>,
        created: &OpenStackOperation,
        shutdown: &CancellationToken,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<()> {
        let name = created.name_any();
        let deadline = tokio::time::Instant::now() + self.timeout;
        let mut printed = String::new();
        loop {
            let found = api.get_opt(&name).await;
            let found = found.context("cannot read the operation")?;
            let Some(operation) = found.filter(|it| it.uid() == created.uid()) else {
                bail!("the operation {name} was deleted");
            };
            let status = operation.status.clone().unwrap_or_default();
            let line = line(&name, &status);
            if status.is_over() {
                return self.over(&name, &status, say);
            }
            if line != printed {
                match self.output {
                    Output::Json => say(&terminal::json_line(&document(&name, &status))),
                    Output::Text => say(&line),
                }
                printed.clone_from(&line);
            }
            let goes_on =
                format!("{line}. Its controller goes on: `kubectl get openstackoperation {name}`");
            if tokio::time::Instant::now() > deadline {
                bail!("not done after {} s: {goes_on}", self.timeout.as_secs());
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = shutdown.cancelled() => bail!("interrupted: {goes_on}"),
            }
        }
    }

    fn over(
        &self,
        name: &str,
        status: &OpenStackOperationStatus,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<()> {
        if status.phase.as_deref() == Some(FAILED) {
            bail!("{}", line(name, status));
        }
        match self.output {
            Output::Json => say(&terminal::json_line(&document(name, status))),
            Output::Text => say(&line(name, status)),
        }
        Ok(())
    }
}

/// [`OpenStackOperation`] as a document: name and status.
fn document(name: &str, status: &OpenStackOperationStatus) -> Value {
    json!({"operation": name, "status": status})
}

/// Progress of an operation, in a line.
fn line(name: &str, status: &OpenStackOperationStatus) -> String {
    let over = status.steps.iter();
    let over = over.filter_map(|it| Some(format!("{} {} s", it.name, it.seconds?)));
    let over: Vec<String> = over.collect();
    let over = match over.is_empty() {
        true => String::new(),
        false => format!(" ({})", over.join(", ")),
    };
    let step = status.steps.iter().find(|it| it.seconds.is_none());
    let phase = match (status.phase.as_deref(), step) {
        (None, _) => {
            return format!(
                "{name}: no controller has looked at it: is `openstack up` or the manager running?"
            );
        }
        (Some(SUCCEEDED), _) => {
            let Some(backup) = status.backup.as_deref() else {
                return format!("{name}: done{over}");
            };
            let about = status.digest.as_ref().zip(status.size);
            let about = about.map_or_else(String::new, |(digest, size)| {
                format!(", {size} bytes, SHA-256 {digest}")
            });
            return format!("{name}: done{over}: backup {backup}{about}");
        }
        (Some(phase), Some(step)) => format!("{phase}: {}", step.name),
        (Some(phase), None) => phase.to_owned(),
    };
    let message = match status.message.as_str() {
        "" => String::new(),
        message => format!(": {message}"),
    };
    format!("{name}: {phase}{over}{message}")
}

#[cfg(test)]
mod tests;
