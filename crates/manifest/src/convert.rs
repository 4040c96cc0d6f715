//! Manifests from one version of Cluster API to another, with their comments.

mod difference;
mod layout;

use api::convert::{ConversionError, convert};
use serde_json::Value;

pub use self::difference::unified;
use crate::ManifestError;

/// Cause why manifests cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The manifests cannot be parsed.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// An object is wrong in its version.
    #[error("{place}: {label}")]
    Object {
        /// `file:line` of the object.
        place: String,
        /// Kind and name of the object.
        label: String,
        /// Field and cause.
        #[source]
        cause: Box<ConversionError>,
    },
    /// The converted object cannot be written as YAML.
    #[error("cannot write YAML: {0}")]
    Unwritable(String),
}

/// Manifests after a conversion by [`converted`].
#[derive(Debug, PartialEq, Eq)]
pub struct Converted {
    /// The manifests.
    pub text: String,
    /// One line for each unchanged object, with the cause, and for each field without effect.
    pub notes: Vec<String>,
}

/// Converts every document of `text` to `version`, with its comments; messages name the file `name`.
///
/// # Errors
/// [`ConvertError`] if a document is no YAML, or an object is wrong in its version.
pub fn converted(name: &str, text: &str, version: &str) -> Result<Converted, ConvertError> {
    let mut documents = Vec::new();
    let mut notes = Vec::new();
    for part in crate::parts(name, text)? {
        let place = format!("{name}:{}", part.line);
        let label = label(&part.value);
        match one(&part.value, version).map_err(|cause| ConvertError::Object {
            place: place.clone(),
            label: label.clone(),
            cause: Box::new(cause),
        })? {
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
