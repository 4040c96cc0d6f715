//! `openstack delete`: end of a cloud.

use std::time::Duration;

use anyhow::{Context as _, bail};
use api::openstack::PURGE_DATA;
use api::openstack::conditions::Type;
use api::openstack::v1alpha1::OpenStack;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use operator::client::Api;
use operator::metrics::Metrics;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::login::{self, Login};
use super::purge::Deleted;
use super::site::{self, Site};
use crate::cli::OpenStackDelete;
use crate::data_dir;
use crate::environment::Environment;

/// Pause between two reads.
const PAUSE: Duration = Duration::from_millis(200);

/// Deletes a cloud and waits for the end. The controller runs in this process, unless an `openstack up` uses the
/// directory.
pub(crate) async fn delete(
    args: &OpenStackDelete,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let stop = shutdown.child_token();
    let _end = stop.clone().drop_guard();
    let place = &args.cloud.place;
    let directory = site::directory(place.data_dir.as_deref(), environment)?;
    let named = place.kubeconfig.is_some() || place.context.is_some();
    if !named && data_dir::holder(&directory)?.is_some() {
        let client = site::client(place, environment).await?;
        let forget = || login::forget(&directory, false);
        ended(args, &client, &shutdown, forget, &say).await?;
        return login::forget(&directory, args.purge_data);
    }
    if !named && !directory.join("management.db").exists() {
        bail!(
            "there is no simulated cloud in {}: name a cluster with --kubeconfig or --context",
            directory.display()
        );
    }
    let metrics = Metrics::default();
    let mut place = Site::open(place, environment, &metrics, &stop).await?;
    let options = rollout::Options {
        namespace: Some(args.cloud.namespace.clone()),
        metrics,
        ..rollout::Options::default()
    };
    let login = match named {
        true => Login::read(&place.client, &args.cloud.namespace, &args.cloud.name).await?,
        false => None,
    };
    place.control(options, &stop);
    let forget = || match (named, &login) {
        (true, Some(login)) => login.forget(&directory),
        (true, None) => Ok(()),
        (false, _) => login::forget(&directory, false),
    };
    let outcome = ended(args, &place.client, &shutdown, forget, &say).await;
    stop.cancel();
    place.stopped().await;
    outcome?;
    match named {
        true => Ok(()),
        false => login::forget(&directory, args.purge_data),
    }
}

/// Deletes the [`OpenStack`] object, and waits until it is gone. `forget` removes the login as soon as the cloud is
/// being deleted: after an interruption no login without a cloud is left.
async fn ended(
    args: &OpenStackDelete,
    client: &Client,
    shutdown: &CancellationToken,
    forget: impl Fn() -> anyhow::Result<()>,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let (name, namespace) = (&args.cloud.name, &args.cloud.namespace);
    let api: Api<OpenStack> = Api::namespaced(client.clone(), namespace);
    let title = format!("OpenStack {namespace}/{name}");
    let found = api.get_opt(name).await;
    if found
        .with_context(|| format!("cannot read {title}"))?
        .is_none()
    {
        if !args.purge_data {
            bail!("there is no cloud {name} in namespace {namespace}");
        }
        let deleted = Deleted {
            client,
            namespace,
            name,
        };
        let left = deleted.purge(args.timeout, shutdown).await?;
        forget()?;
        if left.is_empty() {
            bail!("there is no cloud {name} in namespace {namespace}, and no data of one");
        }
        say(&format!(
            "the cloud {name} was deleted before; its data is deleted now: {}",
            left.join(", ")
        ));
        return Ok(());
    }
    if args.purge_data {
        let patch = json!({"metadata": {"annotations": {PURGE_DATA: "true"}}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let done = api.patch(name, &params, &patch).await;
        done.with_context(|| format!("cannot change {title}"))?;
    }
    let deleted = api.delete(name, &DeleteParams::default()).await;
    deleted.with_context(|| format!("cannot delete {title}"))?;
    forget()?;
    let deadline = tokio::time::Instant::now() + args.timeout;
    let mut last = String::new();
    while let Some(cloud) = api
        .get_opt(name)
        .await
        .with_context(|| format!("cannot read {title}"))?
    {
        let status = cloud.status.unwrap_or_default();
        let found = api::conditions::find(&status.conditions, Type::Ready);
        let message = found
            .filter(|it| it.reason == "Deleting")
            .map(|it| it.message.clone());
        if let Some(message) = message.filter(|it| *it != last) {
            say(&message);
            last = message;
        }
        if shutdown.is_cancelled() {
            bail!("interrupted: the cloud is being deleted; the same command goes on");
        }
        if tokio::time::Instant::now() > deadline {
            bail!("not deleted after {} s: {last}", args.timeout.as_secs());
        }
        tokio::time::sleep(PAUSE).await;
    }
    say(match args.purge_data {
        true => "deleted, with its data",
        false => {
            "deleted; volumes, passwords and keys stay, and the next `ferrostack openstack up` uses them"
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use apiserver::ApiServer;
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command, OpenStack as OpenStackCommand};
    use crate::commands::openstack::up::{self, parameters};

    #[tokio::test]
    async fn who_is_interrupted_while_a_cloud_is_deleted_has_no_login_to_it() {
        let server = ApiServer::open(apiserver::Options::default())
            .await
            .unwrap();
        let client = Client::new(server.in_process(), "default");
        let asked = parameters::read(None, &[], &serde_json::Value::Null).unwrap();
        up::apply(&client, &asked).await.unwrap();
        let api: Api<OpenStack> = Api::namespaced(client.clone(), "openstack");
        // Of a controller that is not there.
        let held = json!({"metadata": {"finalizers": [api::openstack::FINALIZER]}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(held));
        api.patch("cloud", &params, &patch).await.unwrap();

        let line = ["ferrostack", "openstack", "delete"];
        let Command::OpenStack(OpenStackCommand::Delete(args)) = Cli::parse_from(line).command
        else {
            panic!("another command");
        };
        let (stop, forgotten) = (CancellationToken::new(), Cell::new(false));
        stop.cancel();
        let forget = || {
            forgotten.set(true);
            Ok(())
        };
        let interrupted = ended(&args, &client, &stop, forget, &|_: &str| ()).await;
        let why = interrupted.unwrap_err().to_string();
        assert!(
            why.starts_with("interrupted: the cloud is being deleted"),
            "{why}"
        );
        assert!(forgotten.get());
        let cloud = api.get("cloud").await.unwrap();
        assert!(cloud.metadata.deletion_timestamp.is_some());
    }
}
