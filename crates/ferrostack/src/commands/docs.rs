//! `docs`: pages of docs/, as of the build of the program.

use std::io::Read as _;

use anyhow::{Context, bail};
use flate2::read::ZlibDecoder;
use serde_json::{Value, json};

use crate::cli::{Docs, Output};
use crate::environment::Environment;
use crate::output::{pager, print};

mod layout;

/// Runs the command.
pub(super) fn execute(args: &Docs, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, print)
}

/// Pages as packed by the build script.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/docs.z"));
/// Page with the index of the others.
const INDEX: &str = "README";
/// Folders in the order of the list, each with its title.
const FOLDERS: [(&str, &str); 5] = [
    ("", "For all"),
    ("get-started", "Get started"),
    ("guides", "Guides"),
    ("reference", "Reference"),
    ("project", "The project"),
];

/// Former names of pages, each with the page that has their content.
const FORMER: [(&str, &str); 2] = [
    ("quick-start", "first-cluster"),
    ("simulated-cluster", "first-cluster"),
];

/// A page of the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Name of the file without `.md`.
    pub(crate) name: String,
    /// Folder of docs/; empty for a page outside of a folder.
    pub(crate) folder: String,
    /// Markdown.
    pub(crate) text: String,
}

/// Prints the list of pages, one page or a section of it, or the lines with a word.
pub(crate) fn run(
    args: &Docs,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let pages = pages()?;
    let as_json = args.output.output == Output::Json;
    match (&args.page, &args.search) {
        (_, Some(word)) if as_json => print(&terminal::json(&matches(&pages, word)?)?),
        (_, Some(word)) => print(&found(&pages, word, environment.columns())?),
        (Some(name), None) => {
            let text = page(&pages, name)?;
            match as_json {
                true => print(&terminal::json(&json!({"page": name, "text": text}))?),
                false => pager::show(environment, &layout::laid_out(&text, environment.columns())),
            }
        }
        (None, None) if as_json => {
            let list = pages.iter().map(
                |page| json!({"page": page.name, "folder": page.folder, "title": page.title()}),
            );
            print(&terminal::json(&list.collect::<Vec<Value>>())?)
        }
        (None, None) => print(&list(&pages)),
    }
}

/// All [`Page`]s, in the order of their names.
pub(crate) fn pages() -> anyhow::Result<Vec<Page>> {
    let mut text = String::new();
    let unpacked = ZlibDecoder::new(PACKED).read_to_string(&mut text);
    unpacked.context("the pages in this program are damaged")?;
    let (mut pages, mut rest) = (Vec::new(), text.as_str());
    while let Some((head, after)) = rest.split_once('\n') {
        let entry = head.split_once(' ').and_then(|(name, size)| {
            let (text, rest) = after.split_at_checked(size.parse().ok()?)?;
            Some((name, text, rest))
        });
        let (name, text, after) = entry.context("the pages in this program are damaged")?;
        let (folder, name) = name.rsplit_once('/').unwrap_or(("", name));
        pages.push(Page {
            name: name.to_owned(),
            folder: folder.to_owned(),
            text: text.to_owned(),
        });
        rest = after;
    }
    Ok(pages)
}

/// Page `templates`, also as `templates.md` or `docs/guides/templates.md`, or its section as in `templates#variables`.
pub(crate) fn page(pages: &[Page], name: &str) -> anyhow::Result<String> {
    let (file, section) = name.split_once('#').unwrap_or((name, ""));
    let file = file.rsplit('/').next().unwrap_or(file);
    let file = file.strip_suffix(".md").unwrap_or(file);
    let former = FORMER
        .iter()
        .find(|(name, _)| file.eq_ignore_ascii_case(name));
    let file = former.map_or(file, |(_, page)| page);
    let page = pages
        .iter()
        .find(|page| page.name.eq_ignore_ascii_case(file));
    let page = page.with_context(|| {
        let similar = match similar(pages, file).join(", ") {
            none if none.is_empty() => none,
            names => format!("; similar: {names}"),
        };
        format!("there is no page `{file}`{similar}: `ferrostack docs` lists all, and `ferrostack docs --search WORD` finds a word")
    })?;
    if section.is_empty() {
        return Ok(page.text.clone());
    }
    page.section(section)
        .with_context(|| format!("the page {} has no section `{section}`", page.name))
}

/// Names of pages that have a name in them or are in it, but for letters such as `-`.
fn similar<'a>(pages: &'a [Page], name: &str) -> Vec<&'a str> {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(|letter| letter.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let asked = plain(name);
    let asked = asked.strip_suffix('s').unwrap_or(&asked);
    let is_similar = |page: &&Page| {
        let name = plain(&page.name);
        asked.len() > 2 && (name.contains(asked) || asked.contains(&*name))
    };
    pages
        .iter()
        .filter(is_similar)
        .map(|page| page.name.as_str())
        .collect()
}

impl Page {
    /// The first heading.
    fn title(&self) -> &str {
        let first = self.text.lines().find_map(|line| line.strip_prefix("# "));
        first.unwrap_or(&self.name)
    }

    /// Section with an anchor, including its subsections.
    fn section(&self, anchor: &str) -> Option<String> {
        let mut within = None;
        let mut text = String::new();
        for (line, heading) in self.lines() {
            match (within, heading) {
                (None, Some((depth, title))) if anchor_of(title) == anchor => within = Some(depth),
                (None, _) => continue,
                (Some(top), Some((depth, _))) if depth <= top => break,
                (Some(_), _) => {}
            }
            text.push_str(line);
            text.push('\n');
        }
        within.map(|_| text)
    }

    /// Lines, each with depth and title if a heading.
    fn lines(&self) -> impl Iterator<Item = (&str, Option<(usize, &str)>)> {
        let mut in_code = false;
        self.text.lines().map(move |line| {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            }
            let title = line.trim_start_matches('#');
            let depth = line.len() - title.len();
            let is_heading = !in_code && depth > 0 && title.starts_with(' ');
            (line, is_heading.then(|| (depth, title.trim())))
        })
    }
}

/// Anchor of a heading, as on GitHub.
fn anchor_of(title: &str) -> String {
    let lower = title.to_lowercase();
    let kept = lower
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Row for each [`Page`]: name and title, by folder.
fn list(pages: &[Page]) -> String {
    let widest = pages.iter().map(|page| page.name.len()).max().unwrap_or(0);
    let mut list = String::new();
    for (folder, title) in FOLDERS {
        list.push_str(&format!("{title}\n"));
        let listed = |page: &&Page| page.folder == folder && page.name != INDEX;
        for page in pages.iter().filter(listed) {
            list.push_str(&format!("  {:<widest$}  {}\n", page.name, page.title()));
        }
    }
    format!("{list}\nA page: ferrostack docs PAGE. An index by reader: ferrostack docs {INDEX}\n")
}

/// A place with the word.
fn matches(pages: &[Page], word: &str) -> anyhow::Result<Vec<Value>> {
    if word.trim().is_empty() {
        bail!("--search: name a word");
    }
    let word = word.to_lowercase();
    let mut found = Vec::new();
    for page in pages {
        let mut anchor = String::new();
        for (line, heading) in page.lines() {
            if let Some((depth, title)) = heading {
                anchor = match depth {
                    1 => String::new(),
                    _ => format!("#{}", anchor_of(title)),
                };
            }
            if line.to_lowercase().contains(&word) {
                let place = format!("{}{anchor}", page.name);
                found.push(json!({"page": place, "line": line.trim()}));
            }
        }
    }
    if found.is_empty() {
        bail!("no page has `{word}`");
    }
    Ok(found)
}

/// Lines with the word, below the heading of their section, in at most `columns` columns.
fn found(pages: &[Page], word: &str, columns: Option<usize>) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut last = String::new();
    for found in matches(pages, word)? {
        let place = found["page"].as_str().unwrap_or_default();
        if place != last {
            text.push_str(&format!("{place}\n"));
            place.clone_into(&mut last);
        }
        let line = found["line"].as_str().unwrap_or_default();
        match columns {
            Some(columns) => layout::wrap(&mut text, &format!("    {line}"), columns),
            None => text.push_str(&format!("    {line}\n")),
        }
    }
    Ok(text)
}

#[cfg(test)]
pub(crate) mod tests;
