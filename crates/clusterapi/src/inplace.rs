//! Labels and annotations that follow a template, by server-side apply.
//!
//! A template gives labels and annotations to machines and to the objects that machines refer to. A label removed
//! from the template must leave the objects, and labels of users and other controllers must stay. The API server
//! tells both apart: a field leaves with its last owner, so each controller applies the template's labels under its
//! upstream field manager.
//!
//! An object created or changed without server-side apply has these fields under another manager, too; that manager's
//! claim is released first ([`released`]).

mod timeouts;

use std::collections::{BTreeMap, BTreeSet};

use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    FieldsV1, ManagedFieldsEntry, ObjectMeta,
};
use api::names::{
    CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, CONTROL_PLANE_NAME_LABEL, DEPLOYMENT_NAME_LABEL,
    SET_NAME_LABEL,
};
use serde_json::{Map, Value, json};

pub(crate) use timeouts::deletion;

/// Parts of `metadata` that follow a template: names of the fields in `managedFields`.
const PARTS: [&str; 2] = ["f:labels", "f:annotations"];
/// Labels that an object keeps for its whole life.
const PERMANENT: [&str; 5] = [
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_LABEL,
    CONTROL_PLANE_NAME_LABEL,
    DEPLOYMENT_NAME_LABEL,
    SET_NAME_LABEL,
];

/// Field manager of server-side apply, and former managers of the same fields.
#[derive(Debug, PartialEq, Eq)]
pub struct Manager {
    /// Field manager, with upstream's name.
    pub name: &'static str,
    /// Managers of updates: former versions of the controller, and upstream's.
    former: &'static [&'static str],
}

/// Applies MachineSets of a MachineDeployment.
pub(crate) const MACHINE_DEPLOYMENT: Manager = Manager {
    name: "capi-machinedeployment",
    former: &["ferrostack-machinedeployment"],
};
/// Applies Machines of a MachineSet.
pub(crate) const MACHINE_SET: Manager = Manager {
    name: "capi-machineset",
    former: &["ferrostack-machineset", "manager"],
};
/// Applies labels and annotations of the objects that Machines of a MachineSet refer to.
pub(crate) const MACHINE_SET_METADATA: Manager = Manager {
    name: "capi-machineset-metadata",
    former: &["ferrostack-machineset", "manager"],
};
/// Applies Machines of a KubeadmControlPlane.
pub(crate) const CONTROL_PLANE: Manager = Manager {
    name: "capi-kubeadmcontrolplane",
    former: &["ferrostack-kubeadmcontrolplane", "manager"],
};
/// Applies labels and annotations of the objects that Machines of a KubeadmControlPlane refer to.
pub(crate) const CONTROL_PLANE_METADATA: Manager = Manager {
    name: "capi-kubeadmcontrolplane-metadata",
    former: &["ferrostack-kubeadmcontrolplane", "manager"],
};
const ALL: [&Manager; 5] = [
    &MACHINE_DEPLOYMENT,
    &MACHINE_SET,
    &MACHINE_SET_METADATA,
    &CONTROL_PLANE,
    &CONTROL_PLANE_METADATA,
];

/// Labels and annotations of the template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Wanted {
    /// Labels that an object has from its creation on, and never loses.
    pub(crate) fn permanent(&self) -> BTreeMap<String, String> {
        let labels = self.labels.iter();
        let permanent = labels.filter(|(name, _)| PERMANENT.contains(&name.as_str()));
        permanent
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    fn parts(&self) -> [&BTreeMap<String, String>; 2] {
        [&self.labels, &self.annotations]
    }

    /// True if another manager's claim on a field has to be released, so that the field can leave the object.
    fn releases(&self, part: usize, field: &str) -> bool {
        let name = field.strip_prefix("f:");
        name.is_some_and(|name| !PERMANENT.contains(&name) && self.parts()[part].contains_key(name))
    }
}

/// True if the labels and annotations have to be applied: a value differs, or the [`Manager`] has other ones.
pub(crate) fn is_outdated(metadata: &ObjectMeta, wanted: &Wanted, manager: &Manager) -> bool {
    let known = [metadata.labels.as_ref(), metadata.annotations.as_ref()];
    let owned = owned(metadata, manager);
    let parts = wanted.parts().into_iter().enumerate();
    let mut outdated = parts.map(|(part, wanted)| {
        let differs = wanted
            .iter()
            .any(|(name, value)| known[part].and_then(|known| known.get(name)) != Some(value));
        differs || !wanted.keys().eq(owned[part].iter())
    });
    outdated.any(|outdated| outdated)
}

/// Labels and annotations that `manager` has applied.
fn owned(metadata: &ObjectMeta, manager: &Manager) -> [BTreeSet<String>; 2] {
    let entries = metadata.managed_fields.iter().flatten();
    let ours = entries.filter(|entry| is_applied(entry) && is_by(entry, &[manager.name]));
    let mut owned = [BTreeSet::new(), BTreeSet::new()];
    for entry in ours {
        for (part, name) in PARTS.iter().enumerate() {
            let fields = fields(entry, name).into_iter().flatten();
            let names = fields.filter_map(|(field, _)| field.strip_prefix("f:"));
            owned[part].extend(names.map(str::to_owned));
        }
    }
    owned
}

/// `managedFields` without other managers' claims on the wanted labels and annotations; `None` without such claims.
pub(crate) fn released(
    metadata: &ObjectMeta,
    wanted: &Wanted,
    manager: &Manager,
) -> Option<Vec<ManagedFieldsEntry>> {
    let mut entries = metadata.managed_fields.clone()?;
    let mut changed = false;
    let former = |entry: &&mut ManagedFieldsEntry| {
        !is_applied(entry) && entry.subresource.is_none() && is_by(entry, manager.former)
    };
    for entry in entries.iter_mut().filter(former) {
        for (part, name) in PARTS.iter().enumerate() {
            let Some(fields) = fields_mut(entry, name) else {
                continue;
            };
            let before = fields.len();
            fields.retain(|field, _| !wanted.releases(part, field));
            changed |= fields.len() != before;
        }
    }
    changed.then_some(entries)
}

/// `managedFields` with all updates of former versions of the controller as applied; `None` without such updates.
pub(crate) fn adopted(metadata: &ObjectMeta, manager: &Manager) -> Option<Vec<ManagedFieldsEntry>> {
    let entries = metadata.managed_fields.clone()?;
    let is_former = |entry: &ManagedFieldsEntry| {
        !is_applied(entry) && entry.subresource.is_none() && is_by(entry, manager.former)
    };
    let (former, mut entries): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_former);
    let mut former = former.into_iter();
    let mut applied = former.next()?;
    let is_same = |entry: &ManagedFieldsEntry| is_applied(entry) && is_by(entry, &[manager.name]);
    let known = entries
        .iter()
        .position(is_same)
        .map(|at| entries.remove(at));
    for other in former.chain(known) {
        if let (Some(FieldsV1(fields)), Some(FieldsV1(more))) =
            (&mut applied.fields_v1, other.fields_v1)
        {
            unite(fields, more);
        }
    }
    applied.manager = Some(manager.name.to_owned());
    applied.operation = Some("Apply".to_owned());
    entries.push(applied);
    Some(entries)
}

/// Adds `more` fields to a set of fields.
fn unite(fields: &mut Value, more: Value) {
    if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
        for (field, below) in more {
            unite(fields.entry(field).or_insert_with(|| json!({})), below);
        }
    }
}

/// Merge patch to write `entries` to the object with this metadata.
pub(crate) fn release_patch(metadata: &ObjectMeta, entries: &[ManagedFieldsEntry]) -> Value {
    json!({ "metadata": {
        "managedFields": entries,
        "resourceVersion": metadata.resource_version,
    }})
}

/// Reduces `managedFields` to the entries for this module, for caches.
pub(crate) fn reduce(entries: &mut Vec<ManagedFieldsEntry>) {
    entries.retain_mut(|entry| {
        let known = ALL.iter().any(|manager| {
            entry.manager.as_deref() == Some(manager.name) || is_by(entry, manager.former)
        });
        let kept = known && entry.subresource.is_none() && keep_parts(entry);
        entry.time = None;
        kept
    });
    entries.shrink_to_fit();
}

/// Reduces an entry to timeouts, and to labels and annotations that are not permanent, unless applied. Returns true
/// if any field is left.
fn keep_parts(entry: &mut ManagedFieldsEntry) -> bool {
    let applied = is_applied(entry);
    let timeouts = timeouts::claims(entry);
    let mut parts = Map::new();
    for name in PARTS {
        let Some(fields) = fields_mut(entry, name) else {
            continue;
        };
        fields.retain(|field, _| {
            let name = field.strip_prefix("f:");
            name.is_some_and(|name| applied || !PERMANENT.contains(&name))
        });
        if !fields.is_empty() {
            parts.insert(name.to_owned(), Value::Object(std::mem::take(fields)));
        }
    }
    let left = !parts.is_empty() || timeouts.is_some();
    let mut kept = json!({ "f:metadata": parts });
    if let Some(timeouts) = timeouts {
        kept["f:spec"] = json!({ "f:deletion": timeouts });
    }
    entry.fields_v1 = Some(FieldsV1(kept));
    left
}

fn is_applied(entry: &ManagedFieldsEntry) -> bool {
    entry.operation.as_deref() == Some("Apply")
}

fn is_by(entry: &ManagedFieldsEntry, names: &[&str]) -> bool {
    let manager = entry.manager.as_deref();
    manager.is_some_and(|manager| names.contains(&manager))
}

fn fields<'a>(entry: &'a ManagedFieldsEntry, part: &str) -> Option<&'a Map<String, Value>> {
    let FieldsV1(fields) = entry.fields_v1.as_ref()?;
    fields.get("f:metadata")?.get(part)?.as_object()
}

fn fields_mut<'a>(
    entry: &'a mut ManagedFieldsEntry,
    part: &str,
) -> Option<&'a mut Map<String, Value>> {
    let FieldsV1(fields) = entry.fields_v1.as_mut()?;
    fields.get_mut("f:metadata")?.get_mut(part)?.as_object_mut()
}

#[cfg(test)]
mod tests;
