//! Fills in the variables of a template from a cloud: values that follow from the cloud are set and reported, for
//! others a terminal is asked, or else an error lists the choices.

use std::fmt::Write;

use anyhow::{Context, bail};
use api::printable;
use openstack::config::CloudConfig;
use openstack::session::{Session, SessionOptions};

use super::offer::{Choices, Decision, NAME_SERVER, Offer, VARIABLES};
use super::question;
use super::source::{Origin, Source};
use crate::cli::ClusterOptions;
use crate::cloud::credentials;
use crate::connect::quoted_text;

/// Variables with values from clouds.yaml: secrets, or values that follow from the flag with the cloud.
const CREDENTIALS: [&str; 3] = [
    "OPENSTACK_CLOUD",
    "OPENSTACK_CLOUD_YAML_B64",
    "OPENSTACK_CLOUD_CACERT_B64",
];
/// Maximum of choices in an error for one variable.
const MOST: usize = 12;

/// Filled variables, and open ones.
#[derive(Debug)]
pub(crate) struct Filled {
    cloud: String,
    /// One line for each variable.
    pub(crate) report: Vec<String>,
    open: Vec<(&'static str, Choices)>,
}

impl Filled {
    /// Fails with the [`Choices`] for undecided variables.
    pub(crate) fn ensure_decided(&self) -> anyhow::Result<()> {
        if !self.open.is_empty() {
            bail!("{}", undecided(&self.cloud, &self.open));
        }
        Ok(())
    }
}

/// Fills the gaps of `source` from the cloud. `asks` is true if a user can answer questions.
pub(crate) async fn from_cloud(
    source: &mut Source,
    config: &CloudConfig,
    asks: bool,
) -> anyhow::Result<Filled> {
    let mut filled = Filled {
        cloud: config.name.clone(),
        report: Vec::new(),
        open: Vec::new(),
    };
    take_credentials(source, config);
    if !VARIABLES.iter().any(|variable| source.lacks(variable)) {
        return Ok(filled);
    }
    let session = Session::connect(config.clone(), &SessionOptions::default())
        .await
        .with_context(|| format!("cloud `{}`", config.name))?;
    let offer = Offer::read(&session, source)
        .await
        .with_context(|| format!("cloud `{}`", config.name))?;
    for variable in VARIABLES {
        if !source.lacks(variable) {
            continue;
        }
        match offer.decide(variable, source) {
            Decision::Value { value, why } => {
                let line = format!("  {variable}={}  ({why})", quoted_text(&value));
                filled.report.push(line);
                source.set(variable, &value, Origin::Cloud(config.name.clone()));
            }
            Decision::Choices(choices) if default_fits(source, variable, &choices) => {}
            Decision::Choices(choices) => {
                let answer = match asks && filled.open.is_empty() {
                    true => question::ask(variable, &choices).await?,
                    false => None,
                };
                match answer {
                    Some(value) => {
                        let line = format!("  {variable}={}  (your answer)", quoted_text(&value));
                        filled.report.push(line);
                        source.set(variable, &value, Origin::Answer);
                    }
                    None => match newest(variable, &choices) {
                        Some((value, why)) => {
                            let line = format!("  {variable}={}  ({why})", quoted_text(&value));
                            filled.report.push(line);
                            source.set(variable, &value, Origin::Cloud(config.name.clone()));
                        }
                        None => filled.open.push((variable, choices)),
                    },
                }
            }
        }
    }
    Ok(filled)
}

/// Newest Kubernetes version with an image, if no version is given: no other choice has an order.
fn newest(variable: &str, choices: &Choices) -> Option<(String, String)> {
    let (version, _) = choices
        .values
        .first()
        .filter(|_| variable == "KUBERNETES_VERSION")?;
    let why = format!(
        "the newest of {} that images have; another one with --kubernetes-version",
        choices.values.len()
    );
    Some((version.clone(), why))
}

/// True if the default in the template exists in the cloud, so that no question is needed. A name server need not be
/// one of the cloud's.
fn default_fits(source: &Source, variable: &str, choices: &Choices) -> bool {
    let Some(default) = source.default(variable) else {
        return false;
    };
    let default = default.trim_matches('"');
    let is_open = variable == NAME_SERVER && choices.values.is_empty();
    is_open || choices.values.iter().any(|(value, _)| value == default)
}

/// Fills in the credentials. If the user has set the content of clouds.yaml, only the missing values beside it;
/// otherwise the name of the cloud is taken from the entry, too.
fn take_credentials(source: &mut Source, config: &CloudConfig) {
    let without_clouds_file = source.value("OPENSTACK_CLOUD_YAML_B64").is_none();
    for (variable, value) in credentials(config) {
        let origin = Origin::Cloud(config.name.clone());
        match without_clouds_file && variable == "OPENSTACK_CLOUD" {
            true => source.set(&variable, &value, origin),
            false => source.set_missing(&variable, &value, origin),
        }
    }
}

/// Error for variables that cannot be decided without an answer.
fn undecided(cloud: &str, open: &[(&str, Choices)]) -> String {
    let mut text =
        format!("cloud `{cloud}` leaves a choice: set these variables, or answer in a terminal");
    for (variable, choices) in open {
        let flag = match *variable {
            "KUBERNETES_VERSION" => " (or --kubernetes-version)",
            _ => "",
        };
        let _ = write!(
            text,
            "\n{variable}{flag}: {}; {}",
            choices.what, choices.why
        );
        let width = choices.values.iter().map(|(value, _)| value.len()).max();
        let width = width.unwrap_or(0);
        for (value, description) in choices.values.iter().take(MOST) {
            let line = format!("  {:width$}  {description}", quoted_text(value));
            let _ = write!(text, "\n{}", printable::line(line.trim_end()));
        }
        if let Some(more @ 1..) = choices.values.len().checked_sub(MOST) {
            let _ = write!(text, "\n  … {more} more");
        }
    }
    text
}

/// Command line with the same result without a question: `command` has its words up to the name of the cluster, `from`
/// the flags with the cloud.
pub(crate) fn to_repeat(
    source: &Source,
    options: &ClusterOptions,
    command: &str,
    from: &str,
) -> String {
    let mut variables = String::new();
    let mut flags = String::new();
    for (name, value, origin) in source.given() {
        let value = quoted_text(value);
        match (name, origin) {
            (name, _) if CREDENTIALS.contains(&name) => {}
            ("CLUSTER_NAME", _) | (_, Origin::File(_) | Origin::Default | Origin::Argument) => {}
            ("KUBERNETES_VERSION", _) => {
                let _ = write!(flags, " --kubernetes-version {value}");
            }
            (_, Origin::Flag(flag)) => {
                let _ = write!(flags, " {flag} {value}");
            }
            _ => {
                let _ = write!(variables, "{name}={value} ");
            }
        }
    }
    let namespace = options.target_namespace.as_deref();
    if let Some(namespace) = namespace.filter(|_| !flags.contains("--target-namespace")) {
        let _ = write!(flags, " --target-namespace {namespace}");
    }
    if let Some(flavor) = &options.flavor {
        let _ = write!(flags, " --flavor {}", quoted_text(flavor));
    }
    for (flag, path) in [("--from", &options.from), ("--config", &options.config)] {
        if let Some(path) = path {
            let _ = write!(
                flags,
                " {flag} {}",
                quoted_text(&path.display().to_string())
            );
        }
    }
    format!("{variables}{command}{from}{flags}")
}

#[cfg(test)]
mod tests;
