//! Conditions of checked machines, and remediation by their owners or by an object of another provider.

use std::sync::Arc;

use api::conditions::{self, Reason, Type, Verdict};
use api::core::v1beta2::{ContractReference, Machine, MachineHealthCheck, VersionedReference};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use operator::patch;

use super::plan::{Allowed, Plan};
use super::verdict::Cause;
use crate::Context;
use crate::duties::Duties;
use crate::error::{Doing, Error};
use crate::external::{CloneRequest, ExternalError};
use crate::inplace::{MACHINE_SET_METADATA, Wanted};
use crate::owners;

const SUCCEEDED: Type = Type::HealthCheckSucceeded;
const BY_OWNER: Type = Type::OwnerRemediated;
const EXTERNALLY: Type = Type::ExternallyRemediated;
const WAITING: Reason = Reason::WaitingForRemediation;

/// Writes the conditions of all checked machines, and requests the replacement of unhealthy ones if allowed.
pub(super) async fn run(
    runner: &Context,
    check: &MachineHealthCheck,
    plan: &Plan,
    duties: &mut Duties<Error>,
) {
    for target in &plan.healthy {
        duties.note(recovered(runner, check, &target.machine).await);
    }
    let allowed = matches!(plan.allowed, Allowed::Yes(_));
    for (target, cause) in &plan.unhealthy {
        duties.note(mark(runner, check, (&target.machine, cause), allowed).await);
    }
}

/// Marks an unhealthy [`Machine`], with an event on the first mark.
async fn mark(
    runner: &Context,
    check: &MachineHealthCheck,
    (machine, cause): (&Arc<Machine>, &Cause),
    allowed: bool,
) -> Result<(), Error> {
    let request = match allowed {
        true => Some(request(runner, check, machine).await?),
        false => None,
    };
    let written = write(runner, machine, |list| {
        unhealthy(list, cause, request.as_ref())
    });
    if written.await? {
        let (name, why) = (machine.name_any(), &cause.message);
        let note = format!("Machine {name} was marked as unhealthy: {why}");
        let (events, machine) = (&runner.events, machine.as_ref());
        events
            .normal(machine, "MachineMarkedUnhealthy", "Check", note)
            .await;
    }
    Ok(())
}

/// Conditions to set on a healthy machine.
pub(super) fn healthy() -> Vec<Verdict> {
    vec![Verdict::new(SUCCEEDED, true, Reason::HealthCheckSucceeded)]
}

/// Request to the owner of a machine for a replacement.
pub(super) fn by_owner() -> Verdict {
    Verdict::new(BY_OWNER, false, WAITING).because("Waiting for remediation")
}

/// Conditions to set on an unhealthy machine; conditions with the same status stay unchanged.
pub(super) fn unhealthy(
    list: &[Condition],
    cause: &Cause,
    request: Option<&Verdict>,
) -> Vec<Verdict> {
    let failed = Verdict::new(SUCCEEDED, false, cause.reason).because(cause.message.clone());
    let answered = conditions::find(list, BY_OWNER).is_some();
    let mut verdicts = vec![failed];
    // The owner writes this condition, too: the reason of a wait, or its action.
    let request = request.filter(|request| !(request.type_ == BY_OWNER && answered));
    verdicts.extend(request.cloned());
    verdicts
}

/// Condition that requests the replacement of a [`Machine`]; with a template, creates the replacing object.
async fn request(
    runner: &Context,
    check: &MachineHealthCheck,
    machine: &Arc<Machine>,
) -> Result<Verdict, Error> {
    let Some(template) = template(check) else {
        return Ok(by_owner());
    };
    let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
    let reference = reference(template);
    let request = CloneRequest {
        template: &reference,
        namespace: &namespace,
        name: &name,
        cluster_name: &machine.spec.cluster_name,
        owner: Some(owners::owner(machine.as_ref())),
        metadata: Wanted::default(),
        manager: &MACHINE_SET_METADATA,
    };
    let failed = |reason: Reason, source: &ExternalError| {
        Verdict::new(EXTERNALLY, false, reason).because(source.to_string())
    };
    Ok(match runner.external.clone_template(&request).await {
        Ok(_) => Verdict::new(EXTERNALLY, false, WAITING).because("Waiting for remediation"),
        Err(source @ ExternalError::TemplateMissing { .. }) => {
            failed(Reason::RemediationTemplateNotFound, &source)
        }
        Err(
            source @ (ExternalError::UnknownKind { .. } | ExternalError::TemplateMalformed { .. }),
        ) => failed(Reason::RemediationRequestCreationFailed, &source),
        Err(source) => return Err(source.into()),
    })
}

/// Marks a healthy [`Machine`], and withdraws the request for a replacement.
async fn recovered(
    runner: &Context,
    check: &MachineHealthCheck,
    machine: &Arc<Machine>,
) -> Result<(), Error> {
    let withdrawn = conditions::find(machine.conditions(), EXTERNALLY).is_some();
    if let Some(template) = template(check).filter(|_| withdrawn) {
        let reference = reference(template);
        if let Some(kind) = reference.kind.strip_suffix("Template") {
            let name = machine.name_any();
            let request = ContractReference::new(&reference.api_group, kind, &name);
            let namespace = machine.namespace().unwrap_or_default();
            runner.external.delete(&request, &namespace).await?;
        }
    }
    write(runner, machine, |_| healthy()).await.map(drop)
}

fn template(check: &MachineHealthCheck) -> Option<&VersionedReference> {
    check.spec.remediation.as_ref()?.template_ref.as_ref()
}

fn reference(template: &VersionedReference) -> ContractReference {
    let group = template
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    ContractReference::new(group, &template.kind, &template.name)
}

/// Sets [`Condition`]s of a [`Machine`]; returns true if the machine has become unhealthy.
async fn write(
    runner: &Context,
    machine: &Arc<Machine>,
    verdicts: impl Fn(&[Condition]) -> Vec<Verdict>,
) -> Result<bool, Error> {
    let after = after(machine, verdicts(machine.conditions()), runner.now());
    let became = has_failed(after.conditions()) && !has_failed(machine.conditions());
    let api = runner.api::<Machine>(&machine.namespace().unwrap_or_default());
    match patch::status(&api, machine, &after).await {
        Err(error) if crate::error::is_absent(&error) => Ok(false),
        other => other
            .map(|_| became)
            .doing(|| format!("writing the status of Machine {}", machine.name_any())),
    }
}

/// [`Machine`] with these conditions. The request for a replacement leaves a healthy machine.
pub(super) fn after(machine: &Machine, verdicts: Vec<Verdict>, now: Timestamp) -> Machine {
    let mut after = machine.clone();
    let list = &mut after.status.get_or_insert_default().conditions;
    for verdict in verdicts {
        conditions::set(list, verdict, machine.metadata.generation, now);
    }
    if !has_failed(list) {
        list.retain(|known| known.type_ != BY_OWNER && known.type_ != EXTERNALLY);
    }
    after
}

fn has_failed(list: &[Condition]) -> bool {
    conditions::find(list, SUCCEEDED).is_some_and(|known| known.status == "False")
}
