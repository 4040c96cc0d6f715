//! Checks before a set makes another machine (upstream's preflight checks).

use api::core::v1beta2::MachineSet;
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;

use crate::counts::numbers;
use crate::external::contract;

/// Annotation: names of checks to skip, separated by commas; `All` skips all.
pub(crate) const SKIP: &str = "machineset.cluster.x-k8s.io/skip-preflight-checks";

/// Why no machine of `set` should be made now, one sentence each; empty if nothing speaks against it.
/// `control_plane` is the object that the Cluster refers to.
pub(crate) fn problems(set: &MachineSet, control_plane: Option<&DynamicObject>) -> Vec<String> {
    let (Some(version), Some(control_plane)) =
        (set.spec.template.spec.version.as_deref(), control_plane)
    else {
        return Vec::new();
    };
    let skipped = set.annotations().get(SKIP).cloned().unwrap_or_default();
    let is_on = |name: &str| {
        !skipped
            .split(',')
            .map(str::trim)
            .any(|skip| skip == name || skip == "All")
    };
    let wanted = contract::text(control_plane, "/spec/version");
    let runs = contract::text(control_plane, "/status/versions/0/version")
        .or_else(|| contract::text(control_plane, "/status/version"));
    let kind = control_plane
        .types
        .as_ref()
        .map_or("control plane", |types| types.kind.as_str());
    let mut problems = Vec::new();
    if let (Some(wanted), Some(runs)) = (wanted, runs)
        && is_on("ControlPlaneIsStable")
        && numbers(wanted) != numbers(runs)
    {
        problems.push(format!(
            "{kind} {} is being upgraded from {runs} to {wanted}",
            control_plane.name_any()
        ));
    }
    let Some(leads) = runs.or(wanted) else {
        return problems;
    };
    let (ours, theirs) = (minor(version), minor(leads));
    if is_on("KubernetesVersionSkew") && (ours > theirs || ours + 3 < theirs) {
        problems.push(format!(
            "MachineSet version {version} does not fit control plane version {leads}: it may be at \
             most as new, and at most three minor versions older"
        ));
    }
    let config = set.spec.template.spec.bootstrap.config_ref.as_ref();
    let kubeadm = config.is_some_and(|config| config.kind == "KubeadmConfigTemplate");
    if is_on("KubeadmVersionSkew") && kubeadm && ours != theirs {
        problems.push(format!(
            "kubeadm of MachineSet version {version} joins only a control plane of the same minor \
             version, and that runs {leads}"
        ));
    }
    problems
}

/// Major and minor version as one number.
fn minor(version: &str) -> u64 {
    let numbers = numbers(version);
    let part = |at: usize| numbers.get(at).copied().unwrap_or(0).min(9_999);
    part(0) * 10_000 + part(1)
}

#[cfg(test)]
mod tests;
