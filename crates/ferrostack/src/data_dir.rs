//! Data directory: everything stored by `up` between runs.
//!
//! ```text
//! lock             held by the running process
//! version          format of this directory
//! kubeconfig       admin access to the management API (0600)
//! clouds.yaml      credentials for the simulated cloud (0600)
//! endpoints.json   addresses chosen at the first start, and the cloud in use
//! pki/             CA of the management API (0600)
//! management.db    objects of the management API
//! cloud.db         resources of the simulated cloud
//! guests/          state of the simulated guests
//! machines/        disks of the machines of a guest runner
//! up.log           output of `up --detach`
//! templates/       template and configuration file of each cluster
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::shell::quoted;

/// Directory of an OpenStack deployed by `openstack up` in simulated Pods.
pub(crate) const OPENSTACK: &str = "openstack";
/// Version of the format written by this program.
const VERSION: u32 = 1;

/// Reason why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataDirError {
    #[error(
        "the data directory {path} is in use by another ferrostack{holder}; `ferrostack status{flag}` shows it, `ferrostack down{flag}` stops it; or choose another with --data-dir"
    )]
    Locked {
        path: PathBuf,
        holder: String,
        /// ` --data-dir PATH`; empty for the default directory.
        flag: String,
    },
    #[error(
        "the data directory {path} was written by a newer ferrostack (format {found}, this one knows {VERSION}); use the newer program, or choose another with --data-dir"
    )]
    Newer { path: PathBuf, found: u32 },
    #[error("the data directory {path} is damaged: {problem}")]
    Damaged { path: PathBuf, problem: String },
    #[error("the data directory {path} is a file; choose a directory with --data-dir")]
    File { path: PathBuf },
    #[error(
        "{path} is not empty and is not a data directory of ferrostack; choose another with --data-dir"
    )]
    Foreign { path: PathBuf },
    #[error(
        "the data directory {path} belongs to another user (uid {owner}), who could have put links into it; choose another with --data-dir"
    )]
    Stranger { path: PathBuf, owner: u32 },
    #[error(
        "{path} is a link, which is not followed; remove it, or choose another data directory with --data-dir"
    )]
    Link { path: PathBuf },
    #[error("cannot {action} {path}")]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// A data directory, locked for this process.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Creates the directory if necessary, and locks it until the value is dropped (or the process dies).
    pub(crate) fn open(path: &Path) -> Result<Self, DataDirError> {
        let io = |action| {
            move |source| DataDirError::Io {
                action,
                path: path.to_owned(),
                source,
            }
        };
        check_is_ours(path)?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(io("create the data directory"))?;
        check_owner(path)?;
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(NOFOLLOW)
            .open(path.join("lock"))
            .map_err(|source| match is_link(&source) {
                true => DataDirError::Link {
                    path: path.join("lock"),
                },
                false => io("write in the data directory")(source),
            })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = lock.read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => String::new(),
                    pid => format!(" (process {pid})"),
                };
                return Err(DataDirError::Locked {
                    path: path.to_owned(),
                    holder,
                    flag: format!(" --data-dir {}", quoted(path)),
                });
            }
            Err(TryLockError::Error(source)) => return Err(io("lock the data directory")(source)),
        }
        check_version(path)?;
        lock.set_len(0)
            .and_then(|()| write!(lock, "{}", std::process::id()))
            .map_err(io("write in the data directory"))?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// As [`open`](Self::open), but waits up to two seconds for another process to end. Its error has `flag`, such as
    /// ` --data-dir PATH`, in the commands to copy.
    pub(crate) async fn open_when_free(path: &Path, flag: &str) -> Result<Self, DataDirError> {
        for _ in 0..20 {
            match Self::open(path) {
                Err(DataDirError::Locked { .. }) => {
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
                other => return other,
            }
        }
        Self::open(path).map_err(|error| match error {
            DataDirError::Locked { path, holder, .. } => DataDirError::Locked {
                flag: flag.to_owned(),
                path,
                holder,
            },
            other => other,
        })
    }

    /// The path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates `name`, or restricts the permissions, so only the owner of the file can read later content.
    pub(crate) fn make_private(&self, name: &str) -> Result<(), DataDirError> {
        let path = self.file(name);
        let private = || -> io::Result<()> {
            let file = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)?;
            file.set_permissions(fs::Permissions::from_mode(0o600))
        };
        private().map_err(|source| DataDirError::Io {
            action: "write",
            path: path.clone(),
            source,
        })
    }

    /// The path of `name` in the directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The text of `name`; `None` if the file does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<String>, DataDirError> {
        let path = self.file(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(DataDirError::Io {
                action: "read",
                path,
                source,
            }),
        }
    }

    /// Writes `name` atomically, readable by its owner only: neither readers nor a killed process see or leave a
    /// partial text.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), DataDirError> {
        let path = self.file(name);
        write_private(&path, text).map_err(|source| DataDirError::Io {
            action: "write",
            path,
            source,
        })
    }
}

/// Process on the data directory, if any.
pub(crate) fn holder(path: &Path) -> Result<Option<i32>, DataDirError> {
    let file = path.join("lock");
    let io = |source| DataDirError::Io {
        action: "read",
        path: file.clone(),
        source,
    };
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(NOFOLLOW)
        .open(&file);
    let mut lock = match opened {
        Ok(lock) => lock,
        Err(source) if is_link(&source) => return Err(DataDirError::Link { path: file }),
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(io(source)),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            lock.read_to_string(&mut text).map_err(io)?;
            // The process id is written right after the lock is acquired.
            Ok(Some(text.trim().parse().unwrap_or(0)))
        }
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}

/// Time at which the process on the data directory acquired the lock; `None` if unknown.
pub(crate) fn held_since(path: &Path) -> Option<SystemTime> {
    // Written by each process right after it has acquired the lock.
    fs::symlink_metadata(path.join("lock"))
        .and_then(|lock| lock.modified())
        .ok()
}

/// Writes a file with mode 0600 by renaming a complete one to its path.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let draft = path.with_file_name(name);
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

/// Flag to open no link.
const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// True if a file was not opened because it is a link.
fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Rejects a directory of another user, who could replace the content. Root could anyway.
fn check_owner(path: &Path) -> Result<(), DataDirError> {
    let metadata = fs::metadata(path).map_err(|source| DataDirError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let owner = metadata.uid();
    if owner == 0 || owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(DataDirError::Stranger {
        path: path.to_owned(),
        owner,
    })
}

/// Rejects a directory with other content.
fn check_is_ours(path: &Path) -> Result<(), DataDirError> {
    if path.exists() && !path.is_dir() {
        return Err(DataDirError::File {
            path: path.to_owned(),
        });
    }
    let empty = || fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
    let known = ["version", "lock"]
        .iter()
        .any(|name| path.join(name).exists());
    if known || empty() {
        Ok(())
    } else {
        Err(DataDirError::Foreign {
            path: path.to_owned(),
        })
    }
}

fn check_version(path: &Path) -> Result<(), DataDirError> {
    let file = path.join("version");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            return write_private(&file, &format!("{VERSION}\n")).map_err(|source| {
                DataDirError::Io {
                    action: "write",
                    path: file.clone(),
                    source,
                }
            });
        }
        Err(source) => {
            return Err(DataDirError::Io {
                action: "read",
                path: file,
                source,
            });
        }
    };
    match text.trim().parse::<u32>() {
        Ok(found) if found > VERSION => Err(DataDirError::Newer {
            path: path.to_owned(),
            found,
        }),
        Ok(_) => Ok(()),
        Err(_) => Err(DataDirError::Damaged {
            path: path.to_owned(),
            problem: format!(
                "its file `version` contains `{}`, not a number",
                text.trim()
            ),
        }),
    }
}

#[cfg(test)]
mod tests;
