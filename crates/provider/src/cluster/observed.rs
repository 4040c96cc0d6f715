//! The observed state of a cluster in the cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::infra::v1beta2::{ManagedGroup, OpenStackCluster};
use openstack::View;
use openstack::compute::{Server, ServerGroup};
use openstack::inventory::{Resource, Table};
use openstack::loadbalancer::{Listener, LoadBalancer, Member, Monitor, Pool};
use openstack::network::{FloatingIp, Network, Port, Router, SecurityGroup, Subnet};
use openstack::volume::Volume;

use super::rules::Referents;
use crate::family::Family;
use crate::identity::{Identity, Mark};
use crate::names::{Names, zone_of};

/// Resources referred to by an [`OpenStackCluster`]. Of two resources with the same mark, the one referred to stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Ids in status.
    pub ids: BTreeSet<String>,
    /// The host of the API endpoint.
    pub host: Option<String>,
    /// Availability zones of load balancers by id, and of floating IPs by address.
    pub zones: BTreeMap<String, String>,
}

impl References {
    /// References of an [`OpenStackCluster`].
    pub fn from_object(object: &OpenStackCluster) -> Self {
        let status = object.status.clone().unwrap_or_default();
        let network = status.network;
        let subnets = network.iter().flat_map(|network| &network.subnets);
        let mut ids: BTreeSet<_> = subnets.map(|subnet| subnet.id.clone()).collect();
        ids.extend(network.map(|network| network.id));
        ids.extend(status.router.map(|router| router.id));
        ids.extend(status.control_plane_security_group.map(|group| group.id));
        ids.extend(status.worker_security_group.map(|group| group.id));
        ids.extend(status.bastion_security_group.map(|group| group.id));
        let balancer = status.api_server_managed_load_balancer;
        ids.extend(balancer.map(|balancer| balancer.id));
        let mut zones = BTreeMap::new();
        for balancer in status.api_server_load_balancers {
            let zone = balancer.availability_zone.unwrap_or_default();
            zones.extend(balancer.ip.map(|ip| (ip, zone.clone())));
            zones.insert(balancer.id.clone(), zone);
            ids.insert(balancer.id);
        }
        let endpoint = object.spec.control_plane_endpoint.as_ref();
        Self {
            ids,
            host: endpoint.and_then(|endpoint| endpoint.host.clone()),
            zones,
        }
    }
}

/// All resources in the cloud with the mark of a cluster, and the view for lookups. Of several resources of a kind, the
/// first belongs to the cluster: the one referred to by its object, or else one in use. Others are surplus.
#[derive(Clone, Debug)]
pub struct Observed {
    /// [`Identity`] of the cluster.
    pub cluster: Identity,
    /// Networks created for the cluster.
    pub networks: Vec<Arc<Network>>,
    /// Subnets created for the cluster.
    pub subnets: Vec<Arc<Subnet>>,
    /// Routers created for the cluster.
    pub routers: Vec<Arc<Router>>,
    /// Security groups created for the cluster.
    pub groups: Vec<Arc<SecurityGroup>>,
    /// Load balancers created for the cluster.
    pub balancers: Vec<Arc<LoadBalancer>>,
    /// Floating IPs created for the API server.
    pub floating_ips: Vec<Arc<FloatingIp>>,
    /// Floating IPs created for the bastion.
    pub bastion_ips: Vec<Arc<FloatingIp>>,
    /// Ports created for machines and bastion.
    pub ports: Vec<Arc<Port>>,
    /// Servers of machines and bastion.
    pub servers: Vec<Arc<Server>>,
    /// Volumes of machines and bastion.
    pub volumes: Vec<Arc<Volume>>,
    /// Server groups of roles.
    pub server_groups: Vec<Arc<ServerGroup>>,
    /// Availability zones in the status, see [`References::zones`].
    pub zones: BTreeMap<String, String>,
    /// The whole view.
    pub view: Arc<View>,
}

impl Observed {
    /// State of a cluster in a [`View`]; `known` has the references of its object.
    pub fn new(view: Arc<View>, cluster: Identity, known: &References) -> Self {
        let mut observed = Self::marked(view, cluster, known);
        observed.sort(known);
        observed
    }

    fn marked(view: Arc<View>, cluster: Identity, known: &References) -> Self {
        let ours = Ours {
            cluster,
            text: cluster.to_string(),
        };
        let of_bastion = |ip: &Arc<FloatingIp>| {
            Mark::in_description(&ip.description).is_some_and(|mark| mark.is_of_bastion())
        };
        let (bastion_ips, floating_ips) = ours
            .of(&view.floating_ips, |ip| {
                known.host.as_ref() == Some(&ip.floating_ip_address)
            })
            .into_iter()
            .partition(of_bastion);
        Self {
            cluster,
            networks: ours.of(&view.networks, |it| known.ids.contains(&it.id)),
            subnets: ours.of(&view.subnets, |it| known.ids.contains(&it.id)),
            routers: ours.of(&view.routers, |it| known.ids.contains(&it.id)),
            groups: ours.of(&view.security_groups, |it| known.ids.contains(&it.id)),
            balancers: ours.of(&view.load_balancers, |it| known.ids.contains(&it.id)),
            zones: known.zones.clone(),
            floating_ips,
            bastion_ips,
            ports: ours.of(&view.ports, |_| false),
            servers: view
                .servers
                .tagged(&Mark::cluster(cluster).tags()[0])
                .to_vec(),
            volumes: ours.of(&view.volumes, |_| false),
            server_groups: ours.of(&view.server_groups, |_| false),
            view,
        }
    }

    fn sort(&mut self, known: &References) {
        let unnamed = |id: &str| !known.ids.contains(id);
        let in_use: BTreeSet<_> = self
            .ports
            .iter()
            .map(|port| port.network_id.clone())
            .chain(self.balancers.iter().map(|lb| lb.vip_network_id.clone()))
            .chain(self.subnets.iter().map(|subnet| subnet.network_id.clone()))
            .collect();
        self.networks
            .sort_by_key(|network| (unnamed(&network.id), !in_use.contains(&network.id)));
        let mut subnets = std::mem::take(&mut self.subnets);
        // Ports are looked through where two subnets may be meant alone: a subnet pool gives each one another range.
        let twins = subnets.len() > 1 && has_twins(&subnets);
        subnets.sort_by_cached_key(|subnet| (unnamed(&subnet.id), twins && !self.is_used(subnet)));
        self.subnets = subnets;
        let mut routers = std::mem::take(&mut self.routers);
        routers.sort_by_key(|router| {
            let connected = self.interfaces(&router.id).next().is_some();
            (unnamed(&router.id), !connected)
        });
        self.routers = routers;
        self.groups.sort_by_key(|group| unnamed(&group.id));
        self.balancers
            .sort_by_key(|lb| (unnamed(&lb.id), lb.provisioning_status == "ERROR"));
        self.floating_ips.sort_by_key(|ip| {
            let named = known.host.as_deref() == Some(ip.floating_ip_address.as_str());
            (!named, ip.port_id.is_none())
        });
    }

    /// True if a port has an address in the [`Subnet`], other than ports of Neutron itself.
    fn is_used(&self, subnet: &Subnet) -> bool {
        let is_of_neutron = |port: &&Arc<Port>| {
            let owner = port.device_owner.as_str();
            owner.contains("dhcp") || owner.contains("distributed")
        };
        let mut ports = self.view.ports.iter().filter(|port| !is_of_neutron(port));
        ports.any(|port| port.fixed_ips.iter().any(|ip| ip.subnet_id == subnet.id))
    }

    /// [`Network`] created for the cluster.
    pub fn network(&self) -> Option<&Arc<Network>> {
        self.networks.first()
    }

    /// [`Subnet`] of a family created for the cluster.
    pub fn subnet(&self, family: Family) -> Option<&Arc<Subnet>> {
        let network = self.network()?;
        self.subnets.iter().find(|subnet| {
            subnet.network_id == network.id && Family::from_text(&subnet.cidr) == family
        })
    }

    /// [`Router`] created for the cluster.
    pub fn router(&self) -> Option<&Arc<Router>> {
        self.routers.first()
    }

    /// Managed [`SecurityGroup`] of a role. Among groups with the mark of this cluster, the name identifies the role.
    pub fn group(&self, names: &Names, role: ManagedGroup) -> Option<&Arc<SecurityGroup>> {
        let name = names.group(role);
        self.groups.iter().find(|group| group.name == name)
    }

    /// Existing groups and subnets of the cluster.
    pub(crate) fn referents(&self, names: &Names) -> Referents {
        let roles = [
            ManagedGroup::Bastion,
            ManagedGroup::ControlPlane,
            ManagedGroup::Worker,
        ];
        let groups = roles
            .into_iter()
            .filter_map(|role| Some((role, self.group(names, role)?.id.clone())));
        let subnets = Family::ALL
            .into_iter()
            .filter_map(|family| Some((family, self.subnet(family)?.cidr.clone())));
        Referents {
            groups: groups.collect(),
            subnets: subnets.collect(),
        }
    }

    /// [`LoadBalancer`] of the API server.
    pub fn balancer(&self) -> Option<&Arc<LoadBalancer>> {
        self.balancers.first()
    }

    /// [`Listener`] for `port` of the API server's load balancer.
    pub fn listener(&self, port: u16) -> Option<&Arc<Listener>> {
        let listeners = self.view.listeners.of_parent(&self.balancer()?.id);
        listeners
            .iter()
            .find(|listener| listener.protocol_port == port)
    }

    /// [`Pool`] behind the listener for `port`.
    pub fn pool(&self, port: u16) -> Option<&Arc<Pool>> {
        self.view
            .pools
            .get(self.listener(port)?.default_pool_id.as_deref()?)
    }

    /// [`Member`]s of a pool.
    pub fn members(&self, pool: &Pool) -> &[Arc<Member>] {
        self.view.members.of_parent(&pool.id)
    }

    /// Health [`Monitor`] of a pool.
    pub fn monitor(&self, pool: &Pool) -> Option<&Arc<Monitor>> {
        self.view.monitors.get(pool.healthmonitor_id.as_deref()?)
    }

    /// [`Port`]s that connect a router to subnets, with the ids of the subnets.
    pub fn interfaces(&self, router: &str) -> impl Iterator<Item = (&Arc<Port>, &str)> {
        self.view
            .ports
            .of_parent(router)
            .iter()
            .filter(|port| {
                port.device_owner.contains("router_interface")
                    || port.device_owner.contains("router_replicated_interface")
            })
            .flat_map(|port| {
                port.fixed_ips
                    .iter()
                    .map(move |ip| (port, ip.subnet_id.as_str()))
            })
    }

    /// [`Mark`]s of existing bastions: of the spec, and of former specs.
    pub fn bastions(&self) -> BTreeSet<Mark> {
        let servers = self.servers.iter();
        let servers = servers.filter_map(|server| Mark::in_tags(&server.tags));
        let ports = self.ports.iter();
        let ports = ports.filter_map(|port| Mark::in_description(&port.description));
        let volumes = self.volumes.iter();
        let volumes = volumes.filter_map(|volume| Mark::in_description(&volume.description));
        let all = servers.chain(ports).chain(volumes);
        all.filter(Mark::is_of_bastion).collect()
    }

    /// Addresses of the bastion: of its ports, and of the floating IPs on the ports.
    pub fn bastion_addresses(&self) -> Vec<String> {
        let is_of_bastion = |port: &&Arc<Port>| {
            Mark::in_description(&port.description).is_some_and(|mark| mark.is_of_bastion())
        };
        let mut all = Vec::new();
        for port in self.ports.iter().filter(is_of_bastion) {
            all.extend(port.fixed_ips.iter().map(|ip| ip.ip_address.clone()));
            let ips = self.view.floating_ips.iter();
            let ips = ips.filter(|ip| ip.port_id.as_ref() == Some(&port.id));
            all.extend(ips.map(|ip| ip.floating_ip_address.clone()));
        }
        all
    }

    /// The observed state with load balancers and floating IPs of one zone, or with those of none.
    pub(crate) fn in_zone(&self, zone: Option<&str>) -> Self {
        let mut observed = self.clone();
        let is_there = |description: &str, key: &str| self.zone(description, key) == zone;
        let balancers = &mut observed.balancers;
        balancers.retain(|it| is_there(&it.description, &it.id));
        let ips = &mut observed.floating_ips;
        ips.retain(|it| is_there(&it.description, &it.floating_ip_address));
        observed
    }

    /// Availability zone of a load balancer or floating IP: by the description, or else by id or address in the status.
    pub(crate) fn zone<'a>(&'a self, description: &'a str, key: &str) -> Option<&'a str> {
        zone_of(description).or_else(|| self.zones.get(key).map(String::as_str))
    }

    /// [`Identity`] of the other cluster for which a resource was created, if any.
    pub fn other<T: Resource>(&self, item: &T) -> Option<Identity> {
        let mark = Mark::from_item(item)?;
        (mark.cluster != self.cluster).then_some(mark.cluster)
    }

    /// True if no resource in the cloud has the mark of the cluster.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
            && self.subnets.is_empty()
            && self.routers.is_empty()
            && self.groups.is_empty()
            && self.balancers.is_empty()
            && self.floating_ips.is_empty()
            && self.bastion_ips.is_empty()
            && self.ports.is_empty()
            && self.servers.is_empty()
            && self.volumes.is_empty()
            && self.server_groups.is_empty()
    }
}

/// True if two [`Subnet`]s are of one network and one family.
fn has_twins(subnets: &[Arc<Subnet>]) -> bool {
    let places = subnets
        .iter()
        .map(|subnet| (&subnet.network_id, Family::from_text(&subnet.cidr)));
    places.collect::<BTreeSet<_>>().len() < subnets.len()
}

/// Finder of what carries the mark of a cluster.
struct Ours {
    cluster: Identity,
    /// Text of the identity.
    text: String,
}

impl Ours {
    /// Resources with the mark in their description. Where somebody has changed the description, the mark in the tags is one
    /// as well, for what the object itself names: tags alone can be copied from one resource to another.
    fn of<T: Resource>(&self, table: &Table<T>, is_named: impl Fn(&Arc<T>) -> bool) -> Vec<Arc<T>> {
        let is_tagged = |item: &Arc<T>| {
            Mark::in_description(item.description()).is_none()
                && Mark::in_tags(item.tags()) == Some(Mark::cluster(self.cluster))
        };
        let ours = |item: &&Arc<T>| {
            let description = item.description();
            // This runs over every object of the project: only what can be a mark of the cluster is parsed.
            match Mark::may_be_of(description, &self.text) {
                true => Mark::in_description(description)
                    .is_some_and(|mark| mark.cluster == self.cluster),
                false => is_named(item) && is_tagged(item),
            }
        };
        table.iter().filter(ours).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
