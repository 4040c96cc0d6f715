//! Consoles of the machines, as files: no API of the cloud accepts consoles.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file readable by its owner alone, and creates the directory.
pub type Write = fn(&Path, &str) -> io::Result<()>;

/// Directory of the consoles, with a file `ID.log` for each server.
#[derive(Debug)]
pub(super) struct ConsoleFiles {
    directory: PathBuf,
    write: Write,
    written: BTreeMap<String, String>,
}

impl ConsoleFiles {
    /// The files below the state directory.
    pub(super) fn new(state_dir: &Path, write: Write) -> Self {
        Self {
            directory: state_dir.join("consoles"),
            write,
            written: BTreeMap::new(),
        }
    }

    /// Location of the consoles, as a line for users.
    pub(super) fn place(&self) -> String {
        format!("consoles: {}/SERVER_ID.log", self.directory.display())
    }

    /// Writes changed consoles, and removes the consoles of deleted servers.
    ///
    /// # Errors
    /// Errors of the files, with the path.
    pub(super) fn follow(
        &mut self,
        servers: &BTreeSet<String>,
        console: impl Fn(&str) -> String,
    ) -> anyhow::Result<()> {
        for id in servers {
            let text = console(id);
            if text.is_empty() || self.written.get(id) == Some(&text) {
                continue;
            }
            let path = self.directory.join(format!("{id}.log"));
            (self.write)(&path, &text).map_err(|error| named(&path, &error))?;
            self.written.insert(id.clone(), text);
        }
        self.written.retain(|id, _| servers.contains(id));
        self.sweep(servers)
            .map_err(|error| named(&self.directory, &error))
    }

    fn sweep(&self, servers: &BTreeSet<String>) -> io::Result<()> {
        let entries = match std::fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            // `ID.log`, or `ID.log.new` of a process that was killed while it wrote.
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let id = name.split_once(".log").map(|(id, _)| id);
            if id.is_some_and(|id| !servers.contains(id)) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }
}

fn named(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow::anyhow!("the consoles of the machines, {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        std::fs::create_dir_all(path.parent().unwrap())?;
        std::fs::write(path, text)
    }

    #[test]
    fn a_server_that_is_there_has_a_file_with_its_console() {
        let home = tempfile::tempdir().unwrap();
        let mut files = ConsoleFiles::new(home.path(), write);
        let servers = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        files
            .follow(&servers(&["a", "b"]), |id| {
                if id == "a" {
                    "one\n".to_owned()
                } else {
                    String::new()
                }
            })
            .unwrap();
        let read =
            |id: &str| std::fs::read_to_string(home.path().join(format!("consoles/{id}.log"))).ok();
        assert_eq!((read("a").as_deref(), read("b")), (Some("one\n"), None));
        // A file that an earlier process left is removed as well.
        ConsoleFiles::new(home.path(), write)
            .follow(&servers(&["b"]), |_| "two\n".to_owned())
            .unwrap();
        assert_eq!((read("a"), read("b").as_deref()), (None, Some("two\n")));
    }
}
