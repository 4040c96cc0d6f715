//! The steps from the existing to the desired load balancer.

use openstack::loadbalancer::{
    ListenerCreate, ListenerUpdate, LoadBalancerCreate, Monitor, MonitorCreate, MonitorUpdate,
    PoolCreate, PoolUpdate,
};

use crate::desired::{Desired, Fields};
use crate::observed::{Branch, Key, Observed, transport};
use crate::status::Status;
use crate::step::Step;
use crate::{difference, members};

/// The steps in order: missing parts are created before surplus parts are deleted. A controller executes the
/// first step when [`Status::from_balancer`] the load balancer is [`Status::Active`], and plans again when Octavia has made the change.
pub fn steps(desired: &Desired<'_>, observed: Option<&Observed<'_>>) -> Vec<Step> {
    let Some(observed) = observed else {
        return vec![Step::Create(Box::new(tree(desired)))];
    };
    let balancer = observed.balancer;
    if Status::from_balancer(balancer) == Status::Deleting {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let surplus: Vec<_> = surplus(desired, observed).collect();
    for listener in &desired.tree.listeners {
        let key = (listener.protocol.clone(), listener.protocol_port);
        if let Some(branch) = observed.listeners.get(&key) {
            change(listener, branch, desired, &mut steps);
            continue;
        }
        // Octavia rejects a second listener with the port, for example an HTTP one beside a TCP one.
        let in_the_way = surplus.iter().filter(|(key, _)| has_port_of(key, listener));
        steps
            .extend(in_the_way.map(|(_, branch)| Step::DeleteListener(branch.listener.id.clone())));
        // Octavia takes a pool inside a listener only in the tree of a new load balancer.
        steps.push(Step::CreateListener(Box::new(ListenerCreate {
            loadbalancer_id: Some(balancer.id.clone()),
            default_pool: None,
            ..with_cidrs(listener)
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

/// The request for a new load balancer.
fn tree(desired: &Desired<'_>) -> LoadBalancerCreate {
    let listeners = match desired.is_serial {
        true => Vec::new(),
        false => desired.tree.listeners.iter().map(with_cidrs).collect(),
    };
    LoadBalancerCreate {
        listeners,
        ..desired.tree.clone()
    }
}

/// A new listener. Without ranges, everyone may connect; an empty list is for changes alone.
fn with_cidrs(listener: &ListenerCreate) -> ListenerCreate {
    let cidrs = listener.allowed_cidrs.clone();
    ListenerCreate {
        allowed_cidrs: cidrs.filter(|cidrs| !cidrs.is_empty()),
        ..listener.clone()
    }
}

/// Listeners of the controller outside of the desired tree.
fn surplus<'a>(
    desired: &Desired<'a>,
    observed: &Observed<'a>,
) -> impl Iterator<Item = (&'a Key, &'a Branch)> {
    let wanted = &desired.tree.listeners;
    let is_wanted = |key: &Key| {
        let mut wanted = wanted.iter();
        wanted.any(|wanted| wanted.protocol == key.0 && wanted.protocol_port == key.1)
    };
    let all = observed.listeners.iter();
    all.filter(move |(key, _)| !is_wanted(key))
}

/// True if Octavia accepts only one of the two.
fn has_port_of((protocol, port): &Key, listener: &ListenerCreate) -> bool {
    *port == listener.protocol_port && transport(protocol) == transport(&listener.protocol)
}

fn change(wanted: &ListenerCreate, branch: &Branch, desired: &Desired<'_>, steps: &mut Vec<Step>) {
    let listener = &branch.listener;
    let change = difference::of_listener(wanted, listener, desired);
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
    if desired.fields == Fields::All && pool.protocol != wanted.protocol {
        steps.push(Step::DeletePool(pool.id.clone()));
        return;
    }
    let change = difference::of_pool(wanted, pool, desired);
    if change != PoolUpdate::default() {
        steps.push(Step::UpdatePool {
            id: pool.id.clone(),
            change,
        });
    }
    members::change(wanted, branch, desired.keeps_weights, desired, steps);
    monitor(&pool.id, wanted, branch.monitor.as_deref(), desired, steps);
}

/// Steps for a load balancer while the rest of the wish is rejected: members follow, with the existing weights, and all other
/// parts stay.
pub fn upkeep(desired: &Desired<'_>, observed: &Observed<'_>) -> Vec<Step> {
    let mut steps = Vec::new();
    for listener in &desired.tree.listeners {
        let mut branches = observed.listeners.iter();
        if let Some((_, branch)) = branches.find(|(key, _)| has_port_of(key, listener))
            && let Some(wanted) = &listener.default_pool
        {
            members::change(wanted, branch, true, desired, &mut steps);
        }
    }
    steps
}

/// Deletions of listeners outside of the desired tree, and no other step.
pub fn leftovers(desired: &Desired<'_>, observed: &Observed<'_>) -> Vec<Step> {
    surplus(desired, observed)
        .map(|(_, branch)| Step::DeleteListener(branch.listener.id.clone()))
        .collect()
}

fn monitor(
    pool: &str,
    wanted: &PoolCreate,
    known: Option<&Monitor>,
    desired: &Desired<'_>,
    steps: &mut Vec<Step>,
) {
    let is_kept = desired.fields == Fields::Access;
    match (&wanted.healthmonitor, known) {
        (None, None) => {}
        (None, Some(_)) if is_kept => {}
        (None, Some(known)) => steps.push(Step::DeleteMonitor(known.id.clone())),
        (Some(wanted), Some(known)) if is_kept || wanted.kind == known.kind => {
            let change = difference::of_monitor(wanted, known, desired);
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
