//! Adoption of stand-alone control plane machines: machines of the cluster without a controller.
//!
//! First the Secrets with the keys of the cluster: the KubeadmConfig of the first machine may own these Secrets, and
//! would take them along in its deletion. Until all machines are adopted, none is created or deleted.

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use api::kube::ResourceExt;
use api::version::Version;
use operator::client::Api;

use super::observe::Observation;
use super::{ControlPlaneError, Scope, Subject, error};
use crate::owners;
use crate::pki::Purpose;

/// Machine without a controller, with the reason against its adoption.
#[derive(Clone, Debug)]
pub(super) struct Orphan {
    pub(super) machine: Machine,
    obstacle: Option<String>,
}

impl Orphan {
    /// [`Machine`] of a control plane's cluster, unless it is being deleted or has a controller.
    pub(super) fn new(machine: Machine, subject: &Subject) -> Option<Self> {
        let stays = owners::controller_of(&machine.metadata).is_none() && !machine.is_deleting();
        let obstacle = obstacle(&machine, &subject.plane, &subject.key.name);
        stays.then_some(Self { machine, obstacle })
    }

    /// Message of a control plane that waits for this machine.
    pub(super) fn wait(&self) -> String {
        let name = self.machine.name_any();
        match &self.obstacle {
            None => format!("Waiting for Machine {name} to be adopted"),
            Some(why) => format!("Machine {name} is not adopted: {why}"),
        }
    }
}

/// Reason against the adoption of a [`Machine`]: the control plane could not have created it.
fn obstacle(machine: &Machine, plane: &KubeadmControlPlane, cluster: &str) -> Option<String> {
    if machine.spec.cluster_name != cluster {
        let of = &machine.spec.cluster_name;
        return Some(format!("its spec.clusterName is {of}"));
    }
    let config = machine.spec.bootstrap.config_ref.as_ref();
    if config.is_none_or(|config| config.kind != "KubeadmConfig") {
        return Some("its spec.bootstrap.configRef names no KubeadmConfig".to_owned());
    }
    let version = machine.spec.version.as_deref().unwrap_or_default();
    let (Ok(of_machine), Ok(wanted)) = (
        version.parse::<Version>(),
        plane.spec.version.parse::<Version>(),
    ) else {
        return Some(format!(
            "its spec.version `{version}` is not a Kubernetes version"
        ));
    };
    let ((major, minor), (to_major, to_minor)) = (of_machine.major_minor(), wanted.major_minor());
    let near = major == to_major && (minor == to_minor || minor + 1 == to_minor);
    (!near).then(|| {
        let wanted = &plane.spec.version;
        format!("its version {version} is neither that of {wanted} nor one minor version before")
    })
}

/// Adopts all adoptable machines.
pub(super) async fn adopt(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
) -> Result<(), ControlPlaneError> {
    let adoptable = seen
        .orphans
        .iter()
        .filter(|orphan| orphan.obstacle.is_none());
    let adoptable: Vec<_> = adoptable.map(|orphan| &orphan.machine).collect();
    if adoptable.is_empty() || !seen.facts.certificates {
        return Ok(());
    }
    adopt_secrets(scope, subject).await?;
    let machines: Api<Machine> = scope.context.api(&subject.key.namespace);
    let mut result = Ok(());
    for machine in adoptable {
        let mut after = machine.clone();
        owners::ensure(
            &mut after.metadata,
            owners::controller(subject.plane.as_ref()),
        );
        let adopted = operator::patch::object(&machines, machine, &after).await;
        let action = format!("adopting Machine {}", machine.name_any());
        let adopted = adopted.map(drop).map_err(error::doing(action));
        // A machine that cannot be adopted does not keep the others.
        result = result.and(adopted);
    }
    result
}

async fn adopt_secrets(scope: &Scope, subject: &Subject) -> Result<(), ControlPlaneError> {
    let secrets: Api<Secret> = scope.context.api(&subject.key.namespace);
    for purpose in Purpose::ALL {
        let name = purpose.secret_name(&subject.key.name);
        let found = secrets.get_opt(&name).await;
        let Some(before) = found.map_err(error::doing(format!("reading Secret {name}")))? else {
            continue;
        };
        let mut after = before.clone();
        if taken_over(&mut after.metadata, &subject.plane) {
            let adopted = operator::patch::object(&secrets, &before, &after).await;
            adopted.map_err(error::doing(format!("adopting Secret {name}")))?;
        }
    }
    Ok(())
}

/// Makes `plane` the controller in place of a KubeadmConfig. Returns true if anything changed.
fn taken_over(metadata: &mut ObjectMeta, plane: &KubeadmControlPlane) -> bool {
    let known = metadata.owner_references.get_or_insert_default();
    let of_config = |owner: &&mut OwnerReference| {
        owner.controller == Some(true) && owner.kind == "KubeadmConfig"
    };
    let Some(owner) = known.iter_mut().find(of_config) else {
        return false;
    };
    *owner = owners::controller(plane);
    true
}

#[cfg(test)]
mod tests;
