//! Phases of a move.

use std::path::Path;

use api::infra::v1alpha1::OpenStackClusterIdentity;
use kube::Client;
use operator::client::Api;

use crate::access::Side;
use crate::cluster::ManagementCluster;
use crate::directory;
use crate::error::Error;
use crate::graph::{Selection, select};
use crate::journal::{Journal, Phase};
use crate::pausing;
use crate::preflight;
use crate::report::Report;
use crate::work::{Options, Say, Work};

/// Preview of a move, with the problems that prevent it; writes nothing.
///
/// # Errors
/// When one of the sides cannot be read.
pub async fn preview(
    source: &Client,
    target: Option<&Client>,
    options: &Options,
) -> Result<Report, Error> {
    let source = ManagementCluster::read(source, "source").await?;
    let target = match target {
        Some(client) => Some(ManagementCluster::read(client, "target").await?),
        None => None,
    };
    let journal = Journal::find(&source.side, &options.namespace).await?;
    let id = journal.as_ref().map(|journal| journal.record.id.as_str());
    let (selection, problems) = check(&source, target.as_ref(), &options.namespace, id).await?;
    Ok(Report {
        problems,
        ..Report::new(&options.namespace, &selection)
    })
}

/// Objects of the move, and problems that prevent it.
async fn check(
    source: &ManagementCluster,
    target: Option<&ManagementCluster>,
    namespace: &str,
    id: Option<&str>,
) -> Result<(Selection, Vec<String>), Error> {
    let selection = source.selection(namespace).await?;
    let mut problems = preflight::source(&selection, id);
    if selection.moves.is_empty() {
        problems.push(empty(source, namespace).await?);
    }
    if let Some(target) = target {
        if source.side.identity().await? == target.side.identity().await? {
            problems.push("source and target are the same cluster".to_owned());
            return Ok((selection, problems));
        }
        problems.extend(preflight::target(&selection, &target.kinds));
        problems.extend(
            target
                .as_target(namespace, id.unwrap_or_default())
                .foreign(&selection)
                .await?,
        );
        problems.extend(missing(target, &selection).await?);
    }
    Ok((selection, problems))
}

/// Message that there is nothing to move, with the namespaces that have Clusters.
async fn empty(source: &ManagementCluster, namespace: &str) -> Result<String, Error> {
    let text = format!(
        "there is nothing to move in namespace {namespace} of the source: it has no Cluster"
    );
    let Some(clusters) = source.kinds.iter().find(|kind| kind.is("Cluster")) else {
        return Ok(format!("{text}, and the source does not know Clusters"));
    };
    let elsewhere = source.side.list(clusters, "").await?;
    let mut namespaces: Vec<&str> = elsewhere.iter().map(|cluster| cluster.key().0).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    Ok(match namespaces.is_empty() {
        true => text,
        false => format!(
            "{text}. Namespaces with Clusters: {}; choose one with --namespace",
            namespaces.join(", ")
        ),
    })
}

/// Objects that stay, are needed by moving objects, and are missing in the target.
async fn missing(target: &ManagementCluster, selection: &Selection) -> Result<Vec<String>, Error> {
    let mut problems = missing_identities(&target.side, selection).await?;
    let classes = target.kinds.iter().find(|kind| kind.is("ClusterClass"));
    for (namespace, name) in preflight::shared_classes(selection) {
        let key = (namespace.as_str(), name.as_str());
        let exists = match classes {
            Some(kind) => target.side.get(kind, kind.stored(), key).await?.is_some(),
            None => false,
        };
        if !exists {
            problems.push(format!(
                "ClusterClass {namespace}/{name} is of another namespace and does not move, and the target has none: create it there first"
            ));
        }
    }
    Ok(problems)
}

/// Missing [`OpenStackClusterIdentity`] objects of the target. Cluster-scoped identities stay in the source for other
/// namespaces.
async fn missing_identities(target: &Side, selection: &Selection) -> Result<Vec<String>, Error> {
    let identities: Api<OpenStackClusterIdentity> = Api::all(target.client.clone());
    let mut problems = Vec::new();
    for name in preflight::shared_identities(selection) {
        let action = || format!("reading OpenStackClusterIdentity {name}");
        if target
            .attempt(action, || identities.get_opt(&name))
            .await?
            .is_none()
        {
            problems.push(format!(
                "OpenStackClusterIdentity/{name} is of the whole cluster and does not move, and the target has none: create it there first"
            ));
        }
    }
    Ok(problems)
}

/// Moves a namespace from one cluster to another, or continues an interrupted move.
///
/// # Errors
/// The problems that prevent the move, or the error that stopped it; before the commit, every change is undone.
pub async fn to_cluster(
    source: &Client,
    target: &Client,
    options: &Options,
    say: Say<'_>,
) -> Result<Report, Error> {
    let (source, target) = (
        ManagementCluster::read(source, "source").await?,
        ManagementCluster::read(target, "target").await?,
    );
    let other = format!("cluster {}", target.side.identity().await?);
    let found = continued(&source.side, &options.namespace, &other, say).await?;
    let mut journal = match found {
        Some(journal) if journal.record.phase == Phase::RollingBack => {
            undo(&source, Some(&target), &options.namespace, journal).await?;
            begin(&source, &target, options, &other).await?
        }
        Some(journal) => journal,
        None => begin(&source, &target, options, &other).await?,
    };
    let mut report = Report::default();
    if journal.record.phase == Phase::Moving {
        report = copy(&source, &target, options, &mut journal, say).await?;
    }
    let id = journal.record.id.clone();
    let copies = target.as_target(&options.namespace, &id);
    let complete = async {
        if report.moves.is_empty() {
            let objects = copies.copies().await?.into_iter().map(|(copy, _)| copy);
            report = Report::new(&options.namespace, &select(objects.collect()));
        }
        say("deleting the objects of the source, without their finalizers");
        copies.remove_originals(&source.side, &source.kinds).await?;
        say("resuming the clusters in the target");
        copies.release().await?;
        journal.remove().await?;
        Ok(report)
    };
    let completed: Result<Report, Error> = complete.await;
    completed.map_err(|error| Error::Incomplete(Box::new(error)))
}

/// Record of an earlier move to the same destination, taken over.
async fn continued(
    side: &Side,
    namespace: &str,
    other: &str,
    say: Say<'_>,
) -> Result<Option<Journal>, Error> {
    let Some(mut journal) = Journal::find(side, namespace).await? else {
        return Ok(None);
    };
    if journal.record.other != other {
        return Err(Error::Refused(vec![format!(
            "a move of namespace {namespace} to another place has not ended ({}): run that one again, or undo it with --roll-back",
            journal.record.other
        )]));
    }
    say("continuing the move that was cut off");
    journal.take_over().await?;
    Ok(Some(journal))
}

/// Records a move, if the preview has no problems.
async fn begin(
    source: &ManagementCluster,
    target: &ManagementCluster,
    options: &Options,
    other: &str,
) -> Result<Journal, Error> {
    let (_, problems) = check(source, Some(target), &options.namespace, None).await?;
    if !problems.is_empty() {
        return Err(Error::Refused(problems));
    }
    Journal::begin(&source.side, &options.namespace, other).await
}

/// Copies all objects to the [`Target`](crate::transfer::Target) and commits; undoes every change after an error.
async fn copy(
    source: &ManagementCluster,
    target: &ManagementCluster,
    options: &Options,
    journal: &mut Journal,
    say: Say<'_>,
) -> Result<Report, Error> {
    let result = async {
        let work = Work {
            options,
            journal,
            say,
        };
        say("pausing the clusters of the source");
        let selection = pausing::pause(&work, &source.side, &source.kinds).await?;
        let copies = target.as_target(&options.namespace, &journal.record.id);
        let mut problems = preflight::target(&selection, &target.kinds);
        problems.extend(copies.foreign(&selection).await?);
        if !problems.is_empty() {
            return Err(Error::Refused(problems));
        }
        say(&format!(
            "creating {} objects in the target, owners first",
            selection.moves.len()
        ));
        work.guard().await?;
        copies.ensure_namespace().await?;
        copies.fill(&work, &selection).await?;
        work.guard().await?;
        Ok(Report::new(&options.namespace, &selection))
    };
    let result: Result<Report, Error> = result.await;
    let committed = match result {
        Ok(report) => journal.enter(Phase::Committed).await.map(|()| report),
        Err(error) => Err(error),
    };
    match committed {
        Ok(report) => Ok(report),
        Err(Error::TakenOver(namespace)) => Err(Error::TakenOver(namespace)),
        Err(first) => Err(undone(source, Some(target), options, journal, first).await),
    }
}

/// Undoes a move after an error, and returns an [`Error`] with the outcome.
async fn undone(
    source: &ManagementCluster,
    target: Option<&ManagementCluster>,
    options: &Options,
    journal: &Journal,
    first: Error,
) -> Error {
    // The record is read again: after a lost answer, only the record says if the move was committed.
    let again = async {
        match Journal::find(&source.side, &options.namespace).await? {
            Some(found) if found.record.id != journal.record.id => Ok(false),
            Some(found) if found.record.phase == Phase::Committed => Ok(true),
            Some(found) => undo(source, target, &options.namespace, found)
                .await
                .map(|()| false),
            None => Ok(false),
        }
    };
    match again.await {
        Ok(false) => Error::RolledBack(Box::new(first)),
        Ok(true) => Error::Incomplete(Box::new(first)),
        Err(second) => Error::HalfWay {
            first: Box::new(first),
            second: Box::new(second),
        },
    }
}

/// Deletes the copies, resumes the source and removes the record.
async fn undo(
    source: &ManagementCluster,
    target: Option<&ManagementCluster>,
    namespace: &str,
    mut journal: Journal,
) -> Result<(), Error> {
    if journal.record.phase != Phase::RollingBack {
        journal.enter(Phase::RollingBack).await?;
    }
    let id = journal.record.id.clone();
    if let Some(target) = target {
        target.as_target(namespace, &id).remove_copies().await?;
    }
    pausing::resume(&source.side, &source.kinds, namespace, &id).await?;
    journal.remove().await
}

/// Undoes an interrupted move before the commit: deletes the copies, and resumes the source. Without a `target`, the
/// copies remain there, paused.
///
/// # Errors
/// When no record exists, or the move was committed.
pub async fn roll_back(
    source: &Client,
    target: Option<&Client>,
    options: &Options,
    say: Say<'_>,
) -> Result<(), Error> {
    let source = ManagementCluster::read(source, "source").await?;
    let target = match target {
        Some(client) => Some(ManagementCluster::read(client, "target").await?),
        None => None,
    };
    let Some(mut journal) = Journal::find(&source.side, &options.namespace).await? else {
        return Err(Error::Refused(vec![format!(
            "no move of namespace {} was cut off",
            options.namespace
        )]));
    };
    if journal.record.phase == Phase::Committed {
        let text = "the target has everything already, and parts of the source are deleted: run the same move again to complete it";
        return Err(Error::Refused(vec![text.to_owned()]));
    }
    if let Some(target) = &target
        && journal.record.other != format!("cluster {}", target.side.identity().await?)
    {
        return Err(Error::Refused(vec![
            "the move was to another cluster than this target".to_owned(),
        ]));
    }
    journal.take_over().await?;
    say("undoing the move");
    undo(&source, target.as_ref(), &options.namespace, journal).await
}

/// Pauses a namespace, writes all objects to files, and resumes the namespace.
///
/// # Errors
/// When the directory is not empty, or the source is not ready.
pub async fn to_directory(
    source: &Client,
    directory: &Path,
    options: &Options,
    say: Say<'_>,
) -> Result<Report, Error> {
    let source = ManagementCluster::read(source, "source").await?;
    let namespace = &options.namespace;
    let other = format!("to directory {}", directory.display());
    let found = match continued(&source.side, namespace, &other, say).await? {
        Some(journal) if journal.record.phase == Phase::RollingBack => {
            undo(&source, None, namespace, journal).await?;
            None
        }
        found => found,
    };
    let mut journal = match found {
        Some(journal) => journal,
        None => {
            let (_, problems) = check(&source, None, namespace, None).await?;
            if !problems.is_empty() {
                return Err(Error::Refused(problems));
            }
            directory::prepare(directory)?;
            Journal::begin(&source.side, namespace, &other).await?
        }
    };
    if journal.record.phase == Phase::Moving {
        save(&source, directory, options, &mut journal, say).await?;
    }
    let id = journal.record.id.clone();
    let complete = async {
        say("the files are complete; resuming the clusters");
        pausing::resume(&source.side, &source.kinds, namespace, &id).await?;
        let saved = select(directory::read(directory, &source.kinds)?);
        journal.remove().await?;
        Ok(Report::new(namespace, &saved))
    };
    let completed: Result<Report, Error> = complete.await;
    completed.map_err(|error| Error::Incomplete(Box::new(error)))
}

/// Writes all files while the source is paused, and records the completion.
async fn save(
    source: &ManagementCluster,
    directory: &Path,
    options: &Options,
    journal: &mut Journal,
    say: Say<'_>,
) -> Result<(), Error> {
    let written = async {
        let work = Work {
            options,
            journal,
            say,
        };
        say("pausing the clusters");
        let selection = pausing::pause(&work, &source.side, &source.kinds).await?;
        let count = directory::write(directory, &selection)?;
        say(&format!("{count} files in {}", directory.display()));
        work.guard().await
    };
    let written: Result<(), Error> = written.await;
    let committed = match written {
        Ok(()) => journal.enter(Phase::Committed).await,
        Err(error) => Err(error),
    };
    match committed {
        Ok(()) => Ok(()),
        Err(Error::TakenOver(namespace)) => Err(Error::TakenOver(namespace)),
        Err(first) => Err(undone(source, None, options, journal, first).await),
    }
}

/// Creates and resumes the objects of the files.
///
/// # Errors
/// When one of the objects exists already; then every change is undone.
pub async fn from_directory(
    directory: &Path,
    target: &Client,
    options: &Options,
    say: Say<'_>,
) -> Result<Report, Error> {
    let target = ManagementCluster::read(target, "target").await?;
    let selection = select(directory::read(directory, &target.kinds)?);
    let namespace = &options.namespace;
    let other = format!("from directory {}", directory.display());
    let found = continued(&target.side, namespace, &other, say).await?;
    let found = match found {
        Some(journal) if journal.record.phase == Phase::RollingBack => {
            undo(&target, Some(&target), namespace, journal).await?;
            None
        }
        found => found,
    };
    let mut journal = match found {
        Some(journal) => journal,
        None => {
            let problems = unusable(&target, &selection, namespace).await?;
            if !problems.is_empty() {
                return Err(Error::Refused(problems));
            }
            target.as_target(namespace, "").ensure_namespace().await?;
            Journal::begin(&target.side, namespace, &other).await?
        }
    };
    if journal.record.phase == Phase::Moving {
        restore(&target, &selection, options, &mut journal, say).await?;
    }
    let id = journal.record.id.clone();
    let complete = async {
        say("resuming the clusters");
        target.as_target(namespace, &id).release().await?;
        journal.remove().await
    };
    complete
        .await
        .map_err(|error| Error::Incomplete(Box::new(error)))?;
    Ok(Report::new(namespace, &selection))
}

/// Reasons why files cannot be restored into the namespace.
async fn unusable(
    target: &ManagementCluster,
    selection: &Selection,
    namespace: &str,
) -> Result<Vec<String>, Error> {
    let mut problems = Vec::new();
    if selection.moves.is_empty() {
        problems.push("there is no Cluster in the directory: nothing to restore".to_owned());
    }
    let objects = selection.moves.iter().map(|moving| &moving.object);
    problems.extend(
        objects
            .filter(|object| object.key().0 != namespace)
            .map(|object| {
                format!(
                    "{} is of namespace {}; choose it with --namespace",
                    object.label(),
                    object.key().0
                )
            }),
    );
    problems.extend(target.as_target(namespace, "").foreign(selection).await?);
    problems.extend(missing(target, selection).await?);
    Ok(problems)
}

async fn restore(
    target: &ManagementCluster,
    selection: &Selection,
    options: &Options,
    journal: &mut Journal,
    say: Say<'_>,
) -> Result<(), Error> {
    let work = Work {
        options,
        journal,
        say,
    };
    say(&format!(
        "creating {} objects, owners first",
        selection.moves.len()
    ));
    let filled = target
        .as_target(&options.namespace, &journal.record.id)
        .fill(&work, selection)
        .await;
    let committed = match filled {
        Ok(()) => journal.enter(Phase::Committed).await,
        Err(error) => Err(error),
    };
    match committed {
        Ok(()) => Ok(()),
        Err(Error::TakenOver(namespace)) => Err(Error::TakenOver(namespace)),
        Err(first) => Err(undone(target, Some(target), options, journal, first).await),
    }
}
