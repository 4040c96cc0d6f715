//! Manifests: YAML files of several documents, with the line of every field; [templates](template) of them, and their
//! [conversion](convert) to another version of Cluster API. All functions depend on texts alone: the caller reads files.
//!
//! The YAML settings are those of `sigs.k8s.io/yaml`: `yes` is true, `010` is eight, keys must be unique.

pub mod convert;
mod lines;
mod namespace;
pub mod template;

use serde_json::Value;

pub use lines::Lines;
pub use namespace::{NamespaceError, check_namespace};

/// Cause why a manifest cannot be used, with the position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("cannot read {file}: {problem}")]
    Unreadable {
        /// Name of the file.
        file: String,
        /// Cause.
        problem: String,
    },
    /// The text is no YAML.
    #[error("{file}:{line}: malformed YAML: {problem}")]
    Malformed {
        /// Name of the file.
        file: String,
        /// Line of the error.
        line: usize,
        /// Message of the parser.
        problem: String,
    },
    /// A document is no Kubernetes object.
    #[error("{file}:{line}: {problem}")]
    NotAnObject {
        /// Name of the file.
        file: String,
        /// Line of the wrong field.
        line: usize,
        /// Expectation that is not met.
        problem: String,
    },
    /// No document has content.
    #[error("{file} contains no Kubernetes object")]
    Empty {
        /// Name of the file.
        file: String,
    },
}

/// One object with its position, from [`read`] or [`read_one`].
#[derive(Clone, Debug)]
pub struct Document {
    /// Name of the file, for messages.
    pub file: String,
    /// The object.
    pub value: Value,
    /// [`Lines`] of the fields.
    pub lines: Lines,
}

impl Document {
    /// Text at a path of keys; empty if there is none.
    pub fn text(&self, path: &[&str]) -> &str {
        path.iter()
            .try_fold(&self.value, |value, key| value.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// `file:line` of `path` (`spec.replicas`), or of its nearest existing parent.
    pub fn place(&self, path: &str) -> String {
        format!("{}:{}", self.file, self.lines.of(path))
    }

    /// `Kind namespace/name`, for messages.
    pub fn label(&self) -> String {
        format!(
            "{} {}",
            self.text(&["kind"]),
            self.text(&["metadata", "name"])
        )
    }
}

/// Parses the one [`Document`] of `text`, of any form; messages name `file`.
///
/// # Errors
/// [`ManifestError`] if there is no document, a second one, or no YAML.
pub fn read_one(file: &str, text: &str) -> Result<Document, ManifestError> {
    let mut documents = Vec::new();
    for (line, chunk) in chunks(text) {
        let value = parse(file, line, chunk)?;
        if !value.is_null() {
            documents.push((line, chunk, value));
        }
    }
    let mut documents = documents.into_iter();
    match (documents.next(), documents.next()) {
        (None, _) => Err(ManifestError::Empty {
            file: file.to_owned(),
        }),
        (Some((first, chunk, value)), None) => Ok(Document {
            file: file.to_owned(),
            value,
            lines: Lines::new(chunk, first),
        }),
        (_, Some((line, ..))) => Err(ManifestError::NotAnObject {
            file: file.to_owned(),
            line,
            problem: "a second document begins here; one is expected".to_owned(),
        }),
    }
}

/// A document of any form, with its text, from [`parts`].
#[derive(Debug)]
pub struct Part<'a> {
    /// Line of the first character.
    pub line: usize,
    /// The text.
    pub text: &'a str,
    /// The value.
    pub value: Value,
}

/// Parses every document of `text`, without empty ones; messages name `file`.
///
/// # Errors
/// [`ManifestError::Malformed`] if a document is no YAML.
pub fn parts<'a>(file: &str, text: &'a str) -> Result<Vec<Part<'a>>, ManifestError> {
    let mut parts = Vec::new();
    for (line, text) in chunks(text) {
        let value = parse(file, line, text)?;
        if !value.is_null() {
            parts.push(Part { line, text, value });
        }
    }
    Ok(parts)
}

/// Parses every [`Document`] of `text`, and expands `List`s; messages name `file`.
///
/// # Errors
/// [`ManifestError`] if a document is no Kubernetes object, or there is none.
pub fn read(file: &str, text: &str) -> Result<Vec<Document>, ManifestError> {
    let mut documents = Vec::new();
    for (first_line, chunk) in chunks(text) {
        let value = parse(file, first_line, chunk)?;
        if !value.is_null() {
            let lines = Lines::new(chunk, first_line);
            expand(file, value, lines, &mut documents)?;
        }
    }
    if documents.is_empty() {
        return Err(ManifestError::Empty {
            file: file.to_owned(),
        });
    }
    Ok(documents)
}

/// Parses one YAML document, with `first_line` as its first line in `file`.
fn parse(file: &str, first_line: usize, text: &str) -> Result<Value, ManifestError> {
    let mut options = serde_saphyr::Options::default();
    options.legacy_octal_numbers = true;
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error
            .location()
            .map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
        let problem = error.without_snippet().to_string();
        ManifestError::Malformed {
            file: file.to_owned(),
            line: first_line + line.saturating_sub(1),
            problem,
        }
    })
}

/// Parts of a stream between `---` lines, as in kubectl, each with the number of its first line.
fn chunks(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut first_line, mut at) = (0, 1, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let end = at + line.len();
        if line.trim_end() == "---" || line.starts_with("--- ") {
            parts.push((first_line, &text[start..at]));
            (start, first_line) = (end, index + 2);
        }
        at = end;
    }
    parts.push((first_line, &text[start..]));
    parts.retain(|(_, part)| {
        part.lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    });
    parts
}

/// Checks that `value` is a Kubernetes object, and expands `List`s.
fn expand(
    file: &str,
    value: Value,
    lines: Lines,
    out: &mut Vec<Document>,
) -> Result<(), ManifestError> {
    let wrong = |path: &str, problem: String| ManifestError::NotAnObject {
        file: file.to_owned(),
        line: lines.of(path),
        problem,
    };
    let kind = match (value.get("apiVersion"), value.get("kind")) {
        _ if !value.is_object() => {
            return Err(wrong(
                "",
                "expected an object with apiVersion, kind and metadata".into(),
            ));
        }
        (Some(Value::String(_)), Some(Value::String(kind))) if !kind.is_empty() => kind.clone(),
        (Some(Value::String(_)), _) => {
            return Err(wrong(
                "kind",
                "the field kind is missing or not a text".into(),
            ));
        }
        _ => {
            return Err(wrong(
                "apiVersion",
                "the field apiVersion is missing or not a text".into(),
            ));
        }
    };
    if kind == "List" {
        let items = value
            .get("items")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        for (index, item) in items.into_iter().enumerate() {
            expand(file, item, lines.below(&format!("items[{index}]")), out)?;
        }
        return Ok(());
    }
    let name = value
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if name.is_empty() {
        return Err(wrong("metadata", format!("{kind} has no metadata.name")));
    }
    out.push(Document {
        file: file.to_owned(),
        value,
        lines,
    });
    Ok(())
}

#[cfg(test)]
mod tests;
