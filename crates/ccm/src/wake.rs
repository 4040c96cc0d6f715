//! Maps changes in the cloud to objects.

#[cfg(test)]
mod tests;
pub(crate) mod watched;

use std::collections::BTreeSet;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, Service};
use api::k8s_openapi::api::discovery::v1::EndpointSlice;
use futures::stream::{self, Stream, StreamExt};
use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};
use openstack::inventory::{Resource, batches};
use openstack::{Change, CloudPool, Kind, View};
use tokio::sync::broadcast::Receiver;
use tokio::sync::watch;

use crate::node::ProviderId;
use crate::node::names;
use crate::service::{self, identity::Identity, vip::Family};

/// [`Node`]s with changed servers or ports.
pub(crate) fn nodes(
    changes: Receiver<Change>,
    store: Store<Node>,
) -> impl Stream<Item = ObjectRef<Node>> + Send + 'static {
    batches(changes).flat_map(move |batch| {
        let nodes = store.state();
        let Some(changes) = batch else {
            return stream::iter(references(nodes.iter()));
        };
        let servers = Servers::from_changes(&changes);
        let concerned = nodes.iter().filter(|node| servers.concern(node));
        stream::iter(references(concerned))
    })
}

fn references<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>) -> Vec<ObjectRef<Node>> {
    nodes.map(|node| ObjectRef::from_obj(&**node)).collect()
}

/// Servers of changes.
#[derive(Debug, Default)]
struct Servers<'a> {
    ids: BTreeSet<&'a str>,
    /// Prefixes of the names of nodes.
    names: BTreeSet<String>,
}

impl<'a> Servers<'a> {
    fn from_changes(changes: &'a [Change]) -> Self {
        let mut all = Self::default();
        for change in changes {
            match change.kind {
                Kind::Servers => {
                    all.ids.insert(&change.id);
                    all.names.extend(names::beginnings(&change.name));
                }
                Kind::Ports => all.ids.extend(change.parent.as_deref()),
                _ => {}
            }
        }
        all
    }

    /// True if a [`Node`] may belong to one of the servers: by id, or by name while the Node has no id.
    fn concern(&self, node: &Node) -> bool {
        let id = node.spec.as_ref();
        let id = id.and_then(|spec| spec.provider_id.as_deref());
        match id.map(ProviderId::parse) {
            Some(Ok(id)) => self.ids.contains(id.server.as_str()),
            _ => self.names.contains(&names::beginning(&node.name_any())),
        }
    }
}

/// Services to reconcile after changes: of load balancers, of their parts, and of floating IPs.
pub(crate) fn services(
    clouds: &CloudPool,
    store: Store<Service>,
    cluster_name: String,
) -> impl Stream<Item = ObjectRef<Service>> + Send + 'static {
    let clouds = clouds.clone();
    batches(clouds.changes()).flat_map(move |batch| {
        let mut services = store.state();
        services.retain(|service| is_served(service));
        let Some(changes) = batch else {
            return stream::iter(all(&services));
        };
        let mut marks = Marks::default();
        for change in &changes {
            let view = clouds.known(&change.scope).unwrap_or_default();
            marks.add(change, &view);
        }
        services.retain(|service| marks.concern(service, &cluster_name));
        stream::iter(all(&services))
    })
}

/// All [`Service`]s with a load balancer after each change of the settings.
pub(crate) fn settings<T: Send + Sync + 'static>(
    settings: watch::Receiver<T>,
    store: Store<Service>,
) -> impl Stream<Item = ObjectRef<Service>> + Send + 'static {
    let changes = stream::unfold(settings, |mut settings| async move {
        settings.changed().await.ok()?;
        Some(((), settings))
    });
    changes.flat_map(move |()| {
        let mut services = store.state();
        services.retain(|service| is_served(service));
        stream::iter(all(&services))
    })
}

/// [`Service`] of an [`EndpointSlice`], if its members can depend on the slice.
pub(crate) fn of_slice(
    store: Store<Service>,
) -> impl Fn(EndpointSlice) -> Option<ObjectRef<Service>> + Send + Sync + 'static {
    move |slice| {
        let name = slice.labels().get(service::weights::SERVICE_LABEL)?;
        let reference = ObjectRef::new(name).within(&slice.namespace()?);
        let found = store.get(&reference)?;
        let concerns = service::weights::are_asked(&found) || service::is_local(&found);
        concerns.then_some(reference)
    }
}

fn all(services: &[Arc<Service>]) -> Vec<ObjectRef<Service>> {
    let references = services
        .iter()
        .map(|service| ObjectRef::from_obj(&**service));
    references.collect()
}

/// True if a [`Service`] has a load balancer, or waits for the deletion of one.
fn is_served(service: &Service) -> bool {
    service::is_wanted(service) || operator::finalizer::has(service, service::FINALIZER)
}

/// Properties of changed resources, for the search of the Services.
#[derive(Debug, Default)]
struct Marks {
    /// Names and tags of load balancers and their parts.
    tags: BTreeSet<String>,
    /// Ids of load balancers.
    balancers: BTreeSet<String>,
    /// Floating IPs.
    addresses: BTreeSet<String>,
    descriptions: Vec<String>,
}

impl Marks {
    fn add(&mut self, change: &Change, view: &View) {
        let parent = change.parent.as_deref().unwrap_or_default();
        let of_pool = |pool: &str| view.pools.get(pool)?.parent().map(str::to_owned);
        let balancer = match change.kind {
            Kind::LoadBalancers => {
                self.tags.insert(change.name.clone());
                self.tags.extend(change.tags.iter().cloned());
                self.balancers.insert(change.id.clone());
                None
            }
            Kind::Listeners | Kind::Pools => {
                self.tags.extend(change.tags.iter().cloned());
                Some(parent.to_owned())
            }
            Kind::Members | Kind::Monitors => of_pool(parent),
            Kind::FloatingIps => {
                self.addresses.insert(change.name.clone());
                self.descriptions.push(change.description.clone());
                let mut on_port = view.load_balancers.iter();
                let found = on_port.find(|lb| !parent.is_empty() && lb.vip_port_id == parent);
                found.map(|lb| lb.id.clone())
            }
            Kind::SecurityGroups => {
                self.descriptions.push(change.description.clone());
                None
            }
            _ => None,
        };
        if let Some(balancer) = balancer.and_then(|id| view.load_balancers.get(&id)) {
            self.tags.insert(balancer.name.clone());
            self.tags.extend(balancer.tags.iter().cloned());
            self.balancers.insert(balancer.id.clone());
        }
    }

    fn concern(&self, service: &Service, cluster_name: &str) -> bool {
        // The compared marks do not include the uid of the cluster.
        let first = Identity::new(service, cluster_name, "");
        let seconds = Family::ALL.map(|family| first.of_second(family));
        let named = service.annotations().get(service::annotations::ID);
        let is_marked = |identity: &Identity| {
            let owns = |description: &String| identity.owns_floating_ip(description);
            self.tags.contains(&identity.name)
                || self.tags.contains(&identity.service_tag())
                || self.descriptions.iter().any(owns)
        };
        std::iter::once(&first).chain(&seconds).any(is_marked)
            || named.is_some_and(|id| self.balancers.contains(id))
            || addresses(service).any(|address| self.addresses.contains(address))
    }
}

/// Published and requested addresses of a [`Service`].
fn addresses(service: &Service) -> impl Iterator<Item = &str> {
    let status = service.status.as_ref();
    let published = status
        .and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref())
        .into_iter()
        .flatten()
        .filter_map(|ingress| ingress.ip.as_deref());
    let asked = service
        .spec
        .as_ref()
        .and_then(|spec| spec.load_balancer_ip.as_deref());
    let recorded = service.annotations().get(service::annotations::ADDRESS);
    published.chain(asked).chain(recorded.map(String::as_str))
}
