//! Versions that an upgrade still passes.

use api::core::v1beta2::Topology;

use super::{Decisions, SKEW, next, version};

/// Versions that are not applied yet, in the order of the upgrade; empty without an upgrade.
///
/// They are `status.controlPlane.upgradePlan` and `status.workers.upgradePlan` of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Versions of the control plane object.
    pub control_plane: Vec<String>,
    /// Versions of the MachineDeployments: fewer than those of the control plane, since a kubelet may be older than the
    /// API server.
    pub workers: Vec<String>,
}

impl Plan {
    /// Plan of the upgrade to the version of `topology` after `decisions` are applied. `listed` are the versions of the
    /// class, ascending. A version that cannot be reached ends the plan.
    pub fn new(topology: &Topology, listed: Option<&[String]>, decisions: &Decisions) -> Self {
        let mut passed = vec![decisions.control_plane.clone()];
        while let Some(last) = passed.last().filter(|last| **last != topology.version) {
            let Ok(following) = next(last, &topology.version, listed) else {
                break;
            };
            passed.push(following);
        }
        Self {
            workers: workers(&passed, decisions),
            control_plane: passed.split_off(1),
        }
    }
}

/// Versions of the MachineDeployments, where the control plane is at the first of `passed` and goes through the others.
fn workers(passed: &[String], decisions: &Decisions) -> Vec<String> {
    let known = decisions.deployments.iter();
    let known = known.filter(|(name, _)| !decisions.not_created.contains(name));
    let oldest = known.filter_map(|(_, text)| version(text).ok()).min();
    let Some(mut oldest) = oldest else {
        return Vec::new();
    };
    let mut plan = Vec::new();
    for (at, following) in passed
        .iter()
        .zip(passed.iter().skip(1).map(Some).chain([None]))
    {
        let Ok(reached) = version(at) else {
            break;
        };
        let too_old = following.is_none_or(|following| {
            version(following).is_ok_and(|it| it.major_minor().1 > oldest.major_minor().1 + SKEW)
        });
        if too_old && oldest < reached {
            plan.push(at.clone());
            oldest = reached;
        }
    }
    plan
}

#[cfg(test)]
mod tests;
