//! Holds the user's options against the tables of the release, before anything is rendered.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;

use crate::config::{Source, Value};
use crate::options::{Found, Table};
use crate::parameters::Parameters;
use crate::release::Release;
use crate::service::{self, Service, horizon, listening};

/// What is wrong with an option, or may become so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it is rejected.
    pub severity: Severity,
    /// The field, as a path in the spec.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Whether an option is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It is rejected.
    Error,
    /// It works in this release.
    Warning,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.message)
    }
}

/// An option of the user that is accepted, by its current name.
pub(crate) struct Accepted {
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// Every finding about the options of every service.
pub fn check(parameters: &Parameters) -> Vec<Finding> {
    let mut findings = Vec::new();
    let release = parameters.release;
    findings.extend(release.ended().map(|ended| Finding {
        severity: Severity::Warning,
        path: "release".to_owned(),
        message: format!(
            "{release} is out of maintenance since {ended}; {} is maintained",
            Release::DEFAULT
        ),
    }));
    for service in Service::ALL {
        judge(service, parameters, |finding| findings.push(finding));
    }
    findings.extend(horizon::check(parameters));
    findings
}

/// Reads the parameters of an object, and checks them.
///
/// # Errors
/// The errors, each with its field from `spec` on.
pub fn checked(object: &Json) -> Result<Parameters, Vec<String>> {
    let (parameters, _) = Parameters::read(object).map_err(|error| vec![error.to_string()])?;
    let findings = check(&parameters).into_iter();
    let errors = findings.filter(|it| it.severity == Severity::Error);
    let errors: Vec<String> = errors.map(|it| format!("spec.{it}")).collect();
    match errors.is_empty() {
        true => Ok(parameters),
        false => Err(errors),
    }
}

/// The options of the user that are accepted.
pub(crate) fn accepted(service: Service, parameters: &Parameters) -> Vec<Accepted> {
    judge(service, parameters, |_| ())
}

fn judge(
    service: Service,
    parameters: &Parameters,
    mut report: impl FnMut(Finding),
) -> Vec<Accepted> {
    let release = parameters.release;
    let Some(table) = release.table(service) else {
        return Vec::new();
    };
    let ours = service::ours(service, parameters);
    let mut accepted = Vec::new();
    let mut seen: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for (section, options) in &parameters.service(service).config {
        for (name, json) in options {
            let path = format!("services.{service}.config.{section}.{name}");
            let mut find = |severity, message| {
                report(Finding {
                    severity,
                    path: path.clone(),
                    message,
                });
            };
            let Some(found) = table.find(section, name) else {
                find(Severity::Error, unknown(table, section, name, parameters));
                continue;
            };
            let setting = ours.get(found.section, found.name);
            if let Some(reason) = setting.and_then(|setting| fixed(&setting.source)) {
                find(Severity::Error, reason);
                continue;
            }
            if let Some(why) = listening::refused(service, release, found.section, found.name) {
                find(Severity::Error, format!("this option cannot be set: {why}"));
                continue;
            }
            if let Some(other) = seen.insert((found.section, found.name), path.clone()) {
                find(Severity::Error, format!("{other} is the same option"));
                continue;
            }
            match found.entry.value(json) {
                Err(problem) => find(Severity::Error, problem),
                Ok(value) => {
                    let value = match value {
                        Value::Text(text) if found.entry.secret => Value::Given(vec![text]),
                        Value::Multi(texts) if found.entry.secret => Value::Given(texts),
                        other => other,
                    };
                    for message in warnings(&found) {
                        find(Severity::Warning, message);
                    }
                    accepted.push(Accepted {
                        section: found.section.to_owned(),
                        name: found.name.to_owned(),
                        value,
                    });
                }
            }
        }
    }
    accepted
}

fn unknown(table: &Table, section: &str, name: &str, parameters: &Parameters) -> String {
    let release = parameters.release;
    let service = &table.service;
    if let Some(before) = dropped_since(release, service, section, name) {
        return format!(
            "{service} {release} has no option [{section}] {name}, which {before} had: remove it, before an upgrade as well"
        );
    }
    if !table.has_section(section) {
        return match table.nearest_section(section) {
            Some(near) => {
                format!("{service} {release} has no section [{section}]; did you mean [{near}]?")
            }
            None => format!("{service} {release} has no section [{section}]"),
        };
    }
    let mut message = format!("[{section}] of {service} {release} has no option {name}");
    if let Some(near) = table.nearest_option(section, name) {
        message += &format!("; did you mean {near}?");
    } else if let Some(other) = table.sections_with(name).first() {
        message += &format!("; [{other}] has");
    }
    message
}

/// The release before this one, if the option was in it.
fn dropped_since(release: Release, service: &str, section: &str, name: &str) -> Option<Release> {
    let mut releases = Release::ALL.into_iter();
    let before = releases.find(|it| it.next() == Some(release))?;
    let table = before.table(Service::named(service)?)?;
    table.find(section, name).map(|_| before)
}

/// Why the user cannot set an option.
pub(crate) fn fixed(source: &Source) -> Option<String> {
    match source {
        Source::Structure(why) => Some(format!("this option cannot be set: {why}")),
        Source::Parameter(field) => Some(format!("set {field} instead, from which it is derived")),
        Source::Default(_) | Source::User => None,
    }
}

fn warnings(found: &Found<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    if found.renamed {
        let now = format!("[{}] {}", found.section, found.name);
        warnings.push(format!("this is an earlier name; it is {now} now"));
    }
    if found.entry.deprecated {
        warnings.push("this option is deprecated, and a later release has none".to_owned());
    }
    if found.entry.secret {
        warnings.push(
            "this is a secret, and everyone who can read the parameters can read it".to_owned(),
        );
    }
    warnings
}

#[cfg(test)]
mod tests;
