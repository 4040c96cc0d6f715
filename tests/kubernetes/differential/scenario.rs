//! The scenario: steps in YAML, played in the order of the files' names and of the steps in them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::root;

/// One request.
///
/// `$name` in names, paths, headers and bodies stands for a saved value, or for one that `each` gives; a string that
/// is nothing but `$name` takes the value's own type. `$run` tells this play from others; `$webhook` is the URL of a server of
/// webhooks, and `$ca` its authority.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) name: String,
    /// `METHOD path`.
    #[serde(rename = "do")]
    pub(crate) request: String,
    /// `admin`, `nobody` (no credentials), or a bearer token.
    #[serde(default = "admin", rename = "as")]
    pub(crate) account: String,
    /// Headers besides those of the other fields: one value, or several.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Values>,
    /// The form of the body: `json`, `yaml`, `merge`, `json-patch`, `strategic`, `apply`, or a media type.
    #[serde(rename = "type")]
    pub(crate) form: Option<String>,
    /// The form of the answer: `table`, `metadata`, `metadata-list`, `yaml`, `aggregated`, or a media type.
    pub(crate) accept: Option<String>,
    pub(crate) body: Option<Value>,
    /// A body that is sent as it stands.
    pub(crate) raw: Option<String>,
    /// A body from a YAML file of the repository.
    pub(crate) file: Option<String>,
    /// Variables, and JSON pointers into the answer.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    /// Ask again until this holds.
    pub(crate) until: Option<Until>,
    /// Only these parts of the body (JSON pointers) are compared; none: only the status and the headers.
    pub(crate) only: Option<Vec<String>>,
    /// What admission webhooks are asked because of the step is compared too.
    #[serde(default)]
    pub(crate) asked: bool,
    /// The causes of a refusal come in another order each time: a real server walks a map.
    #[serde(default)]
    pub(crate) unordered: bool,
    /// The record has the sums of long parts only.
    #[serde(default)]
    pub(crate) summed: bool,
    /// Not compared: set-up and tidying away.
    #[serde(default)]
    pub(crate) quiet: bool,
    /// The file of the scenario in which the step stands, without its ending.
    #[serde(skip)]
    pub(crate) file_stem: String,
}

/// The values of a header.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Values {
    One(String),
    Many(Vec<String>),
}

impl Values {
    pub(crate) fn all(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

/// What a poll waits for: a status, or a value in the body.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Until {
    pub(crate) status: Option<u16>,
    pub(crate) at: Option<String>,
    pub(crate) is: Option<Value>,
    /// A header that there must be, or with `!` before it must not be.
    pub(crate) header: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Each {
        /// The values of variables, one map for each repetition of the steps.
        each: Vec<Map<String, Value>>,
        steps: Vec<Value>,
    },
    Step(Value),
}

/// All steps.
pub(crate) fn load() -> Vec<Step> {
    let mut files: Vec<_> = std::fs::read_dir(root().join("tests/kubernetes/scenario"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    // Some files alone, while they are written.
    if let Ok(only) = std::env::var("FERROSTACK_SCENARIO") {
        let only: Vec<&str> = only.split(',').collect();
        files.retain(|path| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            only.contains(&&*stem)
        });
    }
    files.sort();
    let mut steps = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let entries: Vec<Entry> = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let stem = path.file_stem().unwrap().to_string_lossy();
        let mut push = |value| steps.push(step(value, &stem));
        for entry in entries {
            match entry {
                Entry::Step(value) => push(value),
                Entry::Each { each, steps: inner } => {
                    for variables in each {
                        inner
                            .iter()
                            .for_each(|value| push(filled(value, &variables)));
                    }
                }
            }
        }
    }
    steps
}

/// A step from data.
pub(crate) fn step(value: Value, file_stem: &str) -> Step {
    let step: Step =
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error} in {value}"));
    Step {
        file_stem: file_stem.to_owned(),
        ..step
    }
}

/// A value with variables put in; those not known stay.
pub(crate) fn filled(value: &Value, variables: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('$').and_then(|name| variables.get(name)) {
            Some(value) => value.clone(),
            None => Value::from(filled_text(text, variables)),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, variables)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (filled_text(name, variables), filled(value, variables)))
            .collect(),
        other => other.clone(),
    }
}

/// A text with variables put in; those not known stay. The longest name that fits counts.
pub(crate) fn filled_text(text: &str, variables: &Map<String, Value>) -> String {
    if !text.contains('$') {
        return text.to_owned();
    }
    let mut names: Vec<&String> = variables.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut text = text.to_owned();
    for name in names {
        let value = match &variables[name] {
            Value::String(value) => value.clone(),
            other => other.to_string(),
        };
        text = text.replace(&format!("${name}"), &value);
    }
    text
}

fn admin() -> String {
    "admin".to_owned()
}
