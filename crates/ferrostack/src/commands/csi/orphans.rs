//! `csi orphans`: resources of a cluster left behind in the cloud.
//!
//! An orphan has the cluster's mark in the metadata ([`csi::owner`]), without an object of the cluster that names the
//! orphan or waits for the creation. Resources with the mark of another cluster, or without one, are ignored, whatever
//! the name.

mod claimed;
mod delete;
mod judge;
mod report;
mod thing;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use openstack::session::Session;
use serde_json::json;

pub(crate) use self::claimed::Claimed;
use self::delete::Outcome;
pub(crate) use self::judge::{Rules, Verdict, judge};
use self::report::Orphan;
pub(crate) use self::thing::{Form, Thing};
use super::clouds::{self, Files};
use crate::cli::{CsiOrphans, Output};
use crate::commands::cloud_controller_manager::files;
use crate::connect;
use crate::environment::Environment;

/// Prints [`Orphan`]s, and deletes the orphans if the flags and the answer to a question allow a deletion.
pub(crate) async fn run(
    args: &CsiOrphans,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    ask: impl AsyncFn(String) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<()> {
    let client = connect::cluster(&args.place.server, environment).await?;
    of_cluster(args, &client, environment, print, ask).await
}

async fn of_cluster(
    args: &CsiOrphans,
    client: &Client,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    ask: impl AsyncFn(String) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<()> {
    let rules = Rules {
        cluster: args.cluster.clone(),
        older_than: args.older_than,
        without_uid: args.without_uid,
    };
    let sessions = sessions(args, environment).await?;
    let orphans = orphans(&sessions, client, &rules).await?;
    let (text, now) = (args.place.output.output == Output::Text, Timestamp::now());
    if text {
        print(&report::table(&orphans, now))?;
    }
    let mut outcomes = BTreeMap::new();
    if args.delete && is_wanted(args, &orphans, environment, ask).await? {
        for Orphan { thing, kept } in &orphans {
            if kept.is_some() {
                continue;
            }
            let outcome = delete::one(thing, &sessions, client, &rules).await?;
            if text {
                print(&report::line(thing, &outcome))?;
            }
            outcomes.insert((thing.cloud.clone(), thing.form, thing.id.clone()), outcome);
        }
    }
    if !text {
        let documents = orphans.iter().map(|orphan| {
            let thing = &orphan.thing;
            let outcome = outcomes.get(&(thing.cloud.clone(), thing.form, thing.id.clone()));
            report::document(orphan, outcome, now)
        });
        let documents: Vec<_> = documents.collect();
        print(&terminal::json(&json!({"orphans": documents}))?)?;
    }
    let failed = outcomes.values();
    match failed.filter(|it| matches!(it, Outcome::Failed(_))).count() {
        0 => Ok(()),
        count => bail!("{count} of {} could not be deleted", outcomes.len()),
    }
}

/// [`Session`] for each cloud, by name.
async fn sessions(
    args: &CsiOrphans,
    environment: &Environment,
) -> anyhow::Result<BTreeMap<String, Session>> {
    let place = &args.place;
    let loaded = clouds::load(
        &Files {
            paths: &place.cloud_config,
            names: &place.cloud_name,
            controller: true,
        },
        environment,
    )?;
    let options = files::session_options(&loaded.conf.metadata, &[]);
    let mut sessions = BTreeMap::new();
    for cloud in loaded.clouds {
        let session = Session::connect(cloud.config, &options).await;
        let session = session.with_context(|| clouds::section(&cloud.name))?;
        sessions.insert(cloud.name, session);
    }
    Ok(sessions)
}

/// [`Orphan`]s, in the order of deletion.
async fn orphans(
    sessions: &BTreeMap<String, Session>,
    client: &Client,
    rules: &Rules,
) -> anyhow::Result<Vec<Orphan>> {
    let mut things = Vec::new();
    for (name, session) in sessions {
        let all = thing::all(name, session).await;
        things.extend(all.with_context(|| clouds::section(name))?);
    }
    // After the clouds: what is new there and not here is younger than anything that is deleted.
    let (claimed, now) = (Claimed::read(client).await?, Timestamp::now());
    let judged = things.into_iter().filter_map(|thing| {
        let kept = match judge(&thing, &claimed, rules, now) {
            Verdict::Foreign | Verdict::Held(_) => return None,
            Verdict::Kept(reason) => Some(reason),
            Verdict::Orphan => None,
        };
        Some(Orphan { thing, kept })
    });
    let mut orphans: Vec<Orphan> = judged.collect();
    orphans.sort_by(|a, b| {
        let key = |it: &Orphan| (it.thing.form, it.thing.created_at.clone());
        key(a).cmp(&key(b))
    });
    Ok(orphans)
}

/// True if the user confirms the deletion.
async fn is_wanted(
    args: &CsiOrphans,
    orphans: &[Orphan],
    environment: &Environment,
    ask: impl AsyncFn(String) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<bool> {
    let deletable: Vec<&Orphan> = orphans.iter().filter(|it| it.kept.is_none()).collect();
    if deletable.is_empty() || args.yes {
        return Ok(!deletable.is_empty());
    }
    if !environment.interactive {
        bail!(
            "--delete asks in a terminal, and this is none: give --yes to delete without a question"
        );
    }
    let question = format!(
        "Delete {} orphans with {} GiB? Their data cannot be restored. Write yes to delete them: ",
        deletable.len(),
        report::gib(deletable.iter().copied()),
    );
    Ok(ask(question).await?.as_deref().map(str::trim) == Some("yes"))
}
