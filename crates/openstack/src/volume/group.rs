//! Groups of volumes, their types and their snapshots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::Volumes;
use crate::call::Call;
use crate::error::Result;
use crate::service::Service;

/// Group types (Newton, 2016).
const TYPES: &str = "3.11";
/// Groups (Newton, 2016).
const GROUPS: &str = "3.13";
/// Snapshots of groups (Newton, 2016).
const SNAPSHOTS: &str = "3.14";
/// Volumes of a group in a list (Ocata, 2017).
const WITH_VOLUMES: &str = "3.25";

/// Group of volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeGroup {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// `creating`, `available`, `updating`, `deleting`, `error`, ...
    pub status: String,
    /// Availability zone.
    pub availability_zone: String,
    /// Id of the group type.
    pub group_type: String,
    /// Ids of the permitted volume types.
    pub volume_types: Vec<String>,
    /// Ids of the volumes.
    pub volumes: Vec<String>,
    /// Time of creation, RFC 3339 without a zone.
    pub created_at: String,
}

/// New group, without volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VolumeGroupCreate {
    /// Name.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Id of the group type.
    pub group_type: String,
    /// Permitted volume types, by name or id.
    pub volume_types: Vec<String>,
    /// Availability zone.
    pub availability_zone: String,
}

/// Snapshot of a group: a snapshot of each volume, see
/// [`Snapshot::group_snapshot_id`](super::Snapshot::group_snapshot_id).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupSnapshot {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// `creating`, `available`, `deleting`, `error`, ...
    pub status: String,
    /// Group.
    pub group_id: String,
    /// Time of creation, RFC 3339 without a zone.
    pub created_at: String,
}

/// New snapshot of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupSnapshotCreate {
    /// Group.
    pub group_id: String,
    /// Name, also of the snapshots of the volumes.
    pub name: String,
    /// Free text, also of the snapshots of the volumes.
    pub description: String,
}

/// Type of groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupType {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Capabilities of the groups. By default, Cinder shows these specs to administrators alone.
    pub group_specs: Option<BTreeMap<String, String>>,
}

impl GroupType {
    /// True if the snapshots of a group are taken at one moment; `None` if the specs are not shown.
    #[must_use]
    pub fn is_consistent(&self) -> Option<bool> {
        let specs = self.group_specs.as_ref()?;
        let spec = specs.get("consistent_group_snapshot_enabled");
        Some(spec.is_some_and(|spec| spec.eq_ignore_ascii_case("<is> True")))
    }
}

impl Volumes {
    /// Returns the types of groups.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn group_types(&self) -> Result<Vec<GroupType>> {
        let call = Call::list(Service::Volume, "/group_types", &[]).microversion(TYPES);
        self.session.list(call, "group_types").await
    }

    /// Returns the project's groups.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn groups(&self) -> Result<Vec<VolumeGroup>> {
        let call = Call::list(Service::Volume, "/groups/detail", &[])
            .microversion(WITH_VOLUMES)
            .query("list_volume", "true");
        self.session.list(call, "groups").await
    }

    /// Creates a group; the group is `creating` on return. Cinder answers id and name alone.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_group(&self, group: &VolumeGroupCreate) -> Result<VolumeGroup> {
        let call = Call::post(Service::Volume, "/groups", &[])
            .microversion(GROUPS)
            .body("group", group);
        let created: VolumeGroup = self.session.one(call, "group").await?;
        Ok(VolumeGroup {
            id: created.id,
            name: group.name.clone(),
            description: group.description.clone(),
            status: "creating".to_owned(),
            availability_zone: group.availability_zone.clone(),
            group_type: group.group_type.clone(),
            ..VolumeGroup::default()
        })
    }

    /// Adds volumes to a group, and removes others; the group is `updating` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn change_group(&self, id: &str, add: &[String], remove: &[String]) -> Result<()> {
        let mut body = Map::new();
        for (field, ids) in [("add_volumes", add), ("remove_volumes", remove)] {
            if !ids.is_empty() {
                body.insert(field.to_owned(), json!(ids.join(",")));
            }
        }
        let call = Call::put(Service::Volume, "/groups/{id}", &[id])
            .microversion(GROUPS)
            .body("group", &body);
        self.session.done(call).await
    }

    /// Deletes a group; the group is `deleting` on return. A group with volumes is refused.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_group(&self, id: &str) -> Result<()> {
        let call = Call::post(Service::Volume, "/groups/{id}/action", &[id])
            .microversion(GROUPS)
            .body("delete", &json!({"delete-volumes": false}));
        self.session.done(call).await
    }

    /// Returns the project's snapshots of groups.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn group_snapshots(&self) -> Result<Vec<GroupSnapshot>> {
        let call = Call::list(Service::Volume, "/group_snapshots/detail", &[]);
        let call = call.microversion(SNAPSHOTS);
        self.session.list(call, "group_snapshots").await
    }

    /// Takes a snapshot of each volume of a group; the group snapshot is `creating` on return. Cinder answers id and
    /// name alone.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_group_snapshot(
        &self,
        snapshot: &GroupSnapshotCreate,
    ) -> Result<GroupSnapshot> {
        let call = Call::post(Service::Volume, "/group_snapshots", &[])
            .microversion(SNAPSHOTS)
            .body("group_snapshot", snapshot);
        let created: GroupSnapshot = self.session.one(call, "group_snapshot").await?;
        Ok(GroupSnapshot {
            id: created.id,
            name: snapshot.name.clone(),
            description: snapshot.description.clone(),
            status: "creating".to_owned(),
            group_id: snapshot.group_id.clone(),
            created_at: String::new(),
        })
    }

    /// Deletes a group snapshot with its snapshots; the group snapshot is `deleting` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_group_snapshot(&self, id: &str) -> Result<()> {
        let call = Call::delete(Service::Volume, "/group_snapshots/{id}", &[id]);
        self.session.done(call.microversion(SNAPSHOTS)).await
    }
}
