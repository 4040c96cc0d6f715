//! Option tables: oslo.config's description of each option of a service in one release.
//!
//! The tables are made by `images/options` from the generator of the release itself, and embedded.

mod value;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

/// Options of a service in one release.
#[derive(Debug, Deserialize)]
pub struct Table {
    /// Name of the service.
    pub service: String,
    /// Version of the package from which the table was made.
    pub version: String,
    sections: BTreeMap<String, BTreeMap<String, OptionEntry>>,
}

/// An option.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptionEntry {
    /// Type.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Lowest value.
    pub min: Option<f64>,
    /// Highest value.
    pub max: Option<f64>,
    /// Permitted values, if limited. A null is the absent value.
    pub choices: Vec<Json>,
    /// True if a list is written in brackets.
    pub bounds: bool,
    /// Regular expression to be found in each value.
    pub pattern: Option<String>,
    /// Permitted schemes of a URI, if limited.
    pub schemes: Vec<String>,
    /// Maximum number of characters.
    pub max_length: Option<usize>,
    /// Default, if identical on every machine.
    pub default: Option<Json>,
    /// Earlier names, as section (empty: the same one) and name.
    pub earlier: Vec<(String, String)>,
    /// Deprecated: a later release of the service removes the option.
    pub deprecated: bool,
    /// True if the value is a secret.
    pub secret: bool,
    /// True if the service does not start without the option.
    pub required: bool,
    /// True if the service reads the option again on SIGHUP.
    pub mutable: bool,
}

/// Type of an option, as named by oslo.config's generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Any text.
    #[default]
    String,
    /// An integer.
    Integer,
    /// A truth value.
    Boolean,
    /// A number.
    Float,
    /// Values separated by commas.
    List,
    /// Pairs of key and value, separated by commas.
    Dict,
    /// A TCP or UDP port.
    Port,
    /// A URI.
    Uri,
    /// An option that may be repeated, once for each value.
    Multi,
    /// A host name or IP address.
    Host,
    /// An IP address.
    Address,
    /// A range of integers, such as `1-5`.
    Range,
}

/// Option found by its name or by an earlier one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found<'a> {
    /// Current section.
    pub section: &'a str,
    /// Current name.
    pub name: &'a str,
    /// [`OptionEntry`] in the table.
    pub entry: &'a OptionEntry,
    /// True if the requested name is an earlier one.
    pub renamed: bool,
}

/// Sections with the options of another one: their names are values of an option.
const LIKE: [(&str, &str, &str); 5] = [
    ("glance", "os_glance_staging_store", "file"),
    ("glance", "os_glance_tasks_store", "file"),
    ("glance", "rbd", "glance.store.rbd.store"),
    ("cinder", "rbd", "backend_defaults"),
    ("cinder", "fake", "backend_defaults"),
];

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// If the text does not have the form of `images/options`.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// True if the section exists.
    pub fn has_section(&self, section: &str) -> bool {
        self.section(section).is_some()
    }

    fn section(&self, section: &str) -> Option<(&str, &BTreeMap<String, OptionEntry>)> {
        let like = LIKE
            .iter()
            .find(|(service, name, _)| *service == self.service && *name == section)
            .map_or(section, |(_, _, like)| like);
        let (name, options) = self.sections.get_key_value(like)?;
        let name = LIKE
            .iter()
            .find(|(service, name, _)| *service == self.service && *name == section)
            .map_or(name.as_str(), |(_, name, _)| name);
        Some((name, options))
    }

    /// Option with this current or earlier name. In names `-` and `_` are equal, as for oslo.config.
    pub fn find(&self, section: &str, name: &str) -> Option<Found<'_>> {
        let name = underscores(name);
        if let Some((section, options)) = self.section(section)
            && let Some((name, entry)) = options.get_key_value(&name)
        {
            return Some(Found {
                section,
                name,
                entry,
                renamed: false,
            });
        }
        self.all().find_map(|found| {
            let was = found.entry.earlier.iter().any(|(group, earlier)| {
                let group = if group.is_empty() {
                    found.section
                } else {
                    group
                };
                group == section && underscores(earlier) == name
            });
            was.then_some(Found {
                renamed: true,
                ..found
            })
        })
    }

    /// Every option, as [`Found`].
    pub fn all(&self) -> impl Iterator<Item = Found<'_>> {
        self.sections.iter().flat_map(|(section, options)| {
            options.iter().map(move |(name, entry)| Found {
                section,
                name,
                entry,
                renamed: false,
            })
        })
    }

    /// Section with the name nearest to `section`.
    pub fn nearest_section(&self, section: &str) -> Option<&str> {
        nearest(section, self.sections.keys().map(String::as_str))
    }

    /// Option of the section with the name nearest to `name`.
    pub fn nearest_option(&self, section: &str, name: &str) -> Option<&str> {
        let (_, options) = self.section(section)?;
        nearest(&underscores(name), options.keys().map(String::as_str))
    }

    /// Sections with an option of this name.
    pub fn sections_with(&self, name: &str) -> Vec<&str> {
        let name = underscores(name);
        self.all()
            .filter(|found| found.name == name)
            .map(|found| found.section)
            .collect()
    }
}

fn underscores(name: &str) -> String {
    name.replace('-', "_")
}

/// Name with the fewest differences, unless more than a third of the name differs.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|other| (strsim::damerau_levenshtein(name, other), other))
        .filter(|(distance, other)| *distance * 3 <= other.len().max(name.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests;
