//! The steps from the observed to the desired state, and their requests.

use std::fmt;
use std::sync::Arc;

use openstack::compute::{BlockDevice, Server, ServerCreate, ServerNetwork, ServerRebuild};
use openstack::inventory::Inventory;
use openstack::network::{FloatingIpUpdate, Port, PortCreate, PortUpdate, Trunk, TrunkCreate};
use openstack::volume::VolumeCreate;
use openstack::{Kind, Result};

use super::desired::Desired;
use super::drift::{self, PortState, Repair};
use super::observed::Observed;
use super::pairs::{self, Change, PortPairs};
use super::pooled::{self, Given};
use crate::identity::Mark;

/// One write to the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names are self-explanatory; `Display` describes them.
pub enum Step {
    CreateVolume(usize),
    /// Creates all missing ports in one request.
    CreatePorts,
    /// Tags the port with this name.
    TagPort(String),
    /// Creates the trunk of the port with this name.
    CreateTrunk(String),
    /// Tags the trunk of the port with this name.
    TagTrunk(String),
    /// Changes the allowed address pairs of a port.
    SetPairs(Change),
    /// Restores a port after a change by hand.
    Repair(Repair),
    /// Associates the floating IP with this address.
    AssociateFloatingIp(String),
    CreateServer,
    /// Rebuilds the server with this id.
    RebuildServer(String),
    DeleteServer(String),
    /// Writes the mark of the machine to a subport, so that its owner is still known outside of the trunk.
    MarkSubport(String),
    /// Takes all ports out of a trunk.
    RemoveSubports(String),
    DeleteTrunk(String),
    DeletePort(String),
    DeleteVolume(String),
}

impl Step {
    /// Event for this step, such as `CreateServer`.
    pub fn event(&self) -> Option<&'static str> {
        Some(match self {
            Step::CreateVolume(_) => "CreateVolume",
            Step::CreatePorts => "CreatePort",
            Step::TagPort(_) | Step::TagTrunk(_) | Step::MarkSubport(_) => return None,
            Step::CreateTrunk(_) => "CreateTrunk",
            Step::RemoveSubports(_) => "RemoveTrunkSubports",
            Step::DeleteTrunk(_) => "DeleteTrunk",
            Step::SetPairs(_) | Step::Repair(_) => "UpdatePort",
            Step::AssociateFloatingIp(_) => "AssociateFloatingIP",
            Step::CreateServer => "CreateServer",
            Step::RebuildServer(_) => "RebuildServer",
            Step::DeleteServer(_) => "DeleteServer",
            Step::DeletePort(_) => "DeletePort",
            Step::DeleteVolume(_) => "DeleteVolume",
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::CreateVolume(_) => f.write_str("create a volume"),
            Step::CreatePorts => f.write_str("create the ports"),
            Step::TagPort(name) => write!(f, "tag port {name}"),
            Step::CreateTrunk(name) => write!(f, "create trunk {name}"),
            Step::TagTrunk(name) => write!(f, "tag trunk {name}"),
            Step::MarkSubport(id) => write!(f, "mark subport {id}"),
            Step::RemoveSubports(id) => write!(f, "remove the subports of trunk {id}"),
            Step::DeleteTrunk(id) => write!(f, "delete trunk {id}"),
            Step::SetPairs(change) => {
                write!(f, "set the allowed address pairs of port {}", change.port)
            }
            Step::Repair(repair) => {
                write!(f, "change {} of port {} back", repair.words(), repair.port)
            }
            Step::AssociateFloatingIp(address) => write!(f, "associate floating IP {address}"),
            Step::CreateServer => f.write_str("create the server"),
            Step::RebuildServer(id) => write!(f, "rebuild server {id}"),
            Step::DeleteServer(id) => write!(f, "delete server {id}"),
            Step::DeletePort(id) => write!(f, "delete port {id}"),
            Step::DeleteVolume(id) => write!(f, "delete volume {id}"),
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
}

/// [`Plan`] from `observed` to `desired`. A machine with a recorded server never gets another one.
pub fn plan(desired: &Desired, observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    if observed.server().is_some() {
        return surplus(observed);
    }
    if observed.known.server().is_some() {
        return plan;
    }
    for (index, volume) in desired.volumes.iter().enumerate() {
        match observed.volume(&volume.create.name) {
            None => plan.steps.push(Step::CreateVolume(index)),
            Some(known) if matches!(known.status.as_str(), "available" | "in-use") => {}
            Some(known) => plan.waits.push(format!(
                "waiting for volume {} to become available, it is {}",
                known.name, known.status
            )),
        }
    }
    if of_other_zones(desired, observed, &mut plan) {
        return plan;
    }
    let missing = desired
        .ports
        .iter()
        .any(|port| usable(port, observed).is_none());
    if missing {
        plan.steps.push(Step::CreatePorts);
    }
    for port in &desired.ports {
        let wanted = &port.create.allowed_address_pairs;
        let change = usable(port, observed).and_then(|known| pairs::before_use(wanted, known));
        plan.steps.extend(change.map(Step::SetPairs));
    }
    for port in desired.ports.iter().filter(|_| desired.tagging) {
        let known = usable(port, observed);
        if known.is_none_or(|known| port.tags.iter().any(|tag| !known.tags.contains(tag))) {
            plan.steps.push(Step::TagPort(port.create.name.clone()));
        }
    }
    trunks(desired, observed, &mut plan.steps);
    let creating = plan
        .steps
        .iter()
        .any(|step| matches!(step, Step::CreateVolume(_)));
    if plan.waits.is_empty() && !creating {
        plan.steps.push(Step::CreateServer);
    }
    plan
}

/// [`Port`] for `wanted`, if in the failure domain of the next server.
fn usable<'o>(wanted: &super::desired::Port, observed: &'o Observed) -> Option<&'o Arc<Port>> {
    let known = observed.port(&wanted.create.name)?;
    (!is_elsewhere(wanted, known)).then_some(known)
}

/// True for a [`Port`] on the subnets of another failure domain, from a server that failed before.
fn is_elsewhere(wanted: &super::desired::Port, known: &Port) -> bool {
    let ips = &wanted.create.fixed_ips;
    let has = |subnet: &str| known.fixed_ips.iter().any(|ip| ip.subnet_id == subnet);
    wanted.is_of_zone && !ips.iter().all(|ip| has(&ip.subnet_id))
}

/// Deletes ports on the subnets of another failure domain. Returns true if the failed server has not released the ports
/// yet.
fn of_other_zones(desired: &Desired, observed: &Observed, plan: &mut Plan) -> bool {
    let mut is_held = false;
    for wanted in &desired.ports {
        let named = observed.ports.iter();
        let named = named.filter(|port| port.name == wanted.create.name);
        for port in named.filter(|port| is_elsewhere(wanted, port)) {
            if !port.device_id.is_empty() {
                is_held = true;
                plan.waits
                    .push(format!("waiting for port {} to be released", port.name));
                continue;
            }
            let trunk = observed
                .trunk(port)
                .map(|trunk| Step::DeleteTrunk(trunk.id.clone()));
            plan.steps.extend(trunk);
            plan.steps.push(Step::DeletePort(port.id.clone()));
        }
    }
    is_held
}

/// Adds steps for the trunks, which must exist before a server uses their ports.
fn trunks(desired: &Desired, observed: &Observed, steps: &mut Vec<Step>) {
    for port in desired.ports.iter().filter(|port| port.trunk) {
        let name = &port.create.name;
        let known = usable(port, observed).and_then(|port| observed.trunk(port));
        if known.is_none() {
            steps.push(Step::CreateTrunk(name.clone()));
        }
        let lacks = |known: &Trunk| port.tags.iter().any(|tag| !known.tags.contains(tag));
        if desired.tagging && known.is_none_or(|known| lacks(known)) {
            steps.push(Step::TagTrunk(name.clone()));
        }
    }
}

/// Deletes duplicates, which exist after a lost response to a create request: all servers but the one to keep, and
/// ports and volumes with the same name as one in use by its server.
pub fn surplus(observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    let Some(kept) = observed.server() else {
        return plan;
    };
    let others = observed.servers.iter();
    let others = others.filter(|server| server.id != kept.id && !server.is_deleting());
    plan.steps
        .extend(others.map(|server| Step::DeleteServer(server.id.clone())));
    for port in observed
        .ports
        .iter()
        .filter(|port| port.device_id.is_empty())
    {
        let used = observed.port(&port.name);
        if used.is_some_and(|used| used.device_id == kept.id) {
            plan.steps.push(Step::DeletePort(port.id.clone()));
        }
    }
    for volume in observed.volumes.iter().filter(|v| v.status == "available") {
        let used = observed.volume(&volume.name);
        if used.is_some_and(|used| used.status == "in-use") {
            plan.steps.push(Step::DeleteVolume(volume.id.clone()));
        }
    }
    plan
}

/// [`Plan`] of a machine with a server: [`surplus`], repairs of ports, and permitted changes of ports.
pub fn existing(states: &[PortState], pairs: &[PortPairs], observed: &Observed) -> Plan {
    let mut plan = surplus(observed);
    let repairs = drift::repairs(states, observed).into_iter();
    plan.steps.extend(repairs.map(Step::Repair));
    let changes = pairs::changes(pairs, observed).into_iter();
    plan.steps.extend(changes.map(Step::SetPairs));
    plan
}

/// `plan`, with the pool's floating IP at a port of the machine, before the server boots.
pub fn with_address(mut plan: Plan, given: Option<&Given>, observed: &Observed) -> Plan {
    let is_gone = observed.known.server().is_some() && observed.server().is_none();
    let Some(given) = given.filter(|_| !is_gone) else {
        return plan;
    };
    let (ports, view) = (&observed.ports, &observed.view);
    if !ports.is_empty() && pooled::association(&given.address, ports, view).is_none() {
        plan.waits.push(format!(
            "the machine has no IPv4 address that is free for floating IP {}",
            given.address
        ));
    } else if !given.is_at(ports, view) {
        let mut steps = plan.steps.iter();
        let server = steps.position(|step| *step == Step::CreateServer);
        let step = Step::AssociateFloatingIp(given.address.clone());
        plan.steps.insert(server.unwrap_or(plan.steps.len()), step);
    }
    plan
}

/// [`Plan`] of a deletion: first the member of the load balancer, then the server, then ports and volumes.
/// `leave_members`: wait until the cluster has removed the machine from the members of its load balancer.
pub fn plan_deletion(observed: &Observed, leave_members: bool) -> Plan {
    let mut plan = Plan::default();
    if leave_members && !observed.members().is_empty() {
        let text = "waiting for the load balancer to remove the machine from its members";
        plan.waits.push(text.to_owned());
        return plan;
    }
    for server in &observed.servers {
        if server.is_deleting() {
            plan.waits.push(format!("deleting server {}", server.id));
        } else {
            plan.steps.push(Step::DeleteServer(server.id.clone()));
        }
    }
    if let Some(server) = &observed.unproven {
        plan.waits.push(unproven(observed, server));
    }
    if !plan.is_empty() {
        // Ports and volumes are in use until Nova releases them.
        return plan;
    }
    ports(observed, &mut plan.steps);
    for volume in &observed.volumes {
        if volume.status == "deleting" {
            plan.waits.push(format!("deleting volume {}", volume.name));
        } else {
            plan.steps.push(Step::DeleteVolume(volume.id.clone()));
        }
    }
    plan
}

/// Deletes the ports with their trunks. A subport goes with its trunk, as in the Go provider, unless marked as a
/// resource of others.
fn ports(observed: &Observed, steps: &mut Vec<Step>) {
    let mut subports = Vec::new();
    for trunk in observed
        .ports
        .iter()
        .filter_map(|port| observed.trunk(port))
    {
        for sub in &trunk.sub_ports {
            let known = observed.view.ports.get(&sub.port_id);
            if known.is_some_and(|port| Mark::from_item(&**port).is_none()) {
                subports.push(sub.port_id.clone());
            }
        }
        steps.extend(subports.iter().cloned().map(Step::MarkSubport));
        if !trunk.sub_ports.is_empty() {
            steps.push(Step::RemoveSubports(trunk.id.clone()));
        }
        steps.push(Step::DeleteTrunk(trunk.id.clone()));
    }
    let ports = observed.ports.iter().map(|port| port.id.clone());
    steps.extend(subports.into_iter().chain(ports).map(Step::DeletePort));
}

/// Reason why the recorded server is neither used nor deleted, and what to do.
pub fn unproven(observed: &Observed, server: &Server) -> String {
    let whose = match Mark::in_tags(&server.tags) {
        None => "has lost the tags of this machine".to_owned(),
        Some(_) => "has the tags of another machine".to_owned(),
    };
    format!(
        "server {} {whose}, so that it is neither used nor deleted: set its tags to {}, or delete it",
        server.id,
        observed.mark.tags().join(" and ")
    )
}

/// One request to the cloud.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // One variant for each call of the inventory.
pub enum Request {
    CreateVolume(VolumeCreate),
    CreatePorts(Vec<PortCreate>),
    TagPort {
        id: String,
        tags: Vec<String>,
    },
    CreateTrunk(TrunkCreate),
    TagTrunk {
        id: String,
        tags: Vec<String>,
    },
    SetPairs(Change),
    AssociateFloatingIp {
        id: String,
        change: FloatingIpUpdate,
    },
    CreateServer(Box<ServerCreate>),
    RebuildServer {
        id: String,
        rebuild: Box<ServerRebuild>,
    },
    DeleteServer(String),
    ChangePort {
        id: String,
        change: PortUpdate,
    },
    RemoveSubports {
        trunk: String,
        ports: Vec<String>,
    },
    DeleteTrunk(String),
    DeletePort(String),
    DeleteVolume(String),
}

/// [`Request`] of a [`Step`]; `None` when a needed resource does not exist.
pub fn request(step: &Step, desired: &Desired, observed: &Observed) -> Option<Request> {
    if let Some(request) = change(step, observed) {
        return Some(request);
    }
    Some(match step {
        Step::CreateVolume(index) => {
            Request::CreateVolume(desired.volumes.get(*index)?.create.clone())
        }
        Step::CreatePorts => {
            let missing = |port: &&super::desired::Port| observed.port(&port.create.name).is_none();
            let ports: Vec<_> = desired
                .ports
                .iter()
                .filter(missing)
                .map(|port| port.create.clone())
                .collect();
            if ports.is_empty() {
                return None;
            }
            Request::CreatePorts(ports)
        }
        Step::TagPort(name) => {
            let known = observed.port(name)?;
            // Clouds with the extension tag-ports-during-bulk-creation have set them at creation.
            Request::TagPort {
                id: known.id.clone(),
                tags: with_missing(&known.tags, desired, name)?,
            }
        }
        Step::CreateTrunk(name) => {
            let port = observed.port(name)?;
            let wanted = desired.ports.iter().find(|it| it.create.name == *name)?;
            Request::CreateTrunk(TrunkCreate {
                name: name.clone(),
                port_id: port.id.clone(),
                description: wanted.create.description.clone(),
                ..TrunkCreate::default()
            })
        }
        Step::TagTrunk(name) => {
            let known = observed.trunk(observed.port(name)?)?;
            Request::TagTrunk {
                id: known.id.clone(),
                tags: with_missing(&known.tags, desired, name)?,
            }
        }
        Step::CreateServer => Request::CreateServer(Box::new(server(desired, observed)?)),
        _ => return None,
    })
}

/// Tags of the port with this name and of its trunk, after the existing ones; `None` if none is missing.
fn with_missing(known: &[String], desired: &Desired, port: &str) -> Option<Vec<String>> {
    let wanted = desired.ports.iter().find(|it| it.create.name == port)?;
    let missing = wanted.tags.iter().filter(|tag| !known.contains(tag));
    let tags: Vec<_> = known.iter().chain(missing).cloned().collect();
    (tags.len() > known.len()).then_some(tags)
}

/// [`Request`] of a [`Step`] that deletes or changes a resource.
pub fn change(step: &Step, observed: &Observed) -> Option<Request> {
    match step {
        Step::SetPairs(change) => Some(Request::SetPairs(change.clone())),
        Step::Repair(repair) => Some(Request::ChangePort {
            id: repair.id.clone(),
            change: repair.change.clone(),
        }),
        Step::AssociateFloatingIp(address) => {
            let (id, change) = pooled::association(address, &observed.ports, &observed.view)?;
            Some(Request::AssociateFloatingIp { id, change })
        }
        other => deletion(other, observed),
    }
}

/// [`Request`] of a [`Step`] that deletes a resource; `None` when nothing is left to do.
pub fn deletion(step: &Step, observed: &Observed) -> Option<Request> {
    Some(match step {
        Step::MarkSubport(id) => Request::ChangePort {
            id: id.clone(),
            change: PortUpdate {
                description: Some(marked(observed, id)?),
                ..PortUpdate::default()
            },
        },
        Step::RemoveSubports(id) => Request::RemoveSubports {
            trunk: id.clone(),
            ports: {
                let trunk = observed.view.trunks.get(id)?;
                trunk
                    .sub_ports
                    .iter()
                    .map(|sub| sub.port_id.clone())
                    .collect()
            },
        },
        Step::DeleteTrunk(id) => Request::DeleteTrunk(id.clone()),
        Step::DeleteServer(id) => Request::DeleteServer(id.clone()),
        Step::DeletePort(id) => Request::DeletePort(id.clone()),
        Step::DeleteVolume(id) => Request::DeleteVolume(id.clone()),
        _ => return None,
    })
}

/// Description of a port, with the mark of the machine.
fn marked(observed: &Observed, port: &str) -> Option<String> {
    let port = observed.view.ports.get(port)?;
    Some(observed.mark.description(&port.description))
}

fn server(desired: &Desired, observed: &Observed) -> Option<ServerCreate> {
    let ports: Option<Vec<_>> = desired
        .ports
        .iter()
        .map(|port| observed.port(&port.create.name))
        .collect();
    let networks = ports?.into_iter().map(|port| interface(port)).collect();
    let mut disks = Vec::new();
    for volume in &desired.volumes {
        disks.push(BlockDevice {
            source_type: "volume".to_owned(),
            destination_type: "volume".to_owned(),
            uuid: Some(observed.volume(&volume.create.name)?.id.clone()),
            boot_index: Some(if volume.is_root { 0 } else { -1 }),
            delete_on_termination: true,
            tag: (!volume.is_root).then(|| volume.device.clone()),
            ..BlockDevice::default()
        });
    }
    disks.extend(desired.local_disks.iter().cloned());
    if let (Some(image), false) = (&desired.server.image_id, disks.is_empty()) {
        // If any block device is given, Nova requires the root disk to be given, too.
        disks.insert(
            0,
            BlockDevice {
                source_type: "image".to_owned(),
                destination_type: "local".to_owned(),
                uuid: Some(image.clone()),
                boot_index: Some(0),
                delete_on_termination: true,
                ..BlockDevice::default()
            },
        );
    }
    Some(ServerCreate {
        networks,
        block_devices: disks,
        ..desired.server.clone()
    })
}

fn interface(port: &Port) -> ServerNetwork {
    ServerNetwork::port(port.id.clone())
}

/// Sends a [`Request`]. The next view contains its effect.
///
/// # Errors
/// Errors of the request. The affected kinds are then read again: the cloud may have processed the request although the
/// response was lost.
pub async fn send(inventory: &Inventory, request: &Request) -> Result<()> {
    let (result, kind) = match request {
        Request::CreateVolume(create) => (
            inventory.create_volume(create).await.map(drop),
            Kind::Volumes,
        ),
        Request::CreatePorts(ports) => match ports.as_slice() {
            [port] => (inventory.create_port(port).await.map(drop), Kind::Ports),
            ports => (inventory.create_ports(ports).await.map(drop), Kind::Ports),
        },
        Request::TagPort { id, tags } => (inventory.set_tags::<Port>(id, tags).await, Kind::Ports),
        Request::CreateTrunk(create) => {
            (inventory.create_trunk(create).await.map(drop), Kind::Trunks)
        }
        Request::TagTrunk { id, tags } => {
            (inventory.set_tags::<Trunk>(id, tags).await, Kind::Trunks)
        }
        Request::ChangePort { id, change } => (
            inventory.update_port(id, change).await.map(drop),
            Kind::Ports,
        ),
        Request::RemoveSubports { trunk, ports } => {
            let ports: Vec<_> = ports.iter().map(String::as_str).collect();
            let removed = inventory.remove_subports(trunk, &ports).await;
            (removed.map(drop), Kind::Trunks)
        }
        Request::DeleteTrunk(id) => (inventory.delete_trunk(id).await, Kind::Trunks),
        Request::SetPairs(Change {
            id, add, remove, ..
        }) => {
            let set = inventory.change_port_pairs(id, add, remove).await;
            (set.map(drop), Kind::Ports)
        }
        Request::AssociateFloatingIp { id, change } => (
            inventory.update_floating_ip(id, change).await.map(drop),
            Kind::FloatingIps,
        ),
        Request::CreateServer(create) => (
            inventory.create_server(create).await.map(drop),
            Kind::Servers,
        ),
        Request::RebuildServer { id, rebuild } => {
            (inventory.rebuild_server(id, rebuild).await, Kind::Servers)
        }
        Request::DeleteServer(id) => (inventory.delete_server(id).await, Kind::Servers),
        Request::DeletePort(id) => (inventory.delete_port(id).await, Kind::Ports),
        Request::DeleteVolume(id) => (inventory.delete_volume(id).await, Kind::Volumes),
    };
    if result.is_err() {
        inventory.stale(kind);
    }
    result
}

#[cfg(test)]
mod tests;
