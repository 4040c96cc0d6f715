//! The existing load balancer with all parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use openstack::loadbalancer::{Listener, LoadBalancer, Member, Monitor, Pool};

use crate::step::Step;

/// Protocol and port of a listener.
pub type Key = (String, u16);

/// An existing load balancer with the parts of the controller.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The load balancer.
    pub balancer: &'a LoadBalancer,
    /// Listeners of the controller. The plan deletes all but the desired listeners.
    pub listeners: &'a BTreeMap<Key, Branch>,
    /// Ids of pools of the controller without a listener, for deletion.
    pub orphans: &'a [String],
}

/// A [`Listener`] with [`Pool`], [`Member`]s and [`Monitor`].
#[derive(Clone, Debug)]
pub struct Branch {
    /// The listener.
    pub listener: Arc<Listener>,
    /// Pool of the listener; `None` makes the plan create one.
    pub pool: Option<Arc<Pool>>,
    /// Members of the pool.
    pub members: Vec<Arc<Member>>,
    /// Health monitor of the pool; `None` makes the plan create one.
    pub monitor: Option<Arc<Monitor>>,
}

impl Observed<'_> {
    /// Listener of a [`Step`] about a listener, a pool, members or a health monitor; `None` for a step about the load balancer or
    /// about a pool without a listener.
    pub fn listener_of(&self, step: &Step) -> Option<Key> {
        let of_listener = |id: &str| self.key(|branch| branch.listener.id == id);
        let of_pool =
            |id: &str| self.key(|branch| branch.pool.as_ref().is_some_and(|pool| pool.id == id));
        let of_monitor = |id: &str| {
            self.key(|branch| branch.monitor.as_ref().is_some_and(|known| known.id == id))
        };
        match step {
            Step::Create(_) => None,
            Step::CreateListener(new) => Some((new.protocol.clone(), new.protocol_port)),
            Step::UpdateListener { id, .. } | Step::DeleteListener(id) => of_listener(id),
            Step::CreatePool(new) => of_listener(new.listener_id.as_deref()?),
            Step::UpdatePool { id, .. } | Step::DeletePool(id) => of_pool(id),
            Step::SetMembers { pool, .. }
            | Step::CreateMember { pool, .. }
            | Step::UpdateMember { pool, .. }
            | Step::DeleteMember { pool, .. } => of_pool(pool),
            Step::CreateMonitor(new) => of_pool(new.pool_id.as_deref()?),
            Step::UpdateMonitor { id, .. } | Step::DeleteMonitor(id) => of_monitor(id),
        }
    }

    fn key(&self, is_wanted: impl Fn(&Branch) -> bool) -> Option<Key> {
        let mut all = self.listeners.iter();
        let found = all.find(|(_, branch)| is_wanted(branch));
        found.map(|(key, _)| key.clone())
    }
}

/// Transport of the protocol of a listener: two listeners of one transport need different ports.
pub fn transport(protocol: &str) -> &str {
    match protocol {
        "UDP" | "SCTP" => protocol,
        _ => "TCP",
    }
}
