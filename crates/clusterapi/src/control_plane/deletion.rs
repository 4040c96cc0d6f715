//! Deletion of a control plane: all machines at once, after the workers are gone.

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::kube::ResourceExt;
use api::kube::api::{DeleteParams, ListParams};
use api::kube::runtime::controller::Action;
use api::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use operator::client::Api;

use crate::news::{self, PendingEvent};

use super::{ControlPlaneError, Duties, FINALIZER, Scope, Subject, error, hooks, observe, status};

/// Reconciles a control plane being deleted. The deletion of a Machine triggers the next reconcile.
pub(super) async fn reconcile(
    scope: &Scope,
    subject: &Subject,
) -> Result<Action, ControlPlaneError> {
    let planes: Api<KubeadmControlPlane> = scope.context.api(&subject.key.namespace);
    let workers = workers(scope, subject).await?;
    let machines = observe::machines(scope, subject).await?;
    let after = status::deleting(&subject.plane, &workers, &machines, scope.context.now());
    let stored = operator::patch::status(&planes, &subject.plane, &after).await;
    let stored = stored.map_err(status::failed)?;
    if !workers.is_empty() {
        return Ok(Action::await_change());
    }
    if machines.is_empty() {
        let plane = stored.as_ref().unwrap_or(subject.plane.as_ref());
        let removed = operator::finalizer::remove(&planes, plane, FINALIZER).await;
        removed.map_err(error::doing("removing the finalizer"))?;
        return Ok(Action::await_change());
    }
    let api: Api<Machine> = scope.context.api(&subject.key.namespace);
    let mut duties = Duties::default();
    for machine in &machines {
        // No member is removed, because all of etcd is deleted.
        duties.note(hooks::remove(&api, machine).await);
        if !machine.is_deleting() {
            duties.note(delete(scope, subject, &api, machine).await);
        }
    }
    duties.done()?;
    Ok(Action::await_change())
}

async fn delete(
    scope: &Scope,
    subject: &Subject,
    machines: &Api<Machine>,
    machine: &Machine,
) -> Result<(), ControlPlaneError> {
    let name = machine.name_any();
    let deleted = match machines.delete(&name, &DeleteParams::default()).await {
        Err(source) if !crate::error::is_absent(&source) => {
            Err(error::doing(format!("deleting Machine {name}"))(source))
        }
        _ => Ok(()),
    };
    let news = PendingEvent::of_deletion("Machine", &name, deleted.as_ref().copied());
    news::publish(&scope.context, subject.plane.as_ref(), news).await;
    deleted
}

/// Names of the machines of the cluster without the control plane label.
async fn workers(scope: &Scope, subject: &Subject) -> Result<Vec<String>, ControlPlaneError> {
    let selector = format!("{CLUSTER_NAME_LABEL}={}", subject.key.name);
    let machines: Api<Machine> = scope.context.api(&subject.key.namespace);
    let list = machines
        .list_metadata(&ListParams::default().labels(&selector))
        .await;
    let list = list.map_err(error::doing("listing Machines"))?;
    let workers = list
        .iter()
        .filter(|machine| !machine.labels().contains_key(CONTROL_PLANE_LABEL));
    Ok(workers.map(ResourceExt::name_any).collect())
}
