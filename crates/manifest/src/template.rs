//! The template language of `clusterctl generate`: `${VARIABLE}` and its string functions.
//!
//! The rules are the ones of the parser in clusterctl (drone/envsubst), listed in docs/guides/templates.md. Two pitfalls:
//! shell snippets in a template are parsed, too, so shell variables must be written as `$${VAR}`; and unset variables
//! equal empty ones.

mod evaluate;
mod parse;
mod scalar;

use std::collections::BTreeMap;

use parse::Piece;

/// Cause why a [`Template`] cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A `${` without a valid substitution.
    #[error("line {line}: `{text}` is not a valid substitution: {problem}")]
    Syntax {
        /// Line in the template.
        line: usize,
        /// The substitution.
        text: String,
        /// Cause.
        problem: &'static str,
    },
    /// Required variables without a value.
    #[error(
        "these variables are not set: {}; set them in the environment or in the configuration file, or use --cloud NAME, which fills in what the cloud has; --list-variables lists all",
        .0.join(", ")
    )]
    Missing(Vec<String>),
    /// A value from a cloud, ambiguous as a string in its place ([`Found::is_foreign`]).
    #[error(
        "line {line}: the value of {variable} from the cloud, `{value}`, cannot be written there: {problem}; set {variable} yourself, or change the template"
    )]
    Unquotable {
        /// Line in the template.
        line: usize,
        /// Name of the variable.
        variable: String,
        /// Value of the variable.
        value: String,
        /// Cause.
        problem: &'static str,
    },
}

/// Value of a variable, for [`Template::render`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Inserted text.
    pub text: String,
    /// True for a value from a cloud and not from the user: one scalar wherever it stands.
    pub is_foreign: bool,
}

/// A parsed template; [`Template::render`] inserts values.
#[derive(Clone, Debug)]
pub struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// Parses `text`.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`] if a `${` begins no valid substitution.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Ok(Self {
            pieces: parse::parse(&parse::without_inner_blanks(text))?,
        })
    }

    /// Variables of the template with default texts; `None` for required ones. The first occurrence of a variable outside
    /// of defaults decides.
    pub fn variables(&self) -> BTreeMap<&str, Option<String>> {
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

    /// Renders the text with the values of `lookup`.
    ///
    /// # Errors
    /// [`TemplateError::Missing`] if a required variable has no value, [`TemplateError::Unquotable`] for a value from a cloud
    /// without a quoted form in its place.
    pub fn render(&self, lookup: &dyn Fn(&str) -> Option<Found>) -> Result<String, TemplateError> {
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
