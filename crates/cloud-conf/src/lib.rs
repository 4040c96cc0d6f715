//! Strict parser for cloud.conf, the configuration file of the Go cloud controller manager and of the Go Cinder CSI
//! driver.
//!
//! ```text
//!   gcfg         the syntax
//!   keys         every section and key: form, default, meaning, and support
//!   value        the forms of values
//!   pattern      patterns of names, and lists of tags
//!   labels       labels of nodes
//!   recovery     measures against load balancers in ERROR
//!   settings     the typed settings
//!   finding      errors and warnings, with their line
//!   access       requests of each program, as access rules of its credential
//!   credentials  [Global] resolved to a cloud with credentials
//!   generate     cloud.conf from a clouds.yaml, and from files of the in-tree provider
//! ```
//!
//! Unlike in the Go programs, an invalid value is never replaced by a default, and an unknown key is reported.
//! Several programs share the file, so the sections of the others are known, too.

pub mod access;
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
use std::fmt;

pub use credentials::CloudsYaml;
pub use finding::{Finding, Rejected, Severity};
pub use gcfg::SyntaxError;
pub use generate::{Generated, from_cloud, from_legacy, from_sections};
pub use keys::{Form, KEYS, Key, METHODS, Program, Section, Support};
pub use labels::{Selector, selector};
pub use pattern::{InvalidPattern, NamePattern, TagFilter};
pub use recovery::Recovery;
pub use settings::{
    BlockStorage, Class, CloudConf, Global, LoadBalancer, Metadata, MonitorDefaults, Networking,
    Placement, Route,
};
pub use value::{Duration, MetadataSource};

use gcfg::{Document, Entry};

/// Valid file, with warnings.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The settings.
    pub conf: CloudConf,
    /// [`Finding`]s that do not prevent the program from starting.
    pub warnings: Vec<Finding>,
}

/// One of several files.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Name in findings.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

impl fmt::Debug for Source<'_> {
    /// Prints the name only, since the text has secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Source").field(&self.name).finish()
    }
}

impl CloudConf {
    /// Parses a cloud.conf for `program`. Settings of the other program are not used, and their wrong values cause
    /// only warnings.
    ///
    /// # Errors
    /// All findings, with section, key and line, if at least one of them is an error.
    pub fn parse(text: &str, program: Program) -> Result<Parsed, Rejected> {
        Self::merge(&[Source { name: "", text }], program)
    }

    /// Parses several files as one: of a key in several files the last value counts, and a repeated key has the
    /// values of all.
    ///
    /// # Errors
    /// All findings, with file, section, key and line, if at least one of them is an error.
    pub fn merge(files: &[Source<'_>], program: Program) -> Result<Parsed, Rejected> {
        let mut reader = Reader {
            program,
            conf: Self::default(),
            findings: Vec::new(),
            seen: BTreeSet::new(),
        };
        for file in files {
            reader.file(file);
        }
        let read = reader.findings.iter().all(|it| !it.is_syntax());
        // Keys of an unreadable file do not count as missing.
        if read {
            reader.conf.check(program, &mut reader.findings);
        }
        reader.finish()
    }
}

/// Settings parsed so far.
struct Reader {
    program: Program,
    conf: CloudConf,
    findings: Vec<Finding>,
    /// Keys of this file, to report repeated keys with a single value.
    seen: BTreeSet<(String, Option<String>, String)>,
}

impl Reader {
    fn file(&mut self, file: &Source<'_>) {
        let first = self.findings.len();
        self.seen.clear();
        match gcfg::parse(file.text) {
            Ok(document) => {
                self.headers(&document);
                for entry in &document.entries {
                    self.entry(entry);
                }
            }
            Err(error) => self.findings.push(Finding::syntax(&error)),
        }
        for finding in &mut self.findings[first..] {
            finding.file = file.name.to_owned();
        }
    }

    fn headers(&mut self, document: &Document) {
        for header in &document.headers {
            let line = header.line;
            let Some(section) = Section::named(&header.section) else {
                let message = "this section is unknown, and all of it is ignored";
                let warning = Finding::warning(&header.section, "", line, message);
                self.findings.push(warning);
                continue;
            };
            let driver = Program::CinderCsi;
            let problem = match (&header.subsection, section) {
                (Some(name), Section::LoadBalancerClass) => {
                    self.conf.enter_class(name);
                    continue;
                }
                (None, Section::LoadBalancerClass) => {
                    "a class needs a name: write [LoadBalancerClass \"NAME\"]".to_owned()
                }
                (Some(name), Section::Global) if self.program == driver && name.is_empty() => {
                    "the name of a cloud is empty: write [Global] for the one without a name"
                        .to_owned()
                }
                (Some(name), Section::Global) if self.program == driver => {
                    self.conf.enter_cloud(name);
                    continue;
                }
                (Some(name), Section::Global) => {
                    let driver = driver.name();
                    let message = format!("[Global \"{name}\"] is for {driver}, and ignored here");
                    let warning = Finding::warning(section.name(), "", line, message);
                    self.findings.push(warning);
                    continue;
                }
                (Some(name), _) => format!("this section takes no name; remove \"{name}\""),
                (None, _) => continue,
            };
            self.reject(section, section.name(), "", line, problem);
        }
    }

    fn entry(&mut self, entry: &Entry) {
        let Some(section) = Section::named(&entry.section) else {
            return;
        };
        let cloud = entry.subsection.as_deref();
        let cloud = cloud.filter(|_| section == Section::Global);
        if cloud.is_some_and(|name| !self.conf.clouds.contains_key(name)) {
            return;
        }
        let title = section.titled(cloud);
        let Some(key) = Key::named(section, &entry.key) else {
            let message = match keys::misplaced(&entry.key) {
                Some(other) => format!(
                    "this key is unknown here and ignored; it belongs into [{}]",
                    other.name()
                ),
                None => "this key is unknown and ignored".to_owned(),
            };
            self.warn(&title, entry, message);
            return;
        };
        let id = (
            entry.section.clone(),
            entry.subsection.clone(),
            entry.key.clone(),
        );
        if !self.seen.insert(id) && key.form != Form::Repeated {
            self.warn(
                &title,
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
                self.reject(section, &title, key.name, entry.line, message);
                return;
            }
        };
        match key.support(self.program) {
            Support::Rejected(reason) if value.asks_for_something() => {
                let error = Finding::error(&title, key.name, entry.line, reason);
                self.findings.push(error);
            }
            Support::NoEffect(reason) => self.warn(&title, entry, reason.to_owned()),
            Support::Served => {
                let text = entry.value.as_ref().map_or("", |value| value.as_str());
                if let Some(remark) = key.form.remark(text) {
                    self.warn(&title, entry, remark);
                }
            }
            Support::Rejected(_) | Support::Elsewhere(_) => {}
        }
        self.conf
            .set(section, entry.subsection.as_deref(), key.name, value);
    }

    /// Adds an error; a warning if only another program reads the section or the key, and refuses the value.
    fn reject(&mut self, section: Section, title: &str, key: &str, line: usize, message: String) {
        let support = match Key::named(section, key) {
            Some(key) => key.support(self.program),
            None => keys::of_section(section, self.program),
        };
        self.findings.push(match support {
            Support::Elsewhere(component) => {
                let message = format!("{message} ({component} reads it)");
                Finding::warning(title, key, line, message)
            }
            _ => Finding::error(title, key, line, message),
        });
    }

    fn warn(&mut self, title: &str, entry: &Entry, message: String) {
        let warning = Finding::warning(title, &entry.key, entry.line, message);
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
