//! Steps from the observed to the desired state of a Service: marks, floating IP, and the load balancer by the
//! planner of `load_balancing` (pure).

use std::collections::BTreeSet;

use load_balancing::Status;

use super::desired::Desired;
use super::floating::Floating;
use super::identity::Identity;
use super::observed::{Observed, Role};

/// Request to the cloud.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Creates or changes the load balancer or one of its parts.
    Balancer(load_balancing::Step),
    /// Deletes a load balancer whose creation failed before the publication of the address: another one is created.
    DeleteBroken(String),
    /// Adds our tags to a load balancer of the Go manager, or to a shared one.
    Adopt {
        id: String,
        tags: Vec<String>,
    },
    CreateFloatingIp {
        port: String,
        floating: Floating,
    },
    AttachFloatingIp {
        id: String,
        port: String,
    },
    DetachFloatingIp(String),
    DeleteFloatingIp(String),
}

impl Step {
    /// True if the step changes members alone.
    pub(crate) const fn is_of_members(&self) -> bool {
        matches!(self, Self::Balancer(step) if step.action().is_of_members())
    }

    /// True if the step creates a floating IP with an address chosen by the Service.
    pub(crate) const fn creates_chosen_address(&self) -> bool {
        matches!(self, Self::CreateFloatingIp { floating, .. } if floating.address.is_some())
    }

    /// True if the step needs a ready load balancer.
    pub(crate) const fn needs_balancer(&self) -> bool {
        !matches!(
            self,
            Self::Balancer(load_balancing::Step::Create(_))
                | Self::CreateFloatingIp { .. }
                | Self::AttachFloatingIp { .. }
                | Self::DetachFloatingIp(_)
                | Self::DeleteFloatingIp(_)
        )
    }
}

/// [`Step`]s for now, with a load balancer in this state: all steps independent of the load balancer, and one change
/// of the load balancer, if possible. Also returns true if others are to follow.
pub(crate) fn due(steps: Vec<Step>, status: Option<Status>) -> (Vec<Step>, Option<Step>, bool) {
    let (on_balancer, others): (Vec<_>, Vec<_>) = steps.into_iter().partition(Step::needs_balancer);
    // In ERROR, a load balancer that never served is deleted.
    let is_ready = status.is_some_and(Status::can_be_deleted);
    let waits = !is_ready || !on_balancer.is_empty();
    let next = on_balancer.into_iter().next().filter(|_| is_ready);
    (others, next, waits)
}

/// [`Step`]s in order: floating IP, marks, then the load balancer and its parts.
pub(crate) fn steps(desired: &Desired, observed: Option<&Observed>) -> Vec<Step> {
    let Some(observed) = observed else {
        return parts(load_balancing::steps(&desired.balancer(), None));
    };
    let balancer = &observed.balancer;
    match Status::from_balancer(balancer) {
        Status::Deleting => return Vec::new(),
        Status::Error
            if observed.role == Role::Owner
                && !observed.is_published
                && desired.identity.owns(&balancer.tags) =>
        {
            return vec![Step::DeleteBroken(balancer.id.clone())];
        }
        _ => {}
    }
    let mut steps = Vec::new();
    // The floating IP belongs to the owner.
    if observed.role == Role::Owner {
        floating_ip(desired, observed, &mut steps);
    }
    mark(desired, observed, &mut steps);
    let of_balancer = load_balancing::steps(&desired.balancer(), Some(&observed.tree()));
    steps.extend(parts(of_balancer));
    steps
}

/// Steps that keep a load balancer serving during a rejection of the Service: members follow the nodes, and
/// everything else stays unchanged.
pub(crate) fn upkeep(desired: &Desired, observed: &Observed) -> Vec<Step> {
    let steps = load_balancing::upkeep(&desired.balancer(), &observed.tree());
    parts(steps)
}

/// Steps that delete our listeners for former ports of the Service.
pub(crate) fn leftovers(desired: &Desired, observed: &Observed) -> Vec<Step> {
    let steps = load_balancing::leftovers(&desired.balancer(), &observed.tree());
    parts(steps)
}

fn parts(steps: Vec<load_balancing::Step>) -> Vec<Step> {
    steps.into_iter().map(Step::Balancer).collect()
}

/// Adds the tags of the Service to a load balancer of the Go manager, or to a shared one.
fn mark(desired: &Desired, observed: &Observed, steps: &mut Vec<Step>) {
    let (balancer, identity) = (&observed.balancer, &desired.identity);
    let missing = match observed.role {
        Role::Owner if identity.owns(&balancer.tags) => return,
        Role::Guest => return,
        Role::Owner => identity.tags(),
        Role::Applicant => identity.guest_tags(),
    };
    let tags: BTreeSet<String> = balancer.tags.iter().cloned().chain(missing).collect();
    steps.push(Step::Adopt {
        id: balancer.id.clone(),
        tags: tags.into_iter().collect(),
    });
}

fn floating_ip(desired: &Desired, observed: &Observed, steps: &mut Vec<Step>) {
    let port = observed.balancer.vip_port_id.clone();
    match (&desired.floating, &observed.floating_ip) {
        (Some(floating), None) if !port.is_empty() => steps.push(match &floating.existing {
            Some(id) => Step::AttachFloatingIp {
                id: id.clone(),
                port,
            },
            None => Step::CreateFloatingIp {
                port,
                floating: floating.clone(),
            },
        }),
        (None, Some(known)) if desired.is_internal => {
            let id = known.id.clone();
            steps.push(
                match Identity::is_managed_floating_ip(&known.description)
                    && !desired.keeps_floating_ip
                {
                    true => Step::DeleteFloatingIp(id),
                    false => Step::DetachFloatingIp(id),
                },
            );
        }
        _ => {}
    }
}
