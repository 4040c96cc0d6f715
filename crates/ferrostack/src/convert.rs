//! `convert`: manifests from one version of Cluster API's kinds to another.

use std::path::PathBuf;

use anyhow::Context;
use api::convert::{ConversionError, convert};
use serde_json::Value;

use crate::cli::Convert;
use crate::environment::Environment;
use crate::manifest;
use crate::manifest::source;
use crate::output;

mod difference;
mod layout;

/// What was converted.
#[derive(Debug, PartialEq, Eq)]
struct Converted {
    text: String,
    /// One line for each object that stays as it is, and why.
    notes: Vec<String>,
}

/// Converts manifests, and prints or writes them, or what would change. `note` is called with what stays as it is.
pub(crate) async fn run(
    args: &Convert,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    note: impl Fn(&str),
) -> anyhow::Result<()> {
    let mut sources = args.files.clone();
    if sources.is_empty() {
        let source = args.source.clone();
        sources.push(source.unwrap_or_else(|| PathBuf::from("-")));
    }
    let mut texts = Vec::new();
    for source in &sources {
        for file in source::files(source)? {
            let name = source::name(&file);
            let text = source::text(&file).await;
            let text = text.map_err(|problem| anyhow::anyhow!("cannot read {name}: {problem}"))?;
            let converted = all(&name, &text, args.to_version.as_str())?;
            for line in &converted.notes {
                note(line);
            }
            match args.diff {
                true => texts.push(difference::unified(&name, &text, &converted.text)),
                false => texts.push(converted.text),
            }
        }
    }
    let text = match args.diff {
        true => texts.concat(),
        false => texts.join("---\n"),
    };
    match &args.output {
        Some(file) => output::file::write(environment, file, &text),
        None if text.is_empty() => Ok(()),
        None => print(&text),
    }
}

/// Converts every document of `text`, with its comments.
fn all(name: &str, text: &str, version: &str) -> anyhow::Result<Converted> {
    let mut documents = Vec::new();
    let mut notes = Vec::new();
    for part in manifest::parts(name, text)? {
        let place = format!("{name}:{}", part.line);
        let label = label(&part.value);
        match one(&part.value, version).with_context(|| format!("{place}: {label}"))? {
            Outcome::Changed(value) => {
                let warnings = api::convert::warnings(&value, None);
                notes.extend(warnings.iter().map(|line| format!("{place}: {line}")));
                documents.push(layout::text(&value, part.text)?);
            }
            Outcome::Same => documents.push(as_it_is(part.text)),
            Outcome::Unknown => {
                notes.push(format!(
                    "{place}: {label} stays as it is: there is no conversion of its kind to {version}"
                ));
                documents.push(as_it_is(part.text));
            }
        }
    }
    Ok(Converted {
        text: documents.join("---\n"),
        notes,
    })
}

fn as_it_is(text: &str) -> String {
    format!("{}\n", text.trim_matches('\n'))
}

enum Outcome {
    Changed(Value),
    /// In the desired version already, or not of Cluster API.
    Same,
    /// Of Cluster API or one of its providers, and not known here.
    Unknown,
}

fn one(value: &Value, version: &str) -> Result<Outcome, ConversionError> {
    if value["kind"] == "List" && value["items"].is_array() {
        return list(value, version);
    }
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let Some((group, from)) = api_version.split_once('/') else {
        return Ok(Outcome::Same);
    };
    let of_cluster_api = group == "cluster.x-k8s.io" || group.ends_with(".cluster.x-k8s.io");
    if !of_cluster_api || from == version {
        return Ok(Outcome::Same);
    }
    match convert(value.clone(), &format!("{group}/{version}")) {
        Ok(converted) => Ok(Outcome::Changed(converted)),
        Err(ConversionError::Unknown { .. }) => Ok(Outcome::Unknown),
        Err(error) => Err(error),
    }
}

/// A list whose objects are converted.
fn list(value: &Value, version: &str) -> Result<Outcome, ConversionError> {
    let mut converted = value.clone();
    let (mut changed, mut unknown) = (false, false);
    let items = converted["items"].as_array_mut();
    for item in items.into_iter().flatten() {
        match one(item, version)? {
            Outcome::Changed(value) => {
                *item = value;
                changed = true;
            }
            Outcome::Same => {}
            Outcome::Unknown => unknown = true,
        }
    }
    Ok(match (changed, unknown) {
        (true, _) => Outcome::Changed(converted),
        (false, true) => Outcome::Unknown,
        (false, false) => Outcome::Same,
    })
}

/// `Kind name`, for messages.
fn label(value: &Value) -> String {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("a document");
    match text("/metadata/name") {
        Some(name) => format!("{kind} {name}"),
        None => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests;
