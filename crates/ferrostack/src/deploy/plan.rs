//! `openstack plan`: what would be done in a cluster.

mod cluster;
mod text;

use std::process::ExitCode;

use anyhow::{Context, bail};
use deployer::{Cloud, Graph, Held, Plan, Reference};
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

use super::{place, read, warnings};
use crate::cli::{DataDirArg, OpenStackPlan, Output, ServerArgs};
use crate::connect;
use crate::environment::Environment;

/// The exit status when there is something to do.
const CHANGES: u8 = 2;

/// An object that the API server rejects.
#[derive(Debug, Serialize)]
struct Refusal {
    object: Reference,
    message: String,
}

/// A plan, and what the API server rejects of it.
#[derive(Debug)]
struct Outcome {
    plan: Plan,
    refusals: Vec<Refusal>,
}

/// Prints the plan. The exit status tells whether there is something to do.
pub(crate) async fn plan(
    args: &OpenStackPlan,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    warn: impl Fn(&str),
) -> anyhow::Result<ExitCode> {
    let (parameters, file) = read(&args.file)?;
    let found = deployer::check(&parameters);
    for warning in warnings(&found, Some(&file))? {
        warn(&warning);
    }
    let cloud = Cloud::of(&file.document, parameters);
    let cloud = cloud.with_context(|| file.name.clone())?;
    let client = match args.empty {
        true => None,
        false => Some(connect::cluster(&connection(args, environment), environment).await?),
    };
    let outcome = outcome(&cloud, client.as_ref()).await?;
    match args.output.output {
        Output::Text => print(&text::of(&cloud, &outcome.plan))?,
        Output::Json => print(&document(&cloud, &outcome)?)?,
    }
    rejected(&cloud, &outcome)?;
    Ok(match outcome.plan.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(CHANGES),
    })
}

fn connection(args: &OpenStackPlan, environment: &Environment) -> ServerArgs {
    // KUBECONFIG comes before the default directory, not before a named one.
    let has_variable = environment.non_empty("KUBECONFIG").is_some();
    let simulated = args.kubeconfig.is_none() && !has_variable || args.data_dir.is_some();
    ServerArgs {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        data_dir: DataDirArg {
            data_dir: simulated.then(|| place::directory(args.data_dir.as_deref(), environment)),
        },
    }
}

/// The plan for what the cluster has; for nothing without a client.
async fn outcome(cloud: &Cloud, client: Option<&Client>) -> anyhow::Result<Outcome> {
    let objects = match client {
        Some(client) => cluster::objects(client, &cloud.namespace).await?,
        None => vec![],
    };
    let graph = graph(cloud, &objects);
    let plan = deployer::plan(&graph, &objects);
    let refusals = match client {
        Some(client) => cluster::refusals(client, &cloud.namespace, &graph, &plan).await?,
        None => vec![],
    };
    Ok(Outcome { plan, refusals })
}

/// What is desired. Passwords that do not exist yet are stand-ins: a plan is never applied, and two plans are the same.
fn graph(cloud: &Cloud, objects: &[Value]) -> Graph {
    let mut next = 0_u8;
    let held = Held::complete(&cloud.name, objects, || {
        next = next.wrapping_add(1);
        next
    });
    deployer::desired(cloud, &held)
}

fn rejected(cloud: &Cloud, outcome: &Outcome) -> anyhow::Result<()> {
    if !outcome.plan.conflicts.is_empty() {
        bail!(
            "the plan cannot be applied in namespace {}, which a cloud needs for itself:\n  {}",
            cloud.namespace,
            outcome.plan.conflicts.join("\n  ")
        );
    }
    let refusals: Vec<String> = outcome
        .refusals
        .iter()
        .map(|it| format!("{}: {}", it.object, it.message))
        .collect();
    if !refusals.is_empty() {
        bail!("the API server rejects:\n  {}", refusals.join("\n  "));
    }
    Ok(())
}

fn document(cloud: &Cloud, outcome: &Outcome) -> anyhow::Result<String> {
    let mut document = json!({
        "cloud": cloud.name,
        "namespace": cloud.namespace,
        "release": cloud.parameters.release.name(),
        "refusals": outcome.refusals,
    });
    if let (Some(into), Value::Object(plan)) = (
        document.as_object_mut(),
        serde_json::to_value(&outcome.plan)?,
    ) {
        into.extend(plan);
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(&document)?))
}

#[cfg(test)]
mod tests;
