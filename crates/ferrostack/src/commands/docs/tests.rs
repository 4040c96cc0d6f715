//! The pages in the program, and the places that name them.

use std::path::{Path, PathBuf};

use super::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages of docs/, but the records of decisions and of runs.
pub(crate) fn files() -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![root().join("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("adr") && !path.ends_with("runs") {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                files.push(path);
            }
        }
    }
    files
}

/// Holds a generated page of docs/ to its source; with `WRITE_PAGES=1` in the environment, writes it instead.
#[track_caller]
pub(crate) fn assert_page(page: &str, text: &str) {
    let file = root().join("docs").join(page);
    if std::env::var_os("WRITE_PAGES").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let stale = found
        .lines()
        .zip(text.lines())
        .find(|(old, new)| old != new);
    assert!(
        found == text,
        "docs/{page} is stale, at {stale:?}: WRITE_PAGES=1 cargo test -p ferrostack --bins pages_that_are_generated"
    );
}

#[test]
fn every_page_of_the_documentation_is_in_the_program() {
    let (pages, files) = (pages().unwrap(), files());
    for file in &files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(page(&pages, name).unwrap(), text);
        let path = file.strip_prefix(root()).unwrap().to_str().unwrap();
        assert_eq!(page(&pages, path).unwrap(), text);
    }
    assert!(files.len() > 20, "{}", files.len());
    assert_eq!(pages.len(), files.len());
    assert!(PACKED.len() < 210_000, "{} bytes", PACKED.len());
}

#[test]
fn words_of_the_glossary_are_those_of_the_other_pages() {
    let pages = pages().unwrap();
    let glossary = page(&pages, "glossary#words-of-this-project").unwrap();
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| "));
    let words = rows.filter_map(|row| row.split(" | ").next());
    let words: Vec<&str> = words.filter(|word| *word != "word").collect();
    assert!(words.len() > 5, "{words:?}");
    for word in words {
        let others = pages.iter().filter(|page| page.name != "glossary");
        let mut texts = others.map(|page| page.text.to_lowercase());
        assert!(texts.any(|text| text.contains(word)), "{word}");
    }
}

#[test]
fn the_list_has_a_row_with_the_title_of_each_page() {
    let pages = pages().unwrap();
    let list = list(&pages);
    assert!(list.contains("why "), "{list}");
    assert!(list.contains("Why an object is not ready\n"), "{list}");
    assert!(!list.contains("README  "), "{list}");
    // Each is in a folder that is listed.
    for page in pages.iter().filter(|page| page.name != INDEX) {
        let row = format!("\n  {} ", page.name);
        assert_eq!(list.matches(&row).count(), 1, "{}: {list}", page.name);
    }
}

#[test]
fn a_section_ends_before_the_next_one_of_its_depth() {
    let page = Page {
        name: "x".to_owned(),
        folder: String::new(),
        text: "# T\n\n## One `a`\n1\n```\n## no heading\n```\n### Below\n2\n## Two\n3\n".to_owned(),
    };
    let one = page.section("one-a").unwrap();
    assert_eq!(
        one,
        "## One `a`\n1\n```\n## no heading\n```\n### Below\n2\n"
    );
    assert_eq!(page.section("two").unwrap(), "## Two\n3\n");
    assert_eq!(page.section("three"), None);
}

#[test]
fn a_page_that_is_not_there_is_named_with_the_command_that_lists_all() {
    let pages = pages().unwrap();
    let error = page(&pages, "nosuch").unwrap_err().to_string();
    assert!(
        error.contains("`nosuch`") && error.contains("`ferrostack docs`"),
        "{error}"
    );
    let error = page(&pages, "firstcluster").unwrap_err().to_string();
    assert!(error.contains("similar: first-cluster:"), "{error}");
    let error = page(&pages, "why#nosuch").unwrap_err().to_string();
    assert_eq!(error, "the page why has no section `nosuch`");
}

#[test]
fn a_page_is_found_by_its_former_name() {
    let pages = pages().unwrap();
    for (former, now) in FORMER {
        assert_eq!(page(&pages, former).unwrap(), page(&pages, now).unwrap());
    }
    let section = page(&pages, "simulated-cluster#an-upgrade").unwrap();
    assert!(section.starts_with("## An upgrade\n"), "{section}");
}

#[test]
fn a_word_is_found_in_any_case_with_its_section() {
    let pages = pages().unwrap();
    let found = found(&pages, "HOW THE CHAIN", None).unwrap();
    assert_eq!(
        found,
        "why#how-the-chain-is-made\n    ## How the chain is made\n"
    );
    assert!(super::found(&pages, "no such words", None).is_err());
    assert!(super::found(&pages, " ", None).is_err());
}

/// The pages that the sources of the workspace name in commands, with the file.
fn named(directory: &Path, into: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            named(&path, into);
            continue;
        }
        if path.extension().is_none_or(|it| it != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for rest in text.split("ferrostack docs ").skip(1) {
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '#' | '.');
            let name: String = rest.chars().take_while(|c| is_name(*c)).collect();
            let name = name.trim_end_matches('.').to_owned();
            // Words for any page, and options.
            let is_page = name.starts_with(|c: char| c.is_ascii_lowercase());
            if is_page && name != "nosuch" {
                into.push((name, path.display().to_string()));
            }
        }
    }
}

#[test]
fn every_page_that_a_message_names_is_there() {
    let pages = pages().unwrap();
    let mut found = Vec::new();
    named(&root().join("crates"), &mut found);
    assert!(!found.is_empty());
    for (name, file) in found {
        page(&pages, &name).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}
