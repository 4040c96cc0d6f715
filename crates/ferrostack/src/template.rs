//! The template language of `clusterctl generate`: `${VARIABLE}` and its string functions.
//!
//! The rules are those of the parser in clusterctl (drone/envsubst), listed in docs/guides/templates.md. Two pitfalls: shell
//! snippets in a template are parsed too, so that shell variables must be written as `$${VAR}`, and unset variables are
//! the same as empty ones.

mod evaluate;
mod parse;
mod scalar;

use std::collections::BTreeMap;

use parse::Piece;

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// A `${` that is not a valid substitution.
    #[error("line {line}: `{text}` is not a valid substitution: {problem}")]
    Syntax {
        line: usize,
        text: String,
        problem: &'static str,
    },
    /// Required variables without a value.
    #[error(
        "these variables are not set: {}; set them in the environment or in the configuration file, or use --cloud NAME, which fills in what the cloud has; --list-variables lists all",
        .0.join(", ")
    )]
    Missing(Vec<String>),
    /// A value from a cloud that would be read as more than a string.
    #[error(
        "line {line}: the value of {variable} from the cloud, `{value}`, cannot be written there: {problem}; set {variable} yourself, or change the template"
    )]
    Unquotable {
        line: usize,
        variable: String,
        value: String,
        problem: &'static str,
    },
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) text: String,
    /// Whether it comes from a cloud, and not from the user: it is one scalar wherever it is inserted.
    pub(crate) is_foreign: bool,
}

/// A parsed template.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// Parses `text`.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        Ok(Self {
            pieces: parse::parse(&parse::without_inner_blanks(text))?,
        })
    }

    /// The variables of the template with their default texts; `None` for required ones. The first occurrence of a
    /// variable outside of defaults decides.
    pub(crate) fn variables(&self) -> BTreeMap<&str, Option<String>> {
        let mut found = BTreeMap::new();
        for piece in &self.pieces {
            if let Piece::Variable { name, function } = piece {
                found.entry(name.as_str()).or_insert_with(|| {
                    Some(function.argument_text()).filter(|text| !text.is_empty())
                });
            }
        }
        found
    }

    /// Renders the text with the values that `lookup` returns.
    pub(crate) fn render(
        &self,
        lookup: &dyn Fn(&str) -> Option<Found>,
    ) -> Result<String, TemplateError> {
        let missing: Vec<String> = self
            .variables()
            .into_iter()
            .filter(|(name, default)| default.is_none() && lookup(name).is_none())
            .map(|(name, _)| name.to_owned())
            .collect();
        if !missing.is_empty() {
            return Err(TemplateError::Missing(missing));
        }
        evaluate::document(&self.pieces, lookup)
    }
}

#[cfg(test)]
mod tests;
