//! Objects as created in the target.

use std::collections::HashMap;

use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use api::names::{MOVE_ANNOTATION, PAUSED_ANNOTATION};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use crate::graph::Object;

/// Kinds paused by [`PAUSED_ANNOTATION`].
const ANNOTATED: [&str; 4] = [
    "ClusterClass",
    "ClusterResourceSet",
    "OpenStackFloatingIPPool",
    "OpenStackServer",
];

/// Mark of a copy: the move, the uid of the original, and whether the end of the move resumes the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) id: String,
    pub(crate) original: String,
    pub(crate) resumes: bool,
}

impl Mark {
    /// Mark of an object, if the object is a copy.
    pub(crate) fn from_object(object: &DynamicObject) -> Option<Self> {
        let text = object.annotations().get(MOVE_ANNOTATION)?;
        let mut parts = text.splitn(3, ' ');
        Some(Self {
            id: parts.next()?.to_owned(),
            original: parts.next()?.to_owned(),
            resumes: parts.next() == Some("resume"),
        })
    }

    pub(crate) fn text(&self) -> String {
        let end = if self.resumes { " resume" } else { "" };
        format!("{} {}{end}", self.id, self.original)
    }
}

/// True if a pause of the object keeps controllers from changing objects of the move.
pub(crate) fn can_be_paused(object: &Object) -> bool {
    object.kind.is("Cluster") || ANNOTATED.iter().any(|kind| object.kind.is(kind))
}

pub(crate) fn is_paused(object: &Object) -> bool {
    match object.kind.is("Cluster") {
        true => object.field("/spec/paused") == true,
        false => object.object.annotations().contains_key(PAUSED_ANNOTATION),
    }
}

/// Patch that pauses an object of the source, and marks it as paused by the move `id`.
pub(crate) fn pause(object: &Object, id: &str) -> Value {
    match object.kind.is("Cluster") {
        true => {
            json!({"metadata": {"annotations": {MOVE_ANNOTATION: id}}, "spec": {"paused": true}})
        }
        false => json!({"metadata": {"annotations": {MOVE_ANNOTATION: id, PAUSED_ANNOTATION: ""}}}),
    }
}

/// Patch that removes the mark, and resumes an object that the move had paused.
pub(crate) fn release(object: &Object, resumes: bool) -> Value {
    let mut patch = json!({"metadata": {"annotations": {MOVE_ANNOTATION: null}}});
    if resumes && object.kind.is("Cluster") {
        patch["spec"]["paused"] = Value::Null;
    } else if resumes {
        patch["metadata"]["annotations"][PAUSED_ANNOTATION] = Value::Null;
    }
    patch
}

/// True if the move `id` paused the object of the source.
pub(crate) fn is_paused_by(object: &Object, id: &str) -> bool {
    can_be_paused(object)
        && object
            .object
            .annotations()
            .get(MOVE_ANNOTATION)
            .map(String::as_str)
            == Some(id)
}

/// True if the end of the move resumes the copy: the original was not paused before the move.
pub(crate) fn resumes(object: &Object) -> bool {
    let by_a_move = object.object.annotations().contains_key(MOVE_ANNOTATION);
    can_be_paused(object) && (object.kind.is("Cluster") || by_a_move || !is_paused(object))
}

/// Object to create in the target: paused, marked, and without fields set by the target's API server.
///
/// `uids` has the uid of each copy by the uid of the original. Owners outside `uids` are left out, because the
/// target's garbage collector deletes dependents of an unknown owner.
pub(crate) fn copy(object: &Object, id: &str, uids: &HashMap<String, String>) -> DynamicObject {
    let from = &object.object.metadata;
    let mark = Mark {
        id: id.to_owned(),
        original: object.uid().to_owned(),
        resumes: resumes(object),
    };
    let mut annotations = from.annotations.clone().unwrap_or_default();
    annotations.insert(MOVE_ANNOTATION.to_owned(), mark.text());
    let mut data = object.object.data.clone();
    if let Some(fields) = data.as_object_mut() {
        fields.remove("status");
    }
    if object.kind.is("Cluster") {
        data["spec"]["paused"] = true.into();
    } else if can_be_paused(object) {
        annotations.entry(PAUSED_ANNOTATION.to_owned()).or_default();
    }
    let owners = object.object.owner_references().iter().filter_map(|owner| {
        let mut owner = owner.clone();
        owner.uid = uids.get(&owner.uid)?.clone();
        Some(owner)
    });
    let owners: Vec<_> = owners.collect();
    DynamicObject {
        types: object.object.types.clone(),
        metadata: ObjectMeta {
            name: from.name.clone(),
            namespace: from.namespace.clone(),
            labels: from.labels.clone(),
            annotations: Some(annotations),
            finalizers: from.finalizers.clone(),
            owner_references: (!owners.is_empty()).then_some(owners),
            ..ObjectMeta::default()
        },
        data,
    }
}

/// Status to store with the copy, if any, without observed generations: a copy has new generations.
pub(crate) fn status(object: &Object) -> Option<Value> {
    if !object.kind.has_status {
        return None;
    }
    let mut status = object.object.data.get("status")?.clone();
    without_generation(&mut status);
    status
        .as_object()
        .is_some_and(|fields| !fields.is_empty())
        .then_some(status)
}

fn without_generation(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("observedGeneration");
            fields.values_mut().for_each(without_generation);
        }
        Value::Array(items) => items.iter_mut().for_each(without_generation),
        _ => {}
    }
}

/// True if `stored` has every field of `wanted`.
pub(crate) fn contains(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted
            .iter()
            .all(|(field, value)| contains(stored.get(field).unwrap_or(&Value::Null), value)),
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len()
                && stored
                    .iter()
                    .zip(wanted)
                    .all(|(stored, wanted)| contains(stored, wanted))
        }
        // An API server leaves empty fields out.
        (Value::Null, Value::Object(fields)) => fields.is_empty(),
        (Value::Null, Value::Array(items)) => items.is_empty(),
        (stored, wanted) => stored == wanted,
    }
}

/// True if a copy has the field managers of the original: they decide which fields a later apply removes.
pub(crate) fn has_managers(copy: &DynamicObject, original: &DynamicObject) -> bool {
    managers(copy) == managers(original)
}

fn managers(object: &DynamicObject) -> Vec<String> {
    let name = |entry: &ManagedFieldsEntry| {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let (manager, operation) = (text(&entry.manager), text(&entry.operation));
        format!("{manager} {operation} {}", text(&entry.subresource))
    };
    let mut names: Vec<_> = object.managed_fields().iter().map(name).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests;
