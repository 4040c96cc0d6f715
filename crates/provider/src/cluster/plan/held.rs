//! What others have put into the networks of a cluster that is being deleted: Neutron keeps a network as long as a load
//! balancer has an address in it.

use openstack::loadbalancer::LoadBalancer;

use super::Wait;
use crate::cluster::observed::Observed;
use crate::reason::Type;

/// How the cloud controller manager names the load balancer of a Service, and tags it for each Service that shares it:
/// `kube_service_<cluster>_<namespace>_<name>`.
const OF_SERVICE: &str = "kube_service_";

/// What to wait for while load balancers of others are in the networks of the cluster, one for each.
pub(super) fn by_load_balancers(observed: &Observed) -> Vec<Wait> {
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
        .map(|balancer| Wait {
            is_stuck: true,
            ..Wait::new(Type::Deleting, words(balancer))
        })
        .collect()
}

fn words(balancer: &LoadBalancer) -> String {
    let LoadBalancer { name, id, .. } = balancer;
    let services = services(balancer);
    let (of, cure) = match services.len() {
        0 => (String::new(), "delete it".to_owned()),
        _ => {
            let list = crate::resolve::names(services.iter().map(String::as_str));
            let noun = if services.len() == 1 {
                "Service"
            } else {
                "Services"
            };
            (
                format!(" of {noun} {list}"),
                format!(
                    "delete the {noun} in the workload cluster, or, if that is gone, the load balancer"
                ),
            )
        }
    };
    format!(
        "load balancer {name} ({id}){of} is in the network of the cluster, which cannot be deleted before it: {cure} \
         (openstack loadbalancer delete --cascade {id})"
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
