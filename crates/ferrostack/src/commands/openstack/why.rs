//! `openstack why`: the first cause.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use api::openstack::conditions::{Reason, Type};
use api::openstack::v1alpha1::{OpenStack, OpenStackStatus, Phase};
use api::{conditions, printable};
use deployer::upgrade::{Stages, Turn};
use deployer::{Cause, Cloud, Credentials, Parameters, Release, Reported, Situation, Why, Written};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ListParams;
use kube::{Client, ResourceExt};
use operator::client::Api;
use serde_json::Value;
use status::sentence::Sentence;

use super::plan::cluster;
use super::site;
use crate::cli::{OpenStackWhy, Output};
use crate::environment::Environment;

/// Reason why a cloud, or an object in it, is not ready, as text or JSON.
pub(crate) async fn why(args: &OpenStackWhy, environment: &Environment) -> anyhow::Result<String> {
    let client = site::client(&args.place, environment).await?;
    let (name, namespace) = (&args.cloud, &args.namespace);
    let api: Api<OpenStack> = Api::namespaced(client.clone(), namespace);
    let found = api.get_opt(name).await;
    let Some(object) =
        found.with_context(|| format!("cannot read OpenStack {namespace}/{name}"))?
    else {
        bail!(
            "there is no cloud {name} in namespace {namespace}: make one with `{} openstack up`",
            environment.program
        );
    };
    let found = of(&client, &object, args.object.as_deref()).await?;
    match args.output.output {
        Output::Text => Ok(text(&found, Timestamp::now())),
        Output::Json => Ok(terminal::json(&found)?),
    }
}

/// First [`Cause`], without any password.
async fn of(client: &Client, object: &OpenStack, asked: Option<&str>) -> anyhow::Result<Why> {
    let document = serde_json::to_value(object)?;
    let (parameters, _) = Parameters::read(&document).or_else(|error| {
        // The controller says it, too; here it is the cause.
        match document["spec"]["release"]
            .as_str()
            .and_then(Release::named)
        {
            Some(release) => Ok((Parameters::from_release(release), "spec")),
            None => Err(anyhow::Error::new(error)),
        }
    })?;
    let cloud = Cloud::new(&document, parameters)?;
    let objects = cluster::objects(client, &cloud.namespace).await?;
    let pods = cluster::pods(client, &cloud.namespace).await?;
    let nodes: Api<Node> = Api::all(client.clone());
    // Who may not read nodes still learns all the rest.
    let nodes = nodes.list(&ListParams::default()).await.map(|it| it.items);
    let nodes = nodes.unwrap_or_default();
    let nodes: Vec<Value> = nodes
        .iter()
        .filter_map(|it| serde_json::to_value(it).ok())
        .collect();
    let classes: Api<StorageClass> = Api::all(client.clone());
    let classes = classes.list(&ListParams::default()).await.ok();
    let classes: Option<Vec<String>> =
        classes.map(|it| it.items.iter().map(ResourceExt::name_any).collect());
    let held = Credentials::complete(&cloud.name, &objects, || 0);
    let status = object.status.clone().unwrap_or_default();
    let (graph, plan) = match stage(&cloud, &document, &held, &status, (&objects, &pods)) {
        Some(turn) => (turn.graph, turn.plan),
        None => {
            let graph = deployer::desired(&cloud, &held);
            let plan = deployer::plan(&graph, &objects);
            (graph, plan)
        }
    };
    let situation = Situation {
        graph: &graph,
        plan: &plan,
        objects: &objects,
        pods: &pods,
        nodes: &nodes,
        classes: classes.as_deref(),
        reported: &reported(object, &status, &graph),
    };
    let mut why = deployer::why(&situation, asked).map_err(anyhow::Error::msg)?;
    for cause in &mut why.causes {
        cause.detail = cause.detail.take().map(|it| held.masked(&it));
    }
    Ok(why)
}

/// Recorded [`Phase`] of an upgrade under way, or of the checks of another release: steps and actions.
fn stage(
    cloud: &Cloud,
    document: &Value,
    held: &Credentials,
    status: &OpenStackStatus,
    (objects, pods): (&[Value], &[Value]),
) -> Option<Turn> {
    let release = status.release.as_ref()?;
    let phase = deployer::upgrade::Phase::named(release.phase.as_deref()?)?;
    let from = Release::named(release.from.as_deref()?)?;
    let to = Release::named(release.to.as_deref()?)?;
    let mut wanted = document.clone();
    wanted["spec"]["release"] = to.name().into();
    let newer = Cloud {
        parameters: deployer::checked(&wanted).ok()?,
        ..cloud.clone()
    };
    let stages = Stages::new(&newer, from, held);
    let accounts = accounts(status, stages.accounts());
    Some(match cloud.parameters.release == to {
        true => stages.turn(phase, objects, pods, &accounts),
        false => stages.check(objects, pods, &accounts),
    })
}

/// State of the steps that write accounts, from the status of a cloud.
fn accounts(status: &OpenStackStatus, graph: &deployer::Graph) -> BTreeMap<String, Written> {
    let steps = graph.steps.iter().filter(|it| it.accounts.is_some());
    let steps = steps.filter_map(|step| {
        let found = status.steps.iter().find(|it| it.name == step.name)?;
        let written = match found.phase {
            Phase::Ready => Written::All,
            Phase::Progressing => Written::Not(found.message.clone()),
            Phase::Failed => Written::Conflict(found.message.clone()),
            Phase::Waiting => return None,
        };
        Some((step.name.clone(), written))
    });
    steps.collect()
}

/// [`Reported`] status of a cloud.
fn reported(object: &OpenStack, status: &OpenStackStatus, graph: &deployer::Graph) -> Reported {
    let condition = |type_: Type| conditions::find(&status.conditions, type_);
    let is = |type_: Type, value: &str| condition(type_).filter(|it| it.status == value);
    let invalid = is(Type::ConfigurationValid, "False").map(|it| it.message.clone());
    let ready = is(Type::Ready, "False");
    let with = |reason: Reason| {
        let found = ready.filter(|it| it.reason == reason);
        found.map(|it| it.message.clone())
    };
    let unseen = status.observed_generation != object.metadata.generation;
    let stopped = if object.metadata.deletion_timestamp.is_some() {
        Some(format!(
            "it is being deleted: {}",
            with(Reason::Deleting).unwrap_or_default()
        ))
    } else if unseen {
        Some(
            "no controller has reconciled its parameters: `ferrostack openstack up` runs one"
                .to_owned(),
        )
    } else if object.spec.paused {
        Some("it is paused; `paused: false` lets it go on".to_owned())
    } else {
        invalid.or_else(|| with(Reason::Conflict))
    };
    Reported {
        stopped,
        rejection: with(Reason::WriteRejected).or_else(|| with(Reason::CertificateUnusable)),
        accounts: accounts(status, graph),
    }
}

/// [`Cause`]s for people, each with the waiting steps.
fn text(why: &Why, now: Timestamp) -> String {
    let object = &why.object;
    if why.causes.is_empty() {
        return format!("{object} is ready\n");
    }
    let lines = why.causes.iter().map(|cause| match object.as_str() {
        "the cloud" => whole(cause, now),
        object if is_cause_itself(object, cause) => format!("{}\n", sentence(cause, " ", now)),
        object => format!(
            "{} waits for {}\n",
            printable::line(object),
            sentence(cause, ", which ", now)
        ),
    });
    lines.collect()
}

/// True if a cause is in the object itself.
fn is_cause_itself(object: &str, cause: &Cause) -> bool {
    cause.of == object
        || cause.waiting.first().is_some_and(|it| it == object) && cause.of.starts_with("task ")
}

fn whole(cause: &Cause, now: Timestamp) -> String {
    let first = sentence(cause, " ", now);
    let others: Vec<&str> = cause.waiting.iter().map(String::as_str).collect();
    let others: Vec<&str> = others.into_iter().filter(|it| *it != cause.of).collect();
    match others.as_slice() {
        [] => format!("{first}\n"),
        [one] => format!("{first}\n    {one} waits for it\n"),
        [all @ .., last] if all.len() < 5 => {
            format!("{first}\n    {} and {last} wait for it\n", all.join(", "))
        }
        [one, two, ..] => {
            let more = others.len() - 2;
            format!("{first}\n    {one}, {two} and {more} more steps wait for it\n")
        }
    }
}

fn sentence(cause: &Cause, joint: &str, now: Timestamp) -> String {
    let sentence = Sentence {
        of: &cause.of,
        problem: &cause.problem,
        since: cause.since.as_deref(),
        detail: cause.detail.as_deref(),
        advice: cause.advice.as_deref(),
    };
    sentence.text(joint, now)
}

#[cfg(test)]
mod tests;
