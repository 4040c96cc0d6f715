//! Next step of one RPC, by the request and the observed cloud. Pure functions.

pub(crate) mod attach;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod detach;
mod double;
pub(crate) mod expand;
pub(crate) mod group_snapshot;
pub(crate) mod group_unsnapshot;
mod grouping;
pub(crate) mod modify;
pub(crate) mod snapshot;
pub(crate) mod unsnapshot;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use grpc::{Code, Status};
use openstack::volume::{
    BackupCreate, GroupSnapshotCreate, SnapshotCreate, VolumeCreate, VolumeGroupCreate,
};
use openstack::{Error, ErrorKind, Kind};

pub(crate) use self::grouping::group_type;

/// Next step of a call.
#[derive(Clone, Debug)]
pub(crate) enum Step<T> {
    /// Success, with the answer.
    Answer(T),
    /// Failure.
    Refuse(Status),
    /// Send a [`Write`]. A call sends at most one that the cloud accepts.
    Write(Write),
    /// [`Wait`] for the cloud.
    Wait(Wait),
    /// Plan again with these kinds in the [`View`](openstack::View), too.
    Look(&'static [Kind]),
    /// Plan again with a list of this kind that began after the write; once per call.
    Reread(Kind),
}

/// Object of a [`Step::Wait`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub kind: Kind,
    pub id: String,
    /// Message for the caller if the call ends first.
    pub why: String,
}

/// Mutating request to the cloud, sent for a [`Step::Write`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    CreateVolume(VolumeCreate),
    DeleteVolume {
        id: String,
    },
    /// Deletes one of our volumes in status `error`. Cinder's message about the failure is read before.
    DeleteFailedVolume {
        id: String,
    },
    ExtendVolume {
        id: String,
        size: i64,
        attached: bool,
    },
    Attach {
        server: String,
        volume: String,
    },
    Detach {
        server: String,
        volume: String,
    },
    /// Deletes an attachment to a server that Nova lacks.
    DeleteAttachment {
        volume: String,
        attachment: String,
    },
    /// Deletes reservations of a volume for a server after Nova gave up half way; with an empty `server`, for any.
    /// Cinder keeps the reservations that Nova still knows.
    Release {
        server: String,
        volume: String,
    },
    /// Retypes a volume to the type with this name; with `moves`, Cinder may move the data to another back end.
    Retype {
        volume: String,
        to: String,
        moves: bool,
    },
    /// Sets metadata keys; other keys stay.
    SetMetadata {
        volume: String,
        metadata: BTreeMap<String, String>,
    },
    /// Records the first attachment in the metadata of the volume.
    NoteFirstAttachment {
        volume: String,
        attachment: String,
    },
    CreateSnapshot(SnapshotCreate),
    DeleteSnapshot {
        id: String,
    },
    CreateBackup(BackupCreate),
    DeleteBackup {
        id: String,
    },
    CreateGroup(VolumeGroupCreate),
    /// Adds volumes to a group, and removes others.
    ChangeGroup {
        group: String,
        add: Vec<String>,
        remove: Vec<String>,
    },
    /// Deletes a group without volumes.
    DeleteGroup {
        id: String,
    },
    CreateGroupSnapshot(GroupSnapshotCreate),
    /// Deletes a group snapshot with its snapshots.
    DeleteGroupSnapshot {
        id: String,
    },
}

impl Write {
    /// Verb phrase for messages: `create volume NAME`.
    pub(crate) fn doing(&self) -> String {
        match self {
            Self::CreateVolume(it) => format!("create volume {}", it.name),
            Self::DeleteVolume { id } => format!("delete volume {id}"),
            Self::DeleteFailedVolume { id } => format!("delete the failed volume {id}"),
            Self::ExtendVolume { id, size, .. } => format!("extend volume {id} to {size} GiB"),
            Self::Attach { server, volume } => format!("attach volume {volume} to server {server}"),
            Self::Detach { server, volume } => {
                format!("detach volume {volume} from server {server}")
            }
            Self::DeleteAttachment { volume, attachment } => {
                format!("delete attachment {attachment} of volume {volume}")
            }
            Self::Release { volume, .. } => {
                format!("detach volume {volume}: delete a reservation")
            }
            Self::Retype { volume, to, .. } => format!("retype volume {volume} to {to}"),
            Self::SetMetadata { volume, .. } | Self::NoteFirstAttachment { volume, .. } => {
                format!("set metadata of volume {volume}")
            }
            Self::CreateSnapshot(it) => format!("create snapshot {}", it.name),
            Self::DeleteSnapshot { id } => format!("delete snapshot {id}"),
            Self::CreateBackup(it) => format!("create backup {}", it.name),
            Self::DeleteBackup { id } => format!("delete backup {id}"),
            Self::CreateGroup(it) => format!("create volume group {}", it.name),
            Self::ChangeGroup { group, .. } => format!("change volume group {group}"),
            Self::DeleteGroup { id } => format!("delete volume group {id}"),
            Self::CreateGroupSnapshot(it) => format!("take group snapshot {}", it.name),
            Self::DeleteGroupSnapshot { id } => format!("delete group snapshot {id}"),
        }
    }

    /// Id of the object that the write changes; `None` for a creation.
    pub(crate) fn subject(&self) -> Option<&str> {
        match self {
            Self::DeleteVolume { id }
            | Self::DeleteFailedVolume { id }
            | Self::ExtendVolume { id, .. }
            | Self::DeleteSnapshot { id }
            | Self::DeleteBackup { id } => Some(id),
            Self::Attach { volume, .. }
            | Self::Detach { volume, .. }
            | Self::Retype { volume, .. } => Some(volume),
            _ => None,
        }
    }

    /// True if Cinder's newest message about the object can be about this write. Messages about a retype are rare, so
    /// an old one may be about another action.
    pub(crate) fn may_be_explained_by(&self, words: &str) -> bool {
        let is_about = |action: &&str| words.to_lowercase().starts_with(action);
        match self {
            Self::Retype { .. } => ["retype", "migrate", "schedule"].iter().any(is_about),
            _ => true,
        }
    }

    /// Kind of the object that the write changes.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::CreateSnapshot(_) | Self::DeleteSnapshot { .. } => Kind::Snapshots,
            Self::CreateBackup(_) | Self::DeleteBackup { .. } => Kind::Backups,
            Self::CreateGroup(_) | Self::ChangeGroup { .. } | Self::DeleteGroup { .. } => {
                Kind::VolumeGroups
            }
            Self::CreateGroupSnapshot(_) | Self::DeleteGroupSnapshot { .. } => Kind::GroupSnapshots,
            _ => Kind::Volumes,
        }
    }
}

/// Record of a call so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// Write that the cloud accepted.
    pub written: Option<Write>,
    /// Write that the cloud refused, and the error.
    pub refused: Option<(Write, Error)>,
    /// Cinder's message about a failed object.
    pub reason: Option<String>,
    /// True after a [`Step::Look`].
    pub looked: bool,
}

impl Past {
    /// True before the first write.
    fn is_empty(&self) -> bool {
        self.written.is_none() && self.refused.is_none()
    }

    /// True if Cinder has refused a write as invalid: other kinds may show the reason.
    fn is_refused(&self) -> bool {
        self.refused
            .as_ref()
            .is_some_and(|(_, error)| error.kind() == ErrorKind::Invalid)
    }

    /// True if the cloud answers that the object of the write does not exist.
    fn found_nothing(&self) -> bool {
        self.refused
            .as_ref()
            .is_some_and(|(_, error)| error.is_absent())
    }
}

fn refuse<T>(code: Code, message: impl Into<String>) -> Step<T> {
    Step::Refuse(Status::new(code, line(message.into())))
}

/// Message of a cloud for events of Kubernetes: one line, cut, without control sequences of terminals.
pub(crate) fn line(words: String) -> String {
    Error::new(ErrorKind::Invalid, words).message().to_owned()
}

fn wait<T>(kind: Kind, id: &str, why: String) -> Step<T> {
    Step::Wait(Wait {
        kind,
        id: id.to_owned(),
        why: line(why),
    })
}

/// Waits for a volume in a transitional status.
fn wait_for<T>(volume: &openstack::volume::Volume) -> Step<T> {
    let why = format!("volume {} is {}", volume.id, volume.status);
    wait(Kind::Volumes, &volume.id, why)
}
