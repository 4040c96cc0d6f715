//! The observed load balancer of a Service, from the shared lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use openstack::View;
use openstack::loadbalancer::{Listener, LoadBalancer, Member, Monitor, Pool};
use openstack::network::FloatingIp;

use super::identity::Identity;
use super::{Rejection, annotations};

/// A load balancer with its parts.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) balancer: Arc<LoadBalancer>,
    /// By protocol and port.
    pub(crate) listeners: BTreeMap<(String, u16), Branch>,
    /// Our pools that no listener uses.
    pub(crate) orphans: Vec<String>,
    /// The floating IP of its port.
    pub(crate) floating_ip: Option<Arc<FloatingIp>>,
    /// Whether the Service already has an address.
    pub(crate) is_published: bool,
}

/// A listener with its pool, members and monitor.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) listener: Arc<Listener>,
    pub(crate) pool: Option<Arc<Pool>>,
    pub(crate) members: Vec<Arc<Member>>,
    pub(crate) monitor: Option<Arc<Monitor>>,
}

/// The load balancer of a Service: the one with the uids of cluster and Service in its tags, or one of the Go manager,
/// by the id in the annotation together with its name and tag.
///
/// # Errors
/// The id in the annotation is that of another load balancer.
pub(crate) fn find(
    service: &Service,
    identity: &Identity,
    view: &View,
) -> Result<Option<Observed>, Rejection> {
    let tagged = view.load_balancers.tagged(&identity.service_tag());
    let mut own = tagged
        .iter()
        .filter(|balancer| identity.owns(&balancer.tags));
    // Of two, the one in the annotation; there are two only if a user copied the tags.
    let recorded = service
        .annotations()
        .get(annotations::ID)
        .filter(|id| !id.is_empty());
    let own = own
        .clone()
        .find(|lb| Some(&lb.id) == recorded)
        .or_else(|| own.next());
    if let Some(balancer) = own {
        return Ok(Some(with_parts(service, identity, balancer, view)));
    }
    // The annotation is out of date if no load balancer has this id.
    let Some(balancer) = recorded.and_then(|id| view.load_balancers.get(id)) else {
        return Ok(None);
    };
    if identity.is_legacy(&balancer.name, &balancer.tags) {
        return Ok(Some(with_parts(service, identity, balancer, view)));
    }
    Err(Rejection::new(format!(
        "annotation {}: load balancer {} ({}) is not that of this Service, and sharing one is not built; remove the annotation",
        annotations::ID,
        balancer.id,
        balancer.name
    )))
}

fn with_parts(
    service: &Service,
    identity: &Identity,
    balancer: &Arc<LoadBalancer>,
    view: &View,
) -> Observed {
    let listeners = view.listeners.of_parent(&balancer.id);
    let ours = |listener: &&Arc<Listener>| {
        listener.tags.contains(&identity.name) || is_part(&listener.name, "listener_", identity)
    };
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
    let orphans = pools.filter(|pool| !used(pool) && is_part(&pool.name, "pool_", identity));
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

fn is_part(name: &str, prefix: &str, identity: &Identity) -> bool {
    name.starts_with(prefix) && name.ends_with(&format!("_{}", identity.name))
}
