//! Cinder: volumes and their types, snapshots, backups, attachments, groups.

mod backup;
mod group;
mod quota;
mod snapshot;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::call::Call;
use crate::compute::AvailabilityZone;
use crate::error::Result;
use crate::service::Service;
use crate::session::Session;

pub use backup::{Backup, BackupCreate};
pub use group::{GroupSnapshot, GroupSnapshotCreate, GroupType, VolumeGroup, VolumeGroupCreate};
pub use quota::VolumeQuota;
pub use snapshot::{Snapshot, SnapshotCreate};

/// Extending a volume that is attached (Ocata, 2017).
const EXTEND_IN_USE: &str = "3.42";
/// Creating a volume from a backup (Pike, 2017).
const FROM_BACKUP: &str = "3.47";
/// Attachments (Ocata, 2017).
const ATTACHMENTS: &str = "3.27";
/// Messages by the object they are about (Ocata, 2017).
const MESSAGES: &str = "3.5";

/// Volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Volume {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// `creating`, `available`, `in-use`, `deleting`, `error`, ...
    pub status: String,
    /// Size in GiB.
    pub size: i64,
    /// Availability zone.
    pub availability_zone: String,
    /// Name of the type.
    pub volume_type: String,
    /// Free key-value pairs.
    pub metadata: BTreeMap<String, String>,
    /// Attachments.
    pub attachments: Vec<VolumeAttachment>,
    /// True if several servers may attach the volume; booting such a volume needs microversion 2.60.
    pub multiattach: bool,
    /// `true` or `false` as text, as sent by Cinder.
    pub bootable: String,
    /// Id of the owning project.
    #[serde(rename = "os-vol-tenant-attr:tenant_id")]
    pub project_id: String,
    /// Time of creation, RFC 3339 without a zone.
    pub created_at: String,
    /// Snapshot from which the volume was created.
    pub snapshot_id: String,
    /// Volume from which the volume was created.
    pub source_volid: String,
    /// True if the hypervisor encrypts the volume.
    pub encrypted: bool,
}

/// One attachment of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    /// Id of the server.
    pub server_id: String,
    /// Id of the attachment.
    pub attachment_id: String,
    /// Device name inside the server.
    pub device: String,
}

/// New volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VolumeCreate {
    /// Name.
    pub name: String,
    /// Size in GiB.
    pub size: i64,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Type by name or id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<String>,
    /// Availability zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// Source image.
    #[serde(rename = "imageRef", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Source snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Source volume.
    #[serde(rename = "source_volid", skip_serializing_if = "Option::is_none")]
    pub source_volume_id: Option<String>,
    /// Source backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_id: Option<String>,
    /// Free key-value pairs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Hints for Cinder's scheduler, such as `same_host`: lists of ids of volumes.
    #[serde(skip)]
    pub scheduler_hints: BTreeMap<String, Vec<String>>,
}

/// Volume type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeType {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Extra specs: capabilities of the back end, for example `multiattach: <is> True`. Cinder shows a part of them to
    /// everyone.
    pub extra_specs: BTreeMap<String, String>,
}

/// Availability zone of Cinder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VolumeZone(pub AvailabilityZone);

impl VolumeType {
    /// True if several servers may attach a volume of this type.
    #[must_use]
    pub fn is_multiattach(&self) -> bool {
        let spec = self.extra_specs.get("multiattach");
        spec.is_some_and(|spec| spec.eq_ignore_ascii_case("<is> True"))
    }
}

/// Calls to Cinder.
#[derive(Clone, Debug)]
pub struct Volumes {
    session: Session,
}

impl Session {
    /// Returns the calls to Cinder.
    pub fn volume(&self) -> Volumes {
        Volumes::new(self.clone())
    }
}

impl Volumes {
    fn new(session: Session) -> Self {
        Self { session }
    }

    /// Returns the project's volumes.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn list(&self) -> Result<Vec<Volume>> {
        let call = Call::list(Service::Volume, "/volumes/detail", &[]);
        self.session.list(call, "volumes").await
    }

    /// Lists the volumes of all projects, for administrators. Everyone else gets the volumes of the project: Cinder
    /// ignores the filter.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn list_of_all_projects(&self) -> Result<Vec<Volume>> {
        let call = Call::list(Service::Volume, "/volumes/detail", &[]).query("all_tenants", "1");
        self.session.list(call, "volumes").await
    }

    /// Returns the project's volumes of this name.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn list_named(&self, name: &str) -> Result<Vec<Volume>> {
        let call = Call::list(Service::Volume, "/volumes/detail", &[]).query("name", name);
        self.session.list(call, "volumes").await
    }

    /// Returns one volume.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn get(&self, id: &str) -> Result<Volume> {
        self.session
            .one(Call::get(Service::Volume, "/volumes/{id}", &[id]), "volume")
            .await
    }

    /// Creates a volume; the volume is `creating` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create(&self, volume: &VolumeCreate) -> Result<Volume> {
        let mut body = Map::new();
        body.insert("volume".to_owned(), json!(volume));
        if !volume.scheduler_hints.is_empty() {
            let hints = json!(volume.scheduler_hints);
            body.insert("OS-SCH-HNT:scheduler_hints".to_owned(), hints);
        }
        let mut call = Call::post(Service::Volume, "/volumes", &[]).whole_body(&body);
        if volume.backup_id.is_some() {
            call = call.microversion(FROM_BACKUP);
        }
        self.session.one(call, "volume").await
    }

    /// Extends a volume to a size in GiB; the volume is `extending` on return. `attached` is true if the volume is
    /// attached to a server.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn extend(&self, id: &str, size: i64, attached: bool) -> Result<()> {
        let mut call = Call::post(Service::Volume, "/volumes/{id}/action", &[id])
            .body("os-extend", &json!({"new_size": size}));
        if attached {
            call = call.microversion(EXTEND_IN_USE);
        }
        self.session.done(call).await
    }

    /// Gives a volume another type; the volume is `retyping` on return. `moves` lets Cinder move the data to another
    /// back end.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn retype(&self, id: &str, to: &str, moves: bool) -> Result<()> {
        let policy = if moves { "on-demand" } else { "never" };
        let call = Call::post(Service::Volume, "/volumes/{id}/action", &[id]).body(
            "os-retype",
            &json!({"new_type": to, "migration_policy": policy}),
        );
        self.session.done(call).await
    }

    /// Sets metadata of a volume, and leaves other keys as they are.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn set_metadata(&self, id: &str, metadata: &BTreeMap<String, String>) -> Result<()> {
        let call =
            Call::post(Service::Volume, "/volumes/{id}/metadata", &[id]).body("metadata", metadata);
        self.session.done(call).await
    }

    /// Deletes an attachment whose server is gone. Cinder refuses this while Nova knows server and volume.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_attachment(&self, id: &str) -> Result<()> {
        let call =
            Call::delete(Service::Volume, "/attachments/{id}", &[id]).microversion(ATTACHMENTS);
        self.session.done(call).await
    }

    /// Lists the attachments of a volume, incomplete ones included.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn attachments_of(&self, volume: &str) -> Result<Vec<Attachment>> {
        let call = Call::list(Service::Volume, "/attachments", &[])
            .microversion(ATTACHMENTS)
            .query("volume_id", volume);
        self.session.list(call, "attachments").await
    }

    /// Messages of Cinder to the user about an object, for example why a volume is in `error`; the newest first.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn messages(&self, id: &str) -> Result<Vec<VolumeMessage>> {
        let call = Call::list(Service::Volume, "/messages", &[])
            .microversion(MESSAGES)
            .query("resource_uuid", id)
            .query("sort", "created_at:desc");
        self.session.list(call, "messages").await
    }

    /// Deletes a volume; the volume is `deleting` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(Service::Volume, "/volumes/{id}", &[id]))
            .await
    }

    /// Returns the types of volumes.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn types(&self) -> Result<Vec<VolumeType>> {
        self.session
            .list(Call::list(Service::Volume, "/types", &[]), "volume_types")
            .await
    }

    /// Returns the default type of new volumes.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request; [`ErrorKind::Absent`](crate::ErrorKind::Absent) without a default
    /// type.
    pub async fn default_type(&self) -> Result<VolumeType> {
        let call = Call::get(Service::Volume, "/types/{id}", &["default"]);
        self.session.one(call, "volume_type").await
    }

    /// Lists the availability zones of Cinder, which may differ from Nova's.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn availability_zones(&self) -> Result<Vec<VolumeZone>> {
        let call = Call::get(Service::Volume, "/os-availability-zone", &[]);
        self.session.one(call, "availabilityZoneInfo").await
    }

    /// Returns the limits of the project and their use: (resource, limit, used); negative for no limit.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn limits(&self) -> Result<VolumeLimits> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Limits {
            absolute: VolumeLimits,
        }
        let call = Call::get(Service::Volume, "/limits", &[]);
        Ok(self.session.one::<Limits>(call, "limits").await?.absolute)
    }
}

/// Attachment in Cinder, from the reservation on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attachment {
    /// Id.
    pub id: String,
    /// `reserved`, `attaching`, `attached`, `error_attaching`, ...
    pub status: String,
    /// Server.
    pub instance: String,
    /// Volume.
    pub volume_id: String,
}

/// Message of Cinder's to the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeMessage {
    /// Id.
    pub id: String,
    /// Text.
    pub user_message: String,
    /// Time of creation, RFC 3339 without a zone.
    pub created_at: String,
}

/// Cinder's absolute limits; -1 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeLimits {
    /// Most volumes.
    pub max_total_volumes: i64,
    /// Existing volumes.
    pub total_volumes_used: i64,
    /// Most GiB.
    pub max_total_volume_gigabytes: i64,
    /// GiB in use.
    pub total_gigabytes_used: i64,
}

impl Default for VolumeLimits {
    fn default() -> Self {
        Self {
            max_total_volumes: -1,
            total_volumes_used: 0,
            max_total_volume_gigabytes: -1,
            total_gigabytes_used: 0,
        }
    }
}
