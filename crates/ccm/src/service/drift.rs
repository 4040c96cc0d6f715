//! Changes by others in the cloud, and the messages after a repair.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};

use load_balancing::{Branch, Step as Part};
use openstack::loadbalancer::{Member, MemberCreate};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::desired::Desired;
use super::identity::Identity;
use super::observed::Observed;
use super::plan::Step;

/// Maximum number of members in an event.
const MOST: usize = 3;

/// Hash of the desired state of each load balancer in order. While the desired state has the same hash, all
/// differences come from others. Lost at a restart, after which nobody knows the author of a change.
#[derive(Debug, Default)]
pub(crate) struct Settled(Mutex<HashMap<String, u64>>);

impl Settled {
    /// Records that the load balancer is in the desired state.
    pub(crate) fn record(&self, desired: &Desired) {
        let tag = desired.identity.service_tag();
        self.0.lock().insert(tag, hash(desired));
    }

    /// True if the load balancer was in this state before. A former desired state is forgotten after another one,
    /// because the Service may return to it.
    pub(crate) fn knows(&self, desired: &Desired) -> bool {
        let tag = desired.identity.service_tag();
        let mut all = self.0.lock();
        let is_same = all.get(&tag) == Some(&hash(desired));
        if !is_same {
            all.remove(&tag);
        }
        is_same
    }

    /// Forgets the load balancer of a Service that is no longer served.
    pub(crate) fn forget(&self, identity: &Identity) {
        self.0.lock().remove(&identity.service_tag());
    }
}

fn hash(desired: &Desired) -> u64 {
    let mut hasher = DefaultHasher::new();
    desired.tree.listeners.hash(&mut hasher);
    (desired.floating.is_some(), desired.is_internal).hash(&mut hasher);
    hasher.finish()
}

/// Change by a [`Step`], with the values before and after; `None` for steps with events of their own.
pub(crate) fn words(step: &Step, observed: Option<&Observed>) -> Option<String> {
    let Some(observed) = observed else {
        return match step {
            Step::Balancer(Part::Create(tree)) => Some(format!(
                "load balancer `{}` was not there, and is created",
                tree.name
            )),
            _ => None,
        };
    };
    match step {
        Step::Balancer(step) => of_part(step, observed),
        Step::CreateFloatingIp { .. } => {
            Some("there was no floating IP, and one is created".to_owned())
        }
        Step::AttachFloatingIp { .. } => {
            Some("the floating IP was detached, and is attached".to_owned())
        }
        Step::DetachFloatingIp(_) | Step::DeleteFloatingIp(_) => {
            let address = &observed.floating_ip.as_ref()?.floating_ip_address;
            Some(format!(
                "floating IP {address} is not wanted, and is taken off"
            ))
        }
        Step::Adopt { tags, .. } => {
            let known = &observed.balancer.tags;
            let missing: Vec<_> = tags
                .iter()
                .filter(|tag| !known.contains(tag))
                .cloned()
                .collect();
            Some(format!(
                "load balancer: tags {} were missing, and are added",
                missing.join(", ")
            ))
        }
        Step::DeleteBroken(_) => None,
    }
}

/// Change of a part of the load balancer.
fn of_part(step: &Part, observed: &Observed) -> Option<String> {
    let branches = || observed.listeners.values();
    let pool =
        |id: &str| branches().find(|branch| branch.pool.as_ref().is_some_and(|pool| pool.id == id));
    let monitor = |id: &str| {
        let mut all = branches().filter_map(|branch| branch.monitor.as_deref());
        all.find(|monitor| monitor.id == id)
    };
    let listener = |id: &str| branches().find(|branch| branch.listener.id == id);
    match step {
        Part::Create(_) => None,
        Part::UpdateListener { id, change } => {
            let known = &listener(id)?.listener;
            Some(fields("listener", &known.name, &**known, change))
        }
        Part::UpdatePool { id, change } => {
            let known = pool(id)?.pool.as_deref()?;
            Some(fields("pool", &known.name, known, change))
        }
        Part::UpdateMonitor { id, change } => {
            let known = monitor(id)?;
            Some(fields("health monitor", &known.name, known, change))
        }
        Part::CreateListener(wanted) => Some(format!(
            "listener `{}` ({} {}) was not there, and is created",
            wanted.name, wanted.protocol, wanted.protocol_port
        )),
        Part::DeleteListener(id) => {
            let known = &listener(id)?.listener;
            Some(format!(
                "listener `{}` ({} {}) is not wanted, and is deleted",
                known.name, known.protocol, known.protocol_port
            ))
        }
        Part::CreatePool(wanted) => Some(format!(
            "pool `{}` was not there, and is created",
            wanted.name
        )),
        Part::DeletePool(id) => Some(match pool(id).and_then(|branch| branch.pool.as_deref()) {
            Some(known) => format!(
                "pool `{}` has protocol {}, and is deleted",
                known.name, known.protocol
            ),
            None => format!("pool {id} has no listener, and is deleted"),
        }),
        Part::CreateMonitor(wanted) => Some(format!(
            "health monitor `{}` ({}) was not there, and is created",
            wanted.name, wanted.kind
        )),
        Part::DeleteMonitor(id) => {
            let known = monitor(id)?;
            Some(format!(
                "health monitor `{}` ({}) is not wanted, and is deleted",
                known.name, known.kind
            ))
        }
        Part::SetMembers { pool: id, members } => {
            pool(id).map(|branch| of_members(branch, members))
        }
        Part::CreateMember { pool: id, member } => {
            let name = &pool(id)?.pool.as_deref()?.name;
            Some(format!(
                "pool `{name}`: member {} was missing, and is added",
                place(&member.address, member.protocol_port)
            ))
        }
        Part::UpdateMember {
            pool: id,
            id: member,
            change,
        } => {
            let known = pool(id)?.members.iter().find(|known| known.id == *member)?;
            let place = place(&known.address, known.protocol_port);
            Some(fields("member", &place, &**known, change))
        }
        Part::DeleteMember {
            pool: id,
            id: member,
        } => {
            let branch = pool(id)?;
            let known = branch.members.iter().find(|known| known.id == *member)?;
            let name = &branch.pool.as_deref()?.name;
            Some(format!(
                "pool `{name}`: member {} is not wanted, and is removed",
                place(&known.address, known.protocol_port)
            ))
        }
    }
}

/// Fields of a change, with the values before and after.
fn fields(kind: &str, name: &str, known: &impl Serialize, change: &impl Serialize) -> String {
    let object = |value: serde_json::Result<Value>| -> BTreeMap<String, Value> {
        match value {
            Ok(Value::Object(fields)) => fields.into_iter().collect(),
            _ => BTreeMap::new(),
        }
    };
    let known = object(serde_json::to_value(known));
    let changes = object(serde_json::to_value(change));
    let change = |(field, value): (&String, &Value)| {
        let before = known.get(field).unwrap_or(&Value::Null);
        match value {
            Value::Null => format!("{field} was {}, and is removed", plain(before)),
            value => format!(
                "{field} was {}, and is set to {}",
                plain(before),
                plain(value)
            ),
        }
    };
    let changes: Vec<_> = changes.iter().map(change).collect();
    format!("{kind} `{name}`: {}", changes.join("; "))
}

/// Value in a readable form.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => other.to_string(),
    }
}

fn place(address: &str, port: impl Display) -> String {
    format!("{address}:{port}")
}

/// Message about different members.
fn of_members(branch: &Branch, wanted: &[MemberCreate]) -> String {
    let same = |wanted: &MemberCreate, known: &Member| {
        wanted.address == known.address && wanted.protocol_port == known.protocol_port
    };
    let mut changes = Vec::new();
    for member in wanted {
        let place = place(&member.address, member.protocol_port);
        let Some(known) = branch.members.iter().find(|known| same(member, known)) else {
            changes.push(format!("member {place} was missing, and is added"));
            continue;
        };
        if member.weight.is_some_and(|weight| weight != known.weight) {
            let weight = member.weight.unwrap_or_default();
            changes.push(format!(
                "member {place}: weight was {}, and is set to {weight}",
                known.weight
            ));
        }
        if member.monitor_port != known.monitor_port {
            let port =
                |port: Option<u16>| port.map_or("not set".to_owned(), |port| port.to_string());
            let (before, after) = (port(known.monitor_port), port(member.monitor_port));
            changes.push(format!(
                "member {place}: monitor_port was {before}, and is set to {after}"
            ));
        }
    }
    for known in &branch.members {
        if !wanted.iter().any(|wanted| same(wanted, known)) {
            let place = place(&known.address, known.protocol_port);
            changes.push(format!("member {place} is not wanted, and is removed"));
        }
    }
    let more = changes.len().saturating_sub(MOST);
    changes.truncate(MOST);
    if more > 0 {
        changes.push(format!("and {more} more"));
    }
    let name = branch.pool.as_ref().map_or("", |pool| &pool.name);
    format!("pool `{name}`: {}", changes.join("; "))
}

#[cfg(test)]
mod tests;
