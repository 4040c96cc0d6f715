//! Template with the values of its variables, and the origin of each value.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use installer::flavors::FILES;
use manifest::template::{Found, Template};
use serde::Serialize;

use super::configuration;
use super::text::Text;
use crate::cli::ClusterOptions;
use crate::environment::Environment;
use crate::source;

/// Flavors, each with its files.
const FLAVORS: [(&str, &[&str]); 7] = [
    ("default", &["cluster-template.yaml"]),
    ("without-lb", &["cluster-template-without-lb.yaml"]),
    ("flatcar", &["cluster-template-flatcar.yaml"]),
    ("flatcar-sysext", &["cluster-template-flatcar-sysext.yaml"]),
    // As clusterctl prints it for a management cluster without the class.
    (
        TOPOLOGY,
        &[
            "clusterclass-dev-test.yaml",
            "cluster-template-topology.yaml",
        ],
    ),
    (CLASS, &["clusterclass-dev-test.yaml"]),
    ("capi-v1beta1", &["cluster-template-capi-v1beta1.yaml"]),
];

/// Flavor with a class and a cluster of it.
pub(crate) const TOPOLOGY: &str = "topology";
/// The flavor with a class, and no cluster.
pub(crate) const CLASS: &str = "clusterclass-dev-test";

/// Flavors of cluster-api-provider-openstack with another name here.
const OTHERS: [(&str, &str); 2] = [
    ("development", "it is the flavor `topology` now"),
    ("external-cloud-provider", "it is the flavor `default` now"),
];

/// Origin of the value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The argument NAME.
    Argument,
    Flag(&'static str),
    Environment,
    File(PathBuf),
    /// Cloud of this name, or entry in clouds.yaml.
    Cloud(String),
    /// An answer in the terminal.
    Answer,
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument => write!(out, "argument NAME"),
            Self::Flag(flag) => write!(out, "flag {flag}"),
            Self::Environment => write!(out, "environment"),
            Self::File(path) => write!(out, "{}", path.display()),
            Self::Cloud(name) => write!(out, "cloud {name}"),
            Self::Answer => write!(out, "answer"),
            Self::Default => write!(out, "default"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Value {
    text: String,
    origin: Origin,
}

/// Variable of a template, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Variable {
    name: String,
    required: bool,
    /// Value; for files in base64 only their length.
    value: Option<String>,
    /// Origin of the value.
    origin: Option<String>,
    /// The default in the template.
    default: Option<String>,
}

/// Template with a name for messages, and the values of the variables.
pub(crate) struct Source {
    pub(crate) name: String,
    template: Template,
    values: BTreeMap<String, Value>,
    /// Sentences about settings of the configuration file without an effect.
    without_effect: Vec<String>,
}

/// Number of replicas stated in the documents of a kind in a template.
fn stated(template: &str, kind: &str) -> u32 {
    let is_of_kind = |document: &&str| {
        let mut lines = document.lines();
        lines.any(|line| line.strip_prefix("kind: ") == Some(kind))
    };
    let number = |document: &str| {
        let mut lines = document.lines();
        lines.find_map(|line| {
            line.strip_prefix("  replicas: ")?
                .trim()
                .parse::<u32>()
                .ok()
        })
    };
    let documents = template.split("\n---").filter(is_of_kind);
    documents.filter_map(number).sum()
}

impl Source {
    /// [`Source`] with the values of environment and configuration file, in this order.
    pub(crate) fn plain(
        text: Text,
        config: Option<&Path>,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        let Text { name, text } = text;
        let template = Template::parse(&text).with_context(|| format!("template {name}"))?;
        let (mut values, without_effect) = config_file(config, environment)?;
        for variable in template.variables().keys() {
            if let Some(text) = environment.variable(variable) {
                let value = Value {
                    text: text.to_owned(),
                    origin: Origin::Environment,
                };
                values.insert((*variable).to_owned(), value);
            }
        }
        Ok(Self {
            name,
            template,
            values,
            without_effect,
        })
    }

    /// [`Source`] of `text`, or else of the flavor in `options`, with the values of arguments, flags, environment and
    /// configuration file. `workers` and `control_planes` are the defaults of the counts.
    pub(crate) fn new(
        cluster: &str,
        options: &ClusterOptions,
        text: Option<Text>,
        environment: &Environment,
        (control_planes, workers): (u32, u32),
    ) -> anyhow::Result<Self> {
        let text = match text {
            Some(text) => text,
            None => flavor(options)?,
        };
        let planes = stated(&text.text, "KubeadmControlPlane").to_string();
        let deployed = stated(&text.text, "MachineDeployment").to_string();
        // A number other than that of a template which states it itself.
        let ignored = |variable: &str, value: &str| match variable {
            "CONTROL_PLANE_MACHINE_COUNT" => value != planes,
            "WORKER_MACHINE_COUNT" => value != deployed,
            _ => false,
        };
        let mut source = Self::plain(text, options.config.as_deref(), environment)?;
        source.set("CLUSTER_NAME", cluster, Origin::Argument);
        let count = |count: Option<u32>| count.map(|count| count.to_string());
        for (variable, flag, given, default) in [
            (
                "NAMESPACE",
                "--target-namespace",
                options.target_namespace.clone(),
                "default".to_owned(),
            ),
            (
                "KUBERNETES_VERSION",
                "--kubernetes-version",
                options.kubernetes_version.clone(),
                String::new(),
            ),
            (
                "CONTROL_PLANE_MACHINE_COUNT",
                "--control-plane-machine-count",
                count(options.control_plane_machine_count),
                control_planes.to_string(),
            ),
            (
                "WORKER_MACHINE_COUNT",
                "--worker-machine-count",
                count(options.worker_machine_count),
                workers.to_string(),
            ),
        ] {
            match given {
                Some(value) if !source.has(variable) && ignored(variable, &value) => {
                    anyhow::bail!(
                        "template {} has no {variable}, so that {flag} {value} would change nothing: leave the flag out, or take another template",
                        source.name
                    );
                }
                Some(value) => source.set(variable, &value, Origin::Flag(flag)),
                None if !default.is_empty() => {
                    source.set_missing(variable, &default, Origin::Default);
                }
                None => {}
            }
        }
        Ok(source)
    }

    /// Notes for the user, before anything based on the values.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let sentences = self.without_effect.iter();
        sentences.map(|sentence| format!("note: {sentence}"))
    }

    /// Renders the manifests.
    pub(crate) fn render(&self) -> anyhow::Result<String> {
        self.template
            .render(&|name| {
                let value = self.values.get(name)?;
                Some(Found {
                    text: value.text.clone(),
                    // An answer is one of the values that the cloud has, too.
                    is_foreign: matches!(value.origin, Origin::Cloud(_) | Origin::Answer),
                })
            })
            .with_context(|| format!("template {}", self.name))
    }

    /// Value of a variable, unless equal to the default in the template.
    pub(crate) fn value(&self, variable: &str) -> Option<&str> {
        self.values.get(variable).map(|value| value.text.as_str())
    }

    /// True for a variable in the template without a value.
    pub(crate) fn lacks(&self, variable: &str) -> bool {
        self.value(variable).is_none() && self.has(variable)
    }

    /// True for a variable in the template.
    pub(crate) fn has(&self, variable: &str) -> bool {
        self.template.variables().contains_key(variable)
    }

    /// The default of the variable in the template.
    pub(crate) fn default(&self, variable: &str) -> Option<String> {
        self.template.variables().remove(variable).flatten()
    }

    /// True if a required variable has no value.
    pub(crate) fn is_incomplete(&self) -> bool {
        !self.missing().is_empty()
    }

    /// The required variables without a value, in alphabetical order.
    pub(crate) fn missing(&self) -> Vec<&str> {
        let variables = self.template.variables().into_iter();
        variables
            .filter(|(name, default)| default.is_none() && self.value(name).is_none())
            .map(|(name, _)| name)
            .collect()
    }

    pub(crate) fn set(&mut self, variable: &str, text: &str, origin: Origin) {
        let value = Value {
            text: text.to_owned(),
            origin,
        };
        self.values.insert(variable.to_owned(), value);
    }

    /// Sets a variable that has no value.
    pub(crate) fn set_missing(&mut self, variable: &str, text: &str, origin: Origin) {
        if self.value(variable).is_none() {
            self.set(variable, text, origin);
        }
    }

    /// Variables of the template with a value, in alphabetical order.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&str, &str, &Origin)> {
        let variables = self.template.variables();
        self.values
            .iter()
            .filter(move |(name, _)| variables.contains_key(name.as_str()))
            .map(|(name, value)| (name.as_str(), value.text.as_str(), &value.origin))
    }

    /// [`Variable`]s for programs: as [`Self::list_variables`], without the values of files in base64.
    pub(crate) fn variables(&self) -> Vec<Variable> {
        let variables = self.template.variables().into_iter();
        variables
            .map(|(name, default)| {
                let value = self.values.get(name);
                let text = value.map(|value| printable(name, &value.text));
                Variable {
                    name: name.to_owned(),
                    required: default.is_none(),
                    value: text.or_else(|| default.clone()),
                    origin: match (value, &default) {
                        (Some(value), _) => Some(value.origin.to_string()),
                        (None, Some(_)) => Some(Origin::Default.to_string()),
                        (None, None) => None,
                    },
                    default,
                }
            })
            .collect()
    }

    /// Output of `--list-variables`: required variables first, then variables with a default in the template.
    pub(crate) fn list_variables(&self) -> String {
        let variables = self.template.variables();
        let width = variables.keys().map(|name| name.len()).max().unwrap_or(0);
        let line = |name: &str, default: Option<&str>| {
            let text = match (self.values.get(name), default) {
                (Some(value), _) => row(name, &value.text, &value.origin),
                (None, Some(default)) => row(name, default, &Origin::Default),
                (None, None) => "not set".to_owned(),
            };
            format!("  - {name:width$}  {text}\n")
        };
        let mut text = String::from("Required Variables:\n");
        for (name, default) in &variables {
            if default.is_none() {
                text.push_str(&line(name, None));
            }
        }
        if variables.values().any(Option::is_some) {
            text.push_str("\nOptional Variables:\n");
        }
        for (name, default) in &variables {
            if let Some(default) = default {
                text.push_str(&line(name, Some(default)));
            }
        }
        text
    }
}

/// Value and its [`Origin`]. Values in base64 are files with secrets.
fn row(name: &str, value: &str, origin: &Origin) -> String {
    let value = match value {
        "" => "\"\"".to_owned(),
        other => printable(name, other),
    };
    format!("{value}  ({origin})")
}

fn printable(name: &str, value: &str) -> String {
    match value {
        long if name.ends_with("_B64") && long.len() > 8 => format!("({} bytes)", long.len()),
        other => other.to_owned(),
    }
}

/// Checks that the flavor exists, and parses the template and the configuration file.
pub(crate) fn check(
    options: &ClusterOptions,
    text: Option<Text>,
    environment: &Environment,
) -> anyhow::Result<()> {
    let text = match text {
        Some(text) => text,
        None => flavor(options)?,
    };
    Source::plain(text, options.config.as_deref(), environment).map(|_| ())
}

/// The embedded template of a flavor.
fn flavor(options: &ClusterOptions) -> anyhow::Result<Text> {
    let flavor = options.flavor.as_deref().unwrap_or("default");
    if let Some((name, files)) = FLAVORS.iter().find(|(name, _)| *name == flavor) {
        let of = |file: &&str| FILES.iter().find(|(name, _)| name == file);
        let texts = files.iter().filter_map(of).map(|(_, text)| *text);
        let texts: Vec<&str> = texts.collect();
        return Ok(Text {
            name: format!("flavor {name}"),
            text: texts.join("---\n"),
        });
    }
    let known = flavors();
    let other = OTHERS.iter().find(|(name, _)| *name == flavor);
    let why = other.map(|(_, why)| format!(": {why}")).unwrap_or_default();
    bail!(
        "there is no flavor `{flavor}`{why}; there are: {known}. For a template of your own use --from FILE"
    )
}

/// The names of the embedded templates.
pub(crate) fn flavors() -> String {
    FLAVORS.map(|(name, _)| name).join(", ")
}

/// The values in clusterctl's configuration file. A file given explicitly must exist.
fn config_file(
    config: Option<&Path>,
    environment: &Environment,
) -> anyhow::Result<(BTreeMap<String, Value>, Vec<String>)> {
    let path: PathBuf = match config {
        Some(path) => path.to_owned(),
        None => {
            let mut places = environment.clusterctl_configs();
            match places.find(|path| path.exists()) {
                Some(path) => path,
                None => return Ok((BTreeMap::new(), Vec::new())),
            }
        }
    };
    let text = source::read_text(&path)
        .map_err(|problem| anyhow::anyhow!("cannot read {}: {problem}", path.display()))?;
    values_in(&path, &text)
}

fn values_in(path: &Path, text: &str) -> anyhow::Result<(BTreeMap<String, Value>, Vec<String>)> {
    let read = configuration::read(text)
        .map_err(|problem| anyhow::anyhow!("{}: {problem}", path.display()))?;
    let of = |text: String| Value {
        text,
        origin: Origin::File(path.to_owned()),
    };
    let values = read.values.into_iter();
    let values = values.map(|(name, text)| (name, of(text))).collect();
    let label = |sentence| format!("{}: {sentence}", path.display());
    let without_effect = read.without_effect.into_iter().map(label);
    Ok((values, without_effect.collect()))
}
