//! Rules: findings about the observed state. Pure.

mod classes;
mod cloud;
mod quota;
mod secrets;
mod volumes;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use cloud_conf::Severity;

use super::finding::Finding;
use super::observed::{Cloud, Observed};
use crate::commands::csi::clouds::section;

pub(super) use self::secrets::of as secrets;
pub(in crate::commands::csi) use self::volumes::handle;

/// All problems as [`Finding`]s, the worst first.
pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut all: Vec<Finding> = observed.conf.iter().map(of_file).collect();
    all.extend(cloud::findings(observed));
    all.extend(quota::findings(observed));
    all.extend(classes::findings(observed));
    all.extend(secrets::findings(observed));
    all.extend(volumes::findings(observed));
    all.sort();
    all.dedup();
    all
}

/// [`Finding`] about a line of cloud.conf.
fn of_file(found: &cloud_conf::Finding) -> Finding {
    let object = match found.file.as_str() {
        "" => "cloud.conf".to_owned(),
        file => file.to_owned(),
    };
    let field = match (found.section.as_str(), found.key.as_str()) {
        ("", _) => format!("line {}", found.line),
        (section, "") => format!("[{section}]"),
        (section, key) => format!("[{section}] {key}"),
    };
    let advice = match found.line {
        0 => "change the file".to_owned(),
        line => format!("change line {line} of the file"),
    };
    let message = found.message.clone();
    match found.severity {
        Severity::Error => Finding::error(object, field, message, advice),
        Severity::Warning => Finding::warning(object, field, message, advice),
    }
}

/// Names in a message, in their order and once.
fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: BTreeSet<&str> = names.into_iter().collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.into_iter().collect::<Vec<_>>().join(", "),
    }
}

/// [`Cloud`]s that responded.
fn seen(observed: &Observed) -> impl Iterator<Item = (&str, &Cloud)> {
    let clouds = observed.clouds.iter();
    clouds.filter_map(|(name, cloud)| Some((name.as_str(), cloud.as_ref().ok()?)))
}

/// Items of all clouds together; `None` unless every cloud responded.
fn known<'a, T: 'a>(
    observed: &'a Observed,
    of: impl Fn(&'a Cloud) -> Option<&'a Vec<T>>,
) -> Option<Vec<&'a T>> {
    let mut all = Vec::new();
    for cloud in observed.clouds.values() {
        all.extend(of(cloud.as_ref().ok()?)?);
    }
    (!observed.clouds.is_empty()).then_some(all)
}
