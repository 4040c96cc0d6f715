//! Pages of the book, and its table of contents.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::tidy::links;

/// Page, by its path from the root of the repository, also used in the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) name: String,
    /// Content in Markdown.
    pub(super) text: String,
}

/// Parts of the book, each with the folder of its pages.
const PARTS: [(&str, &str); 5] = [
    ("Get started", "docs/get-started/"),
    ("Guides", "docs/guides/"),
    ("Reference", "docs/reference/"),
    ("The project", "docs/project/"),
    ("Decisions", "docs/adr/"),
];
/// First page.
const FRONT: &str = "index.md";
/// Index by reader.
const INDEX: &str = "docs/index.md";

/// Book: all pages, for a table of contents with each page once.
#[derive(Debug)]
pub(super) struct Book {
    pages: Vec<Page>,
}

impl Book {
    /// Book of these [`Page`]s. Links to files outside the book, such as scripts, become text. The page of a folder
    /// gets its name on a site, `index.md`, since mdBook does not rewrite links to `README.md`.
    pub(super) fn new(pages: Vec<Page>) -> Self {
        let known: BTreeSet<_> = pages.iter().map(|page| page.name.clone()).collect();
        let pages = pages.into_iter().map(|page| Page {
            text: without_links_outside(&page, &known),
            name: on_a_site(&page.name),
        });
        Self {
            pages: pages.collect(),
        }
    }

    pub(super) fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// `SUMMARY.md`: front page and index, pages of each folder, and last the pages outside the folders.
    pub(super) fn summary(&self) -> String {
        let mut summary = String::from("# Summary\n\n");
        let of_folder = |folder: &str| {
            let found = self
                .pages
                .iter()
                .filter(|page| page.name.starts_with(folder));
            let mut pages: Vec<&Page> = found.collect();
            // The page of the folder comes first.
            pages.sort_by_key(|page| (!page.name.ends_with("/index.md"), &page.name));
            pages
        };
        for name in [FRONT, INDEX] {
            let page = self.pages.iter().find(|page| page.name == name);
            summary.extend(page.map(|page| format!("[{}]({name})\n", page.title())));
        }
        for (title, folder) in PARTS {
            let pages = of_folder(folder);
            if pages.is_empty() {
                continue;
            }
            summary.push_str(&format!("\n# {title}\n\n"));
            summary.extend(pages.iter().map(|page| page.entry()));
        }
        let elsewhere = self.pages.iter().filter(|page| {
            let is_in_a_part = PARTS
                .iter()
                .any(|(_, folder)| page.name.starts_with(folder));
            !is_in_a_part && ![FRONT, INDEX].contains(&page.name.as_str())
        });
        summary.push_str("\n# Beside these pages\n\n");
        summary.extend(elsewhere.map(Page::entry));
        summary
    }
}

impl Page {
    /// First heading.
    fn title(&self) -> &str {
        let first = self.text.lines().find_map(|line| line.strip_prefix("# "));
        first.unwrap_or(&self.name)
    }

    fn entry(&self) -> String {
        let title = self.title().replace(['[', ']', '`'], "");
        format!("- [{title}]({})\n", self.name)
    }
}

/// Text of a [`Page`], in which links to files other than pages and pictures of the book are plain text.
fn without_links_outside(page: &Page, known: &BTreeSet<String>) -> String {
    let mut text = String::with_capacity(page.text.len());
    let mut rest = page.text.as_str();
    while let Some((label, target, end)) = next_link(rest) {
        match is_inside(&page.name, target, known) {
            true => {
                text.push_str(&rest[..label.end + 2]);
                text.extend([on_a_site(target).as_str(), ")"]);
            }
            false => text.extend([&rest[..label.start - 1], &rest[label]]),
        }
        rest = &rest[end..];
    }
    text.push_str(rest);
    text
}

/// Name of a page on a site.
fn on_a_site(name: &str) -> String {
    match name.contains("://") {
        true => name.to_owned(),
        false => name.replace("README.md", "index.md"),
    }
}

/// Next link: range of its label, target, and end.
fn next_link(text: &str) -> Option<(Range<usize>, &str, usize)> {
    let mut from = 0;
    loop {
        let middle = from + text[from..].find("](")?;
        let target = middle + 2;
        let end = text[target..].find([')', '\n']).map(|end| target + end);
        let start = text[..middle].rfind('[').map(|bracket| bracket + 1);
        if let (Some(start), Some(end)) = (start, end)
            && text[end..].starts_with(')')
        {
            return Some((start..middle, &text[target..end], end + 1));
        }
        from = target;
    }
}

/// True if a link of the page `from` leads to a page or picture of the book, or to another site.
fn is_inside(from: &str, target: &str, known: &BTreeSet<String>) -> bool {
    let file = target.split('#').next().unwrap_or_default();
    if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
        return true;
    }
    let path = links::resolved(from, file);
    let is_picture = path
        .extension()
        .is_some_and(|ending| ending == "svg" || ending == "png");
    is_picture || known.contains(path.to_string_lossy().as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str, text: &str) -> Page {
        Page {
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn the_table_of_contents_has_each_page_once() {
        let book = Book::new(vec![
            page("README.md", "# Ferrostack\n"),
            page("STYLE.md", "# Style\n"),
            page("docs/README.md", "# Documentation\n"),
            page("docs/adr/0001-a.md", "# 0001: a `b`\n"),
            page("docs/adr/README.md", "# Decisions\n"),
            page("docs/guides/move.md", "# Move\n"),
        ]);
        let expected = "# Summary\n\n[Ferrostack](index.md)\n[Documentation](docs/index.md)\n\n# Guides\n\n- [Move](docs/guides/move.md)\n\n# Decisions\n\n- [Decisions](docs/adr/index.md)\n- [0001: a b](docs/adr/0001-a.md)\n\n# Beside these pages\n\n- [Style](STYLE.md)\n";
        assert_eq!(book.summary(), expected);
    }

    #[test]
    fn links_to_files_that_the_book_lacks_are_text() {
        let text = "[a](../guides/move.md#x), [`run`](../../tests/run), ![p](../up.svg)\n[d](../../README.md#help) [b](https://a.example/) [c](#d) [open](\n";
        let book = Book::new(vec![
            page("docs/guides/move.md", "# Move\n"),
            page("docs/project/nodes.md", text),
            page("README.md", "# Ferrostack\n## Help\n"),
        ]);
        let expected = text.replace("[`run`](../../tests/run)", "`run`");
        let expected = expected.replace("README.md#help", "index.md#help");
        assert_eq!(book.pages()[1].text, expected);
        assert_eq!(book.pages()[2].name, "index.md");
    }
}
