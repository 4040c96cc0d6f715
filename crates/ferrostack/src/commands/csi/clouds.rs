//! cloud.conf of the driver, and its clouds.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use cloud_conf::{BlockStorage, CloudConf, Finding, Metadata, Parsed, Program, Source};
use csi::{GoMetrics, INTERVALS, NamedCloud};
use openstack::session::SessionOptions;
use openstack::{CloudPool, PoolOptions};
use operator::metrics::Metrics;
use secrecy::{ExposeSecret, SecretString};

use crate::cli::CinderCsiPlugin;
use crate::commands::cloud_controller_manager::files;
use crate::environment::Environment;

/// Files to read, and the clouds to use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files<'a> {
    /// `--cloud-config`.
    pub(super) paths: &'a [PathBuf],
    /// `--cloud-name`; none for `[Global]`.
    pub(super) names: &'a [String],
    /// True if the clouds are needed. Otherwise missing files are left out, as by the Go driver.
    pub(super) controller: bool,
}

impl<'a> From<&'a CinderCsiPlugin> for Files<'a> {
    fn from(args: &'a CinderCsiPlugin) -> Self {
        Self {
            paths: &args.cloud_config,
            names: &args.cloud_name,
            controller: args.provide_controller_service,
        }
    }
}

/// Content of the files.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) conf: CloudConf,
    /// Clouds of `--cloud-name`, by name; none without the controller service.
    pub(super) clouds: Vec<NamedCloud>,
    /// Errors in usable files.
    pub(super) findings: Vec<Finding>,
    /// Missing files.
    missing: Vec<PathBuf>,
}

impl Loaded {
    /// Warnings at the start.
    pub(super) fn warnings(&self) -> Vec<String> {
        let missing = self.missing.iter().map(|file| {
            format!(
                "{} is not there: its settings are the defaults",
                file.display()
            )
        });
        let findings = self.findings.iter().map(ToString::to_string);
        missing.chain(findings).collect()
    }

    /// Settings that take effect at a start only, for comparison.
    pub(super) fn settings(&self) -> (BlockStorage, Metadata) {
        (self.conf.block_storage.clone(), self.conf.metadata.clone())
    }
}

/// Reads cloud.conf.
pub(super) fn load(files: &Files<'_>, environment: &Environment) -> anyhow::Result<Loaded> {
    if files.controller && files.paths.is_empty() {
        bail!(
            "--cloud-config is missing: the controller service needs the cloud and its credentials; without that service, \
             give --provide-controller-service=false"
        );
    }
    let (mut texts, mut missing) = (Vec::new(), Vec::new());
    for file in files.paths {
        match std::fs::read_to_string(file) {
            Ok(text) => texts.push((file.display().to_string(), SecretString::from(text))),
            Err(error) if !files.controller && error.kind() == io::ErrorKind::NotFound => {
                missing.push(file.clone());
            }
            Err(error) => return Err(error).with_context(|| cannot_read(file)),
        }
    }
    let sources: Vec<Source<'_>> = texts
        .iter()
        .map(|(name, text)| Source {
            name,
            text: text.expose_secret(),
        })
        .collect();
    let Parsed {
        conf,
        warnings: findings,
    } = CloudConf::merge(&sources, Program::CinderCsi)?;
    let clouds = match files.controller {
        true => clouds(files.names, &conf, environment)?,
        false => Vec::new(),
    };
    Ok(Loaded {
        conf,
        clouds,
        findings,
        missing,
    })
}

fn cannot_read(file: &Path) -> String {
    format!("--cloud-config: cannot read {}", file.display())
}

/// [`NamedCloud`]s of `--cloud-name`, each with its CA.
fn clouds(
    names: &[String],
    conf: &CloudConf,
    environment: &Environment,
) -> anyhow::Result<Vec<NamedCloud>> {
    let names: BTreeSet<&str> = match names.is_empty() {
        true => BTreeSet::from([""]),
        false => names.iter().map(String::as_str).collect(),
    };
    let clouds = names.into_iter().map(|name| {
        let Some(global) = conf.cloud(name) else {
            let all = std::iter::once("").chain(conf.clouds.keys().map(String::as_str));
            let known: Vec<String> = all
                .filter(|name| conf.cloud(name).is_some())
                .map(section)
                .collect();
            let known = match known.is_empty() {
                true => "no cloud".to_owned(),
                false => known.join(", "),
            };
            bail!(
                "--cloud-name `{}`: cloud.conf has no section {}, but {known}",
                name.escape_debug(),
                section(name)
            );
        };
        let config = files::find(global, environment).with_context(|| section(name))?;
        Ok(NamedCloud {
            name: name.to_owned(),
            config,
        })
    });
    clouds.collect()
}

/// Section of a cloud.
pub(super) fn section(name: &str) -> String {
    match name {
        "" => "[Global]".to_owned(),
        name => format!("[Global \"{}\"]", name.escape_debug()),
    }
}

/// [`CloudPool`] with the sessions and lists of the clouds; requests are counted, also under the names of the Go
/// driver.
pub(super) fn pool(args: &CinderCsiPlugin, loaded: &Loaded, metrics: &Metrics) -> CloudPool {
    let go = GoMetrics::default();
    let requests = openstack::Metrics::with_hook(go.hook());
    metrics.register(|registry| {
        requests.register(registry);
        go.register(registry);
    });
    CloudPool::new(PoolOptions {
        session: SessionOptions {
            metrics: requests,
            most_at_once: csi::MOST_AT_ONCE,
            ..files::session_options(&loaded.conf.metadata, &args.user_agent)
        },
        intervals: INTERVALS,
        ..PoolOptions::default()
    })
}
