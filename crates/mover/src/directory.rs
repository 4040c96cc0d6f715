//! Objects as files, with the names of clusterctl: `KIND_NAMESPACE_NAME.yaml`. Files contain keys and passwords, so
//! only the owner can read them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::api::DynamicObject;

use crate::error::Error;
use crate::graph::{Object, Selection};
use crate::kinds::Kind;

/// Creates the directory, or accepts an empty one.
///
/// # Errors
/// When the path is a file, or a directory with content.
pub(crate) fn prepare(directory: &Path) -> Result<(), Error> {
    let created = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    created.map_err(|source| failed(directory, &source))?;
    let mut entries = fs::read_dir(directory).map_err(|source| failed(directory, &source))?;
    if entries.next().is_some() {
        let problem =
            "the directory is not empty, and files of another move are not mixed with these"
                .to_owned();
        return Err(Error::File {
            path: directory.to_owned(),
            problem,
        });
    }
    Ok(())
}

/// Writes each object of a [`Selection`] to a file, and returns the number of files.
pub(crate) fn write(directory: &Path, selection: &Selection) -> Result<usize, Error> {
    for moving in &selection.moves {
        let object = &moving.object;
        let path = directory.join(file_name(object));
        let text = serde_json::to_vec_pretty(&object.object);
        let written = text
            .map_err(io::Error::from)
            .and_then(|text| replace(&path, &text));
        written.map_err(|source| failed(&path, &source))?;
    }
    let synced = fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|source| failed(directory, &source))?;
    Ok(selection.moves.len())
}

fn file_name(object: &Object) -> String {
    let (namespace, name) = object.key();
    format!("{}_{namespace}_{name}.yaml", object.kind.name)
}

/// Writes a file whole or not at all.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("draft");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

/// Reads the objects of all files.
///
/// # Errors
/// When a file is no object, or of a [`Kind`] or version unknown to the target; all problems at once.
pub(crate) fn read(directory: &Path, kinds: &[Arc<Kind>]) -> Result<Vec<Object>, Error> {
    let entries = fs::read_dir(directory).map_err(|source| failed(directory, &source))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    paths.sort();
    let mut objects = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|source| failed(&path, &source))?;
        match parse(&text, kinds) {
            Ok(object) => objects.push(object),
            Err(problem) => problems.push(format!("{}: {problem}", path.display())),
        }
    }
    if problems.is_empty() {
        Ok(objects)
    } else {
        Err(Error::Refused(problems))
    }
}

fn parse(text: &str, kinds: &[Arc<Kind>]) -> Result<Object, String> {
    let json = serde_json::from_str::<DynamicObject>(text);
    // The error has the position only: the text could quote a password.
    let object = json.or_else(|_| serde_saphyr::from_str::<DynamicObject>(text));
    let object = object.map_err(|_| "it is not an object in YAML or JSON".to_owned())?;
    let types = object
        .types
        .clone()
        .ok_or("it has no apiVersion and kind")?;
    let (group, version) = types
        .api_version
        .split_once('/')
        .unwrap_or(("", &types.api_version));
    let kind = kinds
        .iter()
        .find(|kind| kind.group == group && kind.name == types.kind);
    let kind = kind.ok_or_else(|| {
        format!(
            "the target does not know the kind {} of {}",
            types.kind, types.api_version
        )
    })?;
    if !kind.versions.iter().any(|known| known == version) {
        return Err(format!(
            "the target serves {} of {group} in {} only, and this is {version}",
            types.kind,
            kind.versions.join(", ")
        ));
    }
    if object.metadata.uid.is_none() || object.metadata.name.is_none() {
        return Err(
            "it has no metadata.name or no metadata.uid, by which other files refer to it"
                .to_owned(),
        );
    }
    Ok(Object::new(kind, object))
}

fn failed(path: &Path, source: &io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        problem: operator::words::plain(&source.to_string()),
    }
}
