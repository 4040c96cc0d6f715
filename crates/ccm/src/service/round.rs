//! Steps for a Service: for its load balancer, and for the one of the second family, if any.

use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use openstack::{Kind, View};

use super::desired::{self, Desired, Facts};
use super::drift::Settled;
use super::observed::{self, Observed, Role};
use super::second::Second;
use super::vip::Family;
use super::{Notice, Rejection, Work, annotations, groups, immutable, plan, sharing, teardown};

/// Desired and observed load balancer, and the steps between them.
pub(super) struct Round {
    pub(super) desired: Desired,
    pub(super) observed: Option<Observed>,
    pub(super) steps: Vec<plan::Step>,
    /// True if the security group is as desired.
    has_group: bool,
    /// True if the list of ports is older than the server of a member, so that its port has no security group yet.
    pub(super) awaits_port: bool,
    /// [`Rejection`] of the Service, while its load balancer is only kept serving.
    pub(super) held: Option<Rejection>,
}

impl Round {
    fn changes_only_members(&self) -> bool {
        self.steps.iter().all(plan::Step::is_of_members)
    }

    fn is_settled(&self) -> bool {
        let is_known = self.has_group && !self.awaits_port && self.held.is_none();
        self.steps.is_empty() && is_known && self.observed.is_some() && self.is_ready()
    }

    /// True if the load balancer does not exist yet, or can be changed.
    pub(super) fn is_ready(&self) -> bool {
        let observed = self.observed.as_ref();
        observed.is_none_or(|observed| observed.balancer.provisioning_status == "ACTIVE")
    }

    /// True if the load balancer was not created for the Service.
    fn is_shared(&self) -> bool {
        let observed = self.observed.as_ref();
        observed.is_some_and(|observed| observed.role != Role::Owner)
    }
}

/// All load balancers of a Service.
pub(super) struct Rounds {
    pub(super) first: Round,
    /// Load balancer for the second family.
    pub(super) second: Option<(Second, Round)>,
    /// Leftovers of load balancers for families on the first one, or for former families of the Service.
    pub(super) surplus: Vec<Second>,
}

impl Rounds {
    fn all(&self) -> impl Iterator<Item = &Round> {
        let second = self.second.as_ref().map(|(_, round)| round);
        std::iter::once(&self.first).chain(second)
    }

    /// True if only changes of members are left.
    pub(super) fn changes_only_members(&self) -> bool {
        let has_steps = self.all().any(|round| !round.steps.is_empty());
        has_steps && self.all().all(Round::changes_only_members)
    }

    /// True if no step is left.
    pub(super) fn is_settled(&self) -> bool {
        self.surplus.is_empty() && self.all().all(Round::is_settled)
    }

    /// Records the load balancers in order.
    pub(super) fn remember(&self, settled: &Settled) {
        for round in self.all().filter(|round| round.is_settled()) {
            settled.record(&round.desired);
        }
    }

    /// [`Rejection`] of a Service, while its load balancers are only kept serving.
    pub(super) fn held(&self) -> Option<Rejection> {
        let rejection = self.all().find_map(|round| round.held.as_ref())?;
        Some(Rejection {
            message: format!(
                "{}; until then members follow the nodes, and everything else stays as it is",
                rejection.message
            ),
            ..rejection.clone()
        })
    }

    /// Settings without an effect. The second load balancer repeats the [`Notice`]s of the first one.
    pub(super) fn notices(&self) -> Vec<Notice> {
        let mut all: Vec<Notice> = Vec::new();
        for notice in self.all().flat_map(|round| &round.desired.notices) {
            if !all.contains(notice) {
                all.push(notice.clone());
            }
        }
        all
    }
}

/// Compares the settings of a Service with the state in a [`View`].
///
/// # Errors
/// The [`Rejection`] of the Service, with the reason.
pub(super) fn look(work: &Work<'_>, nodes: &[Arc<Node>], view: &View) -> Result<Rounds, Rejection> {
    let mut first = of(work, nodes, view)?;
    let apart = first.desired.apart.clone();
    let second = match &apart {
        None => None,
        Some((family, reason)) => beside(work, &mut first, *family, reason, nodes, view)?,
    };
    let wanted = apart.map(|(family, _)| family);
    let is_held = first.held.is_some();
    let others = Family::ALL
        .into_iter()
        .filter(|family| Some(*family) != wanted);
    Ok(Rounds {
        first,
        second,
        surplus: others
            // A rejected Service does not say which families it wants.
            .filter(|_| !is_held)
            .filter(|family| teardown::is_left(work, &work.identity.of_second(*family), view))
            .map(|family| Second::new(work.service, work.identity, family))
            .collect(),
    })
}

/// Load balancer for a [`Family`] whose address the first one does not have, for this `reason`.
fn beside(
    work: &Work<'_>,
    first: &mut Round,
    family: Family,
    reason: &str,
    nodes: &[Arc<Node>],
    view: &View,
) -> Result<Option<(Second, Round)>, Rejection> {
    let second = Second::new(work.service, work.identity, family);
    let found = match first.is_shared() {
        true => Err(Rejection::new("the first one is shared")),
        false => of(&second.work(work), nodes, view),
    };
    let rejection = match found {
        Ok(round) => return Ok(Some((second, round))),
        Err(rejection) => rejection,
    };
    let spec = work.service.spec.as_ref();
    let policy = spec.and_then(|spec| spec.ip_family_policy.as_deref());
    let why = format!(
        "{reason}; and a second load balancer is not possible: {}",
        rejection.message
    );
    if policy == Some("RequireDualStack") && first.observed.is_none() {
        let message = format!("spec.ipFamilyPolicy: RequireDualStack: {why}");
        return Err(Rejection::new(message).seen_in(rejection.seen_in));
    }
    first.desired.notices.push(Notice {
        reason: "LoadBalancerDualStackIgnored",
        message: format!("spec.ipFamilies: only the first family is served: {why}"),
    });
    Ok(None)
}

/// Compares one load balancer with the observed one.
fn of(work: &Work<'_>, nodes: &[Arc<Node>], view: &View) -> Result<Round, Rejection> {
    let (observed, other) = observed::of_service(work.service, work.identity, view)?;
    let facts = Facts {
        nodes,
        view,
        conf: &work.settings.conf,
        existing: observed.as_ref().map(|observed| &*observed.balancer),
        has_floating_ip: observed
            .as_ref()
            .is_some_and(|observed| observed.floating_ip.is_some()),
        octavia: work.octavia,
        weights: work.weights,
    };
    let (mut desired, mut held) = match desired::of(work.service, work.identity, &facts) {
        Ok(desired) => (desired, other),
        Err(rejection) => {
            let serves = observed.as_ref().filter(|it| it.role != Role::Applicant);
            let desired = serves.and_then(|_| without_wishes(work, &facts));
            let desired = desired.ok_or_else(|| rejection.clone())?;
            (desired, Some(rejection))
        }
    };
    let steps = match &observed {
        Some(observed) if held.is_some() => plan::upkeep(&desired, observed),
        Some(observed) => {
            let changed = immutable::notices(work.service, &desired, observed);
            desired.notices.extend(changed);
            let most = work.settings.conf.load_balancer.max_shared;
            match sharing::check(&desired, observed, work.identity, most) {
                Ok(()) => plan::steps(&desired, Some(observed)),
                Err(rejection) if observed.role == Role::Guest => {
                    held = Some(rejection);
                    // Another guest may wait for a port that this one leaves.
                    let mut steps = plan::upkeep(&desired, observed);
                    steps.extend(plan::leftovers(&desired, observed));
                    steps
                }
                Err(rejection) => return Err(rejection),
            }
        }
        None => plan::steps(&desired, None),
    };
    let has_group = groups::is_settled(work.identity, desired.group.as_ref(), view);
    Ok(Round {
        awaits_port: desired.group.is_some()
            && groups::awaits_port(&desired, nodes, view, Timestamp::now()),
        has_group,
        desired,
        observed,
        steps,
        held,
    })
}

/// Desired state without the annotations for settings: enough to know the members.
fn without_wishes(work: &Work<'_>, facts: &Facts<'_>) -> Option<Desired> {
    let attempts = annotations::of_members(work.service.annotations());
    attempts.into_iter().find_map(|kept| {
        let mut service = work.service.clone();
        annotations::keep_only(service.annotations_mut(), &kept);
        if let Some(spec) = &mut service.spec {
            spec.load_balancer_ip = None;
        }
        desired::of(&service, work.identity, facts).ok()
    })
}

/// True if the annotation names a load balancer that is missing in the [`View`].
pub(super) fn names_unknown(work: &Work<'_>, view: &View) -> bool {
    let named = work.service.annotations().get(annotations::ID);
    named.is_some_and(|id| !id.is_empty() && view.load_balancers.get(id).is_none())
}

/// Lists behind the [`Rejection`] of a Service, or behind a missing floating IP of the project.
pub(super) fn doubted(found: &Result<Rounds, Rejection>) -> Vec<Kind> {
    let rounds = match found {
        Ok(rounds) => rounds,
        Err(rejection) => return rejection.seen_in.to_vec(),
    };
    let held = rounds.all().filter_map(|round| round.held.as_ref());
    let mut kinds: Vec<Kind> = held
        .flat_map(|rejection| rejection.seen_in)
        .copied()
        .collect();
    let mut steps = rounds.all().flat_map(|round| &round.steps);
    if steps.any(plan::Step::creates_chosen_address) {
        kinds.push(Kind::FloatingIps);
    }
    kinds
}
