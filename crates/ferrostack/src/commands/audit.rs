//! `audit`: resources in a project of a cloud without an owner, and owners without their resources.
//!
//! The project is read first, then the objects of the management cluster, and of workload clusters with resources in
//! the project. Findings are pure functions of both. Only marked resources are ever deleted, and only after the
//! display.

mod delete;
mod drift;
mod judge;
mod owners;
mod report;
pub(crate) mod thing;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clusterapi::remote::Connector;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use openstack::View;
use openstack::inventory::{Inventory, InventoryOptions};
use openstack::session::Session;

use self::delete::Outcome;
use self::judge::{Class, Finding, Rules};
use self::owners::Owners;
use self::thing::{Claim, Thing};
use crate::cli::{Audit, Output};
use crate::cloud;
use crate::connect;
use crate::environment::Environment;
use crate::output::{answer_to, print};

/// Runs the command.
pub(super) async fn execute(args: &Audit, environment: &Environment) -> anyhow::Result<ExitCode> {
    run(args, environment, print, answer_to).await
}

/// Exit status after findings that stay.
const FOUND: u8 = 2;

/// Prints [`Finding`]s, and deletes orphans if the flags and the answer to a question allow it. The exit status is 2 if
/// findings stay.
pub(crate) async fn run(
    args: &Audit,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    ask: impl AsyncFn(String) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<ExitCode> {
    let management = connect::management(&args.server, environment).await?;
    let inventory = connected(cloud::find(&args.cloud, environment)?).await?;
    let connector = connect::to_workloads(environment);
    let place = Sources {
        client: &management.client,
        inventory: &inventory,
        connector: connector.as_ref(),
    };
    of_project(args, place, environment, print, ask).await
}

/// [`Inventory`] of a cloud without lists of its own accord.
pub(crate) async fn connected(config: openstack::CloudConfig) -> anyhow::Result<Inventory> {
    let name = config.name.clone();
    let session = Session::connect(config, &openstack::SessionOptions::default()).await;
    let session = session.with_context(|| format!("cloud {name}"))?;
    let options = InventoryOptions {
        background: false,
        ..InventoryOptions::default()
    };
    Ok(Inventory::new(session, options))
}

/// Result of one [`Look`] at everything.
struct Look {
    things: Vec<Thing>,
    findings: Vec<Finding>,
    unasked: Vec<String>,
    view: Arc<View>,
}

/// Sources of the audit.
#[derive(Clone, Copy)]
struct Sources<'a> {
    client: &'a Client,
    inventory: &'a Inventory,
    connector: &'a dyn Connector,
}

async fn of_project(
    args: &Audit,
    place: Sources<'_>,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    ask: impl AsyncFn(String) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<ExitCode> {
    let rules = Rules {
        alone: args.alone,
        older_than: args.older_than,
    };
    let look = async || look(place, rules).await;
    let first = look().await?;
    let text = args.output.output == Output::Text;
    if text {
        print(&report::table(&first.findings, &first.unasked))?;
    }
    let mut outcomes = report::Outcomes::new();
    if args.delete && is_wanted(args, &first.findings, environment, ask).await? {
        outcomes = delete::all(&first.findings, place.inventory, look).await?;
    }
    if text {
        for finding in &first.findings {
            if let Some(outcome) = outcomes.get(&finding.id) {
                print(&report::line(finding, outcome))?;
            }
        }
    } else {
        let (findings, unasked) = (&first.findings, &first.unasked);
        print(&report::document(
            &args.cloud,
            findings,
            unasked,
            &outcomes,
        )?)?;
    }
    let failed = outcomes
        .values()
        .filter(|it| matches!(it, Outcome::Failed(_)))
        .count();
    if failed > 0 {
        bail!("{failed} of {} could not be deleted", outcomes.len());
    }
    let gone = outcomes
        .values()
        .filter(|it| **it == Outcome::Deleted)
        .count();
    Ok(match first.findings.len() == gone {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FOUND),
    })
}

/// Reads the project, then the owners: an owner is older than its resources, and so in the later list.
async fn look(place: Sources<'_>, rules: Rules) -> anyhow::Result<Look> {
    let Sources {
        client,
        inventory,
        connector,
    } = place;
    let view = thing::view(inventory)
        .await
        .context("cannot read the cloud")?;
    let project = inventory.session().project_id().await?;
    let things = thing::all(&view, &project);
    let uids: BTreeSet<String> = things
        .iter()
        .filter_map(|thing| match &thing.claim {
            Claim::Services { cluster, .. } => cluster.clone(),
            Claim::Volumes(uid) => Some(uid.clone()),
            _ => None,
        })
        .collect();
    let owners = Owners::read(client, &uids, connector).await?;
    let findings = judge::findings(&things, &view, &owners, rules, Timestamp::now());
    Ok(Look {
        things,
        findings,
        unasked: owners.unasked,
        view,
    })
}

/// Orphans among the [`Finding`]s that may be deleted.
fn deletable(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    let all = findings.iter();
    all.filter(|it| it.class == Class::Orphan && it.kept.is_none())
}

/// Asks the user; true for a deletion.
async fn is_wanted(
    args: &Audit,
    findings: &[Finding],
    environment: &Environment,
    ask: impl AsyncFn(String) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<bool> {
    let count = deletable(findings).count();
    if count == 0 || args.yes {
        return Ok(count > 0);
    }
    if !environment.interactive {
        bail!(
            "--delete asks in a terminal, and this is none: give --yes to delete without a question"
        );
    }
    let question = format!(
        "Delete {count} resources of cloud {} whose owner is gone? Neither they nor their data can be restored. Write yes to \
         delete them: ",
        args.cloud
    );
    Ok(ask(question).await?.as_deref().map(str::trim) == Some("yes"))
}
