//! Server of a Node in the shared lists of the cloud.

use std::sync::Arc;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use openstack::compute::Server;
use openstack::network::Port;
use openstack::{Cloud, Kind, View};

use super::Shared;
use super::addresses::{self, Subport};
use super::names::{self, HostNames};
use super::plan::{self, Instance};
use super::provider_id::ProviderId;
use crate::context::Error;
use crate::options::Settings;

/// Maximum age of lists while nothing is missing: the inventory refreshes the lists in the background, and changes
/// trigger reconciles.
const AT_REST: Duration = Duration::from_secs(600);
/// Maximum age of lists that decide on an absence.
const FRESH: Duration = Duration::from_secs(1);
/// Device owner of subports of a trunk.
const SUBPORT: &str = "trunk:subport";

/// Result of looking up the server of a Node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lookup {
    /// The server exists.
    Found(Box<Instance>),
    /// The server is missing in the list.
    Absent,
    /// The server belongs to another region, with a manager of its own.
    Elsewhere,
    /// The server cannot be identified, for this reason.
    Unusable(String),
}

/// Facts of the cloud about a [`Node`].
pub(crate) struct Facts {
    pub(crate) lookup: Lookup,
    /// True if the server is complete: not starting, and with addresses.
    pub(crate) is_complete: bool,
    /// True if the server or one of its ports is being built.
    pub(crate) is_starting: bool,
    /// True if only the host name assigns the server to the Node: a server with the name of the Node takes
    /// precedence.
    is_by_host: bool,
}

impl Facts {
    /// Reads the lists, and fresh ones if something is missing.
    pub(crate) async fn fetch(node: &Node, shared: &Shared) -> Result<Self, Error> {
        let settings = shared.ctx.settings();
        let cloud = shared.ctx.cloud(&settings).await?;
        let unknown = HostNames::new();
        let look = Look {
            node,
            shared,
            settings: &settings,
            cloud: &cloud,
        };
        let known = look.at_age(&unknown, AT_REST).await?;
        let is_found = matches!(known.lookup, Lookup::Found(_) | Lookup::Elsewhere);
        let settled =
            is_found && known.is_complete && plan::is_ready(node) && !plan::is_uninitialized(node);
        // The server of a node that is not ready may be about to be deleted. For a new node, a complete server is
        // sufficient.
        let begins = is_found && known.is_complete && plan::is_uninitialized(node);
        if (settled || begins) && !known.is_by_host {
            return Ok(known);
        }
        let period = shared.ctx.options.node_monitor_period;
        let recent = match is_found && known.is_complete && !known.is_by_host {
            true => period,
            false => FRESH.min(period),
        };
        let mut hosts = unknown;
        let mut facts = look.at_age(&hosts, recent).await?;
        if facts.lookup == Lookup::Absent && !plan::has_provider_id(node) {
            hosts = shared.hosts.of(&cloud).await;
            facts = look.at_age(&hosts, AT_REST).await?;
        }
        match facts.is_by_host {
            true => {
                look.at_age(&hosts, recent.min(age(node, Timestamp::now())))
                    .await
            }
            false => Ok(facts),
        }
    }

    fn new(server: &Server, view: &View, settings: &Settings, regional: bool) -> Self {
        let ports = view.ports.of_parent(&server.id);
        let subports = subports(ports, view);
        let region = settings.cloud.region.clone().unwrap_or_default();
        let provider_id = ProviderId {
            region: regional.then(|| region.clone()),
            server: server.id.clone(),
        };
        let networking = &settings.conf.networking;
        let addresses = addresses::of_server(server, ports, &subports, networking);
        let instance = Instance {
            provider_id: provider_id.to_string(),
            status: server.status.clone(),
            address_problem: addresses::problem(server, &subports, &addresses, networking),
            addresses,
            instance_type: instance_type(server, view),
            zone: plan::sanitised(&server.availability_zone),
            region: plan::sanitised(&region),
        };
        let is_starting =
            server.status == "BUILD" || ports.iter().any(|port| port.status == "BUILD");
        Self {
            is_complete: !is_starting && instance.address_problem.is_none(),
            is_starting,
            is_by_host: false,
            lookup: Lookup::Found(Box::new(instance)),
        }
    }
}

/// Node, and the lists for the search of its server.
struct Look<'a> {
    node: &'a Node,
    shared: &'a Shared,
    settings: &'a Settings,
    cloud: &'a Cloud,
}

impl Look<'_> {
    async fn at_age(&self, hosts: &HostNames, age: Duration) -> Result<Facts, Error> {
        let (settings, cloud) = (self.settings, self.cloud);
        let reading = || Error::cloud("listing servers and their ports");
        let mut kinds = vec![Kind::Servers, Kind::Ports];
        let view = cloud.inventory.view(&kinds, age).await.map_err(reading())?;
        if view.ports.iter().any(|port| port.device_owner == SUBPORT) {
            kinds.extend([Kind::Trunks, Kind::Networks]);
        }
        let server = self.find(&view, hosts);
        if let Ok(server) = &server
            && !plan::is_label(&server.flavor.original_name)
        {
            kinds.push(Kind::Flavors);
        }
        let view = match kinds.len() {
            2 => view,
            _ => cloud.inventory.view(&kinds, age).await.map_err(reading())?,
        };
        Ok(match server {
            Ok(server) => {
                let regional = self.shared.ctx.options.regional;
                let is_by_name = plan::provider_id(self.node).is_none();
                Facts {
                    is_by_host: is_by_name && server.name != self.node.name_any(),
                    ..Facts::new(&server, &view, settings, regional)
                }
            }
            Err(lookup) => Facts {
                lookup,
                is_complete: true,
                is_starting: false,
                is_by_host: false,
            },
        })
    }

    /// [`Server`] of the Node: by providerID, or by name without a providerID.
    fn find(&self, view: &View, hosts: &HostNames) -> Result<Arc<Server>, Lookup> {
        if let Some(text) = plan::provider_id(self.node) {
            return of_id(text, view, self.settings.cloud.region.as_deref());
        }
        let name = self.node.name_any();
        let found = names::servers(&name, view, hosts);
        let server = match found.as_slice() {
            [] => return Err(Lookup::Absent),
            [server] => server,
            several => return Err(Lookup::Unusable(plan::several(&name, several))),
        };
        match self.owner(server) {
            None => Ok(Arc::clone(server)),
            Some(other) => Err(Lookup::Unusable(plan::of_another(&name, server, &other))),
        }
    }

    /// Other Node with the id of the [`Server`].
    fn owner(&self, server: &Server) -> Option<String> {
        let others = self.shared.nodes.state();
        let names = |other: &Arc<Node>| {
            let id = plan::provider_id(other).map(ProviderId::parse);
            id.is_some_and(|id| id.is_ok_and(|id| id.server == server.id))
        };
        let name = self.node.name_any();
        let mut owners = others.iter().filter(|other| other.name_any() != name);
        owners
            .find(|other| names(other))
            .map(|other| other.name_any())
    }
}

/// Minimum age of a [`Node`], since the creation time has full seconds: a list that is not older includes the server.
fn age(node: &Node, now: Timestamp) -> Duration {
    let created = node.metadata.creation_timestamp.as_ref();
    let age = created.map(|created| now.duration_since(created.0));
    let age = age.and_then(|age| Duration::try_from(age).ok());
    age.unwrap_or_default()
        .saturating_sub(Duration::from_secs(1))
}

/// [`Subport`]s of the trunks on these [`Port`]s.
fn subports<'a>(ports: &[Arc<Port>], view: &'a View) -> Vec<Subport<'a>> {
    let trunks = ports
        .iter()
        .flat_map(|port| view.trunks.of_parent(&port.id));
    let carried = trunks.flat_map(|trunk| trunk.sub_ports.iter().map(|sub| sub.port_id.clone()));
    let subport = |id: String| {
        let port = view.ports.get(&id)?;
        let network = view.networks.get(&port.network_id);
        Some(Subport {
            network: network.map_or("", |network| &network.name),
            port,
        })
    };
    carried.filter_map(subport).collect()
}

/// Name of the flavor, or its id if the name is not a valid label value.
fn instance_type(server: &Server, view: &View) -> String {
    let name = &server.flavor.original_name;
    if plan::is_label(name) {
        return name.clone();
    }
    let flavor = view.flavors.named(name).first();
    let id = flavor.map_or(server.flavor.id.as_str(), |flavor| &flavor.id);
    plan::sanitised(id)
}

/// [`Server`] in the providerID of a Node.
fn of_id(text: &str, view: &View, region: Option<&str>) -> Result<Arc<Server>, Lookup> {
    let id = ProviderId::parse(text).map_err(Lookup::Unusable)?;
    if id.region.is_some() && id.region.as_deref() != region {
        return Err(Lookup::Elsewhere);
    }
    view.servers.get(&id.server).cloned().ok_or(Lookup::Absent)
}

/// Checks that the server of a [`Node`] is deleted. The Node must have the server's id, since a name is a guess; the list
/// must be from the cluster's project, proved by the server in the providerID of another Node; and Nova must not find
/// the server by its id.
///
/// The outer error belongs to a request, and leaves the state unknown. The inner error is the doubt about the
/// deletion.
pub(crate) async fn is_certainly_gone(
    node: &Node,
    shared: &Shared,
) -> Result<Result<(), String>, Error> {
    let settings = shared.ctx.settings();
    let cloud = shared.ctx.cloud(&settings).await?;
    let view = cloud.inventory.known();
    let region = settings.cloud.region.as_deref();
    let Some(id) = plan::provider_id(node).and_then(|text| ProviderId::parse(text).ok()) else {
        return Ok(Err(plan::unfound(node)));
    };
    let others = shared.nodes.state();
    // A name proves nothing: another project may have a server of the same name.
    let has_server = |other: &Arc<Node>| {
        let named = plan::provider_id(other);
        other.uid() != node.uid() && named.is_some_and(|id| of_id(id, &view, region).is_ok())
    };
    if !others.iter().any(has_server) {
        return Ok(Err(
            "this node has no server in the cloud, but neither has any other node of the cluster: the Node is kept, since \
             the credentials in cloud.conf may be those of another project. Delete the Node if its server is gone"
                .to_owned(),
        ));
    }
    match cloud.session.compute().server(&id.server).await {
        Err(error) if error.is_absent() => Ok(Ok(())),
        Err(error) => Err(Error::cloud("asking for the server of the Node")(error)),
        Ok(server) if server.is_gone() => Ok(Ok(())),
        Ok(_) => Ok(Err(format!(
            "Nova does not list server {}, but finds it when asked: the Node is kept",
            id.server
        ))),
    }
}
