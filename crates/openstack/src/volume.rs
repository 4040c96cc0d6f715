//! Cinder: volumes and their types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::error::Result;
use crate::service::Service;
use crate::session::Session;

/// A volume.
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
    /// Name of its type.
    pub volume_type: String,
    /// Free key-value pairs.
    pub metadata: BTreeMap<String, String>,
    /// Its attachments.
    pub attachments: Vec<VolumeAttachment>,
    /// Whether several servers may attach it; booting such a volume needs microversion 2.60.
    pub multiattach: bool,
    /// `true` or `false` as text, as Cinder sends it.
    pub bootable: String,
    /// Project that owns it.
    #[serde(rename = "os-vol-tenant-attr:tenant_id")]
    pub project_id: String,
}

/// One attachment of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    /// Server that it is attached to.
    pub server_id: String,
    /// Id of the attachment.
    pub attachment_id: String,
    /// Device name inside the server.
    pub device: String,
}

/// A new volume.
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
    /// Image to create it from.
    #[serde(rename = "imageRef", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Snapshot to create it from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Free key-value pairs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// A volume type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeType {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
}

/// Calls to Cinder.
#[derive(Clone, Debug)]
pub struct Volumes {
    session: Session,
}

impl Volumes {
    pub(crate) fn new(session: Session) -> Self {
        Self { session }
    }

    /// The project's volumes.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn list(&self) -> Result<Vec<Volume>> {
        let call = Call::list(Service::Volume, "/volumes/detail", &[]);
        self.session.list(call, "volumes").await
    }

    /// The volumes of all projects, for administrators. For everyone else those of the project: Cinder ignores the filter.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn list_of_all_projects(&self) -> Result<Vec<Volume>> {
        let call = Call::list(Service::Volume, "/volumes/detail", &[]).query("all_tenants", "1");
        self.session.list(call, "volumes").await
    }

    /// The project's volumes of this name.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn list_named(&self, name: &str) -> Result<Vec<Volume>> {
        let call = Call::list(Service::Volume, "/volumes/detail", &[]).query("name", name);
        self.session.list(call, "volumes").await
    }

    /// One volume.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn get(&self, id: &str) -> Result<Volume> {
        self.session
            .one(Call::get(Service::Volume, "/volumes/{id}", &[id]), "volume")
            .await
    }

    /// Creates a volume; it is `creating` when this returns.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn create(&self, volume: &VolumeCreate) -> Result<Volume> {
        let call = Call::post(Service::Volume, "/volumes", &[]).body("volume", volume);
        self.session.one(call, "volume").await
    }

    /// Deletes a volume; it is `deleting` when this returns.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn delete(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(Service::Volume, "/volumes/{id}", &[id]))
            .await
    }

    /// The types of volumes.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn types(&self) -> Result<Vec<VolumeType>> {
        self.session
            .list(Call::list(Service::Volume, "/types", &[]), "volume_types")
            .await
    }

    /// The limits of the project and their use: (resource, limit, used); negative for no limit.
    ///
    /// # Errors
    /// Those of the request.
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

/// Cinder's absolute limits; -1 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeLimits {
    /// Most volumes.
    pub max_total_volumes: i64,
    /// Volumes there are.
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
