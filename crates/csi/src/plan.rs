//! What one RPC does next, by the request and the observed cloud. Pure functions.

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

/// The next step.
#[derive(Clone, Debug)]
pub(crate) enum Step<T> {
    /// The request is done.
    Answer(T),
    /// The request cannot be done.
    Refuse(Status),
    /// Something is written, at most once in a call.
    Write(Write),
    /// The cloud is working.
    Wait(Wait),
    /// More kinds are needed.
    Look(&'static [Kind]),
    /// A list of a kind that began after the write is needed, once.
    Reread(Kind),
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub kind: Kind,
    pub id: String,
    /// For the caller, if the call ends first.
    pub why: String,
}

/// A request that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    CreateVolume(VolumeCreate),
    DeleteVolume {
        id: String,
    },
    /// A volume of ours that Cinder could not make. What Cinder says of it is read before.
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
    /// An attachment of a server that Nova does not know.
    DeleteAttachment {
        volume: String,
        attachment: String,
    },
    /// Reservations of a volume for a server that Nova gave up half way, of an empty `server` for any. Cinder keeps those
    /// that Nova knows.
    Release {
        server: String,
        volume: String,
    },
    /// Another type, by its name; `moves` lets Cinder move the data to another back end.
    Retype {
        volume: String,
        to: String,
        moves: bool,
    },
    /// Metadata are added, and replaced under their keys.
    SetMetadata {
        volume: String,
        metadata: BTreeMap<String, String>,
    },
    /// The volume's metadata say which attachment is its first.
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
    /// Volumes are put into a group, and others taken out.
    ChangeGroup {
        group: String,
        add: Vec<String>,
        remove: Vec<String>,
    },
    /// A group without volumes.
    DeleteGroup {
        id: String,
    },
    CreateGroupSnapshot(GroupSnapshotCreate),
    /// A snapshot of a group, with its snapshots.
    DeleteGroupSnapshot {
        id: String,
    },
}

impl Write {
    /// For messages.
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

    /// The id of what it changes, if that is there before it.
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

    /// True if Cinder's newest words about what it changes can be about this write. Those of a change of type are rare, and
    /// an older message is still there.
    pub(crate) fn may_be_explained_by(&self, words: &str) -> bool {
        let is_about = |action: &&str| words.to_lowercase().starts_with(action);
        match self {
            Self::Retype { .. } => ["retype", "migrate", "schedule"].iter().any(is_about),
            _ => true,
        }
    }

    /// The kind that it changes.
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

/// What a call has done so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// The write that the cloud accepted.
    pub written: Option<Write>,
    /// The write that the cloud refused, and why.
    pub refused: Option<(Write, Error)>,
    /// What Cinder says of something that failed.
    pub reason: Option<String>,
    /// The call has looked at more kinds.
    pub looked: bool,
}

impl Past {
    /// True if the call has asked for nothing yet.
    fn is_empty(&self) -> bool {
        self.written.is_none() && self.refused.is_none()
    }

    /// True if Cinder has refused a write, perhaps for a reason that other kinds show.
    fn is_refused(&self) -> bool {
        self.refused
            .as_ref()
            .is_some_and(|(_, error)| error.kind() == ErrorKind::Invalid)
    }

    /// True if the cloud says that what was to be changed does not exist.
    fn found_nothing(&self) -> bool {
        self.refused
            .as_ref()
            .is_some_and(|(_, error)| error.is_absent())
    }
}

fn refuse<T>(code: Code, message: impl Into<String>) -> Step<T> {
    Step::Refuse(Status::new(code, line(message.into())))
}

/// Words of a cloud on one line, cut, without what a terminal interprets: they become events of Kubernetes.
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

/// Waits for a volume in a state of transition.
fn wait_for<T>(volume: &openstack::volume::Volume) -> Step<T> {
    let why = format!("volume {} is {}", volume.id, volume.status);
    wait(Kind::Volumes, &volume.id, why)
}
