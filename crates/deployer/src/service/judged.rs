//! Options of the user, checked by the table of the release.

use std::collections::BTreeMap;

use super::listening;
use crate::config::Value;
use crate::finding::{Finding, Severity};
use crate::options::{Found, Table};
use crate::parameters::Parameters;
use crate::project::Service;
use crate::release::Release;

/// Accepted option of the user, by its current name.
pub(crate) struct Accepted {
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// Options of the user that are [`Accepted`].
pub(super) fn accepted(service: Service, parameters: &Parameters) -> Vec<Accepted> {
    judge(service, parameters, |_| ())
}

/// Checks the options by the table of the release: reports each [`Finding`], and returns the accepted options.
pub(crate) fn judge(
    service: Service,
    parameters: &Parameters,
    mut report: impl FnMut(Finding),
) -> Vec<Accepted> {
    let release = parameters.release;
    let Some(table) = release.table(service) else {
        return Vec::new();
    };
    let ours = super::ours(service, parameters);
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
            if let Some(reason) = setting.and_then(|setting| setting.source.forbids()) {
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

/// [`Release`] before this one, if the option existed.
fn dropped_since(release: Release, service: &str, section: &str, name: &str) -> Option<Release> {
    let mut releases = Release::ALL.into_iter();
    let before = releases.find(|it| it.next() == Some(release))?;
    let table = before.table(Service::named(service)?)?;
    table.find(section, name).map(|_| before)
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
