//! Names of cloud resources in the objects of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use super::super::check::rules::handle;
use super::super::{identity, listed};
use super::thing::{Form, Thing};

const SNAPSHOTS: &str = "snapshot.storage.k8s.io";
const GROUP_SNAPSHOTS: &str = "groupsnapshot.storage.k8s.io";
/// Metadata of volumes and snapshots with the name of their object.
const VOLUME_NAME: &str = "csi.storage.k8s.io/pv/name";
const CONTENT_NAME: &str = "csi.storage.k8s.io/volumesnapshotcontent/name";

/// Names and ids in the objects of a cluster, each with the object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claimed {
    /// The uid of the namespace kube-system.
    pub(crate) cluster_uid: String,
    /// Ids of volumes, snapshots and backups.
    pub(crate) handles: BTreeMap<String, String>,
    /// Names of PersistentVolumes and of VolumeSnapshotContents.
    pub(crate) names: BTreeSet<(Form, String)>,
    /// Uids of claims and of VolumeSnapshots, used by the sidecars in the names of new resources.
    pub(crate) uids: BTreeMap<String, String>,
}

impl Claimed {
    /// Current names in the cluster; an error if any list fails, since objects would be missing.
    pub(crate) async fn read(client: &Client) -> anyhow::Result<Self> {
        let mut claimed = Self {
            cluster_uid: identity::uid(client).await?,
            ..Self::default()
        };
        // Claims first: a PersistentVolume that appears meanwhile belongs to a claim that is here.
        for claim in listed::all::<PersistentVolumeClaim>(client).await? {
            let object = of(&claim, "PersistentVolumeClaim");
            claimed.uids.extend(claim.uid().map(|uid| (uid, object)));
        }
        for snapshot in listed::of_crd(client, SNAPSHOTS, &["v1"], "VolumeSnapshot").await? {
            let object = of(&snapshot, "VolumeSnapshot");
            claimed.uids.extend(snapshot.uid().map(|uid| (uid, object)));
        }
        for content in listed::of_crd(client, SNAPSHOTS, &["v1"], "VolumeSnapshotContent").await? {
            claimed.content(&content, "VolumeSnapshotContent");
        }
        let versions = ["v1", "v1beta2", "v1beta1", "v1alpha1"];
        let kind = "VolumeGroupSnapshotContent";
        for content in listed::of_crd(client, GROUP_SNAPSHOTS, &versions, kind).await? {
            claimed.content(&content, kind);
        }
        for volume in listed::all::<PersistentVolume>(client).await? {
            let object = of(&volume, "PersistentVolume");
            if let Some(handle) = handle(&volume) {
                claimed.handles.insert(handle.to_owned(), object);
            }
            claimed.names.insert((Form::Volume, volume.name_any()));
        }
        Ok(claimed)
    }

    /// Adds all possible ids in the fields of a content.
    fn content(&mut self, content: &DynamicObject, kind: &str) {
        let object = of(content, kind);
        for field in ["spec", "status"] {
            strings(&content.data[field], &mut |text| {
                self.handles.insert(text.to_owned(), object.clone());
            });
        }
        self.names.insert((Form::Snapshot, content.name_any()));
    }

    /// Object with the [`Thing`]'s name, or waiting for the creation.
    pub(crate) fn holder(&self, thing: &Thing) -> Option<String> {
        if let Some(object) = self.handles.get(&thing.id) {
            return Some(object.clone());
        }
        let (form, key, kind) = match thing.form {
            Form::Volume => (Form::Volume, VOLUME_NAME, "PersistentVolume"),
            Form::Snapshot | Form::Backup => {
                (Form::Snapshot, CONTENT_NAME, "VolumeSnapshotContent")
            }
        };
        let named = thing.metadata.get(key);
        let named = named.filter(|name| self.names.contains(&(form, (*name).clone())));
        if let Some(name) = named {
            return Some(format!("{kind}/{name}"));
        }
        let mut uids = self.uids.iter();
        let found = uids.find(|(uid, _)| !uid.is_empty() && thing.name.ends_with(uid.as_str()));
        found.map(|(_, object)| object.clone())
    }
}

fn of(object: &impl kube::ResourceExt, kind: &str) -> String {
    match object.namespace() {
        Some(namespace) => format!("{kind}/{} in {namespace}", object.name_any()),
        None => format!("{kind}/{}", object.name_any()),
    }
}

fn strings(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(list) => {
            for value in list {
                strings(value, found);
            }
        }
        Value::Object(map) => {
            for value in map.values() {
                strings(value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
