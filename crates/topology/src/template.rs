//! Go templates (`text/template`) with the sprig functions of published ClusterClasses.
//!
//! Actions, pipelines, variables, `if`, `with`, `range`, `break`, `continue` and `else` are supported; `define`,
//! `template` and `block` are rejected. Values are JSON values: as in Go, numbers of JSON are floating-point numbers,
//! which do not compare with integer literals. Go's text and template packages are the specification: a template that
//! fails in Go fails here.
//!
//! - `lex`: actions as words
//! - `parse`: words as a tree
//! - `value`: the values of templates, and their printed form
//! - `run`: evaluation, within bounds of steps and sizes
//! - `functions`: the functions of templates, by subject

mod functions;
mod lex;
mod parse;
mod run;
mod value;

pub use value::Value;

/// Parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    nodes: Vec<parse::Node>,
}

/// Error of parsing or rendering a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TemplateError {
    /// Line of the template, counted from 1.
    pub line: usize,
    /// Mistake of the template.
    pub problem: String,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// The text is not a template, or calls an unknown function.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        parse::parse(text).map(|nodes| Self { nodes })
    }

    /// Renders the template with `data` as the dot.
    ///
    /// # Errors
    /// A function fails, or the template takes too many steps or produces too much.
    pub fn render(&self, data: &Value) -> Result<String, TemplateError> {
        run::run(&self.nodes, data)
    }
}

#[cfg(test)]
mod tests;
