//! `openstack clouds-yaml`: login of the administrator.

use std::path::Path;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Secret;
use kube::{Client, ResourceExt as _};
use openstack::CloudConfig;
use operator::client::Api;
use secrecy::{ExposeSecret as _, SecretString};

use super::site::{self, Site};
use crate::cli::CloudArgs;
use crate::commands::up;
use crate::connect::quoted;
use crate::data_dir::DataDir;
use crate::data_dir::OPENSTACK;
use crate::environment::Environment;

/// Path of the administrator's clouds.yaml.
const FILE: &str = "openstack/clouds.yaml";
/// Path of the authority of the edge's certificate.
const AUTHORITY: &str = "openstack/ca.crt";

/// The clouds.yaml of a cloud.
pub(crate) async fn clouds_yaml(
    args: &CloudArgs,
    environment: &Environment,
) -> anyhow::Result<SecretString> {
    let client = site::client(&args.place, environment).await?;
    let url = match site::is_simulated(&args.place) {
        true => {
            let data = site::directory(args.place.data_dir.as_deref(), environment)?;
            up::simulated_openstack(&data)?
        }
        false => None,
    };
    let (name, namespace) = (&args.name, &args.namespace);
    let Some(login) = Login::read(&client, namespace, name).await? else {
        bail!(
            "the cloud {name} in namespace {namespace} has no administrator yet: `{} openstack status` tells how far it is",
            environment.program
        );
    };
    match url {
        Some(url) => login.simulated(&url),
        None => Ok(login.clouds),
    }
}

/// Writes the clouds.yaml of a cloud into the data directory as a private file, with the authority of the certificate.
/// Returns the [`Path`]; `None` without an administrator, or if the cloud is not reachable from outside of the cluster.
pub(super) async fn write(
    place: &Site,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Option<String>> {
    let Some(login) = Login::read(&place.client, namespace, name).await? else {
        return Ok(None);
    };
    if let Some(simulated) = &place.simulated {
        let text = login.simulated(&simulated.openstack)?;
        simulated.data.write(FILE, text.expose_secret())?;
        return Ok(Some(simulated.data.file(FILE).display().to_string()));
    }
    let Some(text) = login.outside(&place.directory)? else {
        return Ok(None);
    };
    // A simulated cloud that runs there has its own. The directory is never the default one of `up`.
    let flag = format!(" --data-dir {}", quoted(&place.directory));
    let data = DataDir::open_when_free(&place.directory, &flag).await?;
    if let Some(authority) = &login.authority {
        data.write(AUTHORITY, authority)?;
    }
    data.write(FILE, text.expose_secret())?;
    Ok(Some(data.file(FILE).display().to_string()))
}

/// Login of the administrator of a cloud: the Secret `NAME-admin`.
pub(super) struct Login {
    name: String,
    /// clouds.yaml for a Pod with the Secret mounted at `/etc/openstack`.
    clouds: SecretString,
    /// Certificates to be trusted by clients.
    authority: Option<String>,
}

impl Login {
    /// [`Login`] of a cloud; `None` before there is one.
    pub(super) async fn read(
        client: &Client,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<Option<Self>> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let title = format!("{name}-admin");
        let found = secrets.get_opt(&title).await;
        let found = found.with_context(|| format!("cannot read Secret {namespace}/{title}"))?;
        let ours = |it: &Secret| {
            let part_of = it.labels().get(deployer::PART_OF);
            part_of.is_some_and(|it| it == name)
        };
        let Some(secret) = found.filter(ours) else {
            return Ok(None);
        };
        let mut data = secret.data.unwrap_or_default();
        let mut text = |key: &str| String::from_utf8(data.remove(key)?.0).ok();
        let clouds = text("clouds.yaml");
        let clouds =
            clouds.with_context(|| format!("Secret {namespace}/{title} has no clouds.yaml"))?;
        Ok(Some(Self {
            name: name.to_owned(),
            clouds: SecretString::from(clouds),
            authority: text("ca.crt"),
        }))
    }

    fn config(&self) -> anyhow::Result<CloudConfig> {
        Ok(CloudConfig::parse(self.clouds.expose_secret(), &self.name)?)
    }

    /// clouds.yaml for the simulated OpenStack at this URL.
    fn simulated(&self, url: &str) -> anyhow::Result<SecretString> {
        let mut config = self.config()?;
        config.auth_url = format!("{url}/identity/v3");
        config.cacert = None;
        Ok(config.to_clouds_yaml())
    }

    /// clouds.yaml for this machine, with the authority in a data directory; `None` without an edge.
    fn outside(&self, directory: &Path) -> anyhow::Result<Option<SecretString>> {
        let mut config = self.config()?;
        let path = directory.join(AUTHORITY).display().to_string();
        config.cacert = self.authority.as_ref().map(|_| path);
        let has_edge = config.auth_url.starts_with("https://");
        Ok(has_edge.then(|| config.to_clouds_yaml()))
    }

    /// Removes the files written by [`write()`] for a cloud in a cluster, unless another cloud has replaced them.
    pub(super) fn forget(&self, directory: &Path) -> anyhow::Result<()> {
        let is_there = |text: &SecretString| {
            let found = std::fs::read_to_string(directory.join(FILE));
            found.is_ok_and(|it| it == text.expose_secret())
        };
        if self.outside(directory)?.is_some_and(|it| is_there(&it)) {
            for path in [FILE, AUTHORITY] {
                removed(std::fs::remove_file(directory.join(path)), directory)?;
            }
        }
        Ok(())
    }
}

/// Removes the clouds.yaml of a deleted cloud, and with `purge` its data.
pub(super) fn forget(data: &Path, purge: bool) -> anyhow::Result<()> {
    let done = match purge {
        true => std::fs::remove_dir_all(data.join(OPENSTACK)),
        false => std::fs::remove_file(data.join(FILE)),
    };
    removed(done, data)
}

fn removed(done: std::io::Result<()>, data: &Path) -> anyhow::Result<()> {
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", data.join(OPENSTACK).display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(url: &str, authority: Option<&str>) -> Login {
        let clouds = format!(
            "clouds:\n  cloud:\n    auth:\n      auth_url: \"{url}\"\n      username: admin\n      password: \"canary\"\n      project_name: admin\n      \
             user_domain_name: Default\n      project_domain_name: Default\n    region_name: \"RegionOne\"\n    cacert: /etc/openstack/ca.crt\n"
        );
        Login {
            name: "cloud".to_owned(),
            clouds: clouds.into(),
            authority: authority.map(str::to_owned),
        }
    }

    #[test]
    fn the_file_for_this_machine_trusts_the_authority_beside_it_and_there_is_none_without_an_edge()
    {
        let directory = Path::new("/data");
        let edge = login("https://192.0.2.7:5000/v3", Some("PEM"));
        let text = edge.outside(directory).unwrap().unwrap();
        let config = CloudConfig::parse(text.expose_secret(), "cloud").unwrap();
        assert_eq!(config.auth_url, "https://192.0.2.7:5000/v3");
        assert_eq!(config.cacert.as_deref(), Some("/data/openstack/ca.crt"));
        assert_eq!(config.region.as_deref(), Some("RegionOne"));
        assert!(text.expose_secret().contains("canary"));
        let trusted = login("https://cloud.test:5000/v3", None);
        let text = trusted.outside(directory).unwrap().unwrap();
        assert!(
            !text.expose_secret().contains("cacert"),
            "the certificate is one that clients trust"
        );
        let inside = login("http://keystone:5000/v3", None);
        assert!(inside.outside(directory).unwrap().is_none());
    }

    #[test]
    fn the_files_of_a_deleted_cloud_go_and_those_of_another_one_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        std::fs::create_dir(path.join(OPENSTACK)).unwrap();
        let ours = login("https://192.0.2.7:5000/v3", Some("PEM"));
        let others = login("https://192.0.2.8:5000/v3", Some("PEM"));
        let text = ours.outside(path).unwrap().unwrap();
        std::fs::write(path.join(FILE), text.expose_secret()).unwrap();
        std::fs::write(path.join(AUTHORITY), "PEM").unwrap();
        others.forget(path).unwrap();
        assert!(path.join(FILE).exists() && path.join(AUTHORITY).exists());
        ours.forget(path).unwrap();
        assert!(!path.join(FILE).exists() && !path.join(AUTHORITY).exists());
        ours.forget(path).unwrap();
    }
}
