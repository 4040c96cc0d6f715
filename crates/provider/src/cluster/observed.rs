//! What the cloud shows of a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::infra::v1beta2::ManagedGroup;
use openstack::View;
use openstack::compute::Server;
use openstack::inventory::{Resource, Table};
use openstack::loadbalancer::{Listener, LoadBalancer, Member, Monitor, Pool};
use openstack::network::{FloatingIp, Network, Port, Router, SecurityGroup, Subnet};
use openstack::volume::Volume;

use crate::identity::{Identity, Mark};
use crate::names::Names;

/// Everything in the cloud that carries a cluster's mark, and all of the rest for looking things up.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The cluster.
    pub cluster: Identity,
    /// Networks made for the cluster, by id as all others.
    pub networks: Vec<Arc<Network>>,
    /// Subnets made for it.
    pub subnets: Vec<Arc<Subnet>>,
    /// Routers made for it.
    pub routers: Vec<Arc<Router>>,
    /// Security groups made for it.
    pub groups: Vec<Arc<SecurityGroup>>,
    /// Load balancers made for it.
    pub balancers: Vec<Arc<LoadBalancer>>,
    /// Floating IPs made for it.
    pub floating_ips: Vec<Arc<FloatingIp>>,
    /// Ports made for its machines.
    pub ports: Vec<Arc<Port>>,
    /// Servers of its machines.
    pub servers: Vec<Arc<Server>>,
    /// Volumes of its machines.
    pub volumes: Vec<Arc<Volume>>,
    /// The whole view.
    pub view: Arc<View>,
}

impl Observed {
    /// What `view` shows of a cluster.
    pub fn of(view: Arc<View>, cluster: Identity) -> Self {
        Self {
            cluster,
            networks: described(&view.networks, cluster),
            subnets: described(&view.subnets, cluster),
            routers: described(&view.routers, cluster),
            groups: described(&view.security_groups, cluster),
            balancers: described(&view.load_balancers, cluster),
            floating_ips: described(&view.floating_ips, cluster),
            ports: described(&view.ports, cluster),
            servers: view
                .servers
                .tagged(&Mark::cluster(cluster).tags()[0])
                .to_vec(),
            volumes: described(&view.volumes, cluster),
            view,
        }
    }

    /// The network made for the cluster.
    pub fn network(&self) -> Option<&Arc<Network>> {
        self.networks.first()
    }

    /// The subnet made in it.
    pub fn subnet(&self) -> Option<&Arc<Subnet>> {
        let network = self.network()?;
        self.subnets
            .iter()
            .find(|subnet| subnet.network_id == network.id)
    }

    /// The router made for the cluster.
    pub fn router(&self) -> Option<&Arc<Router>> {
        self.routers.first()
    }

    /// The managed group of a role. Among groups of this cluster's mark, the name tells the role.
    pub fn group(&self, names: &Names, role: ManagedGroup) -> Option<&Arc<SecurityGroup>> {
        let name = names.group(role);
        self.groups.iter().find(|group| group.name == name)
    }

    /// The ids of the managed groups by role.
    pub fn group_ids(&self, names: &Names) -> BTreeMap<ManagedGroup, String> {
        [
            ManagedGroup::Bastion,
            ManagedGroup::ControlPlane,
            ManagedGroup::Worker,
        ]
        .into_iter()
        .filter_map(|role| Some((role, self.group(names, role)?.id.clone())))
        .collect()
    }

    /// The load balancer of the API server.
    pub fn balancer(&self) -> Option<&Arc<LoadBalancer>> {
        self.balancers.first()
    }

    /// The listener for `port` of the API server's load balancer.
    pub fn listener(&self, port: u16) -> Option<&Arc<Listener>> {
        let listeners = self.view.listeners.of_parent(&self.balancer()?.id);
        listeners
            .iter()
            .find(|listener| listener.protocol_port == port)
    }

    /// The pool behind the listener for `port`.
    pub fn pool(&self, port: u16) -> Option<&Arc<Pool>> {
        self.view
            .pools
            .get(self.listener(port)?.default_pool_id.as_deref()?)
    }

    /// The members of a pool.
    pub fn members(&self, pool: &Pool) -> &[Arc<Member>] {
        self.view.members.of_parent(&pool.id)
    }

    /// The health monitor of a pool.
    pub fn monitor(&self, pool: &Pool) -> Option<&Arc<Monitor>> {
        self.view.monitors.get(pool.healthmonitor_id.as_deref()?)
    }

    /// The ports by which a router is connected to subnets, with those subnets.
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

    /// Whether nothing in the cloud carries the cluster's mark.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
            && self.subnets.is_empty()
            && self.routers.is_empty()
            && self.groups.is_empty()
            && self.balancers.is_empty()
            && self.floating_ips.is_empty()
            && self.ports.is_empty()
            && self.servers.is_empty()
            && self.volumes.is_empty()
    }
}

fn described<T: Resource>(table: &Table<T>, cluster: Identity) -> Vec<Arc<T>> {
    let id = cluster.to_string();
    let ours = |item: &&Arc<T>| {
        let description = item.description();
        // Most descriptions are told apart without reading the mark.
        description.contains(&id)
            && Mark::in_description(description).is_some_and(|mark| mark.cluster == cluster)
    };
    table.iter().filter(ours).cloned().collect()
}
