//! Changes of a template that reach existing machines and their objects without a replacement.

use std::sync::Arc;

use api::core::v1beta2::{Bootstrap, ContractReference, Machine, MachineSet};
use api::kube;
use api::kube::ResourceExt;
use api::kube::api::{Patch, PatchParams};
use operator::client::Api;
use operator::patch;

use super::{Duties, scale};
use crate::Context;
use crate::error::{Doing, Error};
use crate::external::ExternalError;
use crate::inplace::{self, MACHINE_SET, MACHINE_SET_METADATA, Wanted};

/// Updates the fields of [`Machine`]s that can be changed in place (labels, annotations, timeouts, gates, taints),
/// and the labels and annotations of the objects that the machines refer to.
pub(super) async fn machines(
    ctx: &Context,
    set: &MachineSet,
    machines: &[Arc<Machine>],
    duties: &mut Duties,
) {
    let wanted = scale::metadata(set);
    for machine in machines.iter().filter(|machine| !machine.is_deleting()) {
        duties.note(update(ctx, set, machine).await);
        let spec = &machine.spec;
        let config = spec.bootstrap.config_ref.iter();
        for reference in config.chain([&spec.infrastructure_ref]) {
            duties.note(label(ctx, set, reference, &wanted).await);
        }
    }
}

/// Sets the labels and annotations of an object that a machine refers to, if it exists.
async fn label(
    ctx: &Context,
    set: &MachineSet,
    reference: &ContractReference,
    wanted: &Wanted,
) -> Result<(), ExternalError> {
    let (external, manager) = (&ctx.external, &MACHINE_SET_METADATA);
    let namespace = set.namespace().unwrap_or_default();
    match external.get(reference, &namespace).await? {
        Some(object) => external.apply_metadata(&object, wanted, manager).await,
        None => Ok(()),
    }
}

/// Applies `machine`, existing or not.
pub(super) async fn apply(api: &Api<Machine>, machine: &Machine) -> kube::Result<Machine> {
    let params = PatchParams::apply(MACHINE_SET.name).force();
    api.patch(&machine.name_any(), &params, &Patch::Apply(machine))
        .await
}

async fn update(ctx: &Context, set: &MachineSet, machine: &Machine) -> Result<(), Error> {
    let namespace = set.namespace().unwrap_or_default();
    let api = ctx.api::<Machine>(&namespace);
    let action = || format!("changing Machine {namespace}/{}", machine.name_any());
    let wanted = scale::metadata(set);
    if inplace::released(&machine.metadata, &wanted, &MACHINE_SET).is_some() {
        release(&api, machine, &wanted).await.doing(action)?;
    }
    if !inplace::is_outdated(&machine.metadata, &wanted, &MACHINE_SET)
        && conformed(machine, set).spec == machine.spec
    {
        return Ok(());
    }
    let stored = apply(&api, &desired(machine, set)).await.doing(action)?;
    // A field removed from the template stays if set without server-side apply.
    let after = conformed(&stored, set);
    patch::object(&api, &stored, &after)
        .await
        .map(drop)
        .doing(action)
}

/// Releases the wanted labels and annotations from the managers of former versions.
async fn release(api: &Api<Machine>, machine: &Machine, wanted: &Wanted) -> kube::Result<()> {
    // The cache has only a part of managedFields.
    let name = machine.name_any();
    let Some(live) = api.get_opt(&name).await? else {
        return Ok(());
    };
    let Some(entries) = inplace::released(&live.metadata, wanted, &MACHINE_SET) else {
        return Ok(());
    };
    let patch = Patch::Merge(inplace::release_patch(&live.metadata, &entries));
    api.patch(&name, &PatchParams::default(), &patch)
        .await
        .map(drop)
}

/// Desired state of an existing [`Machine`]: as for a new machine, except for the fields that may differ until the
/// machine is replaced.
fn desired(machine: &Machine, set: &MachineSet) -> Machine {
    let (known, config) = (&machine.spec, machine.spec.bootstrap.config_ref.clone());
    let mut desired = scale::machine(
        set,
        &machine.name_any(),
        config.clone(),
        known.infrastructure_ref.clone(),
    );
    desired.metadata.uid = machine.uid();
    desired.spec.version.clone_from(&known.version);
    desired
        .spec
        .failure_domain
        .clone_from(&known.failure_domain);
    if config.is_none() {
        desired.spec.bootstrap = Bootstrap {
            config_ref: None,
            data_secret_name: known.bootstrap.data_secret_name.clone(),
        };
    }
    desired
}

/// `machine` with the fields of the spec of `set` that can be changed in place.
fn conformed(machine: &Machine, set: &MachineSet) -> Machine {
    let mut after = machine.clone();
    let template = &set.spec.template.spec;
    after
        .spec
        .readiness_gates
        .clone_from(&template.readiness_gates);
    after.spec.min_ready_seconds = template.min_ready_seconds;
    after.spec.taints.clone_from(&template.taints);
    let timeouts = template.deletion.clone().unwrap_or_default();
    after.spec.deletion = inplace::deletion(machine, &timeouts, &MACHINE_SET);
    after
}
