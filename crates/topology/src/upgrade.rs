//! The order of an upgrade: the control plane first, one minor release after the other, then the MachineDeployments, one
//! by one.

use std::collections::BTreeMap;

use api::conditions::{Reason, Type, Verdict};
use api::core::v1beta2::Topology;
use api::version::Version;

pub use plan::Plan;

mod plan;

/// Annotation of a MachineDeployment of a topology: the upgrade is left to a later change of the topology.
pub const DEFER_UPGRADE: &str = "topology.cluster.x-k8s.io/defer-upgrade";
/// Annotation of a MachineDeployment of a topology: this upgrade and all later ones in the sequence are left to a later
/// change.
pub const HOLD_UPGRADE_SEQUENCE: &str = "topology.cluster.x-k8s.io/hold-upgrade-sequence";
/// Annotation of a Cluster: number of MachineDeployments to upgrade at a time; 1 if absent.
pub const UPGRADE_CONCURRENCY: &str = "topology.cluster.x-k8s.io/upgrade-concurrency";
/// Annotation of a Cluster: present target version of the control plane's upgrade.
pub const UPGRADE_STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";
/// Maximum number of minor releases by which a kubelet may be older than the API server (Kubernetes' version skew
/// policy).
const SKEW: u64 = 3;

/// Facts about a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plane {
    /// Kind of the object, for messages.
    pub kind: String,
    /// Version in the spec.
    pub version: String,
    /// Oldest version in the status; `None` before the first machine.
    pub running: Option<String>,
}

/// Facts about a MachineDeployment of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Name in the topology.
    pub topology_name: String,
    /// Name of the object.
    pub name: String,
    /// Version in the template.
    pub version: String,
    /// True if a machine has another version.
    pub upgrading: bool,
}

/// Next step of an upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Version of the control plane.
    pub control_plane: String,
    /// True if the control plane stays as it is while the upgrade waits: other changes now would replace the machines
    /// twice.
    pub control_plane_waits: bool,
    /// True if the control plane is being upgraded, or its upgrade begins now.
    pub control_plane_upgrading: bool,
    /// Versions of the MachineDeployments by their names in the topology.
    pub deployments: BTreeMap<String, String>,
    /// Names of MachineDeployments that stay as they are while their upgrades wait.
    pub waiting: Vec<String>,
    /// MachineDeployments whose upgrades are deferred by an annotation.
    pub deferred: Vec<String>,
    /// Names in the topology of MachineDeployments whose creation waits for the control plane.
    pub not_created: Vec<String>,
    /// Names of MachineDeployments during an upgrade.
    pub upgrading: Vec<String>,
    /// True if an upgrade is not complete.
    pub in_progress: bool,
}

/// Decides the present step of an upgrade to the version of `topology`. `listed` are the versions of the class,
/// ascending.
///
/// # Errors
/// A sentence about a version that cannot be reached.
pub fn decide(
    topology: &Topology,
    listed: Option<&[String]>,
    plane: Option<&Plane>,
    deployments: &[Deployment],
    concurrency: usize,
) -> Result<Decisions, String> {
    let mut decisions = Decisions {
        control_plane: topology.version.clone(),
        ..Decisions::default()
    };
    let mut upgrading: Vec<String> = deployments
        .iter()
        .filter(|deployment| deployment.upgrading)
        .map(|deployment| deployment.name.clone())
        .collect();
    let mut stable = true;
    // The version to which MachineDeployments may be upgraded now.
    let mut workers = topology.version.clone();
    if let Some(plane) = plane {
        let step = plane_step(topology, listed, plane, deployments, !upgrading.is_empty())?;
        decisions.control_plane = step.version;
        decisions.control_plane_waits = step.waits;
        decisions.control_plane_upgrading = step.upgrading;
        stable = step.stable;
        workers = step.workers;
    }
    for wanted in of_topology(topology) {
        let name = wanted.name.as_str();
        let known = deployments.iter().find(|known| known.topology_name == name);
        let Some(known) = known else {
            if !stable || decisions.control_plane_waits {
                decisions.not_created.push(name.to_owned());
            }
            decisions
                .deployments
                .insert(name.to_owned(), topology.version.clone());
            continue;
        };
        let mut version = known.version.clone();
        if known.version != topology.version {
            let deferred = is_deferred(topology, name);
            let ready = stable
                && !deferred
                && upgrading.len() < concurrency.max(1)
                && known.version != workers;
            if ready {
                version.clone_from(&workers);
                upgrading.push(known.name.clone());
            } else if !upgrading.contains(&known.name) {
                decisions.waiting.push(known.name.clone());
            }
            if deferred {
                decisions.deferred.push(known.name.clone());
            }
        }
        decisions.deployments.insert(name.to_owned(), version);
    }
    decisions.in_progress = decisions.control_plane_waits
        || decisions.control_plane_upgrading
        || !decisions.waiting.is_empty()
        || !upgrading.is_empty();
    decisions.upgrading = upgrading;
    Ok(decisions)
}

struct Step {
    version: String,
    waits: bool,
    upgrading: bool,
    stable: bool,
    workers: String,
}

fn plane_step(
    topology: &Topology,
    listed: Option<&[String]>,
    plane: &Plane,
    deployments: &[Deployment],
    workers_upgrading: bool,
) -> Result<Step, String> {
    let pending = plane.version != topology.version;
    let next = match pending {
        true => Some(next(&plane.version, &topology.version, listed)?),
        false => None,
    };
    let keep = |stable: bool, upgrading: bool| Step {
        version: plane.version.clone(),
        waits: pending,
        upgrading,
        stable,
        workers: plane.version.clone(),
    };
    let Some(running) = &plane.running else {
        // A control plane under creation gets its first version before another one.
        return Ok(keep(false, false));
    };
    if version(running)? < version(&plane.version)? {
        return Ok(keep(false, true));
    }
    let Some(next) = next else {
        return Ok(keep(true, false));
    };
    let oldest = deployments
        .iter()
        .filter_map(|deployment| version(&deployment.version).ok())
        .map(|version| version.major_minor().1)
        .min();
    let too_old = oldest.is_some_and(|oldest| {
        version(&next).is_ok_and(|next| next.major_minor().1 > oldest + SKEW)
    });
    if too_old {
        // The MachineDeployments are upgraded to the version that the control plane has reached.
        return Ok(keep(true, false));
    }
    if workers_upgrading {
        return Ok(keep(false, false));
    }
    Ok(Step {
        version: next,
        waits: false,
        upgrading: true,
        stable: false,
        workers: plane.version.clone(),
    })
}

/// Checks for an upgrade path from version `current` to `wanted`, if need be through the versions of the class.
///
/// # Errors
/// A sentence about a version that cannot be reached, or about an unknown version on the path.
pub fn reachable(current: &str, wanted: &str, listed: Option<&[String]>) -> Result<(), String> {
    let mut at = current.to_owned();
    while at != wanted {
        at = next(&at, wanted, listed)?;
    }
    Ok(())
}

/// Returns the next version on the path from `current` to `wanted`.
fn next(current: &str, wanted: &str, listed: Option<&[String]>) -> Result<String, String> {
    let (now, end) = (version(current)?, version(wanted)?);
    if end < now {
        return Err(format!(
            "the version cannot go back from {current} to {wanted}"
        ));
    }
    let ((major, minor), (end_major, end_minor)) = (now.major_minor(), end.major_minor());
    if end_major == major && end_minor <= minor + 1 {
        return Ok(wanted.to_owned());
    }
    let mut on_the_way = listed.unwrap_or_default().iter().filter(|listed| {
        version(listed)
            .is_ok_and(|listed| listed.major_minor() == (major, minor + 1) && listed <= end)
    });
    // The last one of the next minor release.
    on_the_way.next_back().cloned().ok_or_else(|| {
        format!(
            "no version of v{major}.{} is known, which an upgrade from {current} to {wanted} passes: list one in spec.kubernetesVersions of the ClusterClass",
            minor + 1
        )
    })
}

fn version(text: &str) -> Result<Version, String> {
    text.parse()
        .map_err(|error: api::version::InvalidVersion| error.to_string())
}

fn of_topology(topology: &Topology) -> &[api::core::v1beta2::MachineDeploymentTopology] {
    let workers = topology.workers.as_ref();
    let all = workers.and_then(|workers| workers.machine_deployments.as_deref());
    all.unwrap_or_default()
}

/// True if an annotation defers the upgrade of a MachineDeployment: its own, or one that holds all later upgrades.
fn is_deferred(topology: &Topology, name: &str) -> bool {
    for deployment in of_topology(topology) {
        let metadata = deployment.metadata.as_ref();
        let annotations = metadata.and_then(|metadata| metadata.annotations.as_ref());
        let has =
            |name: &str| annotations.is_some_and(|annotations| annotations.contains_key(name));
        if has(HOLD_UPGRADE_SEQUENCE) {
            return true;
        }
        if deployment.name == name {
            return has(DEFER_UPGRADE);
        }
    }
    false
}

/// Returns the condition `TopologyReconciled`, with upstream's reasons.
pub fn verdict(decisions: &Decisions, topology: &Topology, plane: Option<&Plane>) -> Verdict {
    let type_ = Type::TopologyReconciled;
    if !decisions.in_progress && decisions.not_created.is_empty() {
        return Verdict::new(type_, true, Reason::ReconcileSucceeded);
    }
    let kind = plane.map_or("The control plane", |plane| plane.kind.as_str());
    let mut lines = Vec::new();
    if decisions.in_progress {
        lines.push(format!("Cluster is upgrading to {}", topology.version));
    }
    let step = &decisions.control_plane;
    if decisions.control_plane_upgrading {
        lines.push(format!("  * {kind} upgrading to version {step}"));
    } else if decisions.control_plane_waits {
        lines.push(format!(
            "  * {kind} pending upgrade to version {}",
            topology.version
        ));
    }
    let mut list = |names: &[String], what: &str| {
        if !names.is_empty() {
            lines.push(format!("  * {} {what}", some("MachineDeployment", names)));
        }
    };
    let waiting = decisions
        .waiting
        .iter()
        .filter(|name| !decisions.deferred.contains(name));
    let waiting: Vec<String> = waiting.cloned().collect();
    list(
        &decisions.upgrading,
        &format!("upgrading to version {}", topology.version),
    );
    list(
        &waiting,
        &format!("pending upgrade to version {}", topology.version),
    );
    list(
        &decisions.deferred,
        &format!("upgrade to version {} deferred", topology.version),
    );
    list(
        &decisions.not_created,
        "creation on hold until the control plane is stable",
    );
    let moves = decisions.control_plane_upgrading
        || decisions.control_plane_waits
        || !decisions.upgrading.is_empty();
    let reason = match () {
        () if moves || !waiting.is_empty() => Reason::ClusterUpgrading,
        () if !decisions.deferred.is_empty() => Reason::MachineDeploymentsUpgradeDeferred,
        () => Reason::MachineDeploymentsCreatePending,
    };
    Verdict::new(type_, false, reason).because(lines.join("\n"))
}

/// Formats at most three names.
fn some(kind: &str, names: &[String]) -> String {
    let kind = if names.len() == 1 {
        kind.to_owned()
    } else {
        format!("{kind}s")
    };
    match names {
        [a, b, c, _, ..] => format!("{kind} {a}, {b}, {c}, ... ({} more)", names.len() - 3),
        names => format!("{kind} {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests;
