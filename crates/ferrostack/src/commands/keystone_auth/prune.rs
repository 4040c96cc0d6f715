//! Namespaces of deleted projects: only namespaces made by a login.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Namespace;
use keystone_auth::keystone::Http;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Client, ResourceExt};
use openstack::identity::Identity;
use openstack::{ErrorKind, Session};
use operator::client::Api;
use tokio_util::sync::CancellationToken;

use super::config_maps::{Connection, connected};
use super::sync::{MANAGED_BY, PROJECT};
use crate::cli::{KeystoneWebhook, Prune};
use crate::environment::Environment;

/// Namespaces whose projects were gone at the last look, by uid.
type Gone = HashSet<String>;

/// Repeats the look until `stop`, if `--prune` is given.
pub(super) fn follow(
    args: &KeystoneWebhook,
    environment: &Environment,
    keystone: &Arc<Http>,
    stop: &CancellationToken,
) {
    let Some(prune) = args.prune else { return };
    let interval = args.prune_interval;
    let (connection, environment) = (Connection::new(args), environment.clone());
    let keystone = Arc::clone(keystone);
    let following = async move {
        let mut gone = Gone::new();
        loop {
            let looked = async {
                let client = connected(&connection, &environment).await?;
                let session = keystone
                    .service_user()
                    .context("there is no service user")?;
                look(&client, &session, prune, &mut gone).await
            };
            if let Err(error) = looked.await {
                let why = operator::words::chain(&*error);
                tracing::error!("namespaces of projects that are gone are not looked for: {why}");
            }
            tokio::time::sleep(interval).await;
        }
    };
    let stop = stop.clone();
    tokio::spawn(async move { stop.run_until_cancelled_owned(following).await });
}

/// Deletes namespaces whose projects were already gone at the last look; others are only logged.
async fn look(
    client: &Client,
    session: &Session,
    prune: Prune,
    gone: &mut Gone,
) -> anyhow::Result<()> {
    let identity = session.identity();
    check_rights(session, &identity).await?;
    let api: Api<Namespace> = Api::all(client.clone());
    let (label, value) = MANAGED_BY;
    let params = ListParams::default().labels(&format!("{label}={value}"));
    let all = api.list(&params).await.context("listing namespaces")?;
    let before = std::mem::take(gone);
    for namespace in all.items {
        let name = namespace.name_any();
        let project = namespace.annotations().get(PROJECT);
        let (Some(project), Some(uid)) = (project, namespace.uid()) else {
            continue;
        };
        let is_ending = namespace.metadata.deletion_timestamp.is_some();
        if is_ending || project.is_empty() || exists(&identity, project).await? {
            continue;
        }
        let project = project.escape_debug();
        if prune == Prune::Delete && before.contains(&uid) {
            delete(&api, &namespace, uid).await?;
            tracing::warn!("namespace {name} is deleted: there is no project {project} any more");
            continue;
        }
        if !before.contains(&uid) {
            let then = match prune {
                Prune::Look => "it stays, by --prune=look",
                Prune::Delete => "it is deleted after the next look, if that is so then",
            };
            tracing::warn!("namespace {name}: there is no project {project} any more; {then}");
        }
        gone.insert(uid);
    }
    Ok(())
}

/// Checks the rights: a user who cannot read the own project, or gets none, knows nothing of others.
async fn check_rights(session: &Session, identity: &Identity) -> anyhow::Result<()> {
    let token = session.token().await.context("login of the service user")?;
    let Some(own) = &token.project_id else {
        return Ok(());
    };
    match exists(identity, own).await? {
        true => Ok(()),
        false => bail!("Keystone does not know the project of the service user either"),
    }
}

async fn exists(identity: &Identity, project: &str) -> anyhow::Result<bool> {
    match identity.project(project).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Absent && !error.is_login() => Ok(false),
        Err(error) if error.kind() == ErrorKind::Denied => bail!(
            "Keystone does not let the service user read projects: it needs the role `reader` in the whole cloud, or in their domain"
        ),
        Err(error) => Err(error).context("reading a project"),
    }
}

/// Deletes the namespace if unchanged, with the marks, since the last read.
async fn delete(api: &Api<Namespace>, namespace: &Namespace, uid: String) -> anyhow::Result<()> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid),
            resource_version: namespace.resource_version(),
        }),
        ..DeleteParams::default()
    };
    let name = namespace.name_any();
    match api.delete(&name, &params).await {
        // It is gone, or another one, or has changed: it is looked at again.
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        other => other.with_context(|| format!("deleting the namespace {name}")),
    }
}

#[cfg(test)]
mod tests;
