//! The observed state of a machine in the cloud.

use std::sync::Arc;

use api::infra::v1beta2::OpenStackMachine;
use openstack::View;
use openstack::compute::Server;
use openstack::loadbalancer::Member;
use openstack::network::{Port, Trunk};
use openstack::volume::Volume;

use super::failed::Failed;
use crate::identity::Mark;

/// Recorded server and ports of a machine: ids in status, and providerID, which unlike status survives a move to
/// another management cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Id in providerID, set once the server has been running.
    pub provider_id: Option<String>,
    /// The server id in status.
    pub instance_id: Option<String>,
    /// The port ids in status.
    pub ports: Vec<String>,
}

impl References {
    /// Records in an [`OpenStackMachine`].
    pub fn from_object(object: &OpenStackMachine) -> Self {
        let status = object.status.as_ref();
        let provider_id = object.spec.provider_id.as_deref();
        let id = provider_id
            .and_then(|text| text.strip_prefix("openstack://"))
            .and_then(|text| text.rsplit_once('/'));
        let created = status.and_then(|status| status.resources.as_ref());
        let ports = created.iter().flat_map(|created| &created.ports);
        let provider_id = id.map(|(_, id)| id.to_owned()).filter(|id| !id.is_empty());
        // A server that was recorded as failed is replaced, and its absence means nothing.
        let failed = Failed::from_object(object);
        let is_in_use = |id: &String| !id.is_empty() && (provider_id.is_some() || !failed.is(id));
        Self {
            instance_id: status
                .and_then(|status| status.instance_id.clone())
                .filter(is_in_use),
            provider_id,
            ports: ports.map(|port| port.id.clone()).collect(),
        }
    }

    /// The id of the recorded server.
    pub fn server(&self) -> Option<&str> {
        self.provider_id.as_deref().or(self.instance_id.as_deref())
    }
}

/// All resources in the cloud with the mark of a machine.
#[derive(Clone, Debug)]
pub struct Observed {
    /// [`Mark`] of the machine.
    pub mark: Mark,
    /// [`References`] server and ports, from the records.
    pub known: References,
    /// [`Server`]s, the one to keep first.
    pub servers: Vec<Arc<Server>>,
    /// Recorded [`Server`], if not provably this machine's: its tags are missing, or another machine's.
    pub unproven: Option<Arc<Server>>,
    /// Ports.
    pub ports: Vec<Arc<Port>>,
    /// Volumes.
    pub volumes: Vec<Arc<Volume>>,
    /// [`View`], for lookups.
    pub view: Arc<View>,
}

impl Observed {
    /// State in a [`View`] of the machine with a [`Mark`].
    pub fn new(view: Arc<View>, mark: Mark, known: References) -> Self {
        // Compared as text without parsing, since this runs over every port of the project.
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
        let mut unproven = None;
        let known_server = known.server().and_then(|id| view.servers.get(id));
        if let Some(server) = known_server
            && !servers.iter().any(|marked| marked.id == server.id)
        {
            // Tags can be removed; the descriptions of the ports that were created for the server still prove whose it
            // is.
            let mut ports = view.ports.of_parent(&server.id).iter();
            let ours = ports.any(|port| described(&port.description));
            match ours && Mark::in_tags(&server.tags).is_none() {
                true => servers.push(Arc::clone(server)),
                false => unproven = Some(Arc::clone(server)),
            }
        }
        servers.sort_by_key(|server| rank(server, &known));
        // A description can be changed; the tags of a port that is recorded prove as much.
        let is_tagged = |port: &Port| {
            known.ports.contains(&port.id)
                && Mark::in_description(&port.description).is_none()
                && Mark::in_tags(&port.tags) == Some(mark)
        };
        let ports = view
            .ports
            .iter()
            .filter(|port| described(&port.description) || is_tagged(port));
        let volumes = view
            .volumes
            .iter()
            .filter(|volume| described(&volume.description));
        let (mut ports, mut volumes): (Vec<_>, Vec<_>) =
            (ports.cloned().collect(), volumes.cloned().collect());
        // Of two ports or volumes with the same name, the one in use stays.
        ports.sort_by_key(|port| (port.device_id.is_empty(), !known.ports.contains(&port.id)));
        volumes.sort_by_key(|volume| volume.status != "in-use");
        Self {
            mark,
            known,
            servers,
            unproven,
            ports,
            volumes,
            view: Arc::clone(&view),
        }
    }

    /// [`Server`] of the machine. The recorded server is never replaced by another.
    pub fn server(&self) -> Option<&Arc<Server>> {
        let first = self.servers.first()?;
        let is_or_unset =
            |id: &Option<String>, server: &Server| id.as_ref().is_none_or(|id| *id == server.id);
        let stays = match &self.known.provider_id {
            Some(_) => is_or_unset(&self.known.provider_id, first),
            // The one in status can have been in ERROR from the start, while another one runs.
            None => self
                .servers
                .iter()
                .any(|s| is_or_unset(&self.known.instance_id, s)),
        };
        stays.then_some(first)
    }

    /// [`Port`] with this name.
    pub fn port(&self, name: &str) -> Option<&Arc<Port>> {
        self.ports.iter().find(|port| port.name == name)
    }

    /// [`Trunk`] with this port as its parent, by any creator: with a trunk the port cannot be deleted.
    pub fn trunk(&self, port: &Port) -> Option<&Arc<Trunk>> {
        self.view.trunks.of_parent(&port.id).first()
    }

    /// [`Volume`] with this name.
    pub fn volume(&self, name: &str) -> Option<&Arc<Volume>> {
        self.volumes.iter().find(|volume| volume.name == name)
    }

    /// [`Member`]s of the cluster's load balancers with an address of this machine.
    pub fn members(&self) -> Vec<&Arc<Member>> {
        let ours = |address: &str| {
            self.ports
                .iter()
                .any(|port| port.fixed_ips.iter().any(|ip| ip.ip_address == address))
        };
        let mut members = Vec::new();
        let suffix = Mark::cluster(self.mark.cluster).suffix();
        for balancer in self.view.load_balancers.iter() {
            let is_clusters = balancer.description.ends_with(&suffix);
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

    /// True if no resource in the cloud has the mark of the machine, and its recorded server is gone.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
            && self.unproven.is_none()
            && self.ports.is_empty()
            && self.volumes.is_empty()
    }
}

/// Sort key of the servers of a machine, the one to keep first: the one in providerID, then a running one, then the one
/// in status. A server in ERROR is kept only without another.
fn rank(server: &Server, known: &References) -> (bool, bool, bool, bool) {
    let is = |id: &Option<String>| id.as_deref() == Some(server.id.as_str());
    let fails = server.status == "ERROR" || server.is_deleting();
    let not_in_status = !is(&known.instance_id);
    (
        !is(&known.provider_id),
        fails,
        not_in_status,
        server.status != "ACTIVE",
    )
}
