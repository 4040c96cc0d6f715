//! Timeouts of the drain and of the detachment of volumes, set by a template or by a user.
//!
//! As with labels: the template's timeouts are applied; a timeout removed from the template leaves the machine, if
//! applied by this controller; a user's timeout on a machine stays where the template has none.

use api::core::v1beta2::{Machine, MachineDeletion};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::{Map, Value};

use super::{Manager, is_applied, is_by};

const DRAIN: &str = "f:nodeDrainTimeoutSeconds";
const DETACH: &str = "f:nodeVolumeDetachTimeoutSeconds";

/// `spec.deletion` of an existing [`Machine`] of `manager` under a template with these timeouts.
pub(crate) fn deletion(
    machine: &Machine,
    template: &MachineDeletion,
    manager: &Manager,
) -> Option<MachineDeletion> {
    let mut after = machine.spec.deletion.clone().unwrap_or_default();
    let follow = |field, of_machine: &mut Option<i32>, of_template: Option<i32>| {
        if of_template.is_some() || is_claimed(machine, field, manager) {
            *of_machine = of_template;
        }
    };
    let wanted = template.node_drain_timeout_seconds;
    follow(DRAIN, &mut after.node_drain_timeout_seconds, wanted);
    let wanted = template.node_volume_detach_timeout_seconds;
    let detach = &mut after.node_volume_detach_timeout_seconds;
    follow(DETACH, detach, wanted);
    // Admission sets the default on machines; an unset field of the template must not remove it.
    if template.node_deletion_timeout_seconds.is_some() {
        after.node_deletion_timeout_seconds = template.node_deletion_timeout_seconds;
    }
    (machine.spec.deletion.is_some() || after != MachineDeletion::default()).then_some(after)
}

/// Claims of an entry on the timeouts, for caches; `None` without claims.
pub(super) fn claims(entry: &ManagedFieldsEntry) -> Option<Map<String, Value>> {
    let known = fields(entry)?.iter();
    let kept: Map<_, _> = known
        .filter(|(field, _)| [DRAIN, DETACH].contains(&field.as_str()))
        .map(|(field, claim)| (field.clone(), claim.clone()))
        .collect();
    (!kept.is_empty()).then_some(kept)
}

/// True if the controller has written the field, by server-side apply or, in a former version, by an update.
fn is_claimed(machine: &Machine, field: &str, manager: &Manager) -> bool {
    let entries = machine.metadata.managed_fields.iter().flatten();
    let mut ours = entries.filter(|entry| {
        entry.subresource.is_none()
            && if is_applied(entry) {
                is_by(entry, &[manager.name])
            } else {
                is_by(entry, manager.former)
            }
    });
    ours.any(|entry| fields(entry).is_some_and(|fields| fields.contains_key(field)))
}

fn fields(entry: &ManagedFieldsEntry) -> Option<&Map<String, Value>> {
    let FieldsV1(fields) = entry.fields_v1.as_ref()?;
    fields.get("f:spec")?.get("f:deletion")?.as_object()
}

#[cfg(test)]
mod tests;
