//! Parses manifests: YAML files of several documents, with the line of every field.
//!
//! The YAML settings are those of `sigs.k8s.io/yaml`: `yes` is true, `010` is eight, keys must be unique.

mod lines;
pub(crate) mod source;

use std::path::Path;

use serde_json::Value;

pub(crate) use lines::Lines;

/// Why a manifest cannot be used. Every variant has its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("cannot read {file}: {problem}")]
    Unreadable { file: String, problem: String },
    #[error("{file}:{line}: malformed YAML: {problem}")]
    Malformed {
        file: String,
        line: usize,
        problem: String,
    },
    #[error("{file}:{line}: {problem}")]
    NotAnObject {
        file: String,
        line: usize,
        problem: String,
    },
    #[error("{file} contains no Kubernetes object")]
    Empty { file: String },
}

/// One object and its position.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) file: String,
    pub(crate) value: Value,
    pub(crate) lines: Lines,
}

impl Document {
    pub(crate) fn text(&self, path: &[&str]) -> &str {
        path.iter()
            .try_fold(&self.value, |value, key| value.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// `file:line` of `path` (`spec.replicas`), or of its nearest existing parent.
    pub(crate) fn place(&self, path: &str) -> String {
        format!("{}:{}", self.file, self.lines.of(path))
    }

    /// `Kind namespace/name`, for messages.
    pub(crate) fn label(&self) -> String {
        format!(
            "{} {}",
            self.text(&["kind"]),
            self.text(&["metadata", "name"])
        )
    }
}

/// Reads the file at `path`; `-` is standard input.
pub(crate) fn read_file(path: &Path) -> Result<Vec<Document>, ManifestError> {
    let (file, text) = open(path)?;
    read(&file, &text)
}

/// Reads the file at `path`, which holds one document of any form; `-` is standard input.
pub(crate) fn read_one(path: &Path) -> Result<Document, ManifestError> {
    let (file, text) = open(path)?;
    let mut documents = Vec::new();
    for (line, chunk) in chunks(&text) {
        let value = parse(&file, line, chunk)?;
        if !value.is_null() {
            documents.push((line, chunk, value));
        }
    }
    let mut documents = documents.into_iter();
    match (documents.next(), documents.next()) {
        (None, _) => Err(ManifestError::Empty { file }),
        (Some((first, chunk, value)), None) => Ok(Document {
            file,
            value,
            lines: Lines::new(chunk, first),
        }),
        (_, Some((line, ..))) => Err(ManifestError::NotAnObject {
            file,
            line,
            problem: "a second document begins here; one is expected".to_owned(),
        }),
    }
}

/// The name of the file at `path` in messages, and its text.
fn open(path: &Path) -> Result<(String, String), ManifestError> {
    let file = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    match read_text(path) {
        Ok(text) => Ok((file, text)),
        Err(problem) => Err(ManifestError::Unreadable { file, problem }),
    }
}

/// The text of the file at `path`; `-` is standard input.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).map_err(|source| source.to_string())
    } else {
        std::fs::read_to_string(path).map_err(|source| source.to_string())
    }
}

/// A document of any form, with its text.
pub(crate) struct Part<'a> {
    /// The line of its first character.
    pub(crate) line: usize,
    pub(crate) text: &'a str,
    pub(crate) value: Value,
}

/// Parses every document of `text` that has any content; `file` is its name in messages.
pub(crate) fn parts<'a>(file: &str, text: &'a str) -> Result<Vec<Part<'a>>, ManifestError> {
    let mut parts = Vec::new();
    for (line, text) in chunks(text) {
        let value = parse(file, line, text)?;
        if !value.is_null() {
            parts.push(Part { line, text, value });
        }
    }
    Ok(parts)
}

/// Parses every document of `text`; `file` is its name in messages.
pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Document>, ManifestError> {
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

/// Parses one YAML document that begins at `first_line` of `file`.
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

/// Splits a stream at its `---` lines, as kubectl does; returns each part with its first line number.
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
