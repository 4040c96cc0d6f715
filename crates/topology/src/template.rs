//! Go templates (`text/template`) with the functions of sprig that published ClusterClasses call.
//!
//! Built are actions, pipelines, variables, `if`, `with`, `range`, `break`, `continue` and `else` of each. `define`,
//! `template` and `block` are rejected. Values are those of JSON: as in Go, its numbers are floating-point numbers,
//! which do not compare with integer literals. Go's text and template packages are the specification; where a template
//! fails in Go, it fails here.
//!
//! ```text
//!   lex        actions as words
//!   parse      words as a tree
//!   value      what templates compute with, and how it is printed
//!   run        evaluation, within bounds of steps and sizes
//!   functions  what templates may call, by subject
//! ```

mod functions;
mod lex;
mod parse;
mod run;
mod value;

pub use value::Value;

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    nodes: Vec<parse::Node>,
}

/// Why a template cannot be parsed or rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TemplateError {
    /// The line of the template, from 1.
    pub line: usize,
    /// Mistake of the template.
    pub problem: String,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// When the text is not a template, or calls an unknown function.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        parse::parse(text).map(|nodes| Self { nodes })
    }

    /// Renders the template with `data` as its dot.
    ///
    /// # Errors
    /// When a function fails, or the template takes too many steps or produces too much.
    pub fn render(&self, data: &Value) -> Result<String, TemplateError> {
        run::run(&self.nodes, data)
    }
}

#[cfg(test)]
mod tests;
