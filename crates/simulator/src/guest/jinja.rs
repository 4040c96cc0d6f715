//! Subset of Jinja for users of cloud-init: `{{ path }}` with a few filters, and comments.
//!
//! Statements (`{% if %}`) are errors, except `{% raw %}`. An unknown variable becomes `CI_MISSING_JINJA_VAR/<path>`,
//! as in cloud-init.

use serde_json::Value;

/// Why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(crate) struct Error {
    /// Line of the template, from 1.
    pub(crate) line: usize,
    /// Error.
    pub(crate) problem: String,
}

/// Renders `template` with the variables in `facts`, a tree of JSON objects.
pub(crate) fn render(template: &str, facts: &Value) -> Result<String, Error> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, kind, after)) = next_tag(rest) {
        let at = template.len() - after.len();
        let fail = |problem: String| Error {
            line: line_of(template, at),
            problem,
        };
        out.push_str(before);
        let close = kind.close();
        let (inner, behind) = after
            .split_once(close)
            .ok_or_else(|| fail(format!("`{}` without `{close}`", kind.open())))?;
        rest = behind;
        match kind {
            Tag::Comment => {}
            Tag::Expression => {
                out.push_str(&expression(trimmed(inner), facts).map_err(fail)?);
            }
            Tag::Statement if trimmed(inner) == "raw" => {
                let (raw, behind) =
                    end_of_raw(rest).ok_or_else(|| fail("`raw` without `endraw`".to_owned()))?;
                out.push_str(raw);
                rest = behind;
            }
            Tag::Statement => {
                return Err(fail(format!(
                    "the statement `{}` is not simulated; only expressions are",
                    trimmed(inner)
                )));
            }
        }
        if inner.ends_with('-') {
            rest = rest.trim_start();
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[derive(Clone, Copy)]
enum Tag {
    Expression,
    Statement,
    Comment,
}

impl Tag {
    fn open(self) -> &'static str {
        match self {
            Self::Expression => "{{",
            Self::Statement => "{%",
            Self::Comment => "{#",
        }
    }

    fn close(self) -> &'static str {
        match self {
            Self::Expression => "}}",
            Self::Statement => "%}",
            Self::Comment => "#}",
        }
    }
}

/// Splits off the first tag: the text in front, the tag, and the text after its opening delimiter.
fn next_tag(text: &str) -> Option<(&str, Tag, &str)> {
    let (at, tag) = [Tag::Expression, Tag::Statement, Tag::Comment]
        .into_iter()
        .filter_map(|tag| text.find(tag.open()).map(|at| (at, tag)))
        .min_by_key(|(at, _)| *at)?;
    let (before, after) = (text.get(..at)?, text.get(at + 2..)?);
    let before = if after.starts_with('-') {
        before.trim_end()
    } else {
        before
    };
    Some((before, tag, after))
}

/// Returns the content of a tag without its whitespace control.
fn trimmed(inner: &str) -> &str {
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    inner.strip_suffix(['-', '+']).unwrap_or(inner).trim()
}

/// Returns the text before `{% endraw %}`, and the text after it.
fn end_of_raw(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find("{%")?;
        let (inner, behind) = text.get(at + 2..)?.split_once("%}")?;
        if trimmed(inner) == "endraw" {
            return Some((text.get(..at)?, behind));
        }
        from = at + 2;
    }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// Evaluates `path | filter | filter(argument)`.
fn expression(text: &str, facts: &Value) -> Result<String, String> {
    let mut parts = split_outside_quotes(text, '|').into_iter();
    let first = parts.next().unwrap_or_default();
    let mut value = operand(first.trim(), facts)?;
    for filter in parts {
        value = apply(filter.trim(), value)?;
    }
    Ok(value.unwrap_or_else(|| format!("CI_MISSING_JINJA_VAR/{}", first.trim())))
}

/// Evaluates a quoted string, or the value of a path.
fn operand(text: &str, facts: &Value) -> Result<Option<String>, String> {
    if let Some(literal) = unquote(text) {
        return Ok(Some(literal.to_owned()));
    }
    let mut value = Some(facts);
    for key in path(text)? {
        value = value.and_then(|value| match value {
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            // cloud-init also offers every key with hyphens with underscores.
            _ => value.get(key).or_else(|| {
                value
                    .as_object()?
                    .iter()
                    .find(|(name, _)| name.replace('-', "_") == key)
                    .map(|(_, value)| value)
            }),
        });
    }
    Ok(value.and_then(|value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(true) => Some("True".to_owned()),
        Value::Bool(false) => Some("False".to_owned()),
        other => Some(other.to_string()),
    }))
}

/// Splits `a.b['c'][0]` into its keys.
fn path(text: &str) -> Result<Vec<&str>, String> {
    let bad = || format!("cannot read the expression `{text}`; only variables are simulated");
    let mut keys = Vec::new();
    let mut rest = text;
    loop {
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let (key, behind) = rest.split_at(end);
        if key.is_empty() {
            return Err(bad());
        }
        keys.push(key);
        rest = behind;
        while let Some(index) = rest.strip_prefix('[') {
            let (index, behind) = index.split_once(']').ok_or_else(bad)?;
            keys.push(unquote(index.trim()).unwrap_or_else(|| index.trim()));
            rest = behind;
        }
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind,
            None if rest.is_empty() => return Ok(keys),
            None => return Err(bad()),
        }
    }
}

fn apply(filter: &str, value: Option<String>) -> Result<Option<String>, String> {
    let (name, arguments) = match filter.split_once('(') {
        Some((name, inner)) => {
            let inner = inner
                .strip_suffix(')')
                .ok_or_else(|| format!("cannot read the filter `{filter}`"))?;
            let arguments: Option<Vec<&str>> = split_outside_quotes(inner, ',')
                .into_iter()
                .map(|argument| unquote(argument.trim()))
                .collect();
            let arguments = arguments
                .ok_or_else(|| format!("the filter `{filter}` takes quoted strings only"))?;
            (name.trim(), arguments)
        }
        None => (filter, Vec::new()),
    };
    Ok(match (name, arguments.as_slice()) {
        ("default" | "d", [fallback, ..]) => Some(value.unwrap_or_else(|| (*fallback).to_owned())),
        ("lower", []) => value.map(|value| value.to_lowercase()),
        ("upper", []) => value.map(|value| value.to_uppercase()),
        ("trim", []) => value.map(|value| value.trim().to_owned()),
        ("replace", [from, to]) => value.map(|value| value.replace(from, to)),
        _ => return Err(format!("the filter `{filter}` is not simulated")),
    })
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut quote) = (0, None);
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == separator => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + c.len_utf8();
            }
            None => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

fn unquote(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    })
}

#[cfg(test)]
mod tests;
