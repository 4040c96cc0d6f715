//! `openstack backup` and `openstack restore`: an operation on a cloud is made, shown and waited for.

use std::time::Duration;

use anyhow::{Context as _, bail};
use api::openstack::operation::{
    Backup, FAILED, OpenStackOperation, OpenStackOperationSpec, OpenStackOperationStatus, Restore,
    SUCCEEDED,
};
use api::openstack::v1alpha1::OpenStack;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::place;
use crate::cli::{CloudArgs, OpenStackBackup, OpenStackRestore, Output};
use crate::environment::Environment;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Command, and the form of its output.
struct Asked<'a> {
    cloud: &'a CloudArgs,
    /// The name of the operation; without it one is made from the time.
    name: Option<&'a str>,
    /// The backup that is loaded; `None` for a backup.
    from: Option<&'a str>,
    timeout: Duration,
    output: Output,
}

/// Makes a backup of a cloud.
pub(crate) async fn backup(
    args: &OpenStackBackup,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let asked = Asked {
        cloud: &args.cloud,
        name: args.backup_name.as_deref(),
        from: None,
        timeout: args.timeout,
        output: args.output.output,
    };
    asked.run(environment, &shutdown, &say).await
}

/// Restores a backup into a cloud.
pub(crate) async fn restore(
    args: &OpenStackRestore,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let asked = Asked {
        cloud: &args.cloud,
        name: None,
        from: Some(&args.backup),
        timeout: args.timeout,
        output: args.output.output,
    };
    asked.run(environment, &shutdown, &say).await
}

impl Asked<'_> {
    async fn run(
        &self,
        environment: &Environment,
        shutdown: &CancellationToken,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<()> {
        let client = place::client(&self.cloud.place, environment).await?;
        self.judged(&client, environment).await?;
        let api: Api<OpenStackOperation> = Api::namespaced(client, &self.cloud.namespace);
        let object = self.object(Timestamp::now());
        let created = api.create(&PostParams::default(), &object).await;
        let created = match created {
            Ok(created) => created,
            Err(kube::Error::Api(status)) if status.is_already_exists() => bail!(
                "there is an operation {} already: give the backup another name",
                object.name_any()
            ),
            Err(kube::Error::Api(status)) => bail!("nothing is begun: {}", status.message),
            Err(error) => return Err(error).context("cannot create an OpenStackOperation"),
        };
        self.wait(&api, &created, shutdown, say).await
    }

    /// Looks whether the cloud can do it, so that a word that is missing is told before anything is made.
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
        if cloud.spec.backup.is_none() {
            bail!(
                "spec.backup of the cloud {name} is not set: claimName names the volume, and certificate whom its keys are encrypted to"
            );
        }
        Ok(())
    }

    fn object(&self, now: Timestamp) -> OpenStackOperation {
        let what = if self.from.is_some() { "-restore" } else { "" };
        let stamped = || {
            format!(
                "{}{what}-{}",
                self.cloud.name,
                now.strftime("%Y%m%d-%H%M%S")
            )
        };
        OpenStackOperation {
            metadata: ObjectMeta {
                name: Some(self.name.map_or_else(stamped, str::to_owned)),
                namespace: Some(self.cloud.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: OpenStackOperationSpec {
                openstack: self.cloud.name.clone(),
                backup: self.from.is_none().then(Backup::default),
                restore: self.from.map(|it| Restore {
                    from: it.to_owned(),
                }),
            },
            status: None,
        }
    }

    /// Shows what changes until the operation is over.
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

/// An operation as a document: its name and its status.
fn document(name: &str, status: &OpenStackOperationStatus) -> Value {
    json!({"operation": name, "status": status})
}

/// How far an operation is, in a line.
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
            let backup = status.backup.as_deref().unwrap_or_default();
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
