//! The steps from the observed to the desired load balancer. Pure functions.

use std::collections::{BTreeMap, BTreeSet};

use openstack::loadbalancer::{
    ListenerCreate, ListenerUpdate, LoadBalancerCreate, Member, MemberCreate, MemberUpdate,
    Monitor, MonitorCreate, MonitorUpdate, Pool, PoolCreate, PoolUpdate,
};

use super::desired::{Desired, are_everyone};
use super::floating::Floating;
use super::identity::{Identity, cut};
use super::observed::{Branch, Observed, Role};
use super::sharing::transport;
use super::traffic;

/// A request to the cloud.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Creates the load balancer with all its parts.
    Create(Box<LoadBalancerCreate>),
    /// Deletes a load balancer whose creation failed before its address was published, so that it is created again.
    DeleteBroken(String),
    /// Adds our tags to a load balancer of the Go manager, or to one that is shared.
    Adopt {
        id: String,
        tags: Vec<String>,
    },
    CreateListener(Box<ListenerCreate>),
    UpdateListener {
        id: String,
        change: ListenerUpdate,
    },
    DeleteListener(String),
    CreatePool(Box<PoolCreate>),
    UpdatePool {
        id: String,
        change: PoolUpdate,
    },
    DeletePool(String),
    SetMembers {
        pool: String,
        members: Vec<MemberCreate>,
    },
    /// Adds one member, where the driver has no bulk requests.
    CreateMember {
        pool: String,
        member: Box<MemberCreate>,
    },
    UpdateMember {
        pool: String,
        id: String,
        change: MemberUpdate,
    },
    DeleteMember {
        pool: String,
        id: String,
    },
    CreateMonitor(Box<MonitorCreate>),
    UpdateMonitor {
        id: String,
        change: MonitorUpdate,
    },
    DeleteMonitor(String),
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
        matches!(
            self,
            Self::SetMembers { .. }
                | Self::CreateMember { .. }
                | Self::UpdateMember { .. }
                | Self::DeleteMember { .. }
        )
    }

    /// True if the step creates a floating IP with an address that the Service chooses.
    pub(crate) const fn creates_chosen_address(&self) -> bool {
        matches!(self, Self::CreateFloatingIp { floating, .. } if floating.address.is_some())
    }

    /// True if the step needs a load balancer that is ready.
    pub(crate) fn needs_balancer(&self) -> bool {
        !matches!(
            self,
            Self::Create(_)
                | Self::CreateFloatingIp { .. }
                | Self::AttachFloatingIp { .. }
                | Self::DetachFloatingIp(_)
                | Self::DeleteFloatingIp(_)
        )
    }
}

/// The steps that are taken now, with a load balancer in this state: all that do not need it, and one that changes it, if it
/// can be changed. Also returns whether others are to follow.
pub(crate) fn due(steps: Vec<Step>, status: &str) -> (Vec<Step>, Option<Step>, bool) {
    let (on_balancer, others): (Vec<_>, Vec<_>) = steps.into_iter().partition(Step::needs_balancer);
    let is_ready = matches!(status, "ACTIVE" | "ERROR");
    let waits = !is_ready || !on_balancer.is_empty();
    let next = on_balancer.into_iter().next().filter(|_| is_ready);
    (others, next, waits)
}

/// The steps in their order: missing parts are created before surplus parts are deleted.
pub(crate) fn steps(desired: &Desired, observed: Option<&Observed>) -> Vec<Step> {
    let Some(observed) = observed else {
        let mut tree = desired.tree.clone();
        if desired.is_serial {
            tree.listeners.clear();
        }
        return vec![Step::Create(Box::new(tree))];
    };
    let balancer = &observed.balancer;
    if balancer.provisioning_status == "PENDING_DELETE" {
        return Vec::new();
    }
    if balancer.provisioning_status == "ERROR"
        && observed.role == Role::Owner
        && !observed.is_published
        && desired.identity.owns(&balancer.tags)
    {
        return vec![Step::DeleteBroken(balancer.id.clone())];
    }
    let mut steps = Vec::new();
    // The floating IP belongs to the owner.
    if observed.role == Role::Owner {
        floating_ip(desired, observed, &mut steps);
    }
    mark(desired, observed, &mut steps);
    let surplus: Vec<_> = observed
        .listeners
        .iter()
        .filter(|(key, _)| wanted(desired, key).is_none())
        .collect();
    for listener in &desired.tree.listeners {
        let key = (listener.protocol.clone(), listener.protocol_port);
        if let Some(branch) = observed.listeners.get(&key) {
            change(listener, branch, desired, &mut steps);
            continue;
        }
        // Octavia rejects a second listener with the port, for example an HTTP one beside a TCP one.
        let in_the_way = surplus.iter().filter(|((protocol, port), _)| {
            *port == listener.protocol_port && transport(protocol) == transport(&listener.protocol)
        });
        steps
            .extend(in_the_way.map(|(_, branch)| Step::DeleteListener(branch.listener.id.clone())));
        // Its pool is a request of its own: Octavia takes one inside a listener only in the tree of a new load balancer.
        steps.push(Step::CreateListener(Box::new(ListenerCreate {
            loadbalancer_id: Some(balancer.id.clone()),
            default_pool: None,
            ..listener.clone()
        })));
    }
    for (_, branch) in surplus {
        let step = Step::DeleteListener(branch.listener.id.clone());
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps.extend(observed.orphans.iter().cloned().map(Step::DeletePool));
    steps
}

fn wanted<'a>(desired: &'a Desired, key: &(String, u16)) -> Option<&'a ListenerCreate> {
    let mut listeners = desired.tree.listeners.iter();
    listeners.find(|wanted| wanted.protocol == key.0 && wanted.protocol_port == key.1)
}

/// Adds the tags of the Service to a load balancer of the Go manager, or to one that is shared.
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

fn change(wanted: &ListenerCreate, branch: &Branch, desired: &Desired, steps: &mut Vec<Step>) {
    let listener = &branch.listener;
    let cidrs = wanted.allowed_cidrs.clone();
    let change = ListenerUpdate {
        name: Identity::renamed(&wanted.name, &listener.name),
        allowed_cidrs: cidrs.filter(|cidrs| !same_cidrs(cidrs, &listener.allowed_cidrs)),
        ..traffic::difference(wanted, listener)
    };
    if change != ListenerUpdate::default() {
        steps.push(Step::UpdateListener {
            id: listener.id.clone(),
            change,
        });
    }
    let Some(wanted) = &wanted.default_pool else {
        return;
    };
    let Some(pool) = &branch.pool else {
        steps.push(Step::CreatePool(Box::new(PoolCreate {
            listener_id: Some(listener.id.clone()),
            members: Vec::new(),
            healthmonitor: None,
            ..wanted.clone()
        })));
        return;
    };
    // The protocol of a pool is immutable: the new one is created after the old one is deleted.
    if pool.protocol != wanted.protocol {
        steps.push(Step::DeletePool(pool.id.clone()));
        return;
    }
    let change = pool_difference(wanted, pool);
    if change != PoolUpdate::default() {
        steps.push(Step::UpdatePool {
            id: pool.id.clone(),
            change,
        });
    }
    members(wanted, branch, desired.keeps_weights, desired, steps);
    monitor(
        &pool.id,
        wanted.healthmonitor.as_ref(),
        branch.monitor.as_deref(),
        steps,
    );
}

/// The steps for the members of a pool.
fn members(
    wanted: &PoolCreate,
    branch: &Branch,
    keeps_weights: bool,
    desired: &Desired,
    steps: &mut Vec<Step>,
) {
    let Some(pool) = &branch.pool else {
        return;
    };
    let members = with_weights(&wanted.members, &branch.members, keeps_weights);
    if desired.keeps_members(wanted) {
        // The endpoints are not known yet.
    } else if desired.is_serial {
        single_members(&pool.id, &members, &branch.members, steps);
    } else if !same_members(&members, &branch.members) {
        steps.extend(without_monitor_port(&pool.id, &members, &branch.members));
        steps.push(Step::SetMembers {
            pool: pool.id.clone(),
            members,
        });
    }
}

/// The steps that keep a load balancer serving while a Service asks for something that is rejected: members follow the
/// nodes, and everything else stays as it is.
pub(crate) fn upkeep(desired: &Desired, observed: &Observed) -> Vec<Step> {
    let mut steps = Vec::new();
    for listener in &desired.tree.listeners {
        let mut branches = observed.listeners.iter();
        let same = |((protocol, port), _): &(&(String, u16), &Branch)| {
            *port == listener.protocol_port && transport(protocol) == transport(&listener.protocol)
        };
        if let Some((_, branch)) = branches.find(same)
            && let Some(wanted) = &listener.default_pool
        {
            members(wanted, branch, true, desired, &mut steps);
        }
    }
    steps
}

/// The steps that delete our listeners for ports that the Service has no longer.
pub(crate) fn leftovers(desired: &Desired, observed: &Observed) -> Vec<Step> {
    let surplus = observed.listeners.iter();
    let surplus = surplus.filter(|(key, _)| wanted(desired, key).is_none());
    surplus
        .map(|(_, branch)| Step::DeleteListener(branch.listener.id.clone()))
        .collect()
}

fn pool_difference(wanted: &PoolCreate, pool: &Pool) -> PoolUpdate {
    let persistence = &wanted.session_persistence;
    PoolUpdate {
        name: Identity::renamed(&wanted.name, &pool.name),
        lb_algorithm: Some(wanted.lb_algorithm.clone())
            .filter(|method| *method != pool.lb_algorithm),
        session_persistence: (*persistence != pool.session_persistence)
            .then(|| persistence.clone()),
    }
}

fn same_cidrs(wanted: &[String], known: &[String]) -> bool {
    let set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    // Octavia has no ranges where everyone may connect.
    known.is_empty() && are_everyone(wanted) || set(wanted) == set(known)
}

/// The members with a weight each, which a request without one could leave as it is: that of the endpoints, or else 1,
/// or the one that the member has if it `keeps` it.
fn with_weights(
    wanted: &[MemberCreate],
    known: &[impl AsRef<Member>],
    keeps: bool,
) -> Vec<MemberCreate> {
    let kept = |wanted: &MemberCreate| {
        let mut known = known.iter().map(AsRef::as_ref).filter(|_| keeps);
        let found = known.find(|known| {
            known.address == wanted.address && known.protocol_port == wanted.protocol_port
        });
        found.map(|known| known.weight)
    };
    let weighted = |member: &MemberCreate| MemberCreate {
        weight: member.weight.or_else(|| kept(member)).or(Some(1)),
        ..member.clone()
    };
    wanted.iter().map(weighted).collect()
}

fn same_members(wanted: &[MemberCreate], known: &[impl AsRef<Member>]) -> bool {
    let wanted: BTreeSet<_> = wanted
        .iter()
        .map(|m| {
            let weight = m.weight.unwrap_or(1);
            (m.address.clone(), m.protocol_port, m.monitor_port, weight)
        })
        .collect();
    let known: BTreeSet<_> = known
        .iter()
        .map(AsRef::as_ref)
        .filter(|member| &*member.provisioning_status != "PENDING_DELETE")
        .map(|m| (m.address.clone(), m.protocol_port, m.monitor_port, m.weight))
        .collect();
    wanted == known
}

/// The members that are no longer asked at a port of their own. A request for all members leaves a port as it is unless it
/// names another one.
fn without_monitor_port(
    pool: &str,
    wanted: &[MemberCreate],
    known: &[impl AsRef<Member>],
) -> Vec<Step> {
    let known = known.iter().map(AsRef::as_ref);
    let asked = known.filter(|known| known.monitor_port.is_some());
    let stays = |known: &&Member| {
        let mut wanted = wanted.iter().filter(|wanted| wanted.monitor_port.is_none());
        wanted.any(|wanted| {
            wanted.address == known.address && wanted.protocol_port == known.protocol_port
        })
    };
    let step = |known: &Member| Step::UpdateMember {
        pool: pool.to_owned(),
        id: known.id.clone(),
        change: MemberUpdate {
            monitor_port: Some(None),
            ..MemberUpdate::default()
        },
    };
    asked.filter(stays).map(step).collect()
}

/// The steps for each member alone, new ones first.
fn single_members(
    pool: &str,
    wanted: &[MemberCreate],
    known: &[impl AsRef<Member>],
    steps: &mut Vec<Step>,
) {
    let known = known.iter().map(AsRef::as_ref);
    let mut known: BTreeMap<_, _> = known
        .filter(|member| &*member.provisioning_status != "PENDING_DELETE")
        .map(|member| ((member.address.as_str(), member.protocol_port), member))
        .collect();
    for member in wanted {
        let Some(known) = known.remove(&(member.address.as_str(), member.protocol_port)) else {
            steps.push(Step::CreateMember {
                pool: pool.to_owned(),
                member: Box::new(named_alone(member)),
            });
            continue;
        };
        let port = member.monitor_port;
        let change = MemberUpdate {
            weight: member.weight.filter(|weight| *weight != known.weight),
            monitor_port: (port != known.monitor_port).then_some(port),
        };
        if change != MemberUpdate::default() {
            steps.push(Step::UpdateMember {
                pool: pool.to_owned(),
                id: known.id.clone(),
                change,
            });
        }
    }
    steps.extend(known.into_values().map(|member| Step::DeleteMember {
        pool: pool.to_owned(),
        id: member.id.clone(),
    }));
}

/// The member under the name that the Go manager gives to one that is created alone.
fn named_alone(member: &MemberCreate) -> MemberCreate {
    let (address, port) = (&member.address, member.protocol_port);
    MemberCreate {
        name: cut(format!("member_{}_{address}_{port}", member.name)),
        ..member.clone()
    }
}

fn monitor(
    pool: &str,
    wanted: Option<&MonitorCreate>,
    known: Option<&Monitor>,
    steps: &mut Vec<Step>,
) {
    match (wanted, known) {
        (None, None) => {}
        (None, Some(known)) => steps.push(Step::DeleteMonitor(known.id.clone())),
        (Some(wanted), Some(known)) if wanted.kind == known.kind => {
            let change = monitor_difference(wanted, known);
            if change != MonitorUpdate::default() {
                steps.push(Step::UpdateMonitor {
                    id: known.id.clone(),
                    change,
                });
            }
        }
        // The type of a monitor is immutable: the new one is created after the old one is deleted.
        (Some(_), Some(known)) => steps.push(Step::DeleteMonitor(known.id.clone())),
        (Some(wanted), None) => steps.push(Step::CreateMonitor(Box::new(MonitorCreate {
            pool_id: Some(pool.to_owned()),
            ..wanted.clone()
        }))),
    }
}

fn monitor_difference(wanted: &MonitorCreate, known: &Monitor) -> MonitorUpdate {
    let number = |wanted: i64, known: i64| Some(wanted).filter(|wanted| *wanted != known);
    // Monitors of other types have no such fields.
    let text = |wanted: &Option<String>, known: &Option<String>| {
        let wanted = wanted.clone()?;
        (Some(&wanted) != known.as_ref()).then_some(wanted)
    };
    MonitorUpdate {
        name: Identity::renamed(&wanted.name, &known.name),
        delay: number(wanted.delay, known.delay),
        timeout: number(wanted.timeout, known.timeout),
        max_retries: number(wanted.max_retries, known.max_retries),
        max_retries_down: number(wanted.max_retries_down, known.max_retries_down),
        http_method: text(&wanted.http_method, &known.http_method),
        url_path: text(&wanted.url_path, &known.url_path),
        expected_codes: text(&wanted.expected_codes, &known.expected_codes),
    }
}
