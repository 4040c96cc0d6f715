//! What others have put into the networks of a cluster that is being deleted. Neutron keeps a network as long as a load
//! balancer or a port of others is in it; their ports also need the router, which Neutron would remove from them.

use std::collections::BTreeMap;

use openstack::loadbalancer::LoadBalancer;
use openstack::network::{Port, SecurityGroup};

use super::Wait;
use crate::cluster::observed::Observed;
use crate::identity::Identity;
use crate::reason::Type;

/// How the cloud controller manager names the load balancer of a Service, and tags it for each Service that shares it:
/// `kube_service_<cluster>_<namespace>_<name>`.
const OF_SERVICE: &str = "kube_service_";

/// What to wait for while others need the networks and routers of the cluster.
pub(super) fn network(observed: &Observed) -> Vec<Wait> {
    let mut all = by_load_balancers(observed);
    all.extend(by_ports(observed));
    all.extend(by_subnets(observed));
    all
}

/// What to wait for while ports of other clusters use a security group of this one.
pub(super) fn group(observed: &Observed, group: &SecurityGroup) -> Option<Wait> {
    let uses = |port: &Port| port.security_groups.contains(&group.id);
    let ports = of_others(observed, uses).into_iter().next();
    let (other, ports) = ports?;
    let SecurityGroup { name, id, .. } = group;
    Some(stuck(format!(
        "security group {name} ({id}) is used by ports of the cluster with identity {other} ({ports}): delete that \
         cluster, or its machines with this group"
    )))
}

/// One wait for each load balancer of others in the networks of the cluster.
fn by_load_balancers(observed: &Observed) -> Vec<Wait> {
    let is_inside = |balancer: &LoadBalancer| {
        let mut networks = observed.networks.iter();
        let mut subnets = observed.subnets.iter();
        networks.any(|network| network.id == balancer.vip_network_id)
            || subnets.any(|subnet| subnet.id == balancer.vip_subnet_id)
    };
    let is_ours = |id: &str| observed.balancers.iter().any(|known| known.id == id);
    let all = observed.view.load_balancers.iter();
    let others = all.filter(|balancer| is_inside(balancer) && !is_ours(&balancer.id));
    others
        .map(|balancer| stuck(words(balancer, observed.other(&**balancer))))
        .collect()
}

/// One wait for each other cluster with ports in the networks of this one.
fn by_ports(observed: &Observed) -> Vec<Wait> {
    let is_inside = |port: &Port| {
        let mut networks = observed.networks.iter();
        networks.any(|network| network.id == port.network_id)
    };
    let others = of_others(observed, is_inside).into_iter();
    others
        .map(|(other, ports)| {
            stuck(format!(
                "ports of the cluster with identity {other} are in the network of this cluster, which cannot be deleted \
                 before them ({ports}): delete that cluster, or its machines there"
            ))
        })
        .collect()
}

/// One wait for each subnet of another cluster that is connected to a router of this one.
fn by_subnets(observed: &Observed) -> Vec<Wait> {
    let mut all = Vec::new();
    for router in observed.routers.iter().map(|router| &router.id) {
        for (_, id) in observed.interfaces(router) {
            if let Some(other) = other_subnet(observed, id) {
                all.push(stuck(format!(
                    "subnet {id} of the cluster with identity {other} is connected to router {router} of this cluster, \
                     which cannot be deleted before: delete that cluster, or disconnect the subnet (openstack router \
                     remove subnet {router} {id})"
                )));
            }
        }
    }
    all
}

/// The other cluster that the subnet with this id was created for, if any.
pub(super) fn other_subnet(observed: &Observed, id: &str) -> Option<Identity> {
    let subnet = observed.view.subnets.get(id)?;
    observed.other(&**subnet)
}

/// The names of the ports of other clusters for which `which` holds, by the identities of those clusters.
fn of_others(observed: &Observed, which: impl Fn(&Port) -> bool) -> BTreeMap<Identity, String> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    let ports = observed.view.ports.iter();
    for port in ports.filter(|port| which(port)) {
        if let Some(other) = observed.other(&**port) {
            found.entry(other).or_default().push(port.name.as_str());
        }
    }
    let words = |names: Vec<&str>| crate::resolve::names(names.into_iter());
    found
        .into_iter()
        .map(|(other, names)| (other, words(names)))
        .collect()
}

fn stuck(message: String) -> Wait {
    Wait {
        is_stuck: true,
        ..Wait::new(Type::Deleting, message)
    }
}

/// What a load balancer holds up; `other` is the cluster that it was created for, if it is one of an API server.
fn words(balancer: &LoadBalancer, other: Option<Identity>) -> String {
    let LoadBalancer { name, id, .. } = balancer;
    let services = services(balancer);
    let by_hand = format!("openstack loadbalancer delete --cascade {id}");
    let (of, cure) = match (other, services.len()) {
        (Some(other), _) => (
            format!(" of the cluster with identity {other}"),
            "delete that cluster".to_owned(),
        ),
        (None, 0) => (String::new(), format!("delete it ({by_hand})")),
        (None, count) => {
            let list = crate::resolve::names(services.iter().map(String::as_str));
            let noun = if count == 1 { "Service" } else { "Services" };
            (
                format!(" of {noun} {list}"),
                format!(
                    "delete the {noun} in the workload cluster, or, if that is gone, the load balancer ({by_hand})"
                ),
            )
        }
    };
    format!(
        "load balancer {name} ({id}){of} is in the network of the cluster, which cannot be deleted before it: {cure}"
    )
}

/// The Services of a load balancer, as `namespace/name`.
fn services(balancer: &LoadBalancer) -> Vec<String> {
    let named = balancer.tags.iter().chain([&balancer.name]);
    let mut found: Vec<_> = named.filter_map(|name| service(name)).collect();
    found.sort();
    found.dedup();
    found
}

/// Neither namespaces nor names of Services have an underscore; the name of the cluster may.
fn service(name: &str) -> Option<String> {
    let mut parts = name.strip_prefix(OF_SERVICE)?.rsplitn(3, '_');
    let (service, namespace) = (parts.next()?, parts.next()?);
    parts.next()?;
    (!service.is_empty() && !namespace.is_empty()).then(|| format!("{namespace}/{service}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_services_of_a_load_balancer_are_read_from_its_name_and_tags() {
        let of = |name: &str, tags: &[&str]| {
            services(&LoadBalancer {
                name: name.into(),
                tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
                ..Default::default()
            })
        };
        assert_eq!(of("kube_service_demo_default_web", &[]), ["default/web"]);
        assert_eq!(of("kube_service_my_cluster_ns_web", &[]), ["ns/web"]);
        let shared = of(
            "mine",
            &["kube_service_c_a_x", "kube_service_c_b_y", "other"],
        );
        assert_eq!(shared, ["a/x", "b/y"]);
        assert!(of("kube_service_web", &[]).is_empty());
        assert!(of("web", &[]).is_empty());
    }
}
