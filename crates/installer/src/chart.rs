//! The manifests of the managers as a chart for Helm.
//!
//! The templates are made from the manifests ([`templates`]); values, their schema and the notes are files.

mod templates;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::names;
use crate::older::Older;

/// The file that says what the chart is.
const CHART: &str = "Chart.yaml";
/// The file that says so, with the version in place of [`VERSION`].
const CHART_FILE: &str = include_str!("../../../config/chart/Chart.yaml");
/// The version there.
const VERSION: &str = "VERSION";
/// The line by which a chart is ours.
const NAME: &str = "name: ferrostack";
const TEMPLATES: &str = "templates";
/// The other files that are the same for every chart.
const FILES: [(&str, &str); 4] = [
    (
        "values.yaml",
        include_str!("../../../config/chart/values.yaml"),
    ),
    (
        "values.schema.json",
        include_str!("../../../config/chart/values.schema.json"),
    ),
    (
        "templates/_helpers.tpl",
        include_str!("../../../config/chart/_helpers.tpl"),
    ),
    (
        "templates/NOTES.txt",
        include_str!("../../../config/chart/NOTES.txt"),
    ),
];

/// A file of the chart.
struct File {
    /// Below the directory of the chart.
    path: PathBuf,
    text: String,
}

/// Writes the chart into a directory, which is made, is empty, or has such a chart.
///
/// # Errors
/// If the directory has something else, or cannot be written.
pub fn write(directory: &Path, older: Older, say: impl Fn(&str)) -> anyhow::Result<()> {
    let files = files(older)?;
    check(directory, &files)?;
    for file in &files {
        let path = directory.join(&file.path);
        let parent = path.parent().unwrap_or(directory);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
        fs::write(&path, &file.text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let place = directory.display();
    say(&format!(
        "wrote {place}; Helm installs it with: helm install ferrostack {place} --namespace {} --create-namespace",
        names::NAMESPACE
    ));
    Ok(())
}

/// All files of the chart.
fn files(older: Older) -> anyhow::Result<Vec<File>> {
    let mut files = vec![File {
        path: CHART.into(),
        text: CHART_FILE.replace(VERSION, env!("CARGO_PKG_VERSION")),
    }];
    files.extend(FILES.map(|(path, text)| File {
        path: path.into(),
        text: text.to_owned(),
    }));
    files.extend(templates::all(older)?.into_iter().map(|template| File {
        path: Path::new(TEMPLATES).join(template.name),
        text: template.text,
    }));
    Ok(files)
}

/// A directory with anything else is not written into, and neither is a chart with templates that are not of this version,
/// since Helm would install these as well.
fn check(directory: &Path, files: &[File]) -> anyhow::Result<()> {
    let place = directory.display();
    let Ok(mut entries) = fs::read_dir(directory) else {
        return Ok(());
    };
    if entries.next().is_none() {
        return Ok(());
    }
    let chart = fs::read_to_string(directory.join(CHART)).unwrap_or_default();
    if !chart.lines().any(|line| line == NAME) {
        bail!(
            "{place} has files and is no chart of ferrostack: choose another directory, which is created"
        );
    }
    let templates = directory.join(TEMPLATES);
    for below in [templates.clone(), templates.join(templates::DEFINITIONS)] {
        for entry in fs::read_dir(&below).into_iter().flatten().flatten() {
            let path = entry.path();
            let known = files.iter().any(|file| directory.join(&file.path) == path);
            if path.is_file() && !known {
                bail!(
                    "{} is not a template of this version of the chart, and Helm would install it: remove it, or choose another directory",
                    path.display()
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
