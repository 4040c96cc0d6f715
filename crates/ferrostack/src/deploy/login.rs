//! `openstack clouds-yaml`: how the administrator logs in.

use std::path::Path;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::{Client, ResourceExt as _};
use openstack::CloudConfig;
use secrecy::{ExposeSecret as _, SecretString};

use super::place::{self, Simulated};
use crate::cli::CloudArgs;
use crate::environment::Environment;
use crate::up;

/// What a simulated cloud holds, below its data directory.
pub(super) const DIRECTORY: &str = "openstack";
/// Its clouds.yaml.
const FILE: &str = "openstack/clouds.yaml";

/// The clouds.yaml of a cloud.
pub(crate) async fn clouds_yaml(
    args: &CloudArgs,
    environment: &Environment,
) -> anyhow::Result<SecretString> {
    let client = place::client(&args.place, environment).await?;
    let url = match place::is_simulated(&args.place) {
        true => {
            let data = place::directory(args.place.data_dir.as_deref(), environment);
            up::simulated_openstack(&data)?
        }
        false => None,
    };
    let text = read(&client, &args.namespace, &args.name, url.as_deref()).await?;
    let (name, namespace) = (&args.name, &args.namespace);
    let Some(text) = text else {
        bail!(
            "the cloud {name} in namespace {namespace} has no administrator yet: `{} openstack status` tells how far it is",
            environment.program
        );
    };
    Ok(text)
}

/// Writes the clouds.yaml of a simulated cloud beside its state, for its owner alone. Returns its path; `None` while
/// there is no administrator.
pub(super) async fn write(
    client: &Client,
    simulated: &Simulated,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Option<String>> {
    let url = Some(simulated.openstack.as_str());
    let Some(text) = read(client, namespace, name, url).await? else {
        return Ok(None);
    };
    simulated.data.write(FILE, text.expose_secret())?;
    Ok(Some(simulated.data.file(FILE).display().to_string()))
}

/// The clouds.yaml in the Secret of a cloud, which leads to another URL of Keystone, if one is given.
async fn read(
    client: &Client,
    namespace: &str,
    name: &str,
    url: Option<&str>,
) -> anyhow::Result<Option<SecretString>> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let title = format!("{name}-admin");
    let found = secrets.get_opt(&title).await;
    let found = found.with_context(|| format!("cannot read Secret {namespace}/{title}"))?;
    let ours = |it: &Secret| {
        it.labels()
            .get(deployer::PART_OF)
            .is_some_and(|it| it == name)
    };
    let Some(secret) = found.filter(ours) else {
        return Ok(None);
    };
    let text = secret.data.unwrap_or_default().remove("clouds.yaml");
    let text = text.and_then(|it| String::from_utf8(it.0).ok());
    let text = text.with_context(|| format!("Secret {namespace}/{title} has no clouds.yaml"))?;
    let text = SecretString::from(text);
    let Some(url) = url else {
        return Ok(Some(text));
    };
    let mut config = CloudConfig::parse(text.expose_secret(), name)?;
    config.auth_url = format!("{url}/identity/v3");
    config.cacert = None;
    Ok(Some(config.to_clouds_yaml()))
}

/// Removes the clouds.yaml of a cloud that was deleted, and what it held.
pub(super) fn forget(data: &Path, purge: bool) -> anyhow::Result<()> {
    let removed = match purge {
        true => std::fs::remove_dir_all(data.join(DIRECTORY)),
        false => std::fs::remove_file(data.join(FILE)),
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", data.join(DIRECTORY).display()))
        }
        _ => Ok(()),
    }
}
