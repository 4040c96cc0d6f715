//! Steps in a workload cluster to delete Services and volumes, from the objects in the cluster (pure).

use std::collections::{BTreeMap, BTreeSet};

use api::deletion::Volumes;

/// Namespace and name.
pub(super) type Name = (String, String);

/// Object to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    /// Namespace and name.
    pub(super) name: Name,
    /// Uid, as a precondition against the deletion of another object with the same name.
    pub(super) uid: String,
    /// True while the object is being deleted.
    pub(super) deleting: bool,
}

/// PersistentVolume, with the CSI driver that provisioned it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Volume {
    /// The [`Object`].
    pub(super) object: Object,
    /// True if the volume outlives its claim.
    pub(super) retained: bool,
    /// Bound claim, or the last one.
    pub(super) claim: Option<(Name, String)>,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    /// The [`Object`].
    pub(super) object: Object,
    /// True while the CSI driver provisions a volume for the claim.
    pub(super) pending: bool,
}

/// Pod with claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct User {
    /// The [`Object`].
    pub(super) object: Object,
    /// Names of all claims, including ephemeral ones.
    pub(super) claims: Vec<String>,
    /// True with an ephemeral claim, created for this Pod alone.
    pub(super) ephemeral: bool,
    /// Name and uid of the owning StatefulSet.
    pub(super) set: Option<(String, String)>,
}

/// Objects in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Services of type LoadBalancer; empty if Services are kept.
    pub(super) services: Vec<Object>,
    /// [`Volume`]s; empty if volumes are kept.
    pub(super) volumes: Vec<Volume>,
    /// [`Claim`]s; empty if volumes are kept.
    pub(super) claims: Vec<Claim>,
    /// Pods with claims; empty if no claim is deleted.
    pub(super) users: Vec<User>,
    /// Nodes on which Pods may start.
    pub(super) nodes: Vec<Object>,
}

/// A write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Delete a Service.
    Service(Object),
    /// Change the reclaim policy, so that the volume is deleted with its claim.
    Reclaim(Object),
    /// Delete a [`Claim`]: afterwards no new Pod starts with the claim.
    Claim(Object),
    /// Cordon a Node: owners of Pods with ephemeral claims create new Pods.
    Cordon(Object),
    /// Delete a StatefulSet, which would create the claims of its Pods again.
    Set(Object),
    /// Delete a Pod: a running Pod keeps its claims.
    Pod(Object),
}

/// Steps, and the names of objects to wait for: `namespace/name`, or the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) services: Vec<String>,
    pub(super) claims: Vec<String>,
    pub(super) volumes: Vec<String>,
}

impl Plan {
    /// True if nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
            && self.services.is_empty()
            && self.claims.is_empty()
            && self.volumes.is_empty()
    }
}

/// Claims to delete: of the [`Volume`]s to delete, and [`Claim`]s without a volume so far.
pub(super) fn doomed<'a>(
    volumes: &'a [Volume],
    claims: &'a [Claim],
    policy: Volumes,
) -> Vec<&'a Claim> {
    let bound: BTreeMap<&Name, &str> = volumes
        .iter()
        .filter(|volume| goes(volume, policy))
        .filter_map(|volume| volume.claim.as_ref())
        .map(|(name, uid)| (name, uid.as_str()))
        .collect();
    let goes = |claim: &&Claim| {
        claim.pending || bound.get(&claim.object.name) == Some(&claim.object.uid.as_str())
    };
    claims.iter().filter(goes).collect()
}

fn goes(volume: &Volume, policy: Volumes) -> bool {
    volume.claim.is_some()
        && match policy {
            Volumes::Keep => false,
            Volumes::Policy => !volume.retained,
            Volumes::Delete => true,
        }
}

/// Steps in order: claims before Pods, since no Pod starts with a claim being deleted, and StatefulSets before Pods
/// for the same reason.
pub(super) fn plan(seen: &Seen, policy: Volumes) -> Plan {
    let mut plan = Plan::default();
    for service in &seen.services {
        plan.services.push(text(&service.name));
        plan.steps
            .extend((!service.deleting).then(|| Step::Service(service.clone())));
    }
    for volume in seen.volumes.iter().filter(|it| goes(it, policy)) {
        plan.volumes.push(volume.object.name.1.clone());
        plan.steps.extend(
            volume
                .retained
                .then(|| Step::Reclaim(volume.object.clone())),
        );
    }
    let doomed = doomed(&seen.volumes, &seen.claims, policy);
    let names: BTreeSet<&Name> = doomed.iter().map(|claim| &claim.object.name).collect();
    for Claim { object, .. } in doomed {
        plan.claims.push(text(&object.name));
        plan.steps
            .extend((!object.deleting).then(|| Step::Claim(object.clone())));
    }
    users(seen, &names, &mut plan);
    plan
}

/// Plans the deletion of the users of claims.
fn users(seen: &Seen, claims: &BTreeSet<&Name>, plan: &mut Plan) {
    let uses = |user: &&User| {
        let namespace = &user.object.name.0;
        let mut of_user = user.claims.iter();
        of_user.any(|claim| claims.contains(&(namespace.clone(), claim.clone())))
    };
    let users: Vec<_> = seen.users.iter().filter(uses).collect();
    if users.iter().any(|user| user.ephemeral) {
        plan.steps
            .extend(seen.nodes.iter().cloned().map(Step::Cordon));
    }
    let sets: BTreeSet<Object> = users
        .iter()
        .filter_map(|user| {
            let (name, uid) = user.set.clone()?;
            Some(Object {
                name: (user.object.name.0.clone(), name),
                uid,
                deleting: false,
            })
        })
        .collect();
    plan.steps.extend(sets.into_iter().map(Step::Set));
    let there = users.iter().filter(|user| !user.object.deleting);
    plan.steps
        .extend(there.map(|user| Step::Pod(user.object.clone())));
}

fn text((namespace, name): &Name) -> String {
    format!("{namespace}/{name}")
}

#[cfg(test)]
mod tests;
