//! Scaling of a paused deployment: each MachineSet in proportion to its size, as for Deployments of Kubernetes
//! (`pkg/controller/deployment/util`, `GetReplicaSetProportion`).

use std::collections::BTreeMap;

use super::rollout::Bounds;

/// MachineSet, and the annotations of its last scaling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Name of the MachineSet.
    pub(super) name: String,
    /// Desired machines.
    pub(super) wanted: i32,
    /// Replicas of the deployment at the last scaling of the set; unset before the first one.
    pub(super) desired: Option<i32>,
    /// `desired` plus the surge.
    pub(super) most: Option<i32>,
}

/// Desired replicas of each changed set. `sets` are sorted newest first.
pub(super) fn spread(bounds: Bounds, sets: &[Share]) -> BTreeMap<String, i32> {
    let active: Vec<&Share> = sets.iter().filter(|set| set.wanted > 0).collect();
    let (several, alone) = match active.as_slice() {
        [] => (&[][..], sets.first()),
        [alone] => (&[][..], Some(*alone)),
        several => (several, None),
    };
    if let Some(alone) = alone {
        let change = (alone.wanted != bounds.replicas).then_some(bounds.replicas);
        return change
            .map(|wanted| (alone.name.clone(), wanted))
            .into_iter()
            .collect();
    }
    // Only a change of the replicas is distributed; machines missing for other reasons are not replaced.
    if several
        .iter()
        .all(|set| set.desired == Some(bounds.replicas))
    {
        return BTreeMap::new();
    }
    let allowed = match bounds.replicas {
        0 => 0,
        replicas => replicas.saturating_add(bounds.surge),
    };
    proportions(allowed, several)
        .into_iter()
        .filter(|(set, wanted)| set.wanted != *wanted)
        .map(|(set, wanted)| (set.name.clone(), wanted))
        .collect()
}

/// Distributes `allowed` machines over the sets, largest first. Of sets with equal size the newer is first when
/// scaling up, and the older when scaling down. The first set gets the remainder of the rounding, down to 0 machines.
fn proportions<'a>(allowed: i32, sets: &[&'a Share]) -> Vec<(&'a Share, i32)> {
    let total: i32 = sets.iter().map(|set| set.wanted).sum();
    let change = allowed - total;
    let mut order: Vec<&Share> = sets.to_vec();
    if change < 0 {
        order.reverse();
    }
    order.sort_by_key(|set| -set.wanted);
    let mut rest = change;
    let mut spread: Vec<(&Share, i32)> = Vec::new();
    for set in order {
        let fraction = scaled(set.wanted, allowed, set.most.unwrap_or(total)) - set.wanted;
        let part = if change > 0 {
            fraction.clamp(0, rest.max(0))
        } else {
            fraction.clamp(rest.min(0), 0)
        };
        rest -= part;
        spread.push((set, set.wanted + part));
    }
    for (_, wanted) in &mut spread {
        // A set cannot have less than 0 machines.
        let part = rest.max(-*wanted);
        *wanted += part;
        rest -= part;
    }
    spread
}

/// `wanted` scaled from `before` to `now`, rounded.
fn scaled(wanted: i32, now: i32, before: i32) -> i32 {
    let (wanted, now, before) = (i64::from(wanted), i64::from(now), i64::from(before.max(1)));
    i32::try_from((2 * wanted * now + before) / (2 * before)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
