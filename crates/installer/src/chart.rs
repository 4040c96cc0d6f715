//! The manifests of the managers as a chart for Helm.
//!
//! The templates are made from the manifests ([`templates`]); values, their schema and the notes are files.

mod templates;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::names;
use crate::older::Older;

/// File with the description of the chart.
const CHART: &str = "Chart.yaml";
/// Content of [`CHART`], with [`VERSION`] in place of the version.
const CHART_FILE: &str = include_str!("../../../config/chart/Chart.yaml");
/// Placeholder for the version in [`CHART_FILE`].
const VERSION: &str = "VERSION";
/// Line that identifies a chart of ferrostack.
const NAME: &str = "name: ferrostack";
const TEMPLATES: &str = "templates";
/// Other files, identical in every chart.
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
    /// Path below the directory of the chart.
    path: PathBuf,
    text: String,
}

/// Writes the chart into a directory: a new one, an empty one, or one with such a chart.
///
/// # Errors
/// If the directory has other files, or cannot be written.
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

/// All [`File`]s of the chart.
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

/// Rejects a directory with other files, and a chart with templates of another version, since Helm would install these
/// templates as well.
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
