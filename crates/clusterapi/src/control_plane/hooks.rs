//! Pre-terminate hook: delays the termination of a machine until its etcd member is removed.

use api::conditions::{self, Reason, Type};
use api::core::v1beta2::Machine;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::kube::api::{Patch, PatchParams};
use api::version::Version;
use operator::client::Api;
use serde_json::json;

use super::{ControlPlaneError, error};

/// Annotation of this hook.
pub(super) const PRE_TERMINATE: &str =
    "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup";
/// Prefix of all pre-terminate hooks.
const ANY_PRE_TERMINATE: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";

/// Removes the hook from a [`Machine`].
pub(super) async fn remove(
    machines: &Api<Machine>,
    machine: &Machine,
) -> Result<(), ControlPlaneError> {
    if !machine.annotations().contains_key(PRE_TERMINATE) {
        return Ok(());
    }
    let name = machine.name_any();
    let patch = json!({"metadata": {"annotations": {PRE_TERMINATE: null}}});
    match machines
        .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
    {
        Ok(_) => Ok(()),
        Err(source) if crate::error::is_absent(&source) => Ok(()),
        Err(source) => Err(error::doing(format!("releasing Machine {name}"))(source)),
    }
}

/// True if the [`Machine`] is being deleted and waits for the hook.
pub(super) fn is_held(machine: &Machine) -> bool {
    machine.is_deleting() && machine.annotations().contains_key(PRE_TERMINATE)
}

/// The deletion timestamp.
pub(super) fn deleted_at(machine: &Machine) -> Option<Timestamp> {
    machine
        .metadata
        .deletion_timestamp
        .as_ref()
        .map(|time| time.0)
}

/// True if the drain is complete and this hook is the only one left. Always true before Kubernetes 1.31; since then a
/// kubelet uses its local API server, and so needs the local etcd member until the drain is complete.
pub(super) fn is_drained(machine: &Machine, version: &str) -> bool {
    let version = machine
        .spec
        .version
        .as_deref()
        .unwrap_or(version)
        .parse::<Version>();
    if version.is_ok_and(|version| version.is_before_minor(1, 31)) {
        return true;
    }
    let others = |key: &&String| key.starts_with(ANY_PRE_TERMINATE) && *key != PRE_TERMINATE;
    let waiting = conditions::find(machine.conditions(), Type::Deleting)
        .is_some_and(|condition| condition.reason == Reason::WaitingForPreTerminateHook);
    waiting && machine.annotations().keys().find(others).is_none()
}

#[cfg(test)]
mod tests;
