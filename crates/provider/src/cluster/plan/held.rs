//! Resources of others in the networks of a cluster that is being deleted. Neutron keeps a network as long as a load
//! balancer or a port of others is in the network; such ports also need the router, which Neutron would remove.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::Type;
use openstack::loadbalancer::LoadBalancer;
use openstack::network::{FloatingIp, Port, SecurityGroup};

use super::Wait;
use crate::cluster::observed::Observed;
use crate::identity::Identity;

/// Prefix of the cloud controller manager for the name of a Service's load balancer, and for its tag of each Service
/// that shares the load balancer: `kube_service_<cluster>_<namespace>_<name>`.
const OF_SERVICE: &str = "kube_service_";
/// First words of the description of a floating IP created by a cloud controller manager: this one or the Go one. The
/// provider never suggests the deletion of a user's floating IP.
const IP_OF_SERVICE: &str = "Floating IP for Kubernetes external service ";
/// Tag with the uid of a Service; the description of its floating IP ends with this text.
const SERVICE_TAG: &str = "ferrostack-service=";

/// Waits for others who need the networks and routers of the cluster.
pub(super) fn network(observed: &Observed) -> Vec<Wait> {
    let mut all = by_load_balancers(observed);
    all.extend(by_ports(observed));
    all.extend(by_subnets(observed));
    all
}

/// [`Wait`] for ports of other clusters in a [`SecurityGroup`] of this one.
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

/// One [`Wait`] for each load balancer of others in the networks of the cluster.
fn by_load_balancers(observed: &Observed) -> Vec<Wait> {
    let all = balancers(observed);
    all.map(|balancer| stuck(words(observed, balancer)))
        .collect()
}

/// [`LoadBalancer`]s of others in the networks of the cluster.
pub(super) fn balancers(observed: &Observed) -> impl Iterator<Item = &Arc<LoadBalancer>> {
    let is_inside = move |balancer: &LoadBalancer| {
        let mut networks = observed.networks.iter();
        let mut subnets = observed.subnets.iter();
        networks.any(|network| network.id == balancer.vip_network_id)
            || subnets.any(|subnet| subnet.id == balancer.vip_subnet_id)
    };
    let is_ours = move |id: &str| observed.balancers.iter().any(|known| known.id == id);
    let all = observed.view.load_balancers.iter();
    all.filter(move |balancer| is_inside(balancer) && !is_ours(&balancer.id))
}

/// One [`Wait`] for each other cluster with ports in the networks of this one.
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

/// One [`Wait`] for each subnet of another cluster connected to a router of this one.
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

/// [`Identity`] of the other cluster for which the subnet with this id was created, if any.
pub(super) fn other_subnet(observed: &Observed, id: &str) -> Option<Identity> {
    let subnet = observed.view.subnets.get(id)?;
    observed.other(&**subnet)
}

/// Names of other clusters' ports selected by `which`, by the identities of these clusters.
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

/// Resources blocked by a load balancer, and what to do. The user is never sent to the workload cluster: this plan
/// deletes the rest of its servers and of its API server's load balancer, and the machines went before.
fn words(observed: &Observed, balancer: &LoadBalancer) -> String {
    let LoadBalancer { name, id, .. } = balancer;
    let services = services(balancer);
    let by_hand = format!("openstack loadbalancer delete --cascade {id}");
    let (of, cure) = match (observed.other(balancer), services.is_empty()) {
        (Some(other), _) => (
            format!(" of the cluster with identity {other}"),
            ": delete that cluster".to_owned(),
        ),
        (None, true) => (String::new(), format!(": delete it ({by_hand})")),
        (None, false) => of_services(&services, &floating_ips(observed, balancer), &by_hand),
    };
    format!(
        "load balancer {name} ({id}){of} is in the network of the cluster, which cannot be deleted before it{cure}"
    )
}

/// Owner of a load balancer of Services, and what to do. An annotation of the Service, unknown to the cloud, decides if
/// the floating IP stays.
fn of_services(services: &[String], ips: &[&str], by_hand: &str) -> (String, String) {
    let noun = |what, count| if count == 1 { what } else { format!("{what}s") };
    let service = noun("Service".to_owned(), services.len());
    let address = noun("floating IP".to_owned(), ips.len());
    let list = crate::resolve::names(services.iter().map(String::as_str));
    let (with, kept) = match ips.is_empty() {
        true => (String::new(), String::new()),
        false => (
            format!(", with {address} {},", ips.join(", ")),
            format!(" (the {address} only if not to be kept)"),
        ),
    };
    let commands = ips
        .iter()
        .map(|ip| format!("openstack floating ip delete {ip}"));
    let commands: Vec<_> = commands.chain([by_hand.to_owned()]).collect();
    (
        format!(" of {service} {list}{with}"),
        format!(
            ". The API server of the cluster goes before its network, so that the {service} cannot be deleted there any \
             more; delete in the cloud{kept}: {}",
            commands.join(" && ")
        ),
    )
}

/// Addresses of the floating IPs created for the Services of a load balancer.
fn floating_ips<'a>(observed: &'a Observed, balancer: &LoadBalancer) -> Vec<&'a str> {
    let is_of = |ip: &FloatingIp| match &ip.port_id {
        Some(port) => *port == balancer.vip_port_id,
        None => {
            let tags = balancer.tags.iter();
            let mut tags = tags.filter(|tag| tag.starts_with(SERVICE_TAG));
            tags.any(|tag| ip.description.ends_with(&format!("({tag})")))
        }
    };
    let all = observed.view.floating_ips.iter();
    let all = all.filter(|ip| ip.description.starts_with(IP_OF_SERVICE) && is_of(ip));
    all.map(|ip| ip.floating_ip_address.as_str()).collect()
}

/// Services of a load balancer, as `namespace/name`.
fn services(balancer: &LoadBalancer) -> Vec<String> {
    let named = balancer.tags.iter().chain([&balancer.name]);
    let mut found: Vec<_> = named.filter_map(|name| service(name)).collect();
    found.sort();
    found.dedup();
    found
}

/// Service in a name: neither namespaces nor names of Services have an underscore; the name of the cluster may.
fn service(name: &str) -> Option<String> {
    let mut parts = name.strip_prefix(OF_SERVICE)?.rsplitn(3, '_');
    let (service, namespace) = (parts.next()?, parts.next()?);
    parts.next()?;
    (!service.is_empty() && !namespace.is_empty()).then(|| format!("{namespace}/{service}"))
}

#[cfg(test)]
mod tests {
    use openstack::View;
    use openstack::inventory::Table;

    use super::*;
    use crate::cluster::observed::References;

    #[test]
    fn the_floating_ips_of_a_load_balancer_are_those_that_a_manager_created_for_it() {
        let web = format!("{IP_OF_SERVICE}default/web from cluster demo");
        let ip = |address: &str, port: Option<&str>, description: &str| FloatingIp {
            id: address.into(),
            floating_ip_address: address.into(),
            port_id: port.map(str::to_owned),
            description: description.into(),
            ..Default::default()
        };
        let lost = |uid: &str| format!("{web} ({SERVICE_TAG}{uid})");
        let ips = vec![
            ip("of the Go manager", Some("vip"), &web),
            ip("without a port", None, &lost("uid")),
            ip("of a user", Some("vip"), "kept"),
            ip(
                "of a user, without a port",
                None,
                "(ferrostack-service=uid)",
            ),
            ip("at another port", Some("other"), &lost("uid")),
            ip("of another uid", None, &lost("other-uid")),
            ip("of no uid", None, &web),
        ];
        let view = View {
            floating_ips: Arc::new(Table::from_items(ips)),
            ..View::default()
        };
        let observed = Observed::new(Arc::new(view), Identity::new(), &References::default());
        let balancer = LoadBalancer {
            vip_port_id: "vip".into(),
            tags: vec![format!("{SERVICE_TAG}uid")],
            ..Default::default()
        };
        let mut found = floating_ips(&observed, &balancer);
        found.sort_unstable();
        assert_eq!(found, ["of the Go manager", "without a port"]);
    }

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
