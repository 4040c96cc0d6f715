//! Changes of the template that reach existing machines and their objects without a replacement.

use api::core::v1beta2::{ContractReference, Machine, MachineSpec};
use api::kube;
use api::kube::ResourceExt;
use api::kube::api::{Patch, PatchParams};
use operator::client::Api;
use operator::patch;

use super::observe::Observation;
use super::{ControlPlaneError, Duties, Scope, Subject, error, machines, remediation};
use crate::inplace::{self, CONTROL_PLANE, CONTROL_PLANE_METADATA, Wanted};

/// Updates the fields of existing machines that can be changed in place (labels, annotations, timeouts, gates and
/// taints of the template), and the labels and annotations of the objects that the machines refer to.
pub(super) async fn synchronize(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    duties: &mut Duties,
) {
    let machines = seen.machines.iter().map(|seen| &seen.machine);
    let wanted = machines::metadata(subject);
    for machine in machines.filter(|machine| !machine.is_deleting()) {
        duties.note(update(scope, subject, machine).await);
        let config = machine.spec.bootstrap.config_ref.as_ref();
        for reference in config.into_iter().chain([&machine.spec.infrastructure_ref]) {
            duties.note(label(scope, subject, reference, &wanted).await);
        }
    }
}

/// Updates the labels and annotations of an object that a machine refers to.
async fn label(
    scope: &Scope,
    subject: &Subject,
    reference: &ContractReference,
    wanted: &Wanted,
) -> Result<(), ControlPlaneError> {
    let external = &scope.context.external;
    if let Some(object) = external.get(reference, &subject.key.namespace).await? {
        external
            .apply_metadata(&object, wanted, &CONTROL_PLANE_METADATA)
            .await?;
    }
    Ok(())
}

/// Applies `machine`, existing or not.
pub(super) async fn apply(api: &Api<Machine>, machine: &Machine) -> kube::Result<Machine> {
    let params = PatchParams::apply(CONTROL_PLANE.name).force();
    api.patch(&machine.name_any(), &params, &Patch::Apply(machine))
        .await
}

async fn update(
    scope: &Scope,
    subject: &Subject,
    machine: &Machine,
) -> Result<(), ControlPlaneError> {
    let api: Api<Machine> = scope.context.api(&subject.key.namespace);
    let action = || error::doing(format!("changing Machine {}", machine.name_any()));
    let desired = desired(subject, machine);
    let wanted = Wanted {
        labels: desired.labels().clone(),
        annotations: desired.annotations().clone(),
    };
    if inplace::released(&machine.metadata, &wanted, &CONTROL_PLANE).is_some() {
        release(&api, machine, &wanted).await.map_err(action())?;
    }
    if !inplace::is_outdated(&machine.metadata, &wanted, &CONTROL_PLANE)
        && conformed(subject, machine) == machine.spec
    {
        return Ok(());
    }
    let stored = apply(&api, &desired).await.map_err(action())?;
    // A field removed from the template stays if set without server-side apply.
    let mut after = stored.clone();
    after.spec = conformed(subject, &stored);
    let patched = patch::object(&api, &stored, &after).await;
    patched.map(drop).map_err(action())
}

/// Releases the wanted labels and annotations from the managers of former versions.
async fn release(api: &Api<Machine>, machine: &Machine, wanted: &Wanted) -> kube::Result<()> {
    // The cache has only a part of managedFields.
    let name = machine.name_any();
    let Some(live) = api.get_opt(&name).await? else {
        return Ok(());
    };
    let Some(entries) = inplace::released(&live.metadata, wanted, &CONTROL_PLANE) else {
        return Ok(());
    };
    let patch = Patch::Merge(inplace::release_patch(&live.metadata, &entries));
    api.patch(&name, &PatchParams::default(), &patch)
        .await
        .map(drop)
}

/// Desired state of an existing [`Machine`]: as for a new machine, except for the fields that may differ until the
/// machine is replaced.
fn desired(subject: &Subject, machine: &Machine) -> Machine {
    let known = &machine.spec;
    let mut desired = machines::machine(
        subject,
        &machine.name_any(),
        known.infrastructure_ref.clone(),
        known.failure_domain.as_deref(),
    );
    desired.metadata.uid = machine.uid();
    desired.spec.version.clone_from(&known.version);
    desired
        .spec
        .bootstrap
        .config_ref
        .clone_from(&known.bootstrap.config_ref);
    if let Some(record) = machine.annotations().get(remediation::FOR) {
        let annotations = desired.annotations_mut();
        annotations.insert(remediation::FOR.to_owned(), record.clone());
    }
    desired
}

/// Spec of `machine` with the fields of the template that can be changed in place.
fn conformed(subject: &Subject, machine: &Machine) -> MachineSpec {
    let template = &subject.plane.spec.machine_template.spec;
    MachineSpec {
        deletion: inplace::deletion(machine, &machines::deletion(subject), &CONTROL_PLANE),
        readiness_gates: Some(machines::readiness_gates(subject)),
        taints: (!template.taints.is_empty()).then(|| template.taints.clone()),
        ..machine.spec.clone()
    }
}
