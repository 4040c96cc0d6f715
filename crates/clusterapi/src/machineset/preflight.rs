//! Preflight checks of Cluster API before a set creates a machine or replaces an unhealthy one.

use api::core::v1beta2::{Cluster, MachineSet};
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;
use api::version::Version;
use operator::words::chain;

use super::Duties;
use crate::Context;
use crate::external::contract;
use crate::news::WAITING;

/// Annotation: names of checks to skip, separated by commas; `All` skips all.
pub(crate) const SKIP: &str = "machineset.cluster.x-k8s.io/skip-preflight-checks";

/// Check of the versions of kubelets.
const SKEW: &str = "KubernetesVersionSkew";

/// Maximum lag of a kubelet behind the API server, in minor versions (version skew policy).
const OLDEST: u64 = 3;

/// Failed checks of `set`, one sentence each. None passes while the control plane cannot be read.
pub(super) async fn run(
    ctx: &Context,
    set: &MachineSet,
    cluster: &Cluster,
    duties: &mut Duties,
) -> Vec<String> {
    let Some(reference) = &cluster.spec.control_plane_ref else {
        return problems(set, None);
    };
    let namespace = cluster.namespace().unwrap_or_default();
    match ctx.external.get(reference, &namespace).await {
        Ok(control_plane) => problems(set, control_plane.as_deref()),
        Err(error) => {
            let (kind, name) = (&reference.kind, &reference.name);
            let why = format!(
                "The version of {kind} {name} is not known: {}",
                chain(&error)
            );
            duties.note(Err::<(), _>(error));
            vec![why]
        }
    }
}

/// Failed checks of `set`, one sentence each. `control_plane` is the referenced object of the Cluster.
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
    let control_plane = format!("{kind} {}", control_plane.name_any());
    let mut problems = Vec::new();
    if let (Some(wanted), Some(runs)) = (wanted, runs)
        && is_on("ControlPlaneIsStable")
        && differ(wanted, runs)
    {
        let failed = failed("ControlPlaneIsStable");
        problems.push(format!(
            "{WAITING}{control_plane}, which is being upgraded from {runs} to {wanted} {failed}"
        ));
    }
    // After the upgrade, the control plane runs the new version.
    let leads = if problems.is_empty() {
        runs.or(wanted)
    } else {
        wanted
    };
    let Some(leads) = leads else {
        return problems;
    };
    let (ours, theirs) = match (version.parse::<Version>(), leads.parse::<Version>()) {
        (Ok(ours), Ok(theirs)) => (ours.major_minor(), theirs.major_minor()),
        (Err(invalid), _) | (_, Err(invalid)) => {
            problems.push(format!("{invalid} {}", failed(SKEW)));
            return problems;
        }
    };
    let oldest = (theirs.0, theirs.1.saturating_sub(OLDEST));
    if is_on(SKEW) && ours > theirs {
        problems.push(format!(
            "Version {version} is newer than that of {control_plane}, {leads}: upgrade {control_plane} \
             first {}",
            failed(SKEW)
        ));
        return problems;
    }
    if is_on(SKEW) && ours < oldest {
        problems.push(format!(
            "Version {version} is too old for {control_plane}, {leads}: at most three minor versions \
             may lie between them {}",
            failed(SKEW)
        ));
        return problems;
    }
    let config = set.spec.template.spec.bootstrap.config_ref.as_ref();
    let kubeadm = config.is_some_and(|config| config.kind == "KubeadmConfigTemplate");
    if is_on("KubeadmVersionSkew") && kubeadm && ours != theirs {
        problems.push(format!(
            "kubeadm of version {version} joins only a control plane of the same minor version, and \
             {control_plane} has {leads} {}",
            failed("KubeadmVersionSkew")
        ));
    }
    problems
}

/// Name of a check, for [`SKIP`], in upstream's words.
fn failed(check: &str) -> String {
    format!("(\"{check}\" preflight check failed)")
}

/// True if two versions differ, regardless of notation.
fn differ(a: &str, b: &str) -> bool {
    match (a.parse::<Version>(), b.parse::<Version>()) {
        (Ok(a), Ok(b)) => a != b,
        _ => a != b,
    }
}

#[cfg(test)]
mod tests;
