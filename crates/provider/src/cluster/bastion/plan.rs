//! The steps from the observed to the wanted bastion: its server by the plan of machines, and its floating IP.
//!
//! A changed spec has another mark. Resources with the mark of a former spec go first, and only then the new server is
//! created, with the floating IP of the former one.

use std::fmt;
use std::sync::Arc;

use openstack::View;
use openstack::network::{FloatingIp, FloatingIpCreate, FloatingIpUpdate};

use crate::cluster::control_plane::address;
use crate::cluster::facts::EndpointNetwork;
use crate::cluster::observed::Observed as OfCluster;
use crate::cluster::request::Request as OfNetwork;
use crate::identity::{Identity, Mark};
use crate::machine::desired::Desired;
use crate::machine::observed::{Observed as OfServer, References};
use crate::machine::plan as server;

/// Bastion of the spec.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// [`Mark`], different for another spec.
    pub mark: Mark,
    /// [`Desired`] server; `None` for an existing one, whose spec was not resolved.
    pub server: Option<Desired>,
    /// Floating IP.
    pub address: Option<Address>,
    /// [`EndpointNetwork`] of the port with the floating IP.
    pub place: EndpointNetwork,
    /// Description of the floating IP, with the mark.
    pub description: String,
    /// Tags of the floating IP.
    pub tags: Vec<String>,
}

/// Floating IP of the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The external network.
    pub network: String,
    /// Address; chosen by Neutron when absent.
    pub given: Option<String>,
    /// [`Identity`] of the pool that has given the address, if a pool of this provider.
    pub pool: Option<Identity>,
}

/// Existing resources of the bastion.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Resources with the mark of the wanted bastion.
    pub current: Option<OfServer>,
    /// Resources with the marks of former specs.
    pub former: Vec<OfServer>,
    /// [`FloatingIp`]s created for the bastion, the one to keep first.
    pub ips: Vec<Arc<FloatingIp>>,
    /// [`View`], for lookups.
    pub view: Arc<View>,
}

impl Observed {
    /// Bastion in the observed state of its cluster; `wanted` is the [`Mark`] of the wanted one.
    pub fn new(cluster: &OfCluster, wanted: Option<Mark>) -> Self {
        let view = &cluster.view;
        let with = |mark| OfServer::new(Arc::clone(view), mark, References::default());
        let marks = cluster.bastions().into_iter();
        let former = marks.filter(|mark| Some(*mark) != wanted).map(with);
        let mut ips = cluster.bastion_ips.clone();
        ips.sort_by_key(|ip| (ip.port_id.is_none(), ip.id.clone()));
        Self {
            current: wanted.map(with),
            former: former.collect(),
            ips,
            view: Arc::clone(view),
        }
    }

    /// [`FloatingIp`] of the wanted bastion, if any.
    pub fn floating_ip(&self, wanted: &Wanted) -> Option<&Arc<FloatingIp>> {
        match wanted.address.as_ref()?.given.as_deref() {
            Some(given) => {
                let mut all = self.view.floating_ips.iter();
                all.find(|ip| ip.floating_ip_address == given)
            }
            None => self.ips.first(),
        }
    }

    /// Port and address for logins: in the network of the cluster, or else the first IPv4 address.
    pub fn place(&self, wanted: &Wanted) -> Option<(String, String)> {
        let mut ports = self.current.as_ref()?.ports.clone();
        ports.sort_by(|a, b| a.name.cmp(&b.name));
        let at = |place: &EndpointNetwork| {
            ports.iter().find_map(|port| {
                let ip = address(port, place).filter(|ip| !ip.ip_address.contains(':'))?;
                Some((port.id.clone(), ip.ip_address.clone()))
            })
        };
        at(&wanted.place).or_else(|| at(&EndpointNetwork::default()))
    }
}

/// One write to the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names are self-explanatory; `Display` describes them.
pub enum Step {
    Server(server::Step),
    CreateFloatingIp,
    AssociateFloatingIp,
    TagFloatingIp,
    /// A floating IP of the user, by its id.
    ReleaseFloatingIp(String),
    DeleteFloatingIp(String),
}

impl Step {
    /// Event for this step, such as `CreateServer`.
    pub fn event(&self) -> Option<&'static str> {
        Some(match self {
            Step::Server(step) => return step.event(),
            Step::CreateFloatingIp => "CreateFloatingIP",
            Step::AssociateFloatingIp => "AssociateFloatingIP",
            Step::TagFloatingIp => return None,
            Step::ReleaseFloatingIp(_) => "DisassociateFloatingIP",
            Step::DeleteFloatingIp(_) => "DeleteFloatingIP",
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Server(step) => write!(f, "{step} of the bastion"),
            Step::CreateFloatingIp => f.write_str("create the floating IP of the bastion"),
            Step::AssociateFloatingIp => f.write_str("associate the floating IP of the bastion"),
            Step::TagFloatingIp => f.write_str("tag the floating IP of the bastion"),
            Step::ReleaseFloatingIp(id) => {
                write!(f, "disassociate floating IP {id} from the bastion")
            }
            Step::DeleteFloatingIp(id) => write!(f, "delete floating IP {id} of the bastion"),
        }
    }
}

/// [`Step`]s to apply now, in this order, and reasons to wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Writes.
    pub steps: Vec<Step>,
    /// Reasons to wait before later steps.
    pub waits: Vec<String>,
}

impl Plan {
    /// True without steps and waits.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.waits.is_empty()
    }

    fn add(&mut self, more: server::Plan) {
        self.steps.extend(more.steps.into_iter().map(Step::Server));
        self.waits.extend(more.waits);
    }
}

/// [`Plan`] from `observed` to `wanted`; without a wanted one, nothing of a bastion stays.
pub fn plan(wanted: Option<&Wanted>, observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    for former in &observed.former {
        plan.add(server::plan_deletion(former, false));
    }
    let Some(wanted) = wanted else {
        let ips = observed.ips.iter();
        plan.steps
            .extend(ips.map(|ip| Step::DeleteFloatingIp(ip.id.clone())));
        return plan;
    };
    // The new server may need the quota, the addresses and the volumes' names of the former one.
    if let (true, Some(current)) = (plan.is_empty(), &observed.current) {
        match &wanted.server {
            Some(desired) => plan.add(server::plan(desired, current)),
            None if current.server().is_some() => plan.add(server::surplus(current)),
            None => plan.waits.push("looking for the server".to_owned()),
        }
    }
    surplus_ips(wanted, observed, &mut plan.steps);
    if observed.former.is_empty() && plan.waits.is_empty() {
        floating_ip(wanted, observed, &mut plan);
    }
    plan
}

/// Deletes unwanted floating IPs of this provider, and removes the user's from the port, which can have only one.
fn surplus_ips(wanted: &Wanted, observed: &Observed, steps: &mut Vec<Step>) {
    let kept = observed.floating_ip(wanted).map(|ip| ip.id.as_str());
    let others = observed.ips.iter().map(|ip| ip.id.as_str());
    for id in others.clone().filter(|id| Some(*id) != kept) {
        steps.push(Step::DeleteFloatingIp(id.to_owned()));
    }
    let ports: Vec<_> = observed.current.iter().flat_map(|it| &it.ports).collect();
    for ip in observed.view.floating_ips.iter() {
        let is_here = ports
            .iter()
            .any(|port| ip.port_id.as_ref() == Some(&port.id));
        let is_known = Some(ip.id.as_str()) == kept || others.clone().any(|id| id == ip.id);
        if is_here && !is_known {
            steps.push(Step::ReleaseFloatingIp(ip.id.clone()));
        }
    }
}

fn floating_ip(wanted: &Wanted, observed: &Observed, plan: &mut Plan) {
    if wanted.address.is_none() {
        return;
    }
    let place = observed.place(wanted);
    if place.is_none()
        && observed
            .current
            .as_ref()
            .is_some_and(|it| it.server().is_some())
    {
        let text = "the bastion has no port with an IPv4 address for a floating IP: give it one";
        plan.waits.push(text.to_owned());
        return;
    }
    let Some(known) = observed.floating_ip(wanted) else {
        plan.steps.push(Step::CreateFloatingIp);
        if !wanted.tags.is_empty() {
            plan.steps.push(Step::TagFloatingIp);
        }
        return;
    };
    if place.is_none_or(|(port, _)| known.port_id.as_ref() != Some(&port)) {
        plan.steps.push(Step::AssociateFloatingIp);
    }
    let ours = observed.ips.iter().any(|ip| ip.id == known.id);
    if ours && wanted.tags.iter().any(|tag| !known.tags.contains(tag)) {
        plan.steps.push(Step::TagFloatingIp);
    }
}

/// One request to the cloud.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Request {
    Server(server::Request),
    FloatingIp(OfNetwork),
}

/// [`Request`] of a [`Step`]; `None` when nothing is left to do, or when a needed resource does not exist.
pub fn request(step: &Step, wanted: Option<&Wanted>, observed: &Observed) -> Option<Request> {
    let of_network = match step {
        Step::Server(step) => {
            let mut all = observed.former.iter().chain(&observed.current);
            if let Some(request) = all.find_map(|it| server::deletion(step, it)) {
                return Some(Request::Server(request));
            }
            let current = observed.current.as_ref()?;
            return server::request(step, wanted?.server.as_ref()?, current).map(Request::Server);
        }
        Step::CreateFloatingIp => create(wanted?, observed)?,
        Step::AssociateFloatingIp => {
            let known = observed.floating_ip(wanted?)?;
            let (port, address) = observed.place(wanted?)?;
            let change = FloatingIpUpdate {
                port_id: Some(port),
                fixed_ip_address: Some(address),
            };
            OfNetwork::UpdateFloatingIp(known.id.clone(), change)
        }
        Step::TagFloatingIp => {
            let known = observed.floating_ip(wanted?)?;
            let missing = wanted?.tags.iter().filter(|tag| !known.tags.contains(tag));
            OfNetwork::Tag {
                collection: "floatingips",
                id: known.id.clone(),
                tags: known.tags.iter().chain(missing).cloned().collect(),
            }
        }
        Step::ReleaseFloatingIp(id) => {
            OfNetwork::UpdateFloatingIp(id.clone(), FloatingIpUpdate::default())
        }
        Step::DeleteFloatingIp(id) => OfNetwork::DeleteFloatingIp(id.clone()),
    };
    Some(Request::FloatingIp(of_network))
}

fn create(wanted: &Wanted, observed: &Observed) -> Option<OfNetwork> {
    let address = wanted.address.as_ref()?;
    let (port, fixed) = observed.place(wanted)?;
    Some(OfNetwork::CreateFloatingIp(FloatingIpCreate {
        floating_network_id: address.network.clone(),
        port_id: Some(port),
        fixed_ip_address: Some(fixed),
        floating_ip_address: address.given.clone(),
        description: Some(wanted.description.clone()),
        ..FloatingIpCreate::default()
    }))
}

#[cfg(test)]
mod tests;
