//! Words of doc comments, counted per crate: pronouns, links between items, and lines that begin with a relative clause
//! (STYLE.md).
//!
//! The counts of each crate below the standard are in a list, `xtask/words.txt`. There, pronouns and such lines may
//! only decrease, and links only increase.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, bail};

use crate::syntax::{self, Source};

/// Path of the list, below the root.
pub(super) const LIST: &str = "xtask/words.txt";
/// Words counted as pronouns.
const PRONOUNS: [&str; 17] = [
    "it",
    "its",
    "itself",
    "they",
    "them",
    "their",
    "themselves",
    "this",
    "these",
    "that",
    "those",
    "what",
    "which",
    "who",
    "whom",
    "whose",
    "whatever",
];
/// Words that must not begin a line of a doc comment.
const OPENINGS: [&str; 4] = ["What", "Whether", "Those", "That"];
/// [`Limits`] for a crate without an entry in the list.
const TARGET: Limits = Limits {
    pronouns: 35,
    links: 100,
    openings: 0,
};
/// Improvement over an entry that does not require an update of the list, so that small changes need none.
const SLACK: Limits = Limits {
    pronouns: 5,
    links: 20,
    openings: 5,
};
/// Worsening of a ratio that is tolerated, since each word other than a pronoun or link moves the ratio. The list is
/// not updated for it, so that nothing adds up.
const DRIFT: Limits = Limits {
    pronouns: 3,
    links: 5,
    openings: 0,
};
/// First lines of the list.
const HEAD: &str = "\
# Words of doc comments, per crate: pronouns in 100 words (at most), links between items in 1,000 words (at least), and
# lines that begin with What, Whether, Those or That (at most). Written by `cargo xtask words --lower`, which raises none.
# Not listed is a crate with at most 3.5 pronouns, at least 10 links and no such line (STYLE.md).
";

/// Word counts of the doc comments of a crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    words: u32,
    pronouns: u32,
    links: u32,
    openings: u32,
}

/// Limits for a crate: pronouns in 1,000 words, links in 10,000 words, and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    pronouns: u32,
    links: u32,
    openings: u32,
}

/// Line of a doc comment, counted from one, with its text.
struct DocLine<'a> {
    number: usize,
    text: &'a str,
}

/// Problems: crates with worse [`Counts`] than listed, and unneeded entries.
pub(super) fn broken(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let list = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
    Ok(differences(&counts(sources), &parsed(&list)?))
}

/// Counts of each crate in the format of the list, or the lines of one crate that begin with a relative clause.
pub(crate) fn report(root: &Path, krate: Option<&str>) -> anyhow::Result<String> {
    let sources = super::sources(root)?;
    match krate {
        Some(krate) => openings(&sources, krate),
        None => Ok(written(&limits_of(&counts(&sources)))),
    }
}

/// Writes improved counts to the list; no entry becomes weaker.
pub(crate) fn lower(root: &Path) -> anyhow::Result<()> {
    let list = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
    let lowered = lowered(&counts(&super::sources(root)?), &parsed(&list)?);
    std::fs::write(root.join(LIST), written(&lowered)).context(LIST)
}

fn openings(sources: &[Source], krate: &str) -> anyhow::Result<String> {
    let mut of_crate = documented(sources)
        .filter(|(name, _)| *name == krate)
        .peekable();
    if of_crate.peek().is_none() {
        bail!("there is no crate {krate}");
    }
    let mut text = String::new();
    for (_, source) in of_crate {
        for line in doc_lines(source).filter(|line| has_opening(line.text)) {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{}:{}: {}", source.name, line.number, line.text);
        }
    }
    Ok(text)
}

/// [`Source`]s with counted doc comments, each with the name of its crate.
fn documented(sources: &[Source]) -> impl Iterator<Item = (&str, &Source)> {
    let production = syntax::production(sources);
    let written = production.filter(|(source, _)| !source.name.contains("/generated/"));
    written.filter_map(|(source, module)| Some((module.first()?.as_str(), source)))
}

fn counts(sources: &[Source]) -> BTreeMap<String, Counts> {
    let mut crates: BTreeMap<String, Counts> = BTreeMap::new();
    for (krate, source) in documented(sources) {
        let counts = crates.entry(krate.to_owned()).or_default();
        doc_lines(source).for_each(|line| counts.add(line.text));
    }
    crates
}

/// Lines of doc comments, outside of tests and code blocks.
fn doc_lines(source: &Source) -> impl Iterator<Item = DocLine<'_>> {
    let mut in_code = false;
    let lines = source.text.lines().enumerate();
    lines.filter_map(move |(index, line)| {
        let line = line.trim_start();
        let is_doc =
            line.starts_with("//!") || line.starts_with("///") && !line.starts_with("////");
        let Some(text) = line.get(3..).filter(|_| is_doc) else {
            in_code = false;
            return None;
        };
        let (number, text) = (index + 1, text.trim());
        if text.starts_with("```") {
            in_code = !in_code;
            return None;
        }
        let counts = !in_code && !source.is_test_line(number);
        counts.then_some(DocLine { number, text })
    })
}

fn has_opening(text: &str) -> bool {
    let first = text.split(|c: char| !c.is_alphabetic()).next();
    first.is_some_and(|word| OPENINGS.contains(&word))
}

impl Counts {
    fn add(&mut self, text: &str) {
        self.openings += u32::from(has_opening(text));
        // A name in backticks is one word. A link to an item has brackets around the backticks.
        for (index, part) in text.split('`').enumerate() {
            if index % 2 == 1 {
                self.words += 1;
                continue;
            }
            let is_word = |word: &&str| word.starts_with(|c: char| c.is_alphabetic());
            for word in part.split(|c: char| !c.is_alphanumeric()).filter(is_word) {
                self.words += 1;
                let lower = word.to_lowercase();
                self.pronouns += u32::from(PRONOUNS.contains(&lower.as_str()));
            }
        }
        let links = text.matches("[`").count();
        self.links += u32::try_from(links).unwrap_or(u32::MAX);
    }

    /// Strictest limits that the counts keep.
    fn limits(self) -> Limits {
        let words = self.words.max(1);
        Limits {
            pronouns: (1_000 * self.pronouns).div_ceil(words),
            links: 10_000 * self.links / words,
            openings: self.openings,
        }
    }
}

impl Limits {
    /// True if counts with these limits keep `other`, too.
    fn keep(self, other: Self) -> bool {
        self.pronouns <= other.pronouns
            && self.links >= other.links
            && self.openings <= other.openings
    }

    /// Stricter of both, for each count.
    fn strictest(self, other: Self) -> Self {
        Self {
            pronouns: self.pronouns.min(other.pronouns),
            links: self.links.max(other.links),
            openings: self.openings.min(other.openings),
        }
    }
}

fn limits_of(counts: &BTreeMap<String, Counts>) -> BTreeMap<String, Limits> {
    let crates = counts.iter();
    crates
        .map(|(krate, counts)| (krate.clone(), counts.limits()))
        .collect()
}

fn differences(counts: &BTreeMap<String, Counts>, list: &BTreeMap<String, Limits>) -> Vec<String> {
    let mut problems = Vec::new();
    for (krate, now) in limits_of(counts) {
        let listed = list.get(&krate);
        let limits = listed.copied().unwrap_or(TARGET);
        problems.extend(worse(&krate, now, limits));
        let is_better = limits.pronouns >= now.pronouns + SLACK.pronouns
            || now.links >= limits.links + SLACK.links
            || limits.openings >= now.openings + SLACK.openings;
        if listed.is_some() && (now.keep(TARGET) || is_better) {
            problems.push(format!(
                "crate {krate}: the words of its doc comments are better than in {LIST}: `cargo xtask words --lower` writes that down"
            ));
        }
    }
    let crates: BTreeSet<&String> = counts.keys().collect();
    let unknown = list.keys().filter(|krate| !crates.contains(krate));
    problems.extend(unknown.map(|krate| format!("{LIST}: there is no crate {krate}")));
    problems
}

/// Counts of a crate beyond its limits, as messages.
fn worse(krate: &str, now: Limits, limits: Limits) -> Vec<String> {
    let mut problems = Vec::new();
    let mut push = |text: String| {
        problems.push(format!("crate {krate}: {text} (STYLE.md, {LIST})"));
    };
    if now.pronouns > limits.pronouns + DRIFT.pronouns {
        push(format!(
            "{} pronouns in 100 words of doc comments, and {} at most: name the thing instead",
            tenths(now.pronouns),
            tenths(limits.pronouns)
        ));
    }
    if now.links + DRIFT.links < limits.links {
        push(format!(
            "{} links in 1,000 words of doc comments, and {} at least: link the types that are named",
            tenths(now.links),
            tenths(limits.links)
        ));
    }
    if now.openings > limits.openings {
        push(format!(
            "{} lines of doc comments begin with {}, and {} at most: begin with a noun (`cargo xtask words {krate}` lists them)",
            now.openings,
            OPENINGS.join(", "),
            limits.openings
        ));
    }
    problems
}

/// The list with today's counts where these are better; without unneeded entries.
fn lowered(
    counts: &BTreeMap<String, Counts>,
    list: &BTreeMap<String, Limits>,
) -> BTreeMap<String, Limits> {
    let now = limits_of(counts).into_iter();
    let known = now.filter_map(|(krate, now)| Some((list.get(&krate)?.strictest(now), krate, now)));
    let needed = known.filter(|(_, _, now)| !now.keep(TARGET));
    needed.map(|(limits, krate, _)| (krate, limits)).collect()
}

/// Number of tenths as text: 35 is `3.5`.
fn tenths(value: u32) -> String {
    format!("{}.{}", value / 10, value % 10)
}

fn written(list: &BTreeMap<String, Limits>) -> String {
    let mut text = HEAD.to_owned();
    for (krate, limits) in list {
        let (pronouns, links) = (tenths(limits.pronouns), tenths(limits.links));
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "{krate:15} {pronouns:>5} {links:>5} {:>4}",
            limits.openings
        );
    }
    text
}

fn parsed(list: &str) -> anyhow::Result<BTreeMap<String, Limits>> {
    let entries = list.lines().filter(|line| !line.starts_with('#'));
    entries
        .map(|line| entry(line).with_context(|| format!("{LIST}: not an entry: {line}")))
        .collect()
}

fn entry(line: &str) -> Option<(String, Limits)> {
    let mut columns = line.split_whitespace();
    let krate = columns.next()?.to_owned();
    let limits = Limits {
        pronouns: parsed_tenths(columns.next()?)?,
        links: parsed_tenths(columns.next()?)?,
        openings: columns.next()?.parse().ok()?,
    };
    columns.next().is_none().then_some((krate, limits))
}

fn parsed_tenths(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.')?;
    let part: u32 = part.parse().ok().filter(|part| *part < 10)?;
    Some(whole.parse::<u32>().ok()? * 10 + part)
}

#[cfg(test)]
mod tests;
