//! A converted object as YAML, in the order and with the comments of its manifest.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use serde_saphyr::granit_parser::{Event, Parser, Placement};

use super::ConvertError;

/// First fields of an object, where the manifest has none of them.
const FIRST: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];

/// Writes `value` by the [`Layout`] of `original`. Comments on removed fields stand above the nearest parent.
///
/// # Errors
/// [`ConvertError::Unwritable`] if the value has no form in YAML.
pub(super) fn text(value: &Value, original: &str) -> Result<String, ConvertError> {
    let mut layout = Layout::from_text(original);
    let mut there = BTreeSet::new();
    paths(value, "", &mut there);
    layout.settle(&there);
    let mut out = String::new();
    for comment in layout.above.get("").into_iter().flatten() {
        line(&mut out, 0, comment);
    }
    layout.write(value, "", 0, &mut out)?;
    for comment in &layout.end {
        line(&mut out, 0, comment);
    }
    // A text of the value that this file lays out wrongly is better without comments.
    match crate::parts("", &out) {
        Ok(parts) if parts.len() == 1 && parts[0].value == *value => Ok(out),
        _ => yaml(value),
    }
}

#[derive(Debug, Default)]
struct Layout {
    /// Positions of fields in the manifest.
    order: BTreeMap<String, usize>,
    above: BTreeMap<String, Vec<String>>,
    right: BTreeMap<String, String>,
    end: Vec<String>,
}

enum Open {
    Mapping { path: String, key: Option<String> },
    Sequence { path: String, next: usize },
}

impl Layout {
    fn from_text(text: &str) -> Self {
        let mut layout = Self::default();
        let (mut open, mut pending, mut latest) = (Vec::new(), Vec::new(), String::new());
        for step in Parser::new_from_str(text) {
            let Ok((event, _)) = step else { break };
            let node = match &event {
                Event::Comment(text, Placement::Right) => {
                    layout.right.insert(latest.clone(), format!("#{text}"));
                    continue;
                }
                Event::Comment(text, _) => {
                    pending.push(format!("#{text}"));
                    continue;
                }
                Event::Scalar(text, ..) => Some(text.to_string()),
                Event::Alias(..) | Event::MappingStart(..) | Event::SequenceStart(..) => {
                    Some(String::new())
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    open.pop();
                    None
                }
                _ => None,
            };
            let Some(node) = node else { continue };
            let is_scalar = matches!(event, Event::Scalar(..));
            let path = place(&mut open, &node, is_scalar);
            // A comment before a value that is an object or a list is one on the first of its fields or elements.
            let is_value = layout.order.contains_key(&path) || path.is_empty();
            let count = layout.order.len();
            layout.order.entry(path.clone()).or_insert(count);
            if !pending.is_empty() && (is_scalar || !is_value) {
                let above = layout.above.entry(path.clone()).or_default();
                above.append(&mut pending);
            }
            match event {
                Event::MappingStart(..) => open.push(Open::Mapping {
                    path: path.clone(),
                    key: None,
                }),
                Event::SequenceStart(..) => open.push(Open::Sequence {
                    path: path.clone(),
                    next: 0,
                }),
                _ => {}
            }
            latest = path;
        }
        layout.end = pending;
        layout
    }

    /// Moves comments on removed fields to the nearest parent.
    fn settle(&mut self, there: &BTreeSet<String>) {
        let right = std::mem::take(&mut self.right);
        for (path, comment) in right {
            match there.contains(&path) {
                true => drop(self.right.insert(path, comment)),
                false => self.above.entry(path).or_default().push(comment),
            }
        }
        for (path, comments) in std::mem::take(&mut self.above) {
            let mut path = path.as_str();
            while !path.is_empty() && !there.contains(path) {
                path = path.rfind(['.', '[']).map_or("", |cut| &path[..cut]);
            }
            let above = self.above.entry(path.to_owned()).or_default();
            above.extend(comments);
        }
    }

    fn write(
        &self,
        value: &Value,
        path: &str,
        depth: usize,
        out: &mut String,
    ) -> Result<(), ConvertError> {
        match value {
            Value::Object(fields) => {
                let mut names: Vec<&String> = fields.keys().collect();
                let first = |name: &str| FIRST.iter().position(|it| *it == name);
                names.sort_by_key(|name| {
                    let order = self.order.get(&member(path, name)).copied();
                    let first = first(name).filter(|_| path.is_empty() && order.is_none());
                    (order.unwrap_or(usize::MAX), first.unwrap_or(FIRST.len()))
                });
                for name in names {
                    let inner = member(path, name);
                    self.comments(&inner, depth, out);
                    let key = yaml(name)?;
                    self.entry(
                        &format!("{}:", key.trim_end()),
                        &fields[name],
                        &inner,
                        depth,
                        out,
                    )?;
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let inner = format!("{path}[{index}]");
                    self.comments(&inner, depth, out);
                    match item {
                        Value::Object(fields) if !fields.is_empty() => {
                            let mut text = String::new();
                            self.write(item, &inner, depth + 1, &mut text)?;
                            out.push_str(&dashed(&text, depth));
                        }
                        _ => self.entry("-", item, &inner, depth, out)?,
                    }
                }
            }
            scalar => line(out, depth, yaml(scalar)?.trim_end()),
        }
        Ok(())
    }

    /// A value after its key or dash.
    fn entry(
        &self,
        head: &str,
        value: &Value,
        path: &str,
        depth: usize,
        out: &mut String,
    ) -> Result<(), ConvertError> {
        let right = self.right.get(path);
        let tail = right.map_or(String::new(), |comment| format!(" {comment}"));
        let nested = match value {
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => false,
        };
        if nested {
            line(out, depth, &format!("{head}{tail}"));
            let deeper = depth + usize::from(value.is_object() || head == "-");
            return self.write(value, path, deeper, out);
        }
        let text = match value {
            Value::Object(_) => "{}".to_owned(),
            Value::Array(_) => "[]".to_owned(),
            scalar => yaml(scalar)?,
        };
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let Some((first, rest)) = text.split_once('\n') else {
            line(out, depth, &format!("{head} {text}{tail}"));
            return Ok(());
        };
        line(out, depth, &format!("{head} {first}"));
        for more in rest.split('\n') {
            match more.trim() {
                "" => out.push('\n'),
                _ => line(out, depth, more),
            }
        }
        Ok(())
    }

    fn comments(&self, path: &str, depth: usize, out: &mut String) {
        for comment in self.above.get(path).into_iter().flatten() {
            line(out, depth, comment);
        }
    }
}

/// Path of the next node, a key or a value.
fn place(open: &mut [Open], text: &str, is_scalar: bool) -> String {
    match open.last_mut() {
        None => String::new(),
        Some(Open::Mapping {
            path,
            key: key @ None,
        }) if is_scalar => {
            let path = member(path, text);
            *key = Some(text.to_owned());
            path
        }
        Some(Open::Mapping { path, key }) => member(path, &key.take().unwrap_or_default()),
        Some(Open::Sequence { path, next }) => {
            *next += 1;
            format!("{path}[{}]", *next - 1)
        }
    }
}

fn yaml<T: serde::Serialize + ?Sized>(value: &T) -> Result<String, ConvertError> {
    serde_saphyr::to_string(&value).map_err(|cause| ConvertError::Unwritable(cause.to_string()))
}

fn member(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

fn paths(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    into.insert(path.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                paths(inner, &member(path, name), into);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                paths(inner, &format!("{path}[{index}]"), into);
            }
        }
        _ => {}
    }
}

fn line(out: &mut String, depth: usize, text: &str) {
    out.push_str(&"  ".repeat(depth));
    out.push_str(text);
    out.push('\n');
}

/// An object as an element of a list: the dash stands before its first field, comments above it.
fn dashed(text: &str, depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    let mut is_first = true;
    let lines = text.split_inclusive('\n').map(|line| {
        let is_field = !line.trim_start().starts_with('#');
        let begins = is_first && is_field;
        is_first &= !is_field;
        match begins {
            true => line.replacen(&indent, &format!("{}- ", "  ".repeat(depth)), 1),
            false => line.to_owned(),
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests;
