//! Persistent state: a file per booted instance, a directory per workload cluster.
//!
//! ```text
//!   <state_dir>/instances/<instance id>.json    Record
//!   <state_dir>/clusters/<cluster key>/api.db   the workload API server's SQLite file
//!   <state_dir>/clusters/<cluster key>/etcd.json  the members of its etcd
//! ```
//!
//! Files are replaced by renaming: after `kill -9` there is either the old or the new one.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::warn;

/// Result of an instance's first boot. An instance with a record never runs its user data again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// Node of the instance, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Membership>,
    /// Number of the disk that was booted from.
    #[serde(default)]
    pub(crate) disk: u64,
    /// Console log.
    #[serde(default)]
    pub(crate) console: String,
    /// Time of the last power-on, the origin of the time stamps of the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on: Option<Timestamp>,
}

/// Node of a workload cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Membership {
    /// Key of the cluster.
    pub(crate) cluster: String,
    /// Name of the Node.
    pub(crate) name: String,
    /// Kubernetes version, such as `v1.34.1`.
    pub(crate) version: String,
    /// Port of the API server of a control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bind_port: Option<u16>,
}

/// State directory; `None` stores nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateDir {
    root: Option<PathBuf>,
}

impl StateDir {
    pub(crate) fn new(root: Option<PathBuf>) -> Self {
        Self { root }
    }

    /// Returns all [`Record`]s, by instance id. An unreadable file is kept, and its instance boots again, which is
    /// safe: every step of a boot checks for existing results.
    pub(crate) fn records(&self) -> HashMap<String, Record> {
        let Some(directory) = self.instances() else {
            return HashMap::new();
        };
        let Ok(entries) = std::fs::read_dir(&directory) else {
            return HashMap::new();
        };
        let mut records = HashMap::new();
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let Some(id) = path
                .file_name()
                .and_then(|name| name.to_str()?.strip_suffix(".json"))
            else {
                continue;
            };
            match std::fs::read(&path).map(|text| serde_json::from_slice(&text)) {
                Ok(Ok(record)) => drop(records.insert(id.to_owned(), record)),
                Ok(Err(error)) => warn!(path = %path.display(), "unreadable guest record: {error}"),
                Err(error) => warn!(path = %path.display(), "unreadable guest record: {error}"),
            }
        }
        records
    }

    /// Writes the record of an instance.
    pub(crate) fn write(&self, instance: &str, record: &Record) -> io::Result<()> {
        let Some(directory) = self.instances() else {
            return Ok(());
        };
        let Some(name) = file_name(instance) else {
            return Ok(());
        };
        create(&directory)?;
        let (path, draft) = (
            directory.join(format!("{name}.json")),
            directory.join(format!("{name}.new")),
        );
        std::fs::write(&draft, serde_json::to_vec(record)?)?;
        std::fs::rename(draft, path)
    }

    /// Removes the record of an instance.
    pub(crate) fn remove(&self, instance: &str) {
        if let (Some(directory), Some(name)) = (self.instances(), file_name(instance)) {
            let _ = std::fs::remove_file(directory.join(format!("{name}.json")));
        }
    }

    /// Returns the path of a cluster's database, and creates its directory. `None`: in memory.
    pub(crate) fn database(&self, cluster: &str) -> io::Result<Option<PathBuf>> {
        let Some(directory) = self.clusters().map(|clusters| clusters.join(cluster)) else {
            return Ok(None);
        };
        create(&directory)?;
        Ok(Some(directory.join("api.db")))
    }

    /// Returns the path of a cluster's etcd members. `None`: in memory.
    pub(crate) fn members(&self, cluster: &str) -> Option<PathBuf> {
        Some(self.clusters()?.join(cluster).join("etcd.json"))
    }

    /// Returns the keys of all clusters with a directory.
    pub(crate) fn cluster_keys(&self) -> Vec<String> {
        let entries = self
            .clusters()
            .and_then(|directory| std::fs::read_dir(directory).ok());
        entries
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }

    /// Removes a cluster and all its objects.
    pub(crate) fn remove_cluster(&self, cluster: &str) {
        if let (Some(directory), Some(name)) = (self.clusters(), file_name(cluster)) {
            let _ = std::fs::remove_dir_all(directory.join(name));
        }
    }

    fn instances(&self) -> Option<PathBuf> {
        self.root.as_ref().map(|root| root.join("instances"))
    }

    fn clusters(&self) -> Option<PathBuf> {
        self.root.as_ref().map(|root| root.join("clusters"))
    }
}

/// Returns the file name of an instance. Instance ids are UUIDs; names that could leave the directory are rejected.
fn file_name(name: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

/// Creates a directory with mode 0700: the databases contain Secrets.
fn create(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

#[cfg(test)]
mod tests;
