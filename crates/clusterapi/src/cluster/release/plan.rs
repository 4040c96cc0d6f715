//! Steps in a workload cluster after which Services and volumes are gone, from the objects in it (pure).

use std::collections::{BTreeMap, BTreeSet};

use api::deletion::Volumes;

/// Namespace and name.
pub(super) type Name = (String, String);

/// An object that may be deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    /// Namespace and name.
    pub(super) name: Name,
    /// Its uid, so that no other object of the name is deleted.
    pub(super) uid: String,
    /// True in deletion.
    pub(super) deleting: bool,
}

/// A PersistentVolume of the CSI driver that has provisioned it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Volume {
    /// The object.
    pub(super) object: Object,
    /// True if it outlives its claim.
    pub(super) retained: bool,
    /// The claim that it is bound to, or was.
    pub(super) claim: Option<(Name, String)>,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    /// The object.
    pub(super) object: Object,
    /// True while the CSI driver provisions a volume for it.
    pub(super) pending: bool,
}

/// A Pod with claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct User {
    /// The object.
    pub(super) object: Object,
    /// The names of its claims, of ephemeral ones, too.
    pub(super) claims: Vec<String>,
    /// True with a claim that is created for it alone.
    pub(super) ephemeral: bool,
    /// The StatefulSet that owns it: name and uid.
    pub(super) set: Option<(String, String)>,
}

/// The objects in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The Services of type LoadBalancer; none if they are not wanted.
    pub(super) services: Vec<Object>,
    /// The volumes; none if they are not wanted.
    pub(super) volumes: Vec<Volume>,
    /// The claims; none if the volumes are not wanted.
    pub(super) claims: Vec<Claim>,
    /// The Pods with claims; none if no claim is to be deleted.
    pub(super) users: Vec<User>,
    /// The Nodes on which Pods may start.
    pub(super) nodes: Vec<Object>,
}

/// A write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Delete a Service.
    Service(Object),
    /// Have a volume deleted with its claim.
    Reclaim(Object),
    /// Delete a claim: no new Pod is started with it.
    Claim(Object),
    /// Let no Pod start on a Node: what owns Pods with claims of their own creates others.
    Cordon(Object),
    /// Delete a StatefulSet, which would create the claims of its Pods again.
    Set(Object),
    /// Delete a Pod: while it runs, its claims stay.
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

/// The claims that go: those of the volumes that go, and those that wait for a volume.
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

/// The steps in their order: a claim goes before its Pods, since no Pod is started with a claim that is being deleted, and a
/// StatefulSet before its Pods, too.
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

/// Takes the claims from those who use them.
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
