//! Policies: lists of entries of versions 1 and 2, compiled once, and decisions by them.
//!
//! The rules follow the Go program, and where the Go program crashes, the entry permits nothing. [`Mode::Strict`]
//! refuses parts that the Go program ignores, and knows sub-resources and API groups in entries of version 2.

use std::borrow::Cow;
use std::fmt;

use crate::document::{self, Location};
use crate::subject::{Attributes, Subject};

mod compile;
mod definition;
mod entry;
mod index;
mod rule;
mod strict;
#[cfg(test)]
mod tests;

use self::index::Index;
use self::rule::Rule;

/// Maximum size of the text of a policy, in bytes.
pub const LARGEST: usize = 4 << 20;

const ROLES: &str = "roles";
const PROJECTS: &str = "projects";

/// Interpretation of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Like the Go program.
    #[default]
    Compatible,
    /// Keys that the Go program ignores are errors; sub-resources and API groups count in version 2.
    Strict,
}

/// Remark on a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// [`Location`] of the remark.
    pub place: Location,
    /// Mistake, with the correction.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Error of an unusable policy: every [`Finding`], in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Invalid(pub Vec<Finding>);

fn lines(findings: &[Finding]) -> String {
    /// Limit for a file of another kind: nobody reads more.
    const MOST: usize = 20;
    let lines = findings.iter().take(MOST).map(ToString::to_string);
    let lines = lines.collect::<Vec<_>>().join("; ");
    match findings.len().checked_sub(MOST) {
        Some(more @ 1..) => format!("{lines}; and {more} more"),
        _ => lines,
    }
}

/// Compiled policy. The default permits nothing.
#[derive(Debug, Default)]
pub struct Policy {
    entries: usize,
    rules: Vec<Rule>,
    resources: Index,
    paths: Index,
}

/// Policy, with warnings.
#[derive(Debug)]
pub struct Compiled {
    /// The policy.
    pub policy: Policy,
    /// Warnings about rules that permit less, or more, than their author may expect; empty in strict mode.
    pub doubts: Vec<Finding>,
}

impl Policy {
    /// Compiles a policy in a [`Mode`].
    ///
    /// # Errors
    /// The text is no JSON, or no list of entries; in strict mode also anything doubtful.
    pub fn compile(text: &str, mode: Mode) -> Result<Compiled, Invalid> {
        let place = |offset| Location::new(text, offset);
        if text.len() > LARGEST {
            let message = format!("a policy has at most {} MiB", LARGEST >> 20);
            let place = place(0);
            return Err(Invalid(vec![Finding { place, message }]));
        }
        let document = document::parse(text).map_err(|wrong| {
            let place = place(wrong.offset);
            let message = wrong.message;
            Invalid(vec![Finding { place, message }])
        })?;
        let mut findings = Findings::new(text, mode);
        let entries = entry::entries(&document, &mut findings);
        let rules = compile::rules(&entries, mode, &mut findings);
        let doubts = findings.end()?;
        let mut policy = Self {
            entries: entries.len(),
            ..Self::default()
        };
        for rule in rules {
            let position = u32::try_from(policy.rules.len()).unwrap_or(u32::MAX);
            match rule.what.is_about_paths() {
                true => policy.paths.add(position, &rule),
                false => policy.resources.add(position, &rule),
            }
            policy.rules.push(rule);
        }
        Ok(Compiled { policy, doubts })
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }
}

/// Answer of a policy. Another authorizer may still permit a refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// True if the policy permits the request.
    pub allowed: bool,
    /// Permitting rule, or the reason why there is none.
    pub reason: Cow<'static, str>,
}

/// Decides by a [`Policy`]: the reason is the first rule that permits the request.
pub fn decide(policy: &Policy, subject: &Subject, attributes: &Attributes) -> Decision {
    let no_opinion = |reason| Decision {
        allowed: false,
        reason: Cow::Borrowed(reason),
    };
    if policy.rules.is_empty() {
        return no_opinion("there is no policy");
    }
    if subject.extra.is_none() {
        return no_opinion("the user has no extra keys: Keystone has not authenticated it");
    }
    let index = match attributes {
        Attributes::Resource(_) => &policy.resources,
        Attributes::Path { .. } => &policy.paths,
    };
    let mut first: Option<(usize, &Rule)> = None;
    for position in index.candidates(subject, attributes) {
        let earlier = first.is_none_or(|(found, _)| position < found);
        let rule = policy.rules.get(position).filter(|_| earlier);
        if let Some(rule) = rule.filter(|rule| rule.permits(subject, attributes).is_ok()) {
            first = Some((position, rule));
        }
    }
    match first {
        Some((_, rule)) => Decision {
            allowed: true,
            reason: Cow::Owned(format!(
                "entry {} of the policy: {}",
                rule.entry, rule.words
            )),
        },
        None => no_opinion("no entry of the policy permits it"),
    }
}

/// Verdict of a rule on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Entry, counted from 1.
    pub entry: usize,
    /// [`Location`] of the rule.
    pub place: Location,
    /// Rule in words.
    pub rule: String,
    /// Reason why the rule does not permit the request; `None` if permitted.
    pub miss: Option<&'static str>,
}

/// Verdict of each rule of a policy on a request, also for users without extra keys, whom [`decide`] does not judge.
pub fn explain<'a>(
    policy: &'a Policy,
    subject: &'a Subject,
    attributes: &'a Attributes,
) -> impl Iterator<Item = Explained> + 'a {
    policy.rules.iter().map(|rule| Explained {
        entry: rule.entry,
        place: rule.place,
        rule: rule.words.clone(),
        miss: rule.permits(subject, attributes).err().map(|miss| miss.0),
    })
}

/// Errors and doubts, in the order of discovery.
struct Findings<'a> {
    text: &'a str,
    mode: Mode,
    errors: Vec<(usize, String)>,
    doubts: Vec<(usize, String)>,
}

impl<'a> Findings<'a> {
    fn new(text: &'a str, mode: Mode) -> Self {
        Self {
            text,
            mode,
            errors: Vec::new(),
            doubts: Vec::new(),
        }
    }

    fn error(&mut self, offset: usize, message: impl Into<String>) {
        self.errors.push((offset, message.into()));
    }

    /// Adds a doubt: an error in strict mode.
    fn doubt(&mut self, offset: usize, message: impl Into<String>) {
        match self.mode {
            Mode::Strict => self.error(offset, message),
            Mode::Compatible => self.doubts.push((offset, message.into())),
        }
    }

    fn end(self) -> Result<Vec<Finding>, Invalid> {
        let text = self.text;
        match self.errors.is_empty() {
            true => Ok(placed(text, self.doubts)),
            false => Err(Invalid(placed(text, self.errors))),
        }
    }
}

/// Maximum number of kept findings: each one costs a search for its line.
const FINDINGS: usize = 200;

fn placed(text: &str, mut found: Vec<(usize, String)>) -> Vec<Finding> {
    found.sort();
    found.truncate(FINDINGS);
    let found = found.into_iter();
    let place = |(offset, message)| Finding {
        place: Location::new(text, offset),
        message,
    };
    found.map(place).collect()
}
