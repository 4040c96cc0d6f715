//! Evaluation of the [`Piece`]s of a template.

use std::cell::Cell;

use super::parse::{Anchor, Case, End, Function, Piece};
use super::{Found, TemplateError, scalar};

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Text of a template, with one scalar for each value from a cloud ([`Found::is_foreign`]).
pub(super) fn document(
    pieces: &[Piece],
    lookup: &dyn Fn(&str) -> Option<Found>,
) -> Result<String, TemplateError> {
    let is_foreign = Cell::new(false);
    let lookup = |name: &str| {
        let found = lookup(name)?;
        is_foreign.set(is_foreign.get() || found.is_foreign && !found.text.is_empty());
        Some(found.text)
    };
    let mut document = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        is_foreign.set(false);
        let text = text_of(std::slice::from_ref(piece), &lookup);
        let Piece::Variable { name, .. } = piece else {
            document.push_str(&text);
            continue;
        };
        if !is_foreign.get() {
            document.push_str(&text);
            continue;
        }
        let after = match pieces.get(index + 1) {
            Some(Piece::Text(after)) => after.as_str(),
            // It stands beside another value, whatever that is.
            Some(Piece::Variable { .. }) => "$",
            None => "",
        };
        match scalar::written(&text, &document, after) {
            Ok(scalar) => document.push_str(&scalar),
            Err(problem) => {
                return Err(TemplateError::Unquotable {
                    line: document.lines().count().max(1),
                    variable: name.clone(),
                    value: text,
                    problem,
                });
            }
        }
    }
    Ok(document)
}

fn text_of(pieces: &[Piece], lookup: Lookup<'_>) -> String {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable { name, function } => {
                apply(function, lookup(name).unwrap_or_default(), lookup)
            }
        })
        .collect()
}

fn apply(function: &Function, value: String, lookup: Lookup<'_>) -> String {
    match function {
        Function::Value => value,
        Function::Length => value.len().to_string(),
        Function::Default(default) if value.is_empty() => text_of(default, lookup),
        Function::Default(_) => value,
        Function::Case(case) => change_case(*case, &value),
        Function::Slice { start, length } => {
            let length = length.as_ref().map(|pieces| text_of(pieces, lookup));
            slice(&value, &text_of(start, lookup), length.as_deref())
        }
        Function::Trim {
            end,
            longest,
            pattern,
        } => trim(&value, *end, *longest, &text_of(pattern, lookup)).to_owned(),
        Function::Replace { place, find, with } => replace(
            value,
            *place,
            &text_of(find, lookup),
            &text_of(with, lookup),
        ),
    }
}

fn change_case(case: Case, value: &str) -> String {
    let mut rest = value.chars();
    let first = rest.next();
    match case {
        Case::UpperAll => value.to_uppercase(),
        Case::LowerAll => value.to_lowercase(),
        Case::UpperFirst => first
            .into_iter()
            .flat_map(char::to_uppercase)
            .chain(rest)
            .collect(),
        Case::LowerFirst => first
            .into_iter()
            .flat_map(char::to_lowercase)
            .chain(rest)
            .collect(),
    }
}

/// Slice by byte offsets; a negative start counts from the end; arguments other than numbers leave the value unchanged.
fn slice(value: &str, start: &str, length: Option<&str>) -> String {
    let Ok(start) = start.trim().parse::<i64>() else {
        return value.to_owned();
    };
    let size = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let from = if start < 0 {
        (size + start).max(0)
    } else {
        start
    };
    if from >= size {
        return String::new();
    }
    let to = match length.map(|text| text.trim().parse::<i64>()) {
        None => size,
        Some(Ok(length)) => from.saturating_add(length).clamp(from, size),
        Some(Err(_)) => return value.to_owned(),
    };
    let index = |at: i64| usize::try_from(at).unwrap_or_default();
    String::from_utf8_lossy(&value.as_bytes()[index(from)..index(to)]).into_owned()
}

fn trim<'v>(value: &'v str, end: End, longest: bool, pattern: &str) -> &'v str {
    let mut cuts: Vec<usize> = value
        .char_indices()
        .map(|(at, _)| at)
        .chain([value.len()])
        .collect();
    // The shortest prefix is at the first cut, the shortest suffix at the last one.
    if (end == End::Prefix) == longest {
        cuts.reverse();
    }
    for cut in cuts {
        let (head, tail) = value.split_at(cut);
        match end {
            End::Prefix if glob(pattern, head) => return tail,
            End::Suffix if glob(pattern, tail) => return head,
            _ => {}
        }
    }
    value
}

/// True if `pattern` matches all of `text`; `*` is any run of characters, `/` included, `?` is any one.
fn glob(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == '*' {
            retry = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star, seen)) = retry {
            retry = Some((star, seen + 1));
            p = star + 1;
            t = seen + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

fn replace(value: String, place: Anchor, find: &str, with: &str) -> String {
    match place {
        Anchor::First => value.replacen(find, with, 1),
        Anchor::All => value.replace(find, with),
        Anchor::Prefix => match value.strip_prefix(find) {
            Some(rest) => format!("{with}{rest}"),
            None => value,
        },
        Anchor::Suffix => match value.strip_suffix(find) {
            Some(rest) => format!("{rest}{with}"),
            None => value,
        },
    }
}
