//! Words of the doc comments, counted per crate: pronouns, links between items, and lines that begin with a relative
//! clause (STYLE.md).
//!
//! The counts of each crate that is not yet as it should be are in a list, `xtask/words.txt`. Pronouns and such lines
//! may only become fewer, and links only more.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, bail};

use crate::syntax::{self, Source};

/// The list, below the root.
pub(super) const LIST: &str = "xtask/words.txt";
/// The words that count as pronouns.
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
/// The words with which no line of a doc comment should begin.
const OPENINGS: [&str; 4] = ["What", "Whether", "Those", "That"];
/// A crate with these counts needs no entry in the list.
const TARGET: Limits = Limits {
    pronouns: 35,
    links: 100,
    openings: 0,
};
/// How much better than its entry a crate may be before the entry has to follow: so that small changes need none.
const SLACK: Limits = Limits {
    pronouns: 5,
    links: 20,
    openings: 5,
};
/// How much worse than its entry a ratio may be: it moves with every word that is neither a pronoun nor a link. The list does not
/// follow, so that nothing adds up.
const DRIFT: Limits = Limits {
    pronouns: 3,
    links: 5,
    openings: 0,
};
/// The first lines of the list.
const HEAD: &str = "\
# Words of doc comments, per crate: pronouns in 100 words (at most), links between items in 1,000 words (at least), and
# lines that begin with What, Whether, Those or That (at most). Written by `cargo xtask words --lower`, which raises none.
# Not listed is a crate with at most 3.5 pronouns, at least 10 links and no such line (STYLE.md).
";

/// The words of the doc comments of a crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    words: u32,
    pronouns: u32,
    links: u32,
    openings: u32,
}

/// What a crate is held to: pronouns in 1,000 words, links in 10,000 words, and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    pronouns: u32,
    links: u32,
    openings: u32,
}

/// A line of a doc comment, counted from one, with its text.
struct DocLine<'a> {
    number: usize,
    text: &'a str,
}

/// Crates whose counts are worse than listed, and entries that are no longer needed.
pub(super) fn broken(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let list = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
    Ok(differences(&counts(sources), &parsed(&list)?))
}

/// The counts of each crate as in the list, or the lines of one crate that begin with a relative clause.
pub(crate) fn report(root: &Path, krate: Option<&str>) -> anyhow::Result<String> {
    let sources = super::sources(root)?;
    match krate {
        Some(krate) => openings(&sources, krate),
        None => Ok(written(&limits_of(&counts(&sources)))),
    }
}

/// Writes counts that have become better to the list, in which no entry becomes weaker.
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

/// The sources whose doc comments are counted, with the name of the crate.
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

/// The lines of doc comments, without those of tests and those in code blocks.
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
        // Names in backticks are one word each. A link to an item is one in brackets.
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

    /// The strictest limits that the counts keep.
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
    /// Whether counts with these limits are as good as `other` asks.
    fn keep(self, other: Self) -> bool {
        self.pronouns <= other.pronouns
            && self.links >= other.links
            && self.openings <= other.openings
    }

    /// The stricter of both, for each count.
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

/// The counts of a crate that are worse than its limits.
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

/// The list with the counts of today where these are better; without crates that need no entry.
fn lowered(
    counts: &BTreeMap<String, Counts>,
    list: &BTreeMap<String, Limits>,
) -> BTreeMap<String, Limits> {
    let now = limits_of(counts).into_iter();
    let known = now.filter_map(|(krate, now)| Some((list.get(&krate)?.strictest(now), krate, now)));
    let needed = known.filter(|(_, _, now)| !now.keep(TARGET));
    needed.map(|(limits, krate, _)| (krate, limits)).collect()
}

/// A number of tenths, such as 35, as `3.5`.
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
