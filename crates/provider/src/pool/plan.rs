//! Assignment of floating IPs to claims, and the steps from the observed to the wanted state of a pool.
//!
//! An IPAddress binds an address to a claim, and a mark binds a floating IP to the pool. So the status is never read: a
//! floating IP without an IPAddress is free, whatever happened between the creation of both. A floating IP at a port is
//! left alone, since in use.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use api::infra::v1alpha1::ReclaimPolicy;
use openstack::network::FloatingIp;

use crate::identity::{Identity, Mark};

/// Pool of the spec.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// [`Identity`] of the pool.
    pub id: Identity,
    /// Addresses allocated before the pool.
    pub given: Vec<String>,
    /// Maximum number of addresses.
    pub most: usize,
    /// [`ReclaimPolicy`] for a returned address.
    pub reclaim: ReclaimPolicy,
    /// Tags of the floating IPs allocated by the pool; none if Neutron has no tags.
    pub tags: Vec<String>,
    /// True if the pool is being deleted.
    pub is_deleting: bool,
}

/// IPAddressClaim of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Name, also of its IPAddress.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Name of the IPAddress in the status.
    pub answer: Option<String>,
    /// True if no address is needed for the claim: paused, or being deleted.
    pub is_at_rest: bool,
}

/// IPAddress of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Name.
    pub name: String,
    /// Name of the claim.
    pub claim: String,
    /// Uid of the claim; `None` without an owner.
    pub owner: Option<String>,
    /// The address.
    pub address: String,
}

/// Claims, IPAddresses and floating IPs of a pool.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// [`Claim`]s, in the order of the assignment.
    pub claims: Vec<Claim>,
    /// IPAddresses, as [`Answer`]s.
    pub answers: Vec<Answer>,
    /// All floating IPs of the project.
    pub ips: Vec<Arc<FloatingIp>>,
}

impl Observed {
    /// True if the claim of an IPAddress exists: an address is given back when its claim is gone.
    fn is_held(&self, answer: &Answer) -> bool {
        let is_its = |claim: &Claim| {
            claim.name == answer.claim && answer.owner.as_ref().is_none_or(|uid| *uid == claim.uid)
        };
        self.claims.iter().any(is_its)
    }

    fn ip(&self, address: &str) -> Option<&Arc<FloatingIp>> {
        let mut all = self.ips.iter();
        all.find(|ip| ip.floating_ip_address == address)
    }

    /// [`FloatingIp`]s allocated by the pool, by address.
    pub fn ours(&self, id: Identity) -> Vec<&Arc<FloatingIp>> {
        let ours = self
            .ips
            .iter()
            .filter(|ip| Identity::of_pool(&***ip) == Some(id));
        let mut ours: Vec<_> = ours.collect();
        ours.sort_by(|a, b| a.floating_ip_address.cmp(&b.floating_ip_address));
        ours
    }
}

/// Reason why an address of the spec cannot be given out; `None` for a usable one.
pub fn unusable(address: &str, wanted: &Wanted, observed: &Observed) -> Option<String> {
    let Some(ip) = observed.ip(address) else {
        return Some(format!("the project has no floating IP {address}"));
    };
    let pool = Identity::of_pool(&**ip).filter(|id| *id != wanted.id);
    let other = match (Mark::from_item(&**ip), pool) {
        (Some(mark), _) => format!("for the cluster with identity {}", mark.cluster),
        (None, Some(id)) => format!("by the pool with identity {id}"),
        (None, None) => return None,
    };
    Some(format!("floating IP {address} was allocated {other}"))
}

/// The addresses of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Addresses of claims.
    pub claimed: Vec<String>,
    /// Free addresses, in the order of the assignment.
    pub available: Vec<String>,
    /// Unusable addresses of the spec, each with the reason.
    pub failed: Vec<(String, String)>,
}

/// [`Shares`] of the addresses of a pool.
pub fn shares(wanted: &Wanted, observed: &Observed) -> Shares {
    let mut shares = Shares::default();
    let mut bound = BTreeSet::new();
    for answer in &observed.answers {
        bound.insert(answer.address.as_str());
        if observed.is_held(answer) {
            shares.claimed.push(answer.address.clone());
        }
    }
    shares.claimed.sort();
    let mut all = Vec::new();
    for address in &wanted.given {
        match unusable(address, wanted, observed) {
            Some(why) => shares.failed.push((address.clone(), why)),
            None => all.push(address.as_str()),
        }
    }
    let ours = observed.ours(wanted.id).into_iter();
    for ip in ours {
        let address = ip.floating_ip_address.as_str();
        if !all.contains(&address) {
            all.push(address);
        }
    }
    let is_free = |address: &&str| {
        let ip = observed.ip(address);
        !bound.contains(address) && ip.is_some_and(|ip| ip.port_id.is_none())
    };
    let free = all.into_iter().filter(is_free).map(str::to_owned);
    shares.available = free.collect();
    shares
}

/// One write, to the API server or to the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Releases an IPAddress, by its name.
    Release(String),
    /// Creates the IPAddress of a claim.
    Give {
        /// The name of the claim.
        claim: String,
        /// The address.
        address: String,
    },
    /// Writes the IPAddress into the status of a claim.
    Tell(String),
    /// Tags a floating IP, by its id.
    Tag(String),
    /// Deletes a floating IP, by its id.
    Delete(String),
    /// Creates a floating IP.
    Allocate,
}

impl Step {
    /// Event for this step, such as `CreateFloatingIP`.
    pub fn event(&self) -> Option<&'static str> {
        match self {
            Step::Allocate => Some("CreateFloatingIP"),
            Step::Delete(_) => Some("DeleteFloatingIP"),
            _ => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Release(name) => write!(f, "take IPAddress {name} back"),
            Step::Give { claim, address } => write!(f, "give {address} to IPAddressClaim {claim}"),
            Step::Tell(claim) => write!(f, "answer IPAddressClaim {claim}"),
            Step::Tag(id) => write!(f, "tag floating IP {id}"),
            Step::Delete(id) => write!(f, "delete floating IP {id}"),
            Step::Allocate => f.write_str("create a floating IP"),
        }
    }
}

/// [`Step`]s to apply now, in this order, and unchanged parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Writes.
    pub steps: Vec<Step>,
    /// Claims without an address, since the pool has reached its maximum.
    pub refused: Vec<String>,
    /// Reasons of a waiting deletion.
    pub waits: Vec<String>,
}

impl Plan {
    /// True if a step is about a floating IP not among the `fresh` ones, so that a current list decides.
    pub fn needs_now(&self, fresh: &BTreeSet<String>) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Give { address, .. } => !fresh.contains(address),
            Step::Delete(_) => true,
            _ => false,
        })
    }

    /// True if a floating IP is allocated although the pool has one, or the spec names one, that `observed` lacks or has at a port,
    /// so that the list of now decides: it may have been allocated, or taken off its port, since.
    pub fn allocates_beside(&self, wanted: &Wanted, observed: &Observed) -> bool {
        let is_bound = |address: &String| observed.answers.iter().any(|it| it.address == *address);
        let is_free = |address| observed.ip(address).is_some_and(|ip| ip.port_id.is_none());
        let ours = observed.ours(wanted.id).into_iter();
        let ours = ours.map(|ip| &ip.floating_ip_address);
        let mut all = wanted.given.iter().chain(ours);
        self.steps.contains(&Step::Allocate)
            && all.any(|address| !is_bound(address) && !is_free(address))
    }
}

/// [`Plan`] from `observed` to `wanted`.
pub fn plan(wanted: &Wanted, observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    let released = observed.answers.iter().filter(|it| !observed.is_held(it));
    plan.steps
        .extend(released.map(|it| Step::Release(it.name.clone())));
    let shares = shares(wanted, observed);
    if wanted.is_deleting {
        deletion(wanted, observed, &shares, &mut plan);
        return plan;
    }
    let mut available = shares.available.iter();
    let (mut number, mut missing) = (shares.claimed.len(), 0);
    for claim in &observed.claims {
        if let Some(answer) = observed.answers.iter().find(|it| it.name == claim.name) {
            let has_answer = claim.answer.as_ref() == Some(&answer.name);
            if observed.is_held(answer) && answer.claim == claim.name && !has_answer {
                plan.steps.push(Step::Tell(claim.name.clone()));
            }
            continue;
        }
        if claim.is_at_rest {
            continue;
        }
        if number >= wanted.most {
            plan.refused.push(claim.name.clone());
            continue;
        }
        number += 1;
        match available.next() {
            Some(address) => plan.steps.push(Step::Give {
                claim: claim.name.clone(),
                address: address.clone(),
            }),
            None => missing += 1,
        }
    }
    for ip in observed.ours(wanted.id) {
        if wanted.tags.iter().any(|tag| !ip.tags.contains(tag)) {
            plan.steps.push(Step::Tag(ip.id.clone()));
        }
    }
    if wanted.reclaim == ReclaimPolicy::Delete {
        let rest: Vec<_> = available.collect();
        surplus(wanted, observed, &rest, &mut plan.steps);
    }
    // The last ones: a quota that is exhausted keeps nothing else from being done.
    plan.steps.extend((0..missing).map(|_| Step::Allocate));
    plan
}

/// Deletes the pool's own among `addresses`, without the addresses of the spec.
fn surplus(wanted: &Wanted, observed: &Observed, addresses: &[&String], steps: &mut Vec<Step>) {
    for ip in observed.ours(wanted.id) {
        let address = &ip.floating_ip_address;
        if addresses.contains(&address) && !wanted.given.contains(address) {
            steps.push(Step::Delete(ip.id.clone()));
        }
    }
}

/// Deletes a pool after all of its addresses have been given back.
fn deletion(wanted: &Wanted, observed: &Observed, shares: &Shares, plan: &mut Plan) {
    if !shares.claimed.is_empty() {
        let held = observed.answers.iter().filter(|it| observed.is_held(it));
        let claims: Vec<_> = held.map(|it| it.claim.as_str()).collect();
        plan.waits.push(format!(
            "waiting for {} IPAddressClaims to be deleted: {}",
            claims.len(),
            crate::resolve::names(claims.into_iter())
        ));
        return;
    }
    let free: Vec<_> = shares.available.iter().collect();
    surplus(wanted, observed, &free, &mut plan.steps);
    for ip in observed.ours(wanted.id) {
        let address = &ip.floating_ip_address;
        if let (Some(port), false) = (&ip.port_id, wanted.given.contains(address)) {
            plan.waits.push(format!(
                "floating IP {address} is at port {port} (if nobody needs it there: openstack floating ip unset \
                 --port {})",
                ip.id
            ));
        }
    }
}

#[cfg(test)]
mod tests;
