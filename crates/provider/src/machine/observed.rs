//! What the cloud shows of a machine.

use std::sync::Arc;

use openstack::View;
use openstack::compute::Server;
use openstack::loadbalancer::Member;
use openstack::network::Port;
use openstack::volume::Volume;

use crate::identity::Mark;

/// Everything in the cloud that carries a machine's mark.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The machine.
    pub mark: Mark,
    /// The id of the server that is known to be the machine's.
    pub known_server: Option<String>,
    /// Servers, the known one first.
    pub servers: Vec<Arc<Server>>,
    /// Ports.
    pub ports: Vec<Arc<Port>>,
    /// Volumes.
    pub volumes: Vec<Arc<Volume>>,
    /// The whole view.
    pub view: Arc<View>,
}

impl Observed {
    /// What `view` shows of a machine; `known` is the id of its server, if it ever had one.
    pub fn of(view: Arc<View>, mark: Mark, known: Option<&str>) -> Self {
        // Compared as text: this runs over every port of the project.
        let suffix = mark.suffix();
        let described = |description: &str| description.ends_with(&suffix);
        let tag = mark.tags().pop().unwrap_or_default();
        let mut servers: Vec<_> = view
            .servers
            .tagged(&tag)
            .iter()
            .filter(|server| Mark::in_tags(&server.tags) == Some(mark))
            .cloned()
            .collect();
        servers.sort_by_key(|server| Some(server.id.as_str()) != known);
        let ports = view
            .ports
            .iter()
            .filter(|port| described(&port.description));
        let volumes = view
            .volumes
            .iter()
            .filter(|volume| described(&volume.description));
        Self {
            mark,
            known_server: known.map(str::to_owned),
            servers,
            ports: ports.cloned().collect(),
            volumes: volumes.cloned().collect(),
            view: Arc::clone(&view),
        }
    }

    /// The machine's server.
    pub fn server(&self) -> Option<&Arc<Server>> {
        match &self.known_server {
            Some(id) => self.servers.iter().find(|server| server.id == *id),
            None => self.servers.first(),
        }
    }

    /// The port with this name.
    pub fn port(&self, name: &str) -> Option<&Arc<Port>> {
        self.ports.iter().find(|port| port.name == name)
    }

    /// The volume with this name.
    pub fn volume(&self, name: &str) -> Option<&Arc<Volume>> {
        self.volumes.iter().find(|volume| volume.name == name)
    }

    /// Members of load balancers of the machine's cluster that have one of its addresses.
    pub fn members(&self) -> Vec<&Arc<Member>> {
        let ours = |address: &str| {
            self.ports
                .iter()
                .any(|port| port.fixed_ips.iter().any(|ip| ip.ip_address == address))
        };
        let mut members = Vec::new();
        for balancer in self.view.load_balancers.iter() {
            let mark = Mark::in_description(&balancer.description);
            let is_clusters = mark == Some(Mark::cluster(self.mark.cluster));
            if !is_clusters || balancer.provisioning_status == "ERROR" {
                continue;
            }
            for pool in self.view.pools.of_parent(&balancer.id) {
                let all = self.view.members.of_parent(&pool.id).iter();
                members.extend(all.filter(|member| ours(&member.address)));
            }
        }
        members
    }

    /// Whether nothing in the cloud carries the machine's mark.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.ports.is_empty() && self.volumes.is_empty()
    }
}
