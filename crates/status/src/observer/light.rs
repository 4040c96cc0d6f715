//! Parts of an object kept for display. A process with a thousand clusters displays ten thousand objects.

use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;

use crate::readiness::cause::PAUSED;
use crate::snapshot::Kind;

/// Displayed fields of infrastructure objects, and fields with the names of other objects.
const OF_INFRASTRUCTURE: [(&str, &[&str]); 2] = [
    ("spec", &["providerID", "identityRef"]),
    (
        "status",
        &["conditions", "initialization", "network", "ready", "phase"],
    ),
];

/// Removes the fields that are never displayed: more than half of most objects.
pub(super) fn lighten(resource: &ApiResource, object: &mut DynamicObject) {
    object.metadata.managed_fields = None;
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.retain(|name, _| name == PAUSED);
    }
    let data = &mut object.data;
    // The conditions of the older contract.
    remove(data, "status", "deprecated");
    match Kind::new(&resource.group, &resource.kind) {
        Kind::KubeadmControlPlane => remove(data, "spec", "kubeadmConfigSpec"),
        Kind::OpenStackCluster | Kind::OpenStackMachine => {
            for (part, kept) in OF_INFRASTRUCTURE {
                if let Some(fields) = data.get_mut(part).and_then(Value::as_object_mut) {
                    fields.retain(|name, _| kept.contains(&name.as_str()));
                }
            }
        }
        _ => {}
    }
}

fn remove(data: &mut Value, part: &str, field: &str) {
    if let Some(fields) = data.get_mut(part).and_then(Value::as_object_mut) {
        fields.remove(field);
    }
}

#[cfg(test)]
mod tests;
