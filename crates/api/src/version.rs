//! Kubernetes versions: semantic versions (semver.org 2.0.0), usually written with a `v`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Semantic version. Build metadata is printed, but ignored in comparisons.
#[derive(Clone, Debug)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: Vec<Identifier>,
    build: String,
}

/// Identifier of a pre-release: numbers sort before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

/// Error for a text other than a semantic version, such as an invalid [`Version`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a Kubernetes version such as v1.34.2")]
pub struct InvalidVersion {
    /// Invalid text.
    pub text: String,
}

impl Version {
    /// [`Version`] `major.minor.patch`.
    pub fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self {
            major,
            minor,
            patch,
            pre: Vec::new(),
            build: String::new(),
        }
    }

    /// Major and minor number.
    pub fn major_minor(&self) -> (u64, u64) {
        (self.major, self.minor)
    }

    /// Major, minor and patch number.
    pub fn numbers(&self) -> (u64, u64, u64) {
        (self.major, self.minor, self.patch)
    }

    /// True for a minor release before `major.minor`; a pre-release counts as its release.
    pub fn is_before_minor(&self, major: u64, minor: u64) -> bool {
        (self.major, self.minor) < (major, minor)
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.strip_prefix('v').unwrap_or(text)).ok_or_else(|| InvalidVersion {
            text: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<Version> {
    let (rest, build) = text
        .split_once('+')
        .map_or((text, None), |(a, b)| (a, Some(b)));
    let (core, pre) = rest
        .split_once('-')
        .map_or((rest, None), |(a, b)| (a, Some(b)));
    let mut numbers = core.split('.').map(number);
    let (major, minor, patch) = (numbers.next()??, numbers.next()??, numbers.next()??);
    if numbers.next().is_some() || build.is_some_and(|b| !b.split('.').all(is_identifier)) {
        return None;
    }
    let pre = match pre {
        Some(pre) => pre.split('.').map(identifier).collect::<Option<Vec<_>>>()?,
        None => Vec::new(),
    };
    Some(Version {
        major,
        minor,
        patch,
        pre,
        build: build.unwrap_or_default().to_owned(),
    })
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn number(text: &str) -> Option<u64> {
    let leading_zero = text.len() > 1 && text.starts_with('0');
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (digits && !leading_zero).then(|| text.parse().ok())?
}

fn identifier(text: &str) -> Option<Identifier> {
    if !is_identifier(text) {
        return None;
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return number(text).map(Identifier::Number);
    }
    Some(Identifier::Word(text.to_owned()))
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let core = |v: &Self| (v.major, v.minor, v.patch);
        core(self).cmp(&core(other)).then_with(|| {
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                // A release is later than its pre-releases.
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.pre.cmp(&other.pre),
            }
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (at, part) in self.pre.iter().enumerate() {
            f.write_str(if at == 0 { "-" } else { "." })?;
            match part {
                Identifier::Number(number) => write!(f, "{number}")?,
                Identifier::Word(word) => f.write_str(word)?,
            }
        }
        if self.build.is_empty() {
            Ok(())
        } else {
            write!(f, "+{}", self.build)
        }
    }
}

#[cfg(test)]
mod tests;
