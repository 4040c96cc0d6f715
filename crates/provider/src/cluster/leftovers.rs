//! Resources created in the cloud by programs in a workload cluster, for its Services and claims, and their deletion
//! with the cluster ([why](../../../docs/adr/0077-what-is-deleted-with-a-cluster.md)).
//!
//! The evidence is the uid of the namespace kube-system: both the cloud controller manager and the CSI driver write it
//! into their resources, and the [`Cluster`] records it while its API server answers. No name is evidence.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::conditions::Type;
use api::core::v1beta2::Cluster;
use api::deletion::{Volumes, Wanted};
use api::names::{DELETE_WITH_CLUSTER_ANNOTATION, WORKLOAD_UID_ANNOTATION, is_uuid};
use kube::ResourceExt;
use load_balancing::Status;
use openstack::View;
use openstack::loadbalancer::LoadBalancer;
use openstack::network::{FloatingIp, SecurityGroup};
use openstack::volume::Volume;

use super::observed::Observed;
use super::plan::{Plan, Step, Wait};

/// Prefix of the names of the load balancers of Services.
const OF_SERVICE: &str = "kube_service_";
/// Prefix of the description of a floating IP created by a cloud controller manager.
const IP_OF_SERVICE: &str = "Floating IP for Kubernetes external service ";
/// Tags with the uid of a cluster, of a Service, and of a Service that shares a load balancer.
const CLUSTER_TAG: &str = "ferrostack-cluster=";
const SERVICE_TAG: &str = "ferrostack-service=";
const SHARED_TAG: &str = "ferrostack-shared=";
/// The metadata of volumes with the name and the uid of a cluster.
const VOLUME_CLUSTER: &str = "cinder.csi.openstack.org/cluster";
const VOLUME_UID: &str = "cinder.csi.openstack.org/cluster-uid";

/// Recorded uid of the namespace kube-system in a [`Cluster`]; `None` before the first record.
#[must_use]
pub fn uid(cluster: &Cluster) -> Option<&str> {
    let uid = cluster.annotations().get(WORKLOAD_UID_ANNOTATION)?;
    is_uuid(uid).then_some(uid)
}

/// Resources of one cluster.
#[derive(Clone, Debug, Default)]
pub struct Leftovers {
    /// [`LoadBalancer`]s of Services.
    pub balancers: Vec<Arc<LoadBalancer>>,
    /// [`FloatingIp`]s created for these load balancers.
    pub floating_ips: Vec<Arc<FloatingIp>>,
    /// [`SecurityGroup`]s created for these load balancers.
    pub groups: Vec<Arc<SecurityGroup>>,
    /// [`Volume`]s of claims.
    pub volumes: Vec<Arc<Volume>>,
}

impl Leftovers {
    /// Resources in `view` with the uid. A floating IP or group without room for the uid in its description belongs to
    /// a marked load balancer: on its port, or with the uid of its Service.
    #[must_use]
    pub fn for_uid(view: &View, uid: &str) -> Self {
        let cluster = format!("{CLUSTER_TAG}{uid}");
        let balancers = view.load_balancers.tagged(&cluster).iter();
        let balancers: Vec<_> = balancers
            .filter(|it| is_of(it, &cluster))
            .cloned()
            .collect();
        let tags = balancers.iter().flat_map(|balancer| &balancer.tags);
        let services: BTreeSet<&str> = tags.filter_map(|tag| service(tag)).collect();
        let ports: BTreeSet<&str> = balancers.iter().map(|it| it.vip_port_id.as_str()).collect();
        let is_marked = |description: &str| match of_cluster(description) {
            Some(marked) => marked == uid,
            None => of_service(description).is_some_and(|it| services.contains(it)),
        };
        let is_ip = |ip: &&Arc<FloatingIp>| {
            let on_port = ip.port_id.as_deref().is_some_and(|it| ports.contains(it));
            // That of the Go manager has no mark.
            let unmarked = of_service(&ip.description).is_none();
            ip.description.starts_with(IP_OF_SERVICE)
                && (is_marked(&ip.description) || unmarked && on_port)
        };
        let is_volume = |volume: &&Arc<Volume>| {
            let metadata = &volume.metadata;
            metadata.contains_key(VOLUME_CLUSTER)
                && metadata.get(VOLUME_UID).is_some_and(|it| it == uid)
        };
        let groups = view.security_groups.iter();
        Self {
            floating_ips: view.floating_ips.iter().filter(is_ip).cloned().collect(),
            groups: groups
                .filter(|group| is_marked(&group.description))
                .cloned()
                .collect(),
            volumes: view.volumes.iter().filter(is_volume).cloned().collect(),
            balancers,
        }
    }

    /// True if nothing of `wanted` is left.
    #[must_use]
    pub fn is_gone(&self, wanted: Wanted) -> bool {
        let services =
            self.balancers.is_empty() && self.floating_ips.is_empty() && self.groups.is_empty();
        (!wanted.services || services)
            && (wanted.volumes != Volumes::Delete || self.volumes.is_empty())
    }
}

/// True if a [`LoadBalancer`] was created for a Service of the cluster with this tag, and of no other.
fn is_of(balancer: &LoadBalancer, cluster: &str) -> bool {
    let tags = balancer.tags.iter();
    let mut clusters = tags.filter(|tag| tag.starts_with(CLUSTER_TAG));
    balancer.name.starts_with(OF_SERVICE) && clusters.all(|tag| tag == cluster)
}

/// Uid of a Service in a tag, with the family of a second load balancer.
fn service(tag: &str) -> Option<&str> {
    tag.strip_prefix(SERVICE_TAG)
        .or_else(|| tag.strip_prefix(SHARED_TAG))
}

/// The uid of the Service at the end of a description.
fn of_service(description: &str) -> Option<&str> {
    let (_, mark) = description.strip_suffix(')')?.rsplit_once('(')?;
    mark.strip_prefix(SERVICE_TAG)
}

/// Uid of the cluster before the Service's, if there was room.
fn of_cluster(description: &str) -> Option<&str> {
    let (rest, _) = description.rsplit_once(" (")?;
    of_service(description)?;
    let (_, mark) = rest.strip_suffix(')')?.rsplit_once('(')?;
    mark.strip_prefix(CLUSTER_TAG)
}

/// [`Plan`] to delete the `wanted` resources of the cluster with this uid. Load balancers go last: resources without
/// room for the uid are found through them.
#[must_use]
pub fn plan(observed: &Observed, uid: &str, wanted: Wanted) -> Plan {
    let left = Leftovers::for_uid(&observed.view, uid);
    let mut plan = Plan::default();
    // Which volume stays under a policy is said by the API server of the cluster alone, and that has deleted the others.
    if wanted.volumes == Volumes::Delete {
        volumes(&left, &mut plan);
    }
    if wanted.services {
        let ips = left.floating_ips.iter();
        plan.steps
            .extend(ips.map(|ip| Step::DeleteFloatingIp(ip.id.clone())));
        let is_free = groups(observed, &left, &mut plan);
        if is_free {
            balancers(&left, &mut plan);
        }
    }
    plan
}

/// Returns true if no group is in use. Neutron keeps a group in use by a port.
fn groups(observed: &Observed, left: &Leftovers, plan: &mut Plan) -> bool {
    let mut is_free = true;
    for SecurityGroup { id, name, .. } in left.groups.iter().map(AsRef::as_ref) {
        let mut ports = observed.view.ports.iter();
        match ports.find(|port| port.security_groups.contains(id)) {
            None => plan.steps.push(Step::DeleteGroup(id.clone())),
            Some(port) => {
                is_free = false;
                plan.waits.push(stuck(format!(
                    "security group {name} ({id}) of a Service is used by port {} ({}): take it off the port",
                    port.name, port.id
                )));
            }
        }
    }
    is_free
}

fn balancers(left: &Leftovers, plan: &mut Plan) {
    for balancer in &left.balancers {
        match balancer.provisioning_status.as_str() {
            _ if Status::from_balancer(balancer).can_be_deleted() => {
                plan.steps.push(Step::DeleteBalancer(balancer.id.clone()));
            }
            status => plan.waits.push(waiting(format!(
                "waiting for load balancer {} of a Service, which is {status}",
                balancer.name
            ))),
        }
    }
}

fn volumes(left: &Leftovers, plan: &mut Plan) {
    for volume in &left.volumes {
        let Volume {
            id, name, status, ..
        } = &**volume;
        match status.as_str() {
            "deleting" | "detaching" => {
                let message = format!("waiting for volume {name} ({id}), which is {status}");
                plan.waits.push(waiting(message));
            }
            "in-use" | "attaching" => plan.waits.push(stuck(format!(
                "volume {name} ({id}) of a claim is {status}: detach it, or take `volumes` out of the annotation \
                 {DELETE_WITH_CLUSTER_ANNOTATION} of the Cluster and it stays"
            ))),
            _ => plan.steps.push(Step::DeleteVolume(id.clone())),
        }
    }
}

fn waiting(message: String) -> Wait {
    Wait {
        about: Type::Deleting,
        message,
        is_stuck: false,
        serves: false,
    }
}

fn stuck(message: String) -> Wait {
    Wait {
        is_stuck: true,
        ..waiting(message)
    }
}

#[cfg(test)]
mod tests;
