//! Steps from the observed to the desired routes (pure).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use openstack::View;
use openstack::network::Port;

use super::desired::{Reach, Wanted};
use super::route::{Record, Route};

/// Known state.
pub(crate) struct Facts<'a> {
    /// Router of cloud.conf.
    pub(crate) router: &'a str,
    pub(crate) record: &'a Record,
    pub(crate) view: &'a View,
    /// True if all Nodes are known, so that a route without a Node can be removed.
    pub(crate) knows_all_nodes: bool,
}

/// Steps, in the order of application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// [`Record`] to store before any change in the cloud.
    pub(crate) record: Record,
    pub(crate) routers: BTreeMap<String, Change>,
    pub(crate) pairs: BTreeMap<String, Pairs>,
    /// Reason why a node does not get its route, by node.
    pub(crate) problems: BTreeMap<String, String>,
}

/// Change of a router's routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) add: BTreeSet<Route>,
    pub(crate) remove: BTreeSet<Route>,
}

/// Change of a port's allowed address pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs {
    pub(crate) add: BTreeSet<Route>,
    pub(crate) remove: BTreeSet<Route>,
}

impl Plan {
    /// True if nothing has to be changed in the cloud.
    pub(crate) fn is_settled(&self) -> bool {
        self.routers.is_empty() && self.pairs.is_empty()
    }

    /// True if a [`Route`] is in place, according to this plan.
    pub(crate) fn has(&self, router: &str, route: &Route) -> bool {
        let missing = |change: &Change| change.add.contains(route);
        let closed = self.pairs.values().any(|pairs| pairs.add.contains(route));
        !closed && !self.routers.get(router).is_some_and(missing)
    }
}

/// Steps for all routers in the record, and for the router of cloud.conf.
pub(crate) fn of(wanted: &[Wanted], reach: &Reach, facts: &Facts<'_>) -> Plan {
    let (mut plan, mut needed) = (Plan::default(), Needed::new());
    plan.on_router(facts.router, wanted, reach, facts, &mut needed);
    for router in facts.record.0.keys().filter(|id| *id != facts.router) {
        let reach = Reach::new(router, facts.view);
        plan.on_router(router, &[], &reach, facts, &mut needed);
    }
    plan
}

/// Ranges that ports have to let through, by the id of the port.
type Needed = BTreeSet<(String, IpNet)>;

impl Plan {
    fn on_router(
        &mut self,
        id: &str,
        wanted: &[Wanted],
        reach: &Reach,
        facts: &Facts<'_>,
        needed: &mut Needed,
    ) {
        let Some(router) = facts.view.routers.get(id) else {
            // The list may be from another project: recorded routes stay.
            let ours = facts.record.of(id);
            if !ours.is_empty() {
                self.record.0.insert(id.to_owned(), ours);
            }
            for wanted in wanted.iter().filter(|wanted| !wanted.routes.is_empty()) {
                let problem = format!(
                    "router {id} is not one of this project: correct router-id in [Route] of cloud.conf"
                );
                self.problems.insert(wanted.node.clone(), problem);
            }
            return;
        };
        let (present, ours) = (Route::of_router(router), facts.record.of(id));
        let mut kept = BTreeSet::new();
        let mut change = Change::default();
        // Range of a node with an unknown address at the moment.
        let unresolved: BTreeSet<_> = wanted.iter().flat_map(|w| &w.unresolved).collect();
        for wanted in wanted {
            for leg in &wanted.routes {
                let route = leg.route;
                if let Some(other) = foreign(&route, &present, &ours) {
                    let problem = format!(
                        "router {id} has the route {other}, which this cluster has not created: remove it (openstack router \
                         remove route), or correct --cluster-cidr if another cluster uses the range"
                    );
                    self.problems.insert(wanted.node.clone(), problem);
                    continue;
                }
                kept.insert(route);
                needed.insert((leg.port.id.clone(), route.destination));
                if !present.contains(&route) {
                    change.add.insert(route);
                }
                if !allows(&leg.port, &route) {
                    let pairs = self.pairs.entry(leg.port.id.clone()).or_default();
                    pairs.add.insert(route);
                }
            }
        }
        let stale = ours.difference(&kept).copied().collect::<BTreeSet<_>>();
        for route in stale {
            let port = reach.port(route.next_hop);
            // A route by another address of the port, or on another router, may need the pair.
            let is_free = |port: &&Arc<Port>| {
                has_pair(port, &route) && !needed.contains(&(port.id.clone(), route.destination))
            };
            let port = port.filter(is_free);
            if !facts.knows_all_nodes || unresolved.contains(&route.destination) {
                kept.insert(route);
                continue;
            }
            if present.contains(&route) {
                change.remove.insert(route);
                kept.insert(route);
            }
            if let Some(port) = port {
                let pairs = self.pairs.entry(port.id.clone()).or_default();
                pairs.remove.insert(route);
                kept.insert(route);
            }
        }
        if change != Change::default() {
            self.routers.insert(id.to_owned(), change);
        }
        if !kept.is_empty() {
            self.record.0.insert(id.to_owned(), kept);
        }
    }
}

/// [`Route`] to the same range without a record of this cluster.
fn foreign(route: &Route, present: &BTreeSet<Route>, ours: &BTreeSet<Route>) -> Option<Route> {
    if present.contains(route) {
        return None;
    }
    let mut others = present.difference(ours);
    others
        .find(|other| other.destination == route.destination)
        .copied()
}

/// True if the [`Port`] lets packets from the pods through.
fn allows(port: &Port, route: &Route) -> bool {
    let allowed = |range: &str| match range.parse::<IpNet>() {
        Ok(range) => range.contains(&route.destination),
        Err(_) => false,
    };
    port.port_security_enabled == Some(false) || ranges(port).any(allowed)
}

/// True if the [`Port`] has the pair of exactly this [`Route`].
fn has_pair(port: &Port, route: &Route) -> bool {
    let destination = route.destination.to_string();
    ranges(port).any(|range| range == destination)
}

/// Ranges from which the [`Port`] may send with its own hardware address.
fn ranges(port: &Port) -> impl Iterator<Item = &str> {
    let pairs = port.allowed_address_pairs.iter();
    let is_of_port = |mac: &String| *mac == port.mac_address;
    pairs
        .filter(move |pair| pair.mac_address.as_ref().is_none_or(is_of_port))
        .map(|pair| pair.ip_address.as_str())
}
