//! Names of resources in the cloud, equal to the Go provider's.

use api::infra::v1beta2::ManagedGroup;

use crate::family::Family;

/// The names of the resources of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    full: String,
    cluster: String,
    /// The zone of a load balancer, where each has one.
    zone: Option<String>,
}

impl Names {
    /// The names for Cluster `name` in `namespace`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            full: format!("{namespace}-{name}"),
            cluster: name.to_owned(),
            zone: None,
        }
    }

    /// The names for the load balancer of an availability zone.
    pub(crate) fn in_zone(&self, zone: &str) -> Self {
        Self {
            zone: Some(zone.to_owned()),
            ..self.clone()
        }
    }

    /// The name of network, subnet and router.
    pub fn network(&self) -> String {
        format!("k8s-clusterapi-cluster-{}", self.full)
    }

    /// Name of a subnet; the network's for the first one.
    pub(crate) fn subnet(&self, family: Family, first: Option<Family>) -> String {
        match first == Some(family) {
            true => self.network(),
            false => format!("{}-ipv{}", self.network(), family.version()),
        }
    }

    /// The name of the load balancer of the API server.
    pub fn balancer(&self) -> String {
        match &self.zone {
            Some(zone) => format!("{}-{zone}-kubeapi", self.network()),
            None => format!("{}-kubeapi", self.network()),
        }
    }

    /// The name of listener, pool and monitor for `port`, in each zone the same.
    pub fn listener(&self, port: u16) -> String {
        format!("{}-kubeapi-{port}", self.network())
    }

    /// The name of the member for a machine in the pool for `port`.
    pub fn member(&self, port: u16, machine: &str) -> String {
        format!("{}-{machine}", self.listener(port))
    }

    /// The name of the security group of a role.
    pub fn group(&self, role: ManagedGroup) -> String {
        format!("k8s-cluster-{}-secgroup-{}", self.full, role_word(role))
    }

    /// Name of the server group of a role with a policy, without the mark.
    pub(crate) fn server_group(&self, role: ManagedGroup, policy: &str) -> String {
        format!("{}-{policy}-{}", role_word(role), self.full)
    }

    /// The name of the server of the bastion, without the namespace as in the Go provider.
    pub fn bastion(&self) -> String {
        format!("{}-bastion", self.cluster)
    }

    /// The name of the Cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The description of the resources of the cluster.
    pub fn description(&self) -> String {
        let full = &self.full;
        let text = format!("Created by cluster-api-provider-openstack cluster {full}");
        match &self.zone {
            // At the beginning, since long descriptions are cut.
            Some(zone) => format!("{ZONE}{zone}: {text}"),
            None => text,
        }
    }

    /// The description of the ports of a machine, without the namespace as in the Go provider.
    pub fn port_description(&self) -> String {
        format!(
            "Created by cluster-api-provider-openstack cluster {}",
            self.cluster
        )
    }
}

/// The beginning of the description of what a load balancer of an availability zone consists of.
const ZONE: &str = "Availability zone ";

/// The availability zone of a load balancer or floating IP with this description.
pub(crate) fn zone_of(description: &str) -> Option<&str> {
    parts(description).map(|(zone, _)| zone)
}

/// A description without the availability zone at its beginning.
pub fn without_zone(description: &str) -> &str {
    parts(description).map_or(description, |(_, rest)| rest)
}

fn parts(description: &str) -> Option<(&str, &str)> {
    description.strip_prefix(ZONE)?.split_once(": ")
}

/// The name of a role in the names of resources.
pub fn role_word(role: ManagedGroup) -> &'static str {
    match role {
        ManagedGroup::Bastion => "bastion",
        ManagedGroup::ControlPlane => "controlplane",
        ManagedGroup::Worker => "worker",
    }
}

/// The kind of pools of floating IPs.
pub const POOL_KIND: &str = "OpenStackFloatingIPPool";
/// Finalizer of OpenStackClusters, equal to the Go provider's.
pub const CLUSTER_FINALIZER: &str = "openstackcluster.infrastructure.cluster.x-k8s.io";
/// Finalizer of OpenStackMachines, equal to the Go provider's.
pub const MACHINE_FINALIZER: &str = "openstackmachine.infrastructure.cluster.x-k8s.io";
/// Finalizer of pools of floating IPs, equal to the Go provider's.
pub const POOL_FINALIZER: &str = "openstackfloatingippool.infrastructure.cluster.x-k8s.io";
/// Finalizer of OpenStackServers, equal to the Go provider's.
pub const SERVER_FINALIZER: &str = "openstackserver.infrastructure.cluster.x-k8s.io";
/// The description of security groups.
pub const GROUP_DESCRIPTION: &str = "Cluster API managed group";
