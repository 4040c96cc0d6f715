//! Owner references, identical to upstream's: `clusterctl move` follows them.

use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use api::kube::{Resource, ResourceExt};

/// Reference to `object` as an owner without control.
pub(crate) fn owner<K: Resource<DynamicType = ()>>(object: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        controller: None,
        block_owner_deletion: None,
    }
}

/// Reference to `object` as the controller.
pub(crate) fn controller<K: Resource<DynamicType = ()>>(object: &K) -> OwnerReference {
    OwnerReference {
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..owner(object)
    }
}

/// Controller of the object with this metadata.
pub(crate) fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))
}

/// True if `object` is the controller of the object with this metadata.
pub(crate) fn is_controlled_by<K: Resource>(metadata: &ObjectMeta, object: &K) -> bool {
    controller_of(metadata).is_some_and(|owner| Some(&owner.uid) == object.meta().uid.as_ref())
}

/// True if `object` is one of the owners.
pub(crate) fn is_owned_by<K: Resource>(metadata: &ObjectMeta, object: &K) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|owner| Some(&owner.uid) == object.meta().uid.as_ref())
}

/// Adds `reference` to the owners, or replaces the one with the same UID. Returns true if anything changed.
pub(crate) fn ensure(metadata: &mut ObjectMeta, reference: OwnerReference) -> bool {
    let owners = metadata.owner_references.get_or_insert_default();
    match owners.iter_mut().find(|known| known.uid == reference.uid) {
        Some(known) if *known == reference => false,
        Some(known) => {
            *known = reference;
            true
        }
        None => {
            owners.push(reference);
            true
        }
    }
}
