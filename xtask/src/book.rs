//! `book`: pages of the repository as a book in HTML with search, made by mdBook. [`content`] has the pages and the
//! table of contents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

mod content;

use content::{Book, Page};

/// Version of [mdBook](https://rust-lang.github.io/mdBook/) for an installation in target/tools, if absent.
const MDBOOK: &str = "0.5.4";
/// Pages outside docs/ with links from its pages.
const BESIDE: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "MAINTAINERS.md",
    "RELEASING.md",
    "SECURITY.md",
    "STYLE.md",
];
const SETTINGS: &str = "[book]\ntitle = \"Ferrostack\"\nlanguage = \"en\"\nsrc = \"src\"\n\n[build]\nbuild-dir = \"html\"\n\n[output.html]\nno-section-label = true\n";

/// Writes the [`Book`] to `directory`: sources in `src`, pages in `html`.
pub(crate) fn write(root: &Path, directory: &Path) -> anyhow::Result<()> {
    let mut files = Vec::new();
    collect(root, Path::new("docs"), &mut files)?;
    let beside = BESIDE.map(PathBuf::from).into_iter();
    files.extend(beside.filter(|file| root.join(file).is_file()));
    let source = directory.join("src");
    if source.exists() {
        fs::remove_dir_all(&source).context("the former book")?;
    }
    let mut pages = Vec::new();
    for file in &files {
        let name = file.to_string_lossy().into_owned();
        if name.ends_with(".md") {
            let text = fs::read_to_string(root.join(file)).with_context(|| name.clone())?;
            pages.push(Page { name, text });
        } else {
            place(&source.join(file), fs::read(root.join(file))?)?;
        }
    }
    let book = Book::new(pages);
    for page in book.pages() {
        place(&source.join(&page.name), &page.text)?;
    }
    place(&source.join("SUMMARY.md"), book.summary())?;
    place(&directory.join("book.toml"), SETTINGS)?;
    let built = Command::new(mdbook(root)?)
        .arg("build")
        .arg(directory)
        .status();
    let built = built.context("mdbook")?;
    if !built.success() {
        bail!("mdbook: {built}");
    }
    let first = directory.join("html/index.html");
    crate::print(&format!("{}\n", first.display()))
}

/// Adds the files below a folder, sorted by name.
fn collect(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(root.join(folder))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    names.sort();
    for name in names {
        let path = folder.join(name);
        match root.join(&path).is_dir() {
            true => collect(root, &path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

fn place(file: &Path, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, text).with_context(|| file.display().to_string())
}

/// Path of mdBook, built from crates.io at first.
fn mdbook(root: &Path) -> anyhow::Result<PathBuf> {
    let place = root.join("target/tools").join(format!("mdbook-{MDBOOK}"));
    let program = place.join("bin/mdbook");
    if program.is_file() {
        return Ok(program);
    }
    crate::report(&format!("building mdBook {MDBOOK}, once: it takes minutes"));
    let installed = Command::new("cargo")
        .args([
            "install",
            "mdbook",
            "--quiet",
            "--locked",
            "--no-default-features",
        ])
        .args(["--features", "search", "--version", MDBOOK, "--root"])
        .arg(&place)
        .current_dir(root)
        .status()
        .context("cargo install mdbook")?;
    if !installed.success() {
        bail!("cargo install mdbook {MDBOOK}: {installed}");
    }
    Ok(program)
}
