//! Observed load balancer of a Service, from the shared lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use load_balancing::{Branch, Key};
use openstack::View;
use openstack::loadbalancer::{Listener, LoadBalancer, Pool};
use openstack::network::FloatingIp;

use super::identity::Identity;
use super::{Rejection, annotations};

/// Role of the Service on a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The load balancer was created for the Service.
    Owner,
    /// The load balancer was created for another Service or by a user, and serves this Service, too.
    Guest,
    /// Guest before the load balancer has the tags.
    Applicant,
}

/// Load balancer with its parts.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) balancer: Arc<LoadBalancer>,
    pub(crate) role: Role,
    /// Protocol, port and name of foreign listeners.
    pub(crate) foreign: Vec<(String, u16, String)>,
    /// Listeners by protocol and port.
    pub(crate) listeners: BTreeMap<Key, Branch>,
    /// Our pools without a listener.
    pub(crate) orphans: Vec<String>,
    /// Floating IP of the port.
    pub(crate) floating_ip: Option<Arc<FloatingIp>>,
    /// True if the Service already has an address.
    pub(crate) is_published: bool,
}

impl Observed {
    /// Load balancer for the planner.
    pub(crate) fn tree(&self) -> load_balancing::Observed<'_> {
        load_balancing::Observed {
            balancer: &self.balancer,
            listeners: &self.listeners,
            orphans: &self.orphans,
        }
    }

    /// True if a listener has a member.
    pub(crate) fn has_members(&self) -> bool {
        self.listeners
            .values()
            .any(|branch| !branch.members.is_empty())
    }
}

/// Load balancer of a [`Service`]: the one with the uids of cluster and Service in its tags, one with the uid of the
/// Service as a guest, one of the Go manager, by the id in the annotation together with name and tag, or another one
/// in the annotation, which is shared.
///
/// # Errors
/// The id in the annotation belongs to a load balancer of another cluster, or differs from the Service's load
/// balancer.
pub(crate) fn find(
    service: &Service,
    identity: &Identity,
    view: &View,
) -> Result<Option<Observed>, Rejection> {
    match of_service(service, identity, view)? {
        (found, None) => Ok(found),
        (_, Some(rejection)) => Err(rejection),
    }
}

/// Same, together with the [`Rejection`] of an annotation with another id than the load balancer of the [`Service`].
///
/// # Errors
/// The id in the annotation belongs to a load balancer of another cluster.
pub(crate) fn of_service(
    service: &Service,
    identity: &Identity,
    view: &View,
) -> Result<(Option<Observed>, Option<Rejection>), Rejection> {
    let found = |balancer, role| Some(with_parts(service, identity, balancer, role, view));
    // An annotation with an unknown id is out of date.
    let recorded = service
        .annotations()
        .get(annotations::ID)
        .and_then(|id| view.load_balancers.get(id));
    if let Some((balancer, role)) = tagged(identity, recorded, view) {
        let other = recorded.filter(|recorded| recorded.id != balancer.id);
        let rejection = other.map(|other| {
            Rejection::new(format!(
                "annotation {}: `{}`: the Service has load balancer {} already, and keeps it: write this id back, or \
                 delete the Service and create it again",
                annotations::ID,
                other.id,
                balancer.id
            ))
        });
        return Ok((found(balancer, role), rejection));
    }
    let Some(balancer) = recorded else {
        return Ok((None, None));
    };
    if identity.is_legacy(&balancer.name, &balancer.tags) {
        return Ok((found(balancer, Role::Owner), None));
    }
    if identity.is_foreign(&balancer.name, &balancer.tags) {
        return Err(Rejection::new(format!(
            "annotation {}: load balancer {} ({}) is not that of this Service, nor of another one of this cluster, nor of \
             a user; remove the annotation",
            annotations::ID,
            balancer.id,
            balancer.name
        )));
    }
    Ok((found(balancer, Role::Applicant), None))
}

/// [`LoadBalancer`] with the tags of a Service: one created for the Service, or else one with the Service as a guest. Of
/// several, the one in the annotation.
fn tagged<'a>(
    identity: &Identity,
    recorded: Option<&Arc<LoadBalancer>>,
    view: &'a View,
) -> Option<(&'a Arc<LoadBalancer>, Role)> {
    let chosen = |tag: &str, is_ours: &dyn Fn(&LoadBalancer) -> bool| {
        let all = view.load_balancers.tagged(tag);
        let mut all = all.iter().filter(|balancer| is_ours(balancer));
        let same = |lb: &&Arc<LoadBalancer>| recorded.is_some_and(|recorded| recorded.id == lb.id);
        let id = all.clone().find(same).or_else(|| all.next())?.id.clone();
        view.load_balancers.get(&id)
    };
    let owned = chosen(&identity.service_tag(), &|lb| identity.owns(&lb.tags));
    if let Some(balancer) = owned {
        return Some((balancer, Role::Owner));
    }
    let guest = chosen(&identity.shared_tag(), &|lb| identity.is_guest(&lb.tags));
    guest.map(|balancer| (balancer, Role::Guest))
}

fn with_parts(
    service: &Service,
    identity: &Identity,
    balancer: &Arc<LoadBalancer>,
    role: Role,
    view: &View,
) -> Observed {
    let listeners = view.listeners.of_parent(&balancer.id);
    let ours =
        |listener: &&Arc<Listener>| identity.owns_part("listener_", &listener.name, &listener.tags);
    let foreign = listeners.iter().filter(|listener| !ours(listener));
    let branch = |listener: &Arc<Listener>| {
        let pool = listener
            .default_pool_id
            .as_deref()
            .and_then(|id| view.pools.get(id))
            .cloned();
        let id = pool.as_ref().map_or("", |pool| &pool.id);
        Branch {
            listener: Arc::clone(listener),
            members: view.members.of_parent(id).to_vec(),
            monitor: view.monitors.of_parent(id).first().cloned(),
            pool,
        }
    };
    let used = |pool: &Pool| {
        listeners
            .iter()
            .any(|listener| listener.default_pool_id.as_ref() == Some(&pool.id))
    };
    let pools = view.pools.of_parent(&balancer.id).iter();
    let orphans =
        pools.filter(|pool| !used(pool) && identity.owns_part("pool_", &pool.name, &pool.tags));
    let status = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    Observed {
        listeners: listeners
            .iter()
            .filter(ours)
            .map(|listener| {
                (
                    (listener.protocol.clone(), listener.protocol_port),
                    branch(listener),
                )
            })
            .collect(),
        role,
        foreign: foreign
            .map(|other| {
                (
                    other.protocol.clone(),
                    other.protocol_port,
                    other.name.clone(),
                )
            })
            .collect(),
        orphans: orphans.map(|pool| pool.id.clone()).collect(),
        floating_ip: view
            .floating_ips
            .of_parent(&balancer.vip_port_id)
            .first()
            .cloned(),
        is_published: status
            .is_some_and(|status| status.ingress.as_ref().is_some_and(|list| !list.is_empty())),
        balancer: Arc::clone(balancer),
    }
}
