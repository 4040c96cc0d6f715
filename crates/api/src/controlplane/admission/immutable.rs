//! Mutable fields of a KubeadmControlPlane.

use serde_json::Value;

use crate::bootstrap::admission::at;
use crate::change::FieldError;

/// Mutable paths, with everything below; all other fields are immutable.
const MUTABLE: &[&str] = &[
    "spec.replicas",
    "spec.version",
    "spec.remediation",
    "spec.machineNaming",
    "spec.rollout",
    "spec.machineTemplate",
    "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local",
    "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external",
    "spec.kubeadmConfigSpec.clusterConfiguration.dns",
    "spec.kubeadmConfigSpec.clusterConfiguration.imageRepository",
    "spec.kubeadmConfigSpec.clusterConfiguration.featureGates",
    "spec.kubeadmConfigSpec.clusterConfiguration.apiServer",
    "spec.kubeadmConfigSpec.clusterConfiguration.controllerManager",
    "spec.kubeadmConfigSpec.clusterConfiguration.scheduler",
    "spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays",
    "spec.kubeadmConfigSpec.clusterConfiguration.encryptionAlgorithm",
    "spec.kubeadmConfigSpec.initConfiguration.nodeRegistration",
    "spec.kubeadmConfigSpec.initConfiguration.patches",
    "spec.kubeadmConfigSpec.initConfiguration.skipPhases",
    "spec.kubeadmConfigSpec.initConfiguration.timeouts",
    "spec.kubeadmConfigSpec.joinConfiguration.nodeRegistration",
    "spec.kubeadmConfigSpec.joinConfiguration.patches",
    "spec.kubeadmConfigSpec.joinConfiguration.skipPhases",
    "spec.kubeadmConfigSpec.joinConfiguration.timeouts",
    "spec.kubeadmConfigSpec.files",
    "spec.kubeadmConfigSpec.bootCommands",
    "spec.kubeadmConfigSpec.preKubeadmCommands",
    "spec.kubeadmConfigSpec.postKubeadmCommands",
    "spec.kubeadmConfigSpec.users",
    "spec.kubeadmConfigSpec.ntp",
    "spec.kubeadmConfigSpec.ignition",
    "spec.kubeadmConfigSpec.diskSetup",
    "spec.kubeadmConfigSpec.mounts",
    "spec.kubeadmConfigSpec.format",
    "spec.kubeadmConfigSpec.verbosity",
];

/// Appends an error for every changed immutable field.
pub(super) fn changes(old: &Value, new: &Value, errors: &mut Vec<FieldError>) {
    compare(Some(old), Some(new), "spec", errors);
    let etcd = "kubeadmConfigSpec.clusterConfiguration.etcd";
    let external = |spec: &Value| at(spec, &format!("{etcd}.external")).is_some();
    if external(old) != external(new) {
        let text = "cannot be switched between local and external after creation";
        errors.push(FieldError::new(format!("spec.{etcd}"), text));
    }
}

fn compare(old: Option<&Value>, new: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    if old == new || MUTABLE.contains(&path) {
        return;
    }
    let empty = serde_json::Map::new();
    let fields = |side: Option<&Value>| match side {
        Some(Value::Object(fields)) => Some(fields.clone()),
        None => Some(empty.clone()),
        Some(_) => None,
    };
    // Objects with mutable fields are compared member by member.
    let has_mutable = MUTABLE.iter().any(|known| {
        known
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with('.'))
    });
    match (fields(old), fields(new)) {
        (Some(old), Some(new)) if has_mutable => {
            let mut names: Vec<_> = old.keys().chain(new.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                compare(
                    old.get(name),
                    new.get(name),
                    &format!("{path}.{name}"),
                    errors,
                );
            }
        }
        _ => errors.push(FieldError::new(path, "cannot be changed after creation")),
    }
}
