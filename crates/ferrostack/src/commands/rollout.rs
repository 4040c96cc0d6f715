//! `rollout`: begins, pauses, undoes and follows the rollouts of MachineDeployments and KubeadmControlPlanes.

mod plan;
mod progress;

use std::time::Duration;

use anyhow::{Context as _, bail};
use apply::FIELD_MANAGER;
use jiff::Timestamp;
use kube::Client;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use operator::client::Api;
use serde_json::json;
use status::snapshot::Kind;
use terminal::Layout;
use tokio::time::Instant;

use self::plan::{Change, Request};
use self::progress::Progress;
use crate::cli::{Output, Resource, Rollout, RolloutHistory, RolloutStatus};
use crate::connect;
use crate::environment::Environment;
use crate::output::{self, print, say};

/// Runs the command.
pub(super) async fn execute(args: &Rollout, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, print, say).await
}

/// Pause between two reads of `rollout status`.
const LOOK: Duration = Duration::from_millis(500);
/// Maximum of attempts to write an object after changes by others.
const ATTEMPTS: usize = 20;

/// Applies the request to each [`Resource`], in order; ends at the first rejected one.
pub(crate) async fn run(
    args: &Rollout,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let connect = match args {
        Rollout::Restart(args) | Rollout::Pause(args) | Rollout::Resume(args) => &args.connect,
        Rollout::Undo(args) => &args.connect,
        Rollout::Status(args) => &args.connect,
        Rollout::History(args) => &args.connect,
    };
    let work = Work {
        client: connect::client(&connect.server, environment).await?,
        namespace: &connect.namespace,
        layout: output::layout(environment),
    };
    let (resources, request) = match args {
        Rollout::Restart(args) => (&args.resources, Request::Restart(Timestamp::now())),
        Rollout::Pause(args) => (&args.resources, Request::Pause),
        Rollout::Resume(args) => (&args.resources, Request::Resume),
        Rollout::Undo(args) => {
            let done = work.undo(&args.resource, args.to_revision).await?;
            say(&format!("{}: {done}", args.resource));
            return Ok(());
        }
        Rollout::Status(args) => return work.follow(args, say).await,
        Rollout::History(args) => return print(&work.history(args).await?),
    };
    for resource in resources {
        let done = work.change(resource, request).await?;
        say(&format!("{resource}: {done}"));
    }
    Ok(())
}

/// A namespace of the management API.
struct Work<'a> {
    client: Client,
    namespace: &'a str,
    layout: Layout,
}

impl Work<'_> {
    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), self.namespace, &kind.resource())
    }

    async fn get(&self, resource: &Resource) -> anyhow::Result<DynamicObject> {
        let found = self.api(resource.kind).get_opt(&resource.name).await;
        match found.with_context(|| format!("cannot read {resource}"))? {
            Some(object) => Ok(object),
            None => {
                let known = self.list(resource.kind).await?;
                let known: Vec<_> = known
                    .iter()
                    .filter_map(|it| it.metadata.name.as_deref())
                    .collect();
                bail!(
                    "there is no {resource} in namespace {}; there are: {}",
                    self.namespace,
                    match known.is_empty() {
                        true => "none".to_owned(),
                        false => known.join(", "),
                    }
                )
            }
        }
    }

    async fn list(&self, kind: Kind) -> anyhow::Result<Vec<DynamicObject>> {
        let listed = self.api(kind).list(&ListParams::default()).await;
        let listed = listed.with_context(|| format!("cannot list {}s", kind.as_str()))?;
        Ok(listed.items)
    }

    async fn change(&self, resource: &Resource, request: Request) -> anyhow::Result<String> {
        for _ in 0..ATTEMPTS {
            let object = self.get(resource).await?;
            let change = plan::change(resource.kind, &object, request)
                .map_err(|reason| anyhow::anyhow!("{resource} {reason}"))?;
            if let Some(done) = self.write(resource, &object, change).await? {
                return Ok(done);
            }
        }
        bail!("{resource} changes all the time: try again")
    }

    async fn undo(&self, resource: &Resource, to: Option<i64>) -> anyhow::Result<String> {
        if resource.kind != Kind::MachineDeployment {
            bail!("{resource} keeps no earlier templates: change its spec instead");
        }
        for _ in 0..ATTEMPTS {
            let object = self.get(resource).await?;
            let sets = self.list(Kind::MachineSet).await?;
            let change = plan::undo(&object, &sets, to)
                .map_err(|reason| anyhow::anyhow!("{resource} {reason}"))?;
            if let Some(done) = self.write(resource, &object, change).await? {
                return Ok(done);
            }
        }
        bail!("{resource} changes all the time: try again")
    }

    /// Reports each change until the rollouts of all [`Resource`]s are done.
    async fn follow(&self, args: &RolloutStatus, say: impl Fn(&str)) -> anyhow::Result<()> {
        let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
        for resource in &args.resources {
            let mut last = String::new();
            loop {
                let object = self.get(resource).await?;
                match progress::progress(resource.kind, &object) {
                    Progress::Done => break say(&self.line(args, resource, true, "rolled out")),
                    Progress::Stopped(why) => bail!("{resource} {why}"),
                    Progress::Waiting(text) if text != last => {
                        say(&self.line(args, resource, false, &text));
                        last = text;
                    }
                    Progress::Waiting(_) => {}
                }
                if !args.watch {
                    break;
                }
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    bail!(
                        "{resource} is not rolled out after {}: {last}; `why {}/{}` says what it waits for",
                        format_args!("{} s", args.timeout.unwrap_or_default().as_secs()),
                        resource.kind.as_str().to_ascii_lowercase(),
                        resource.name
                    );
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// State of a rollout: a sentence, or JSON for programs.
    fn line(&self, args: &RolloutStatus, resource: &Resource, done: bool, text: &str) -> String {
        match args.output.output {
            Output::Text => format!("{resource}: {text}"),
            Output::Json => terminal::json_line(&json!({"kind": resource.kind.as_str(),
                "namespace": self.namespace, "name": resource.name, "done": done, "message": text})),
        }
    }

    async fn history(&self, args: &RolloutHistory) -> anyhow::Result<String> {
        let resource = &args.resource;
        if resource.kind != Kind::MachineDeployment {
            bail!("{resource} keeps no earlier templates");
        }
        let deployment = self.get(resource).await?;
        let sets = self.list(Kind::MachineSet).await?;
        match (args.revision, args.output.output) {
            (Some(number), output) => {
                let template = progress::template(&deployment, &sets, number)
                    .map_err(|reason| anyhow::anyhow!("{resource} {reason}"))?;
                match output {
                    Output::Json => Ok(terminal::json(&template)?),
                    Output::Text => Ok(terminal::yaml(&template)?),
                }
            }
            (None, Output::Json) => Ok(terminal::json(&progress::json(
                resource,
                &deployment,
                &sets,
            ))?),
            (None, Output::Text) => {
                let rows = progress::rows(&deployment, &sets);
                Ok(output::table(&rows, self.layout, &progress::EXPENDABLE))
            }
        }
    }

    /// Writes a [`Change`]; `None` if the object has changed since it was read, as often happens by controllers.
    async fn write(
        &self,
        resource: &Resource,
        object: &DynamicObject,
        change: Change,
    ) -> anyhow::Result<Option<String>> {
        let patch = change.patch(object.metadata.resource_version.as_deref());
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let api = self.api(resource.kind);
        let written = api
            .patch(&resource.name, &params, &Patch::Merge(patch))
            .await;
        match written {
            Ok(_) => Ok(Some(change.done)),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(kube::Error::Api(status)) => bail!("{resource} is rejected: {}", status.message),
            Err(error) => Err(error).with_context(|| format!("cannot write {resource}")),
        }
    }
}
