//! Parsing of values by their [`Form`].

use std::collections::BTreeMap;

use ipnet::IpNet;
use secrecy::SecretString;

use super::keys::Form;
use super::pattern::{InvalidPattern, NamePattern, TagFilter};
use crate::labels::{self, Selector};

/// Type of parsed durations.
pub type Duration = std::time::Duration;

/// Source of the metadata of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataSource {
    /// `configDrive`: a disk of the server.
    ConfigDrive,
    /// `metadataService`: http://169.254.169.254.
    MetadataService,
}

impl MetadataSource {
    pub(super) const ALL: [Self; 2] = [Self::ConfigDrive, Self::MetadataService];

    /// Name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConfigDrive => "configDrive",
            Self::MetadataService => "metadataService",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|source| source.name().eq_ignore_ascii_case(name))
    }

    /// Parses `configDrive,metadataService`, in either order, or one of them.
    ///
    /// # Errors
    /// The reason why the text is no such list.
    pub fn order(text: &str) -> Result<Vec<Self>, String> {
        let mut sources = Vec::new();
        for part in parts(text) {
            let source = Self::named(&part).ok_or_else(|| {
                let part = part.escape_debug();
                format!("`{part}` is neither configDrive nor metadataService")
            })?;
            if sources.contains(&source) {
                return Err(format!("{} is in the list twice", source.name()));
            }
            sources.push(source);
        }
        match sources.is_empty() {
            true => {
                Err("the list is empty; leave it out for configDrive,metadataService".to_owned())
            }
            false => Ok(sources),
        }
    }
}

/// A parsed value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Secret(SecretString),
    Bool(bool),
    Duration(Duration),
    Number(u32),
    List(Vec<String>),
    Networks(Vec<IpNet>),
    Labels(Selector),
    Sources(Vec<MetadataSource>),
    Zones(BTreeMap<String, String>),
}

impl Value {
    /// True if the value differs from the value of an absent key.
    pub(super) fn asks_for_something(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Bool(truth) => *truth,
            Self::List(list) => !list.is_empty(),
            Self::Networks(list) => !list.is_empty(),
            Self::Labels(list) => !list.is_empty(),
            Self::Zones(map) => !map.is_empty(),
            Self::Sources(_) | Self::Secret(_) | Self::Duration(_) | Self::Number(_) => true,
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            _ => String::new(),
        }
    }

    pub(super) fn truth(self) -> bool {
        matches!(self, Self::Bool(true))
    }

    pub(super) fn number(self) -> u32 {
        match self {
            Self::Number(number) => number,
            _ => 0,
        }
    }

    pub(super) fn seconds(self) -> Duration {
        match self {
            Self::Duration(duration) => duration,
            _ => Duration::ZERO,
        }
    }

    pub(super) fn list(self) -> Vec<String> {
        match self {
            Self::List(list) => list,
            _ => Vec::new(),
        }
    }
}

impl Form {
    /// Parses a [`Value`], or returns the reason why the text is invalid. `None` is a key without `=`.
    pub(super) fn check(self, text: Option<&str>) -> Result<Value, String> {
        let Some(text) = text else {
            return match self {
                Self::Bool => Ok(Value::Bool(true)),
                _ => Err("the value is missing; write `key = VALUE`".to_owned()),
            };
        };
        match self {
            Self::Text => Ok(Value::Text(text.to_owned())),
            Self::Repeated => Ok(Value::List(vec![text.to_owned()])),
            Self::Secret => Ok(Value::Secret(SecretString::from(text))),
            Self::Url => url(text),
            Self::Bool => truth(text).map(Value::Bool),
            Self::Duration => duration(text).map(Value::Duration),
            Self::Seconds => seconds(text),
            Self::Number(least) => number(text, least),
            Self::UpTo(most) => up_to(text, most),
            Self::Sources => sources(text),
            Self::Zones => zones(text),
            Self::Choice(choices) => choice(text, choices),
            Self::Networks => networks(text),
            Self::Labels => labels(text),
            Self::Pattern => pattern(text),
            Self::Tags => tags(text),
        }
    }
}

impl Form {
    /// Warning about a valid value.
    pub(super) fn remark(self, text: &str) -> Option<String> {
        let Self::UpTo(most) = self else {
            return None;
        };
        let number: i64 = text.parse().ok()?;
        let is_outside = !(0..=i64::from(most)).contains(&number);
        is_outside.then(|| {
            format!("a number below 0 or above {most} counts as {most}, as in the Go driver")
        })
    }
}

fn parts(text: &str) -> Vec<String> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn url(text: &str) -> Result<Value, String> {
    let fits = |scheme: &str| {
        text.strip_prefix(scheme)
            .is_some_and(|rest| !rest.is_empty())
    };
    if text.is_empty() || fits("http://") || fits("https://") {
        return Ok(Value::Text(text.to_owned()));
    }
    Err("this is not a URL; it must begin with http:// or https://".to_owned())
}

/// Parses booleans like gcfg.
fn truth(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err("this is not a boolean; write true or false".to_owned()),
    }
}

fn number(text: &str, least: u32) -> Result<Value, String> {
    let wrong = || format!("this is not a number of {least} or more");
    let number: u32 = text.parse().map_err(|_| wrong())?;
    (number >= least)
        .then_some(Value::Number(number))
        .ok_or_else(wrong)
}

/// Number from 0 to `most`; every other number counts as `most`.
fn up_to(text: &str, most: u32) -> Result<Value, String> {
    let number: i64 = text
        .parse()
        .map_err(|_| format!("this is not a number from 0 to {most}"))?;
    let number = u32::try_from(number).unwrap_or(most);
    Ok(Value::Number(number.min(most)))
}

fn sources(text: &str) -> Result<Value, String> {
    MetadataSource::order(text).map(Value::Sources)
}

/// `NOVA=CINDER,NOVA=CINDER`. Names may have spaces within.
fn zones(text: &str) -> Result<Value, String> {
    let mut zones = BTreeMap::new();
    for part in parts(text) {
        let pair = part.split_once('=');
        let pair = pair.map(|(nova, cinder)| (nova.trim(), cinder.trim()));
        let pair = pair.filter(|(nova, cinder)| {
            !nova.is_empty() && !cinder.is_empty() && !cinder.contains('=')
        });
        let Some((nova, cinder)) = pair else {
            let part = part.escape_debug();
            return Err(format!(
                "`{part}` is not a zone of Nova and one of Cinder such as NOVA=CINDER"
            ));
        };
        let before = zones.insert(nova.to_owned(), cinder.to_owned());
        if before.is_some_and(|before| before != cinder) {
            let nova = nova.escape_debug();
            return Err(format!(
                "the zone `{nova}` has two zones of Cinder; it can have one"
            ));
        }
    }
    Ok(Value::Zones(zones))
}

fn choice(text: &str, choices: &[&str]) -> Result<Value, String> {
    let found = choices
        .iter()
        .find(|choice| choice.eq_ignore_ascii_case(text));
    match found {
        Some(found) => Ok(Value::Text((*found).to_owned())),
        None => Err(format!("this is not one of {}", choices.join(", "))),
    }
}

fn pattern(text: &str) -> Result<Value, String> {
    match text.is_empty() || NamePattern::parse(text).is_ok() {
        true => Ok(Value::Text(text.to_owned())),
        false => Err(InvalidPattern.to_string()),
    }
}

fn tags(text: &str) -> Result<Value, String> {
    match text.is_empty() || TagFilter::parse(text).is_some() {
        true => Ok(Value::Text(text.to_owned())),
        false => Err("the list has no tags".to_owned()),
    }
}

fn networks(text: &str) -> Result<Value, String> {
    let network = |part: &String| {
        part.parse::<IpNet>()
            .map_err(|_| format!("`{part}` is not an address range such as 10.0.0.0/8"))
    };
    let networks: Result<Vec<_>, _> = parts(text).iter().map(network).collect();
    networks.map(Value::Networks)
}

/// `key=value,key=value`; a key without value means that the label exists.
fn labels(text: &str) -> Result<Value, String> {
    labels::selector(text)
        .map(Value::Labels)
        .map_err(|part| format!("`{part}` is not a label such as key=value"))
}

/// Octavia's unit is the second, with a minimum of one.
fn seconds(text: &str) -> Result<Value, String> {
    let duration = duration(text)?;
    let whole = Duration::from_secs(duration.as_secs());
    if whole.is_zero() {
        return Err("this is less than a second, and Octavia counts in seconds".to_owned());
    }
    Ok(Value::Duration(whole))
}

/// Duration in Go's format: `5s`, `1m30s`, `1.5h`, `300ms`. Only `0` may have no unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let wrong = || "this is not a duration; write it with its unit, as 5s or 1m30s".to_owned();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut rest, mut total) = (text.strip_prefix('+').unwrap_or(text), 0.0);
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let unit = UNITS.iter().find(|(unit, _)| *unit == &rest[..letters]);
        total += number * unit.ok_or_else(wrong)?.1;
        rest = &rest[letters..];
    }
    Duration::try_from_secs_f64(total).map_err(|_| wrong())
}
