//! Conditions of the control plane in the status of its Machines.

use api::conditions;
use api::core::v1beta2::{Machine, MachineStatus};
use api::kube::ResourceExt;
use operator::client::Api;

use super::observe::Observation;
use super::{Duties, Scope, Subject, error};

/// Writes the conditions of this controller; the others belong to the Machine controller.
pub(super) async fn write(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    duties: &mut Duties,
) {
    let api: Api<Machine> = scope.context.api(&subject.key.namespace);
    for seen_machine in &seen.machines {
        let before = &seen_machine.machine;
        let mut after = before.clone();
        let status = after.status.get_or_insert_with(MachineStatus::default);
        for verdict in &seen_machine.verdicts {
            let generation = before.metadata.generation;
            conditions::set(
                &mut status.conditions,
                verdict.clone(),
                generation,
                seen.now,
            );
        }
        match operator::patch::status(&api, before, &after).await {
            Ok(_) => {}
            // Deleted concurrently.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(source) => {
                let action = format!("writing the conditions of Machine {}", before.name_any());
                duties.note(Err::<(), _>(error::doing(action)(source)));
            }
        }
    }
}
