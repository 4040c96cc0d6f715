//! Field selectors.

use std::fmt;

use super::ParseError;

/// Parsed field selector; all of its terms must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: String,
    equal: bool,
    value: String,
}

impl FieldSelector {
    /// Parses `metadata.name=a,status.phase!=Running`. `\` escapes `,`, `=` and `\` in values.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, equal, value)) = split_term(part) else {
                let message = format!("invalid selector: '{text}'; can't understand '{part}'");
                return Err(ParseError { message });
            };
            terms.push(Term {
                field: field.to_owned(),
                equal,
                value: unescape(value)?,
            });
        }
        Ok(Self { terms })
    }

    /// True if the selector matches an object. `field` returns the value of a field path; `None` counts as the empty
    /// string.
    pub fn matches(&self, field: impl Fn(&str) -> Option<String>) -> bool {
        self.terms.iter().all(|term| {
            let value = field(&term.field).unwrap_or_default();
            (value == term.value) == term.equal
        })
    }

    /// Returns the field paths of all terms, for a check against the fields of the kind.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|term| term.field.as_str())
    }

    /// Returns the value that the selector requires of `field`: a list with `metadata.name=x` is a get.
    pub fn required(&self, field: &str) -> Option<&str> {
        let mut terms = self.terms.iter();
        terms
            .find(|term| term.equal && term.field == field)
            .map(|term| term.value.as_str())
    }

    /// True if the selector matches everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

/// Formats the canonical form, which parses to the same selector.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if term.equal { "=" } else { "!=" };
            let value = term
                .value
                .replace('\\', "\\\\")
                .replace(',', "\\,")
                .replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", term.field)?;
        }
        Ok(())
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    term.char_indices().find_map(|(i, _)| {
        let rest = &term[i..];
        let (operator, equal) = match () {
            () if rest.starts_with("!=") => (2, false),
            () if rest.starts_with("==") => (2, true),
            () if rest.starts_with('=') => (1, true),
            () => return None,
        };
        Some((&term[..i], equal, &rest[operator..]))
    })
}

fn unescape(value: &str) -> Result<String, ParseError> {
    let invalid = |sequence: &str| ParseError {
        message: format!("invalid field selector: invalid escape sequence: {sequence}"),
    };
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                Some(other) => return Err(invalid(&format!("\\{other}"))),
                None => return Err(invalid("\\")),
            },
            // Go prints the rune as a number.
            ',' | '=' => {
                let message = "invalid field selector: unescaped character in value: ";
                return Err(ParseError {
                    message: format!("{message}{}", u32::from(c)),
                });
            }
            _ => plain.push(c),
        }
    }
    Ok(plain)
}
