//! Service user of a cloud.conf, who asks Keystone about the tokens of others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use cloud_conf::{CloudConf, Program};
use keystone_auth::Metrics;
use keystone_auth::keystone::{Http, normal_url};
use keystone_auth::reload::{Apply, Files};
use openstack::CloudConfig;

use super::open;
use crate::commands::cloud_controller_manager::files;
use crate::environment::Environment;

const FLAG: &str = "--cloud-config";

/// File, and its cloud at the start.
pub(super) struct ServiceUser {
    file: PathBuf,
    cloud: CloudConfig,
}

impl ServiceUser {
    /// Reads the file.
    pub(super) fn read(file: &Path, environment: &Environment) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("{FLAG}: cannot read {}", file.display()))?;
        let cloud = cloud(&text, environment)
            .map_err(|why| anyhow::anyhow!("{FLAG}: {}: {why}", file.display()))?;
        Ok(Self {
            file: file.to_owned(),
            cloud,
        })
    }

    /// Authorities of Keystone in the file.
    pub(super) fn authorities(&self) -> Option<PathBuf> {
        self.cloud.cacert.as_deref().map(PathBuf::from)
    }

    /// Settings of the file without an effect, in sentences.
    pub(super) fn doubts(&self, url: &str) -> Vec<String> {
        let mut doubts = Vec::new();
        if normal_url(&self.cloud.auth_url).as_deref() != Ok(url) {
            doubts.push(format!(
                "{FLAG}: auth-url has no effect: the service user logs in at --keystone-url"
            ));
        }
        if !self.cloud.verify {
            doubts.push(format!(
                "{FLAG}: tls-insecure has no effect: tokens are sent to a Keystone with a certificate that can be verified"
            ));
        }
        doubts
    }

    /// Gives Keystone the service user of the file, and later ones after changes.
    pub(super) fn follow(
        self,
        keystone: &Arc<Http>,
        environment: &Environment,
        metrics: &Metrics,
    ) -> anyhow::Result<Files> {
        let (keystone, environment) = (Arc::clone(keystone), environment.clone());
        let apply: Apply = Box::new(move |texts| {
            let text = texts.first().map_or("", String::as_str);
            let set = keystone.set_service_user(cloud(text, &environment)?);
            set.map_err(|error| error.message().to_owned())
        });
        open(FLAG, "the service user", vec![self.file], apply, metrics)
    }
}

fn cloud(text: &str, environment: &Environment) -> Result<CloudConfig, String> {
    // What is wrong in the sections of other programs is their business.
    let parsed = CloudConf::parse(text, Program::CinderCsi).map_err(|error| error.to_string())?;
    files::find(&parsed.conf.global, environment).map_err(|error| format!("{error:#}"))
}
