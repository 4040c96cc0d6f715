//! `openstack plan`: actions for a cluster; and `openstack apply`, which starts the actions if the plan is unchanged.

pub(super) mod cluster;
mod text;

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::ValueEnum as _;
use deployer::{Cloud, Credentials, Plan, Reference};
use jiff::Timestamp;
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

use super::up::parameters::Asked;
use super::up::{self, parameters};
use super::{machine, site, upgrade};
use crate::cli::{DataDirArg, On, OpenStackApply, OpenStackPlan, Output, PlanServer, ServerArgs};
use crate::connect::{self, quoted, quoted_text};
use crate::environment::Environment;

/// Exit status of a plan with actions.
const CHANGES: u8 = 2;

/// Object rejected by the API server.
#[derive(Debug, Serialize)]
struct Refusal {
    object: Reference,
    message: String,
}

/// [`Plan`], with the API server's [`Refusal`]s.
#[derive(Debug)]
struct Outcome {
    plan: Plan,
    refusals: Vec<Refusal>,
    /// Digest of the input of the plan.
    digest: String,
}

impl Outcome {
    /// True without any action. Unknown facts may require actions.
    fn is_empty(&self) -> bool {
        self.plan.is_empty() && self.plan.steps.iter().all(|it| it.unknown.is_none())
    }
}

/// Prints the plan. The exit status tells a plan with actions from an empty one.
pub(crate) async fn plan(
    args: &OpenStackPlan,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    warn: impl Fn(&str),
) -> anyhow::Result<ExitCode> {
    let asked = asked(&args.file, &args.server, &warn)?;
    let cloud = asked.cloud()?;
    let client = match args.empty {
        true => None,
        false => Some(client(&args.server, environment).await?),
    };
    let outcome = outcome(&cloud, &asked.object, client.as_ref()).await?;
    if let Some(client) = &client {
        up::judged(client, &asked).await?;
    }
    let upgrade = match &client {
        Some(client) => upgrade::planned(client, &cloud).await?,
        None => None,
    };
    match args.output.output {
        Output::Text => {
            if let Some((from, phases)) = &upgrade {
                print(&upgrade::outlined(*from, cloud.parameters.release, phases))?;
            }
            let apply = to_apply(args, environment, &outcome.digest);
            print(&text::of(&cloud, &outcome.plan, &outcome.digest, &apply))?;
            if is_paused(&asked) {
                print(
                    "\nIt is paused: `apply` writes the object, and the controller nothing before `paused: false`.\n",
                )?;
            }
        }
        Output::Json => {
            let to = cloud.parameters.release;
            let upgrade = upgrade.map(|(from, phases)| upgrade::document(from, to, &phases));
            print(&document(&cloud, &outcome, is_paused(&asked), upgrade)?)?;
        }
    }
    rejected(&cloud, &outcome)?;
    Ok(match outcome.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(CHANGES),
    })
}

/// Command that applies the plan, at the place of the plan.
fn to_apply(args: &OpenStackPlan, environment: &Environment, digest: &str) -> String {
    let server = &args.server;
    let paths = [
        ("--kubeconfig", &server.kubeconfig),
        ("--data-dir", &server.data_dir),
    ];
    let mut flags = String::new();
    for (flag, path) in paths {
        flags.extend(path.iter().map(|path| format!(" {flag} {}", quoted(path))));
    }
    let context = server.context.iter();
    flags.extend(context.map(|name| format!(" --context {}", quoted_text(name))));
    let place = server.on.and_then(|it| it.to_possible_value());
    flags.extend(place.map(|it| format!(" --on {}", it.get_name())));
    format!(
        "{} openstack apply -f {}{flags} --plan {digest}",
        environment.program,
        quoted(&args.file)
    )
}

/// Request of a parameter file, with the defaults of `openstack up` at the place of the cloud.
fn asked(path: &Path, server: &PlanServer, warn: &impl Fn(&str)) -> anyhow::Result<Asked> {
    let defaults = match server.on {
        Some(On::ThisMachine) => machine::defaults(),
        Some(On::Simulated) | None => Value::Null,
    };
    let asked = parameters::read(Some(path), &[], &defaults)?;
    asked.warnings.iter().for_each(|it| warn(it));
    Ok(asked)
}

/// Creates or changes the object of a cloud, if the plan still has the digest. The controller does the rest.
pub(crate) async fn apply(
    args: &OpenStackApply,
    environment: &Environment,
    say: impl Fn(&str),
    warn: impl Fn(&str),
) -> anyhow::Result<()> {
    let asked = asked(&args.file, &args.server, &warn)?;
    let cloud = asked.cloud()?;
    let client = client(&args.server, environment).await?;
    let outcome = outcome(&cloud, &asked.object, Some(&client)).await?;
    rejected(&cloud, &outcome)?;
    if outcome.digest != args.plan {
        bail!(
            "nothing is written: the plan is not {} any more, but {}. Something else is there, or is asked for: look at `{} openstack plan -f {}` again",
            args.plan,
            outcome.digest,
            environment.program,
            quoted(&args.file)
        );
    }
    say(up::apply(&client, &asked).await?);
    let program = &environment.program;
    say(&format!(
        "its controller does the rest: `{program} openstack status`"
    ));
    Ok(())
}

async fn client(args: &PlanServer, environment: &Environment) -> anyhow::Result<Client> {
    connect::cluster(&connection(args, environment)?, environment).await
}

fn connection(args: &PlanServer, environment: &Environment) -> anyhow::Result<ServerArgs> {
    if args.on == Some(On::ThisMachine) {
        return Ok(ServerArgs {
            kubeconfig: Some(machine::kubeconfig(environment)?),
            ..ServerArgs::default()
        });
    }
    // KUBECONFIG comes before the default directory, not before a named one.
    let has_variable = environment.non_empty("KUBECONFIG").is_some();
    let is_simulated = args.data_dir.is_some() || args.on == Some(On::Simulated);
    let simulated = args.kubeconfig.is_none() && !has_variable || is_simulated;
    Ok(ServerArgs {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        data_dir: DataDirArg {
            data_dir: match simulated {
                true => Some(site::directory(args.data_dir.as_deref(), environment)?),
                false => None,
            },
        },
    })
}

/// [`Outcome`] for the content of the cluster; for an empty one without a client.
async fn outcome(
    cloud: &Cloud,
    object: &Value,
    client: Option<&Client>,
) -> anyhow::Result<Outcome> {
    let objects = match client {
        Some(client) => cluster::objects(client, &cloud.namespace).await?,
        None => vec![],
    };
    let held = held(cloud, &objects);
    let graph = deployer::desired(cloud, &held);
    let mut plan = deployer::plan(&graph, &objects);
    let now = Timestamp::now().as_second();
    plan.conflicts.extend(deployer::ended(cloud, &held, now));
    let mut refusals = vec![];
    if let Some(client) = client {
        refusals = cluster::refusals(client, &cloud.namespace, &graph, &plan).await?;
        let pods = cluster::pods(client, &cloud.namespace).await?;
        let found = rollout::compared(client, cloud, &graph, &held, &pods).await;
        for step in &graph.steps {
            if let (Some(accounts), Some(found)) = (&step.accounts, found.get(&step.name)) {
                let found = found.as_ref().map_err(String::as_str);
                plan.compare(&step.name, accounts.store(), found);
            }
        }
    }
    let digest = deployer::digest(object, &graph, &held, &objects, &plan);
    Ok(Outcome {
        plan,
        refusals,
        digest,
    })
}

/// [`Credentials`] values, made once. Missing passwords are replaced by stand-ins: a plan is never applied, and two plans are
/// equal.
fn held(cloud: &Cloud, objects: &[Value]) -> Credentials {
    let mut next = 0_u8;
    Credentials::complete(&cloud.name, objects, || {
        next = next.wrapping_add(1);
        next
    })
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

fn is_paused(asked: &Asked) -> bool {
    asked.object["spec"]["paused"] == true
}

fn document(
    cloud: &Cloud,
    outcome: &Outcome,
    paused: bool,
    upgrade: Option<Value>,
) -> anyhow::Result<String> {
    let mut document = json!({
        "cloud": cloud.name,
        "namespace": cloud.namespace,
        "release": cloud.parameters.release.name(),
        "paused": paused,
        "upgrade": upgrade,
        "refusals": outcome.refusals,
        "digest": outcome.digest,
    });
    if let (Some(into), Value::Object(plan)) = (
        document.as_object_mut(),
        serde_json::to_value(&outcome.plan)?,
    ) {
        into.extend(plan);
    }
    Ok(terminal::json(&document)?)
}

#[cfg(test)]
mod tests;
