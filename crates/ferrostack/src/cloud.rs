//! Cloud of the clusters: an entry of clouds.yaml, or the simulated cloud.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openstack::config::{CloudConfig, SearchEnv, find_clouds_yaml};
use secrecy::ExposeSecret;

use crate::cli::DataDirArg;
use crate::environment::Environment;
use crate::located;

/// Values of template variables.
type Variables = BTreeMap<String, String>;

/// clouds.yaml of the `openstack` client, and the secure.yaml beside it.
pub(crate) fn clouds_file(environment: &Environment) -> anyhow::Result<(PathBuf, PathBuf)> {
    let path = |name: &str| environment.non_empty(name).map(PathBuf::from);
    let candidates = find_clouds_yaml(&SearchEnv {
        client_config_file: path("OS_CLIENT_CONFIG_FILE"),
        client_secure_file: path("OS_CLIENT_SECURE_FILE"),
        current_dir: Some(environment.working_dir.clone()),
        config_home: path("XDG_CONFIG_HOME"),
        home: environment.home(),
    });
    let asked = candidates.len() == 1;
    let Some(candidate) = candidates
        .iter()
        .find(|candidate| asked || candidate.clouds.exists())
    else {
        let places: Vec<String> = candidates
            .iter()
            .map(|candidate| candidate.clouds.display().to_string())
            .collect();
        bail!(
            "there is no clouds.yaml; searched: {}. Name one with OS_CLIENT_CONFIG_FILE; `ferrostack docs real-openstack` says \
             what is in it{}",
            places.join(", "),
            of_up(environment)
        );
    };
    Ok((candidate.clouds.clone(), candidate.secure.clone()))
}

/// Place of the clouds.yaml of an `up` on a simulated cloud, if there is one in the default data directory.
fn of_up(environment: &Environment) -> String {
    let data = located::data_dir(&DataDirArg::default(), environment);
    let file = data.map(|data| data.join("clouds.yaml"));
    match file.ok().filter(|file| file.exists()) {
        Some(file) => format!(". That of the simulated cloud is {}", file.display()),
        None => String::new(),
    }
}

/// Cloud `name`, with the search order of the `openstack` client.
pub(crate) fn find(name: &str, environment: &Environment) -> anyhow::Result<CloudConfig> {
    let (file, secure) = clouds_file(environment)?;
    let clouds = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let secure = std::fs::read_to_string(&secure).ok();
    let config = CloudConfig::parse_with_secure(&clouds, secure.as_deref(), name)
        .with_context(|| file.display().to_string())?;
    let Some(bundle) = config.cacert.clone() else {
        return Ok(config);
    };
    let pem = std::fs::read(&bundle)
        .with_context(|| format!("cannot read the cacert {bundle} of cloud `{name}`"))?;
    Ok(config.with_ca(Some(pem)))
}

/// Values of the variables with the credentials of a [`CloudConfig`].
pub(crate) fn credentials(config: &CloudConfig) -> Variables {
    let encode = |bytes: &[u8]| STANDARD.encode(bytes);
    let ca = config.ca_pem.as_deref().unwrap_or(b"\n");
    [
        ("OPENSTACK_CLOUD", config.name.clone()),
        (
            "OPENSTACK_CLOUD_YAML_B64",
            encode(config.to_clouds_yaml().expose_secret().as_bytes()),
        ),
        ("OPENSTACK_CLOUD_CACERT_B64", encode(ca)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
