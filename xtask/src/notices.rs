//! Notices of third-party code in the program: crates, and C code bundled in crates.
//!
//! - [`licences`]: licences granted by a text, and satisfaction of an expression
//! - [`texts`]: texts for crates without a complete one

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::linked::{self, Crate};
use crate::report;

mod licences;
mod texts;

pub(crate) use texts::SQLITE;

/// Prefixes of the names of licence and notice files, in lower case.
const NAMES: [&str; 6] = [
    "licence",
    "license",
    "copying",
    "copyright",
    "notice",
    "unlicense",
];
/// Extensions of sources, whose names may have the same prefixes.
const SOURCES: [&str; 5] = ["rs", "c", "h", "yml", "yaml"];

const LINE: &str =
    "================================================================================";

/// Writes the notices of the program for a target (by default this machine's) to a file; with `check`, only verifies
/// that every crate has its texts.
pub(crate) fn run(
    root: &Path,
    target: Option<String>,
    file: &Path,
    check: bool,
) -> anyhow::Result<()> {
    let target = target.map_or_else(linked::host, Ok)?;
    let text = text(&linked::crates(root, &target)?, &target)?;
    if check {
        return Ok(());
    }
    let file = root.join(file);
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(&file, text).with_context(|| file.display().to_string())?;
    report(&format!("wrote {}", file.display()));
    Ok(())
}

/// Text of the notices, a function of crates and target alone. An error names every crate without the text of one of
/// its licences.
pub(crate) fn text(crates: &[Crate], target: &str) -> anyhow::Result<String> {
    let foreign = || crates.iter().filter(|krate| !krate.is_of_the_workspace());
    let mut notices = Vec::new();
    let mut problems = Vec::new();
    for krate in foreign() {
        let found = files(krate)?;
        let found = found.into_iter().chain(texts::of(&krate.id.name));
        let found: Vec<(String, String)> = found.collect();
        if let Err(problem) = complete(krate, &found) {
            problems.push(problem);
        }
        for (file, text) in found {
            notices.push((krate, file, text));
        }
    }
    if !problems.is_empty() {
        bail!("\n{}", problems.join("\n"));
    }
    let mut out = head(target);
    for krate in foreign() {
        let repository = krate.repository.as_deref().unwrap_or_default();
        let line = format!(
            "{} {}: {} {repository}",
            krate.id.name, krate.id.version, krate.licence
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    for (users, text) in by_text(&notices) {
        write!(out, "\n{LINE}\n{}\n{LINE}\n\n{text}\n", users.join("\n"))?;
    }
    Ok(out)
}

fn head(target: &str) -> String {
    format!(
        "Third-party notices of ferrostack for {target}\n\n\
         The program is licensed under the Apache License 2.0 (LICENSE). It contains the crates below, some of which contain code\n\
         of others: libsqlite3-sys contains SQLite, tikv-jemalloc-sys jemalloc, ring parts of BoringSSL and of fiat-crypto. After the\n\
         list come their licences and notices as they are in the sources of each crate; a text that several have is printed once.\n\
         What `openstack config --explain` says of an option are texts of the projects Keystone, Glance, Placement, Nova and Neutron of\n\
         OpenStack and of its oslo libraries, under the Apache License 2.0 as well.\n\
         The notices of the Rust standard library, which the program contains as well, are in COPYRIGHT-rust-library.html.\n\n"
    )
}

/// Licence and notice files in the sources of a [`Crate`], including files of bundled code.
fn files(krate: &Crate) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut directories = vec![krate.directory.clone()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory).with_context(|| directory.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            let inside = path.strip_prefix(&krate.directory)?.display().to_string();
            if path.is_dir() {
                directories.push(path);
            } else if is_notice(&path) {
                let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
                found.push((inside, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }
    if krate.id.name == SQLITE.0 {
        let header = krate.directory.join(SQLITE.1);
        let header = fs::read_to_string(&header).with_context(|| header.display().to_string())?;
        found.push((SQLITE.1.to_owned(), texts::blessing(&header)?));
    }
    found.sort();
    Ok(found)
}

fn is_notice(path: &Path) -> bool {
    let lower = |part: Option<&std::ffi::OsStr>| {
        let part = part.unwrap_or_default().to_string_lossy();
        part.to_ascii_lowercase()
    };
    let name = lower(path.file_name());
    let is_source = SOURCES.contains(&lower(path.extension()).as_str());
    NAMES.iter().any(|start| name.starts_with(start)) && !is_source
}

/// Verifies that the texts grant the licence of the crate.
fn complete(krate: &Crate, found: &[(String, String)]) -> Result<(), String> {
    let of = format!("{} {}", krate.id.name, krate.id.version);
    let granted = licences::granted(found.iter().map(|(_, text)| text.as_str()));
    match licences::satisfied(&krate.licence, &granted) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let files: Vec<&str> = found.iter().map(|(file, _)| file.as_str()).collect();
            Err(format!(
                "{of}: its licence is {}, and no file of its sources has that text (files: {}): add it to xtask/src/notices/texts.rs",
                krate.licence,
                files.join(", ")
            ))
        }
        Err(problem) => Err(format!("{of}: {problem}")),
    }
}

/// Texts in the order of their first users, merged if only white space differs.
fn by_text<'a>(notices: &'a [(&Crate, String, String)]) -> Vec<(Vec<String>, &'a str)> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut texts: Vec<(Vec<String>, &str)> = Vec::new();
    for (krate, file, text) in notices {
        let words: Vec<&str> = text.split_whitespace().collect();
        let place = *places.entry(words.join(" ")).or_insert(texts.len());
        if place == texts.len() {
            texts.push((Vec::new(), text.trim_end()));
        }
        if let Some((users, _)) = texts.get_mut(place) {
            users.push(format!("{} {}: {file}", krate.id.name, krate.id.version));
        }
    }
    texts
}

#[cfg(test)]
mod tests;
