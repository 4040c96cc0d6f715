//! Errors and warnings about a cloud.conf.

use std::fmt;

use serde::Serialize;

use super::gcfg::SyntaxError;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used.
    Warning,
}

/// Error or warning about a line of the file. Never contains a value, since values can be secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// [`Severity`] of the finding.
    pub severity: Severity,
    /// Name of the file; empty for a single file, and for findings about several files together.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Line, counted from one; 0 for the file as a whole.
    pub line: usize,
    /// Section; empty for syntax errors.
    pub section: String,
    /// Key; empty for a section.
    pub key: String,
    /// Mistake, with the correction.
    pub message: String,
}

impl Finding {
    pub(super) fn error(section: &str, key: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: String::new(),
            line,
            section: section.to_owned(),
            key: key.to_owned(),
            message: message.into(),
        }
    }

    pub(super) fn warning(
        section: &str,
        key: &str,
        line: usize,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(section, key, line, message)
        }
    }

    /// True if the whole file could not be read.
    pub(super) fn is_syntax(&self) -> bool {
        self.section.is_empty()
    }

    pub(super) fn syntax(error: &SyntaxError) -> Self {
        Self::error("", "", error.line, error.message.clone())
    }
}

impl fmt::Display for Finding {
    /// `line 7: [LoadBalancer] monitor-delay: ...`, after the name of the file, if any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}: ", self.file)?;
        }
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.section.is_empty() {
            write!(f, "[{}] ", self.section)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// Error for an unusable file: at least one [`Finding`] is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Errors and warnings.
    pub findings: Vec<Finding>,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self
            .findings
            .iter()
            .filter(|found| found.severity == Severity::Error);
        for (index, error) in errors.enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejected {}
