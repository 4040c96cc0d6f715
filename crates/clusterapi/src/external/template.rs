//! Cloning of templates, and adoption of objects.

use std::collections::BTreeMap;

use api::core::v1beta2::ContractReference;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use api::kube::ResourceExt;
use api::kube::api::{DynamicObject, TypeMeta};
use api::names::{
    CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION, CLUSTER_NAME_LABEL,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ExternalError;
use crate::inplace::{Manager, Wanted};

/// Request to clone a template.
#[derive(Clone, Debug)]
pub struct CloneRequest<'a> {
    /// Template, of a kind ending in `Template`.
    pub template: &'a ContractReference,
    /// Namespace of the template and of the object.
    pub namespace: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// Cluster of the object.
    pub cluster_name: &'a str,
    /// Owner of the object.
    pub owner: Option<OwnerReference>,
    /// Labels and annotations of the machine, in addition to the template's.
    pub metadata: Wanted,
    /// [`Manager`] for labels and annotations that can be removed from the object later.
    pub manager: &'a Manager,
}

/// Object for `request`, without removable labels and annotations, which are applied instead.
///
/// # Errors
/// When the kind of the template does not end in `Template`, or the template has no `spec.template`.
pub fn instance_of(
    template: &DynamicObject,
    request: &CloneRequest<'_>,
) -> Result<DynamicObject, ExternalError> {
    let malformed = |problem: &str| ExternalError::TemplateMalformed {
        kind: request.template.kind.clone(),
        name: request.template.name.clone(),
        problem: problem.to_owned(),
    };
    let kind = request
        .template
        .kind
        .strip_suffix("Template")
        .filter(|kind| !kind.is_empty());
    let kind = kind.ok_or_else(|| malformed("its kind does not end in `Template`"))?;
    let body = template.data.pointer("/spec/template");
    let body = body.ok_or_else(|| malformed("it has no spec.template"))?;
    let strings = |field: &str| {
        let map = body
            .get("metadata")
            .and_then(|metadata| metadata.get(field));
        map.and_then(|map| BTreeMap::deserialize(map).ok())
            .unwrap_or_default()
    };
    let mut labels: BTreeMap<String, String> = strings("labels");
    labels.extend(request.metadata.permanent());
    labels.insert(
        CLUSTER_NAME_LABEL.to_owned(),
        request.cluster_name.to_owned(),
    );
    let mut annotations: BTreeMap<String, String> = strings("annotations");
    annotations.insert(
        CLONED_FROM_NAME_ANNOTATION.to_owned(),
        request.template.name.clone(),
    );
    annotations.insert(
        CLONED_FROM_GROUP_KIND_ANNOTATION.to_owned(),
        group_kind(request.template),
    );
    let api_version = template
        .types
        .as_ref()
        .map(|types| types.api_version.clone());
    Ok(DynamicObject {
        types: Some(TypeMeta {
            api_version: api_version.unwrap_or_default(),
            kind: kind.to_owned(),
        }),
        metadata: ObjectMeta {
            name: Some(request.name.to_owned()),
            namespace: Some(request.namespace.to_owned()),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: request.owner.clone().map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: json!({ "spec": body.get("spec").cloned().unwrap_or_else(|| json!({})) }),
    })
}

/// Value of the cloned-from annotation for kind and group, in upstream's form.
pub(super) fn group_kind(template: &ContractReference) -> String {
    format!("{}.{}", template.kind, template.api_group)
}

/// True if `object` was created by an earlier, equal request.
pub(super) fn is_ours(object: &DynamicObject, request: &CloneRequest<'_>) -> bool {
    let from = object.annotations().get(CLONED_FROM_NAME_ANNOTATION);
    let same_owner = match &request.owner {
        Some(owner) => object
            .owner_references()
            .iter()
            .any(|known| known.uid == owner.uid),
        None => true,
    };
    object.metadata.deletion_timestamp.is_none()
        && same_owner
        && from.is_some_and(|name| *name == request.template.name)
}

/// Merge patch to add `owner` and `labels`; `None` if nothing is missing.
pub(super) fn adoption(
    metadata: &ObjectMeta,
    owner: &OwnerReference,
    labels: &BTreeMap<String, String>,
) -> Option<Value> {
    let before = metadata.owner_references.clone().unwrap_or_default();
    let controls = owner.controller == Some(true);
    let mut after: Vec<_> = before
        .iter()
        .filter(|known| known.uid != owner.uid && !(controls && known.controller == Some(true)))
        .filter(|known| !is_same_object(known, owner))
        .cloned()
        .collect();
    let place = before
        .iter()
        .position(|known| known.uid == owner.uid)
        .unwrap_or(after.len());
    after.insert(place.min(after.len()), owner.clone());
    let known = metadata.labels.clone().unwrap_or_default();
    let missing: BTreeMap<_, _> = labels
        .iter()
        .filter(|(name, value)| known.get(*name) != Some(*value))
        .collect();
    let mut patch = json!({ "metadata": {} });
    if after != before {
        patch["metadata"]["ownerReferences"] = json!(after);
    }
    if !missing.is_empty() {
        patch["metadata"]["labels"] = json!(missing);
    }
    (patch != json!({ "metadata": {} })).then_some(patch)
}

/// True if two references have the same group, kind and name; one with another UID is outdated and removed.
fn is_same_object(a: &OwnerReference, b: &OwnerReference) -> bool {
    let group = |reference: &OwnerReference| {
        reference
            .api_version
            .split_once('/')
            .map(|(group, _)| group.to_owned())
    };
    a.kind == b.kind && a.name == b.name && group(a) == group(b)
}
