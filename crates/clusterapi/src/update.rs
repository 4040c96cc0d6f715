//! Updates of machines in place: what the owner of a machine and its own controller agree on.
//!
//! The owner clones the bootstrap config for another start of the machine, and then changes the Machine in one write: it
//! refers to the clone, has the new version and owner, and [`UPDATE_IN_PROGRESS_ANNOTATION`] names the infrastructure
//! template. From then on the controller of the Machine brings the update to its end.

use api::conditions::{self, Reason, Type};
use api::core::v1beta2::{ContractReference, Machine, MachineSpec};
use api::in_place::{self, Strategy, UnknownStrategy};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::kube::ResourceExt;
use api::kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams};
use api::names::{IN_PLACE_UPDATE_ANNOTATION, UPDATE_IN_PROGRESS_ANNOTATION};
use serde_json::{Value, json};

use crate::error::Doing;
use crate::external::{CloneRequest, ExternalError};
use crate::inplace::{Manager, Wanted};
use crate::{Context, Error, naming, owners};

/// True for a machine under an update in place.
pub(crate) fn is_under_way(machine: &Machine) -> bool {
    machine
        .annotations()
        .contains_key(UPDATE_IN_PROGRESS_ANNOTATION)
}

/// Cause of the failure of the update of a machine.
pub(crate) fn failure(machine: &Machine) -> Option<&str> {
    let found = conditions::find(machine.conditions(), Type::Updating)?;
    let failed = is_under_way(machine) && found.reason == Reason::InPlaceUpdateFailed.as_str();
    failed.then_some(found.message.as_str())
}

/// [`Strategy`] in the annotations of an owner of machines.
pub(crate) fn strategy(owner: &ObjectMeta) -> Result<Strategy, UnknownStrategy> {
    let annotations = owner.annotations.as_ref();
    let given = annotations.and_then(|it| it.get(IN_PLACE_UPDATE_ANNOTATION));
    given.map_or(Ok(Strategy::Never), |text| text.parse())
}

/// Reasons because of which `machine` cannot be updated in place to `template`.
pub(crate) async fn obstacles(
    ctx: &Context,
    machine: &Machine,
    template: &MachineSpec,
) -> Result<Vec<String>, ExternalError> {
    let namespace = machine.namespace().unwrap_or_default();
    let (have, want) = (
        &machine.spec.infrastructure_ref,
        &template.infrastructure_ref,
    );
    if want.kind != format!("{}Template", have.kind) {
        return Ok(vec![format!("infrastructureRef is a {} now", want.kind)]);
    }
    let mut lines = Vec::new();
    if machine.spec.failure_domain != template.failure_domain && template.failure_domain.is_some() {
        lines.push("failureDomain differs".to_owned());
    }
    let object = ctx.external.get(have, &namespace).await?;
    let wanted = ctx.external.get(want, &namespace).await?;
    match (object, wanted) {
        (Some(object), Some(wanted)) => {
            let [have_spec, want_spec] = [spec_of(&object), spec_of_template(&wanted)];
            lines.extend((ctx.options.in_place)(&have.kind, have_spec, want_spec));
        }
        (None, _) => lines.push(format!("{} {} does not exist", have.kind, have.name)),
        (_, None) => lines.push(format!("{} {} does not exist", want.kind, want.name)),
    }
    Ok(lines)
}

/// Spec of an infrastructure object.
pub(crate) fn spec_of(object: &DynamicObject) -> &Value {
    object.data.get("spec").unwrap_or(&Value::Null)
}

/// Spec of the objects of a template.
pub(crate) fn spec_of_template(template: &DynamicObject) -> &Value {
    let spec = template.data.pointer("/spec/template/spec");
    spec.unwrap_or(&Value::Null)
}

/// Merge patch from the spec of an infrastructure object to the one of its new template.
pub(crate) fn change(object: &DynamicObject, template: &DynamicObject) -> Value {
    in_place::change(spec_of(object), spec_of_template(template))
}

/// Desired state of a machine, from its owner.
pub(crate) struct Target<'a> {
    /// The template of the machine.
    pub(crate) template: &'a MachineSpec,
    /// The owner.
    pub(crate) owner: OwnerReference,
    /// Labels and annotations of the machine and of its objects.
    pub(crate) metadata: Wanted,
    /// [`Manager`] of the labels and annotations of the bootstrap config.
    pub(crate) manager: &'static Manager,
}

/// Begins the update of `machine`, which was read live. An interruption before the last write leaves a bootstrap config
/// that the Machine owns and does not refer to. The next attempt takes it, since its name follows from the new owner and
/// from the config that the Machine has; otherwise it goes with the end of the next update, or with the Machine.
pub(crate) async fn begin(
    ctx: &Context,
    machine: &Machine,
    target: &Target<'_>,
) -> Result<(), Error> {
    let namespace = machine.namespace().unwrap_or_default();
    let name = machine.name_any();
    let bootstrap = match &target.template.bootstrap.config_ref {
        Some(template) => {
            let known = machine.spec.bootstrap.config_ref.as_ref();
            let known = known.map_or("", |config| config.name.as_str());
            let suffix = naming::derived(&[&target.owner.uid, known]);
            let clone = naming::with_suffix(&name, &suffix);
            let request = CloneRequest {
                template,
                namespace: &namespace,
                name: &clone,
                cluster_name: &machine.spec.cluster_name,
                owner: Some(owners::controller(machine)),
                metadata: target.metadata.clone(),
                manager: target.manager,
            };
            json!({ "configRef": ctx.external.clone_template(&request).await? })
        }
        None => json!({ "dataSecretName": target.template.bootstrap.data_secret_name }),
    };
    let patch = patch(machine, target, &bootstrap);
    let api = ctx.api::<Machine>(&namespace);
    let written = api
        .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    written.doing(|| format!("changing Machine {namespace}/{name}"))?;
    let note = format!("Machine {name} is updated in place");
    ctx.events
        .normal(machine, Reason::InPlaceUpdating.as_str(), "Update", note)
        .await;
    Ok(())
}

/// The one write that begins an update.
fn patch(machine: &Machine, target: &Target<'_>, bootstrap: &Value) -> Value {
    let known = machine.metadata.owner_references.iter().flatten();
    let mut owners: Vec<_> = known
        .filter(|owner| owner.controller != Some(true))
        .cloned()
        .collect();
    owners.push(target.owner.clone());
    let infrastructure: &ContractReference = &target.template.infrastructure_ref;
    json!({
        "metadata": {
            "resourceVersion": machine.metadata.resource_version,
            "ownerReferences": owners,
            "labels": target.metadata.labels,
            "annotations": { UPDATE_IN_PROGRESS_ANNOTATION: infrastructure.name },
        },
        "spec": { "version": target.template.version, "bootstrap": bootstrap },
    })
}

/// Judges two specs of infrastructure objects of a kind: reasons because of which the machine has to be replaced.
pub type Judge = fn(&str, &Value, &Value) -> Vec<String>;
