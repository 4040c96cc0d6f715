//! `generate cluster`: renders a template with its variables.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::cli::ClusterOptions;
use crate::environment::Environment;
use crate::manifest;
use crate::template::Template;

/// The embedded templates: flavor and text.
const FLAVORS: [(&str, &str); 2] = [
    (
        "default",
        include_str!("../../../config/templates/cluster-template.yaml"),
    ),
    (
        "without-lb",
        include_str!("../../../config/templates/cluster-template-without-lb.yaml"),
    ),
];

/// A template with its name for messages, and the values of its variables.
pub(crate) struct Source {
    pub(crate) name: String,
    template: Template,
    given: BTreeMap<String, String>,
}

impl Source {
    /// Reads the template selected by `options`. `fallback` has values for variables that are set neither by flags, nor
    /// in the environment, nor in the configuration file.
    pub(crate) fn new(
        cluster: &str,
        options: &ClusterOptions,
        environment: &Environment,
        fallback: BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        Self::with_text(cluster, options, None, environment, fallback)
    }

    /// As [`new`](Self::new), with the text of the template file if it was already read.
    pub(crate) fn with_text(
        cluster: &str,
        options: &ClusterOptions,
        text: Option<String>,
        environment: &Environment,
        fallback: BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        let (name, text) = template_text(options, text)?;
        let template = Template::parse(&text).with_context(|| format!("template {name}"))?;
        let mut given = fallback;
        given.extend(config_file(options, environment)?);
        for variable in template.variables().keys() {
            if let Some(value) = environment.variable(variable) {
                given.insert((*variable).to_owned(), value.to_owned());
            }
        }
        given.insert("CLUSTER_NAME".to_owned(), cluster.to_owned());
        let namespace = options.target_namespace.clone();
        let count = |count: Option<u32>| count.map(|count| count.to_string());
        for (variable, flag, default) in [
            ("NAMESPACE", namespace, "default"),
            ("KUBERNETES_VERSION", options.kubernetes_version.clone(), ""),
            (
                "CONTROL_PLANE_MACHINE_COUNT",
                count(options.control_plane_machine_count),
                "1",
            ),
            (
                "WORKER_MACHINE_COUNT",
                count(options.worker_machine_count),
                "0",
            ),
        ] {
            if let Some(value) = flag {
                given.insert(variable.to_owned(), value);
            } else if !default.is_empty() {
                given
                    .entry(variable.to_owned())
                    .or_insert_with(|| default.to_owned());
            }
        }
        Ok(Self {
            name,
            template,
            given,
        })
    }

    /// Renders the manifests.
    pub(crate) fn render(&self) -> anyhow::Result<String> {
        self.template
            .render(&|name| self.given.get(name).cloned())
            .with_context(|| format!("template {}", self.name))
    }

    /// The output of `--list-variables`: required variables first, then those with a default.
    pub(crate) fn list_variables(&self) -> String {
        let variables = self.template.variables();
        let mut text = String::from("Required Variables:\n");
        for (name, _) in variables.iter().filter(|(_, default)| default.is_none()) {
            let _ = writeln!(text, "  - {name}");
        }
        let optional: Vec<_> = variables
            .iter()
            .filter(|(_, default)| default.is_some())
            .collect();
        if !optional.is_empty() {
            text.push_str("\nOptional Variables:\n");
            for (name, default) in optional {
                let default = default.as_deref().unwrap_or_default();
                let _ = writeln!(text, "  - {name}  (defaults to \"{default}\")");
            }
        }
        text
    }
}

/// Prints the manifests of a cluster, or the variables of its template.
pub(crate) fn cluster(
    name: &str,
    options: &ClusterOptions,
    list_variables: bool,
    environment: &Environment,
) -> anyhow::Result<String> {
    check_name(name)?;
    let source = Source::new(name, options, environment, BTreeMap::new())?;
    if list_variables {
        return Ok(source.list_variables());
    }
    let text = source.render()?;
    match &options.target_namespace {
        None => Ok(text),
        Some(namespace) => in_namespace(&source.name, &text, namespace),
    }
}

/// Cluster API uses the cluster's name in labels: a DNS-1123 subdomain of at most 63 characters.
pub(crate) fn check_name(name: &str) -> anyhow::Result<()> {
    let part_is_right = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    if name.len() > 63 || !name.split('.').all(part_is_right) {
        bail!(
            "`{name}` is not a cluster name: use at most 63 lower-case letters, digits, `-` and `.`, beginning and ending with a letter or digit"
        );
    }
    Ok(())
}

/// A namespace is a DNS-1123 label.
pub(crate) fn check_namespace(name: &str) -> anyhow::Result<()> {
    let is_right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty()
        || name.len() > 63
        || name.starts_with('-')
        || name.ends_with('-')
        || !name.chars().all(is_right)
    {
        bail!(
            "`{name}` is not a namespace: use at most 63 lower-case letters, digits and `-`, beginning and ending with a letter or digit"
        );
    }
    Ok(())
}

/// Checks that the flavor exists, and that the template and the configuration file can be parsed.
pub(crate) fn check(
    options: &ClusterOptions,
    text: Option<&str>,
    environment: &Environment,
) -> anyhow::Result<()> {
    let (name, text) = template_text(options, text.map(str::to_owned))?;
    Template::parse(&text).with_context(|| format!("template {name}"))?;
    config_file(options, environment)?;
    Ok(())
}

fn template_text(
    options: &ClusterOptions,
    read: Option<String>,
) -> anyhow::Result<(String, String)> {
    if let Some(path) = &options.from {
        let text = match read {
            Some(text) => text,
            None => manifest::read_text(path).map_err(|problem| {
                anyhow::anyhow!("cannot read template {}: {problem}", path.display())
            })?,
        };
        return Ok((path.display().to_string(), text));
    }
    let flavor = options.flavor.as_deref().unwrap_or("default");
    match FLAVORS.iter().find(|(name, _)| *name == flavor) {
        Some((name, text)) => Ok((format!("flavor {name}"), (*text).to_owned())),
        None => bail!(
            "there is no flavor `{flavor}`; there are: {}. For a template of your own use --from FILE",
            FLAVORS.map(|(name, _)| name).join(", ")
        ),
    }
}

/// The values in clusterctl's configuration file. A file given explicitly must exist.
fn config_file(
    options: &ClusterOptions,
    environment: &Environment,
) -> anyhow::Result<BTreeMap<String, String>> {
    let path: PathBuf = match &options.config {
        Some(path) => path.clone(),
        None => {
            let mut places = environment.clusterctl_configs().into_iter();
            match places.find(|path| path.exists()) {
                Some(path) => path,
                None => return Ok(BTreeMap::new()),
            }
        }
    };
    let text = manifest::read_text(&path)
        .map_err(|problem| anyhow::anyhow!("cannot read {}: {problem}", path.display()))?;
    let values: serde_json::Value = serde_saphyr::from_str(&text)
        .map_err(|error| anyhow::anyhow!("{}: {}", path.display(), error.without_snippet()))?;
    let Some(values) = values.as_object() else {
        return Ok(BTreeMap::new());
    };
    Ok(values
        .iter()
        .filter_map(|(name, value)| match value {
            serde_json::Value::String(text) => Some((name.clone(), text.clone())),
            serde_json::Value::Number(_) | serde_json::Value::Bool(_) => {
                Some((name.clone(), value.to_string()))
            }
            _ => None,
        })
        .collect())
}

/// Sets the namespace of every document, as `clusterctl generate -n` does.
fn in_namespace(name: &str, text: &str, namespace: &str) -> anyhow::Result<String> {
    let mut parts = Vec::new();
    for mut document in manifest::read(name, text)? {
        document.value["metadata"]["namespace"] = namespace.into();
        parts.push(serde_saphyr::to_string(&document.value)?);
    }
    Ok(parts.join("---\n"))
}

#[cfg(test)]
mod tests;
