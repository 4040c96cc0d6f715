//! Comparison of a machine with the spec of the control plane.

use api::bootstrap::v1beta2::{KubeadmConfig, KubeadmConfigSpec};
use api::controlplane::v1beta2::{KubeadmControlPlane, Rollout};
use api::core::v1beta2::Machine;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;
use api::names::{CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION};

use self::comparable::{as_join, comparable, is_init, without_ca_path};
use crate::kubeadm;

/// Machine with its bootstrap config and infrastructure, `None` if unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) machine: &'a Machine,
    pub(super) config: Option<&'a KubeadmConfig>,
    pub(super) infrastructure: Option<&'a DynamicObject>,
}

/// Reasons why a machine is outdated; empty for an up-to-date one. Unknown parts count as up to date, because a
/// replacement is expensive.
pub(super) fn reasons(plane: &KubeadmControlPlane, of: Parts<'_>, now: Timestamp) -> Vec<String> {
    let mut reasons = Vec::new();
    let version = of.machine.spec.version.as_deref().unwrap_or_default();
    if bare(version) != bare(&plane.spec.version) {
        reasons.push(format!(
            "Version {version}, {} required",
            plane.spec.version
        ));
    }
    let rollout = plane.spec.rollout.clone().unwrap_or_default();
    reasons.extend(by_time(&rollout, of.machine, now));
    if let Some(object) = of.infrastructure {
        reasons.extend(by_template(plane, object));
    }
    if of.config.is_some_and(|config| differs(plane, config)) {
        reasons.push("KubeadmConfig is not up-to-date".to_owned());
    }
    reasons
}

fn bare(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}

fn by_time(rollout: &Rollout, machine: &Machine, now: Timestamp) -> Vec<String> {
    let mut reasons = Vec::new();
    if let (Some(after), Some(created)) = (&rollout.after, &machine.metadata.creation_timestamp)
        && after.0 <= now
        && created.0 < after.0
    {
        reasons.push("KubeadmControlPlane spec.rollout.after expired".to_owned());
    }
    let days = rollout
        .before
        .as_ref()
        .and_then(|before| before.certificates_expiry_days);
    let expiry = machine
        .status
        .as_ref()
        .and_then(|status| status.certificates_expiry_date.as_ref());
    if let (Some(days), Some(expiry)) = (days, expiry) {
        let left = expiry.0.as_second().saturating_sub(now.as_second());
        if left < i64::from(days).saturating_mul(86_400) {
            reasons.push(format!("Certificates expire in less than {days} days"));
        }
    }
    reasons
}

/// Reason if the infrastructure was cloned from another template. Objects without the annotations, such as adopted
/// ones, count as up to date.
fn by_template(plane: &KubeadmControlPlane, object: &DynamicObject) -> Option<String> {
    let annotations = object.annotations();
    let name = annotations.get(CLONED_FROM_NAME_ANNOTATION)?;
    let kind = annotations.get(CLONED_FROM_GROUP_KIND_ANNOTATION)?;
    let wanted = &plane.spec.machine_template.spec.infrastructure_ref;
    let same = *name == wanted.name && *kind == format!("{}.{}", wanted.kind, wanted.api_group);
    let actual = object
        .types
        .as_ref()
        .map_or("Infrastructure", |types| &types.kind);
    (!same).then(|| format!("{actual} is not up-to-date"))
}

/// True if a new machine would get a different [`KubeadmConfig`]. The first machine is up to date in either form: as a
/// joining machine, or as the first one again.
fn differs(plane: &KubeadmControlPlane, config: &KubeadmConfig) -> bool {
    let (joining, current) = (config_spec(plane, false), &config.spec);
    if !is_init(current) {
        return comparable(&joining) != comparable(current);
    }
    let as_joined = without_ca_path(as_join(current.clone()));
    comparable(&without_ca_path(joining)) != comparable(&as_joined)
        && comparable(&config_spec(plane, true)) != comparable(current)
}

/// KubeadmConfig of a new machine: without the join configuration for the first machine, without the init
/// configuration for all others. All have the cluster configuration, because it specifies if etcd is external, with
/// the feature gate for kubeadm, as the Go control plane provider expects of up-to-date machines.
pub(super) fn config_spec(plane: &KubeadmControlPlane, init: bool) -> KubeadmConfigSpec {
    let mut spec = plane.spec.kubeadm_config_spec.clone().unwrap_or_default();
    if init {
        spec.join_configuration = None;
    } else {
        spec.init_configuration = None;
        let join = spec.join_configuration.get_or_insert_default();
        join.control_plane.get_or_insert_default();
    }
    if let Ok(version) = plane.spec.version.parse() {
        let cluster = spec.cluster_configuration.take().unwrap_or_default();
        let cluster = kubeadm::with_local_mode(cluster, &version);
        spec.cluster_configuration = (cluster != Default::default()).then_some(cluster);
    }
    spec
}

mod comparable;
#[cfg(test)]
mod tests;
