//! Strict parser for cloud.conf, the configuration file of the Go cloud controller manager.
//!
//! ```text
//!   gcfg         the syntax
//!   keys         every section and key: form, default, meaning, and support
//!   value        the forms of values
//!   pattern      patterns of names, and lists of tags
//!   labels       labels of nodes
//!   recovery     what is done about load balancers in ERROR
//!   settings     the typed settings
//!   finding      errors and warnings, with their line
//!   credentials  [Global] resolved to a cloud with credentials
//!   generate     cloud.conf from a clouds.yaml, and from files of the in-tree provider
//! ```
//!
//! Unlike in the Go manager, an invalid value is never replaced by a default, and an unknown key is reported. The file
//! is shared by several components, so the sections of the others are known, too.

mod credentials;
mod finding;
mod gcfg;
mod generate;
mod keys;
mod labels;
mod pattern;
mod recovery;
mod settings;
mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use credentials::CloudsYaml;
pub use finding::{Finding, Rejected, Severity};
pub use gcfg::SyntaxError;
pub use generate::{Generated, from_cloud, from_legacy};
pub use keys::{Form, KEYS, Key, METHODS, Section, Support};
pub use labels::{Selector, selector};
pub use pattern::{InvalidPattern, NamePattern, TagFilter};
pub use recovery::Recovery;
pub use settings::{
    Class, CloudConf, Global, LoadBalancer, Metadata, MonitorDefaults, Networking, Placement, Route,
};
pub use value::Duration;

use gcfg::{Document, Entry};

/// A valid file, and its warnings.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The settings.
    pub conf: CloudConf,
    /// Findings that do not prevent the manager from starting.
    pub warnings: Vec<Finding>,
}

impl CloudConf {
    /// Parses a cloud.conf.
    ///
    /// # Errors
    /// All findings, with section, key and line, if at least one of them is an error.
    pub fn parse(text: &str) -> Result<Parsed, Rejected> {
        let document = gcfg::parse(text).map_err(|error| Rejected {
            findings: vec![Finding::syntax(&error)],
        })?;
        let mut reader = Reader::default();
        reader.headers(&document);
        for entry in &document.entries {
            reader.entry(entry);
        }
        reader.conf.check(&mut reader.findings);
        reader.finish()
    }
}

/// The settings parsed so far.
#[derive(Default)]
struct Reader {
    conf: CloudConf,
    findings: Vec<Finding>,
    /// Keys that were set, to report repeated keys that accept only one value.
    seen: BTreeSet<(String, Option<String>, String)>,
}

impl Reader {
    fn headers(&mut self, document: &Document) {
        for header in &document.headers {
            let Some(section) = Section::named(&header.section) else {
                let message = "this section is unknown, and all of it is ignored";
                self.findings
                    .push(Finding::warning(&header.section, "", header.line, message));
                continue;
            };
            match (&header.subsection, section) {
                (Some(name), Section::LoadBalancerClass) => self.conf.enter_class(name),
                (None, Section::LoadBalancerClass) => self.findings.push(Finding::error(
                    section.name(),
                    "",
                    header.line,
                    "a class needs a name: write [LoadBalancerClass \"NAME\"]",
                )),
                (Some(name), Section::Global) => self.findings.push(Finding::warning(
                    section.name(),
                    "",
                    header.line,
                    format!("[Global \"{name}\"] is for the Cinder CSI driver, and ignored here"),
                )),
                (Some(name), _) => self.findings.push(Finding::error(
                    section.name(),
                    "",
                    header.line,
                    format!("this section takes no name; remove \"{name}\""),
                )),
                (None, _) => {}
            }
        }
    }

    fn entry(&mut self, entry: &Entry) {
        let Some(section) = Section::named(&entry.section) else {
            return;
        };
        if section == Section::Global && entry.subsection.is_some() {
            return;
        }
        let Some(key) = Key::named(section, &entry.key) else {
            let message = match keys::misplaced(&entry.key) {
                Some(other) => format!(
                    "this key is unknown here and ignored; it belongs into [{}]",
                    other.name()
                ),
                None => "this key is unknown and ignored".to_owned(),
            };
            self.warn(section, entry, message);
            return;
        };
        let id = (
            entry.section.clone(),
            entry.subsection.clone(),
            entry.key.clone(),
        );
        if !self.seen.insert(id) && key.form != Form::Repeated {
            self.warn(
                section,
                entry,
                "this key is set for the second time; the last value counts".to_owned(),
            );
        }
        let value = match key
            .form
            .check(entry.value.as_ref().map(|value| value.as_str()))
        {
            Ok(value) => value,
            Err(message) => {
                let error = Finding::error(section.name(), key.name, entry.line, message);
                self.findings.push(error);
                return;
            }
        };
        match key.support {
            Support::Rejected(reason) if value.asks_for_something() => {
                let error = Finding::error(section.name(), key.name, entry.line, reason);
                self.findings.push(error);
            }
            Support::NoEffect(reason) => self.warn(section, entry, reason.to_owned()),
            Support::Served | Support::Rejected(_) | Support::Elsewhere(_) => {}
        }
        self.conf
            .set(section, entry.subsection.as_deref(), key.name, value);
    }

    fn warn(&mut self, section: Section, entry: &Entry, message: String) {
        let warning = Finding::warning(section.name(), &entry.key, entry.line, message);
        self.findings.push(warning);
    }

    fn finish(self) -> Result<Parsed, Rejected> {
        if self
            .findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
        {
            return Err(Rejected {
                findings: self.findings,
            });
        }
        Ok(Parsed {
            conf: self.conf,
            warnings: self.findings,
        })
    }
}
