//! Values files of other programs' charts, read for the manifests of this program.
//!
//! Only values in the file count: the manifests, and not the chart, decide about missing ones.

pub(crate) mod edit;
pub(crate) mod flags;
mod keys;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::bail;
use serde_json::Value;

pub(crate) use self::keys::Keys;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Text,
    /// A number without a fraction or a sign.
    Whole,
    /// Number, or percentage as text.
    Amount,
    /// `true` or `false`, also as text.
    Switch,
    Map,
    List,
    /// Flags, as a list or as one text.
    Flags,
    /// The text of YAML documents.
    Documents,
}

/// Values of a file, perhaps with credentials.
#[derive(Clone, Default)]
pub(crate) struct Values {
    /// [`Value`]s by path, such as `csi.plugin.controllerPlugin.replicas`, each of the type for its key.
    given: BTreeMap<String, Value>,
    /// Sentences about values without an effect here.
    pub(crate) notes: Vec<String>,
}

impl fmt::Debug for Values {
    /// Omits the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.given.keys()).finish()
    }
}

impl Values {
    /// Reads a file, with these [`Keys`].
    ///
    /// # Errors
    /// Paths of all keys unknown to the chart, and of invalid values.
    pub(crate) fn parse(text: &str, keys: Keys) -> anyhow::Result<Self> {
        let document: Value = serde_saphyr::from_str(text)
            .map_err(|error| anyhow::anyhow!("{}", error.without_snippet()))?;
        let mut reader = Reader {
            keys,
            values: Self::default(),
            problems: Vec::new(),
        };
        match &document {
            Value::Null | Value::Object(_) => reader.below("", &document),
            _ => reader.problems.push("the file has no keys".to_owned()),
        }
        match reader.problems.is_empty() {
            true => Ok(reader.values),
            false => bail!("{}", reader.problems.join("; ")),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Value> {
        self.given.get(path)
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.as_str()
    }

    pub(crate) fn truth(&self, path: &str) -> Option<bool> {
        self.get(path)?.as_bool()
    }

    /// True if a value at or below a path is given.
    pub(crate) fn has(&self, path: &str) -> bool {
        let inner = format!("{path}.");
        self.given.keys().any(|key| key.starts_with(&inner))
    }
}

struct Reader {
    keys: Keys,
    values: Values,
    problems: Vec<String>,
}

impl Reader {
    fn below(&mut self, path: &str, value: &Value) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            self.one(&path, value);
        }
    }

    fn one(&mut self, path: &str, value: &Value) {
        let key = self.keys.iter().find(|key| key.path == path);
        if let Some((takes, without_effect)) = key.map(|key| (key.takes, key.without_effect)) {
            if is_nothing(value) {
                return;
            }
            match (without_effect, takes.read(value)) {
                (Some(why), _) => self
                    .values
                    .notes
                    .push(format!("{path} has no effect: {why}")),
                (None, Ok(value)) => {
                    self.values.given.insert(path.to_owned(), value);
                }
                (None, Err(problem)) => self.problems.push(format!("{path}: {problem}")),
            }
            return;
        }
        let inner = format!("{path}.");
        if !self.keys.iter().any(|key| key.path.starts_with(&inner)) {
            let names = self.beside(path);
            self.problems
                .push(format!("{path} is no key of the chart; there are: {names}"));
            return;
        }
        match value {
            Value::Null => {}
            Value::Object(_) => self.below(path, value),
            _ => self
                .problems
                .push(format!("{path}: this is not a map of further keys")),
        }
    }

    /// Possible last parts of a path.
    fn beside(&self, path: &str) -> String {
        let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
        let names = self.keys.iter().filter_map(|key| {
            let rest = match parent {
                "" => key.path.as_str(),
                parent => key.path.strip_prefix(parent)?.strip_prefix('.')?,
            };
            rest.split('.').next()
        });
        let names: BTreeSet<&str> = names.collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    }
}

/// True for the values that a chart uses for nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

impl Takes {
    /// [`Value`] in the form for the manifests.
    fn read(self, value: &Value) -> Result<Value, String> {
        let wrong = |what: &str| Err(format!("this is not {what}"));
        match (self, value) {
            (Self::Text, Value::String(_)) => Ok(value.clone()),
            (Self::Text, Value::Number(_) | Value::Bool(_)) => {
                Err("this is not a text; write it in quotes".to_owned())
            }
            (Self::Text, _) => wrong("a text"),
            (Self::Whole, Value::Number(number)) if number.is_u64() => Ok(value.clone()),
            (Self::Whole, Value::String(text)) if text.parse::<u32>().is_ok() => {
                Ok(Value::from(text.parse::<u32>().unwrap_or_default()))
            }
            (Self::Whole, _) => wrong("a whole number"),
            (Self::Amount, Value::Number(_) | Value::String(_)) => Ok(value.clone()),
            (Self::Amount, _) => wrong("a number or a percentage"),
            (Self::Switch, Value::Bool(_)) => Ok(value.clone()),
            (Self::Switch, Value::String(text)) if text == "true" => Ok(Value::Bool(true)),
            (Self::Switch, Value::String(text)) if text == "false" => Ok(Value::Bool(false)),
            (Self::Switch, _) => wrong("true or false"),
            (Self::Map, Value::Object(_)) => Ok(value.clone()),
            (Self::Map, _) => wrong("a map"),
            (Self::List, Value::Array(_)) => Ok(value.clone()),
            (Self::List, _) => wrong("a list"),
            (Self::Flags, value) => flags(value),
            (Self::Documents, Value::String(text)) => documents(text),
            (Self::Documents, _) => wrong("the text of YAML documents"),
        }
    }
}

/// Flags: a list, or one text, as in the chart.
fn flags(value: &Value) -> Result<Value, String> {
    let list = match value {
        Value::String(text) if text.contains("{{") => {
            return Err("templates of Helm are not evaluated; write the value itself".to_owned());
        }
        Value::String(text) => serde_saphyr::from_str(text).map_err(|error| {
            format!(
                "this is not the text of a list: {}",
                error.without_snippet()
            )
        })?,
        value => value.clone(),
    };
    let is_list = list
        .as_array()
        .is_some_and(|list| list.iter().all(Value::is_string));
    match is_list {
        true => Ok(list),
        false => Err("this is not a list of flags such as `- --flag=value`".to_owned()),
    }
}

fn documents(text: &str) -> Result<Value, String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| format!("this is not YAML: {}", error.without_snippet()))?;
    let objects = documents.into_iter().filter(|it| !it.is_null());
    let objects: Vec<Value> = objects.collect();
    match objects.iter().all(|it| it["kind"].is_string()) {
        true => Ok(Value::Array(objects)),
        false => Err("a document has no kind".to_owned()),
    }
}
