//! Texts.

use regex::Regex;

use super::{Named, Value, exactly, int, string};
use crate::template::run::LARGEST;

/// Maximum size of a compiled regular expression, in bytes.
const REGEX_SIZE: usize = 1 << 20;

pub(super) const ALL: &[Named] = &[
    ("toString", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Text(value.go_text()))
    }),
    ("quote", |values| quoted(values, |text| go_quote(&text))),
    ("squote", |values| {
        quoted(values, |text| format!("'{text}'"))
    }),
    ("cat", |values| {
        let texts = values.iter().filter(|value| **value != Value::Nil);
        let texts: Vec<_> = texts.map(Value::go_text).collect();
        Ok(Value::Text(texts.join(" ")))
    }),
    ("trim", |values| {
        of_one(values, |text| text.trim().to_owned())
    }),
    ("upper", |values| of_one(values, |text| text.to_uppercase())),
    ("lower", |values| of_one(values, |text| text.to_lowercase())),
    ("title", |values| of_one(values, title)),
    ("nospace", |values| {
        of_one(values, |text| text.split_whitespace().collect())
    }),
    ("trimAll", |values| {
        of_two(values, |set, text| {
            text.trim_matches(|c| set.contains(c)).to_owned()
        })
    }),
    ("trimPrefix", |values| {
        of_two(values, |prefix, text| {
            text.strip_prefix(prefix).unwrap_or(text).to_owned()
        })
    }),
    ("trimSuffix", |values| {
        of_two(values, |suffix, text| {
            text.strip_suffix(suffix).unwrap_or(text).to_owned()
        })
    }),
    ("contains", |values| {
        test(values, |part, text| text.contains(part))
    }),
    ("hasPrefix", |values| {
        test(values, |part, text| text.starts_with(part))
    }),
    ("hasSuffix", |values| {
        test(values, |part, text| text.ends_with(part))
    }),
    ("replace", |values| {
        let [old, new, text] = exactly(values)?;
        let (old, new, text) = (string(old)?, string(new)?, string(text)?);
        within(
            text.len()
                .saturating_add(text.len().saturating_add(1).saturating_mul(new.len())),
        )?;
        Ok(Value::Text(text.replace(&old, &new)))
    }),
    ("repeat", |values| {
        let [count, text] = exactly(values)?;
        let count = usize::try_from(int(&count)?).map_err(|_| "negative Repeat count")?;
        let text = string(text)?;
        within(text.len().saturating_mul(count))?;
        Ok(Value::Text(text.repeat(count)))
    }),
    ("indent", |values| indent(values, "")),
    ("nindent", |values| indent(values, "\n")),
    ("substr", |values| {
        let [start, end, text] = exactly(values)?;
        let (start, end, text) = (int(&start)?, int(&end)?, string(text)?);
        let from = usize::try_from(start).unwrap_or(0);
        let to = usize::try_from(end).unwrap_or(text.len());
        let to = to.min(text.len());
        part(&text, from, to)
    }),
    ("trunc", |values| {
        let [count, text] = exactly(values)?;
        let (count, text) = (int(&count)?, string(text)?);
        let length = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match (count < 0, length < text.len()) {
            (_, false) => Ok(Value::Text(text)),
            (false, true) => part(&text, 0, length),
            (true, true) => part(&text, text.len() - length, text.len()),
        }
    }),
    ("splitList", |values| {
        let [separator, text] = exactly(values)?;
        let (separator, text) = (string(separator)?, string(text)?);
        Ok(Value::List(pieces(&text, &separator)))
    }),
    ("split", |values| {
        let [separator, text] = exactly(values)?;
        let (separator, text) = (string(separator)?, string(text)?);
        let pieces = pieces(&text, &separator).into_iter().enumerate();
        Ok(Value::Map(
            pieces
                .map(|(at, piece)| (format!("_{at}"), piece))
                .collect(),
        ))
    }),
    ("regexMatch", |values| {
        let [pattern, text] = exactly(values)?;
        Ok(Value::Bool(regex(pattern)?.is_match(&string(text)?)))
    }),
    ("regexFind", |values| {
        let [pattern, text] = exactly(values)?;
        let text = string(text)?;
        let found = regex(pattern)?
            .find(&text)
            .map(|found| found.as_str().to_owned());
        Ok(Value::Text(found.unwrap_or_default()))
    }),
    ("regexReplaceAll", |values| {
        let [pattern, text, new] = exactly(values)?;
        let (text, new) = (string(text)?, string(new)?);
        within(
            text.len()
                .saturating_add(1)
                .saturating_mul(new.len().saturating_add(1)),
        )?;
        Ok(Value::Text(
            regex(pattern)?
                .replace_all(&text, new.as_str())
                .into_owned(),
        ))
    }),
    ("regexSplit", |values| {
        let [pattern, text, most] = exactly(values)?;
        let (pattern, text) = (regex(pattern)?, string(text)?);
        let texts: Vec<&str> = match usize::try_from(int(&most)?) {
            Ok(0) => Vec::new(),
            Ok(most) => pattern.splitn(&text, most).collect(),
            Err(_) => pattern.split(&text).collect(),
        };
        Ok(Value::List(
            texts
                .into_iter()
                .map(|text| Value::Text(text.to_owned()))
                .collect(),
        ))
    }),
    ("regexQuoteMeta", |values| of_one(values, regex::escape)),
];

fn of_one(values: Vec<Value>, turn: fn(&str) -> String) -> Result<Value, String> {
    let [text] = exactly(values)?;
    Ok(Value::Text(turn(&string(text)?)))
}

fn of_two(values: Vec<Value>, turn: fn(&str, &str) -> String) -> Result<Value, String> {
    let [first, text] = exactly(values)?;
    Ok(Value::Text(turn(&string(first)?, &string(text)?)))
}

fn test(values: Vec<Value>, is: fn(&str, &str) -> bool) -> Result<Value, String> {
    let [part, text] = exactly(values)?;
    Ok(Value::Bool(is(&string(part)?, &string(text)?)))
}

fn quoted(values: Vec<Value>, quote: fn(String) -> String) -> Result<Value, String> {
    let texts = values.iter().filter(|value| **value != Value::Nil);
    let texts: Vec<_> = texts.map(|value| quote(value.go_text())).collect();
    Ok(Value::Text(texts.join(" ")))
}

/// Formats a text as a Go string literal.
pub(super) fn go_quote(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            letter if letter.is_ascii_control() => {
                out.push_str(&format!("\\x{:02x}", u32::from(letter)));
            }
            letter if letter.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

fn title(text: &str) -> String {
    let mut start = true;
    let letters = text.chars().map(|letter| {
        let upper = if start {
            letter.to_ascii_uppercase()
        } else {
            letter
        };
        start = letter.is_whitespace();
        upper
    });
    letters.collect()
}

fn indent(values: Vec<Value>, before: &str) -> Result<Value, String> {
    let [count, text] = exactly(values)?;
    let count = usize::try_from(int(&count)?).map_err(|_| "negative Repeat count")?;
    let text = string(text)?;
    let lines = text.matches('\n').count() + 1;
    within(
        lines
            .saturating_mul(count.saturating_add(1))
            .saturating_add(text.len()),
    )?;
    let pad = " ".repeat(count);
    Ok(Value::Text(format!(
        "{before}{pad}{}",
        text.replace('\n', &format!("\n{pad}"))
    )))
}

/// Returns bytes of a text. A cut within a character is an error: Go would cut there, but the result is no text.
fn part(text: &str, from: usize, to: usize) -> Result<Value, String> {
    let part = text.get(from..to);
    part.map(|part| Value::Text(part.to_owned()))
        .ok_or_else(|| format!("{from} to {to} are no bounds of letters of `{text}`"))
}

fn pieces(text: &str, separator: &str) -> Vec<Value> {
    let piece = |piece: &str| Value::Text(piece.to_owned());
    match separator {
        // Go splits at each letter.
        "" => text
            .chars()
            .map(|letter| piece(&letter.to_string()))
            .collect(),
        separator => text.split(separator).map(piece).collect(),
    }
}

fn regex(pattern: Value) -> Result<Regex, String> {
    let pattern = string(pattern)?;
    let built = regex::RegexBuilder::new(&pattern)
        .size_limit(REGEX_SIZE)
        .build();
    built.map_err(|_| format!("`{pattern}` is not a regular expression"))
}

/// Rejects a text of too many bytes, before the text is built.
fn within(bytes: usize) -> Result<(), String> {
    match bytes / 16 > LARGEST {
        true => Err("the result is too large".to_owned()),
        false => Ok(()),
    }
}
