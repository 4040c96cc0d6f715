//! Numbers of a rolling update.

use std::collections::BTreeMap;

use api::core::v1beta2::{MachineDeployment, RolloutStrategy, RolloutType};
use api::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// MachineSet in a rolling update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    /// Name of the MachineSet.
    pub(crate) name: String,
    /// Desired machines.
    pub(crate) wanted: i32,
    /// Existing machines, including machines being deleted.
    pub(crate) there: i32,
    /// Available machines.
    pub(crate) available: i32,
}

impl Set {
    /// Available machines that are not being deleted.
    fn staying(&self) -> i32 {
        self.available.min(self.wanted)
    }
}

/// Limits of the number of machines during a rolling update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Desired machines.
    pub(crate) replicas: i32,
    /// `maxSurge`: maximum surplus of machines.
    pub(crate) surge: i32,
    /// `maxUnavailable`: maximum number of missing machines.
    pub(crate) unavailable: i32,
}

/// [`Bounds`] of `deployment`. Surge is rounded up, unavailable is rounded down; if both are 0, one machine may be
/// unavailable, because the update could not progress otherwise (as with Deployments of Kubernetes).
pub(crate) fn bounds(deployment: &MachineDeployment) -> Bounds {
    let replicas = deployment.replicas();
    let strategy = deployment
        .spec
        .rollout
        .as_ref()
        .and_then(|rollout| rollout.strategy.as_ref());
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
    let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
    let surge = surge.map_or(1, |value| scaled(value, replicas, true));
    let unavailable = unavailable.map_or(0, |value| scaled(value, replicas, false));
    let unavailable = if surge == 0 && unavailable == 0 {
        1
    } else {
        unavailable
    };
    Bounds {
        replicas,
        surge,
        unavailable: unavailable.min(replicas),
    }
}

/// True if the strategy is `RollingUpdate`, as opposed to `OnDelete`.
pub(crate) fn is_rolling(strategy: Option<&RolloutStrategy>) -> bool {
    strategy.is_none_or(|strategy| strategy.type_ == RolloutType::RollingUpdate)
}

/// `value` as a number of machines; percentages are of `total`. Invalid values are 0.
pub(crate) fn scaled(value: &IntOrString, total: i32, round_up: bool) -> i32 {
    match value {
        IntOrString::Int(number) => (*number).max(0),
        IntOrString::String(text) => {
            let percent = text
                .strip_suffix('%')
                .and_then(|digits| digits.parse::<i64>().ok());
            let product = percent.unwrap_or(0).clamp(0, 1000) * i64::from(total.max(0));
            let number = if round_up {
                (product + 99) / 100
            } else {
                product / 100
            };
            i32::try_from(number).unwrap_or(i32::MAX)
        }
    }
}

/// Next step of a rolling update: the desired replicas of each changed MachineSet. `old` is sorted oldest first.
pub(crate) fn step(bounds: Bounds, new: &Set, old: &[Set]) -> BTreeMap<String, i32> {
    let mut after: Vec<Set> = old.to_vec();
    let mut grown = new.clone();
    grown.wanted = grow(bounds, new, old);
    // Machines beyond the former number are being deleted, and do not count for the new one.
    grown.available = new.staying();
    shrink(bounds, &grown, &mut after);
    let before = std::iter::once(new).chain(old);
    let changed = std::iter::once(&grown).chain(&after);
    before
        .zip(changed)
        .filter(|(before, after)| before.wanted != after.wanted)
        .map(|(_, after)| (after.name.clone(), after.wanted))
        .collect()
}

/// Same for OnDelete: [`Set`]s of former templates never grow, and the new one replaces their deleted machines. Fewer
/// replicas are taken from the oldest set first, and from the new one last.
pub(crate) fn on_delete(bounds: Bounds, new: &Set, old: &[Set]) -> BTreeMap<String, i32> {
    let mut steps = BTreeMap::new();
    let kept = new.wanted.min(bounds.replicas);
    let mut room = bounds.replicas - kept;
    for set in old.iter().rev() {
        // A deleted machine is not created again from a former template.
        let wanted = set.wanted.min(set.there).min(room);
        room -= wanted;
        if wanted != set.wanted {
            steps.insert(set.name.clone(), wanted);
        }
    }
    if kept + room != new.wanted {
        steps.insert(new.name.clone(), kept + room);
    }
    steps
}

fn grow(bounds: Bounds, new: &Set, old: &[Set]) -> i32 {
    if new.wanted >= bounds.replicas {
        return bounds.replicas;
    }
    // Machines that are being deleted still use resources of the cloud.
    let total: i32 = std::iter::once(new)
        .chain(old)
        .map(|set| set.wanted.max(set.there))
        .sum();
    let room = bounds.replicas + bounds.surge - total;
    new.wanted + room.clamp(0, bounds.replicas - new.wanted)
}

fn shrink(bounds: Bounds, new: &Set, old: &mut [Set]) {
    let floor = bounds.replicas - bounds.unavailable;
    let wanted: i32 = new.wanted + old.iter().map(|set| set.wanted).sum::<i32>();
    let new_missing = (new.wanted - new.available).max(0);
    let mut spare = wanted - floor - new_missing;
    // Unavailable machines are deleted first.
    for set in old.iter_mut() {
        let broken = (set.wanted - set.available).max(0);
        let gone = broken.min(spare.max(0));
        set.wanted -= gone;
        spare -= gone;
    }
    let available: i32 = new.staying() + old.iter().map(Set::staying).sum::<i32>();
    let mut spare = spare.min(available - floor).max(0);
    for set in old.iter_mut() {
        let gone = set.wanted.min(spare);
        set.wanted -= gone;
        spare -= gone;
    }
}

#[cfg(test)]
mod tests;
