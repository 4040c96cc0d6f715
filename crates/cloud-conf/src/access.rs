//! Requests of each program, as access rules of an application credential.
//!
//! The tables are held to the programs by their own tests, whose cloud refuses every other request: `crates/ccm/tests`
//! and `crates/csi/tests`.

use std::collections::BTreeSet;

use openstack::Service;
use openstack::identity::{AccessRule, Place};

use super::Program;

/// Service, method, and route without the path of the API. `{...}` stands for one segment.
type Request = (Service, &'static str, &'static str);

const COMPUTE: Service = Service::Compute;
const NETWORK: Service = Service::Network;
const BALANCER: Service = Service::LoadBalancer;
const VOLUME: Service = Service::Volume;
const KEYS: Service = Service::KeyManager;

/// Requests of the cloud controller manager: nodes, routes, load balancers.
const OF_MANAGER: &[Request] = &[
    (COMPUTE, "GET", "/flavors/detail"),
    (COMPUTE, "GET", "/servers/detail"),
    (COMPUTE, "GET", "/servers/{id}"),
    (NETWORK, "GET", "/extensions"),
    (NETWORK, "GET", "/floatingips"),
    (NETWORK, "GET", "/floatingips/{id}"),
    (NETWORK, "POST", "/floatingips"),
    (NETWORK, "PUT", "/floatingips/{id}"),
    (NETWORK, "DELETE", "/floatingips/{id}"),
    (NETWORK, "GET", "/networks"),
    (NETWORK, "GET", "/ports"),
    (NETWORK, "GET", "/ports/{id}"),
    (NETWORK, "PUT", "/ports/{id}"),
    (NETWORK, "GET", "/routers"),
    (NETWORK, "GET", "/routers/{id}"),
    (NETWORK, "PUT", "/routers/{id}"),
    (NETWORK, "PUT", "/routers/{id}/add_extraroutes"),
    (NETWORK, "PUT", "/routers/{id}/remove_extraroutes"),
    (NETWORK, "GET", "/security-groups"),
    (NETWORK, "GET", "/security-groups/{id}"),
    (NETWORK, "POST", "/security-groups"),
    (NETWORK, "PUT", "/security-groups/{id}"),
    (NETWORK, "DELETE", "/security-groups/{id}"),
    (NETWORK, "POST", "/security-group-rules"),
    (NETWORK, "DELETE", "/security-group-rules/{id}"),
    (NETWORK, "GET", "/subnets"),
    (NETWORK, "GET", "/trunks"),
    (BALANCER, "GET", "/lbaas/loadbalancers"),
    (BALANCER, "GET", "/lbaas/loadbalancers/{id}"),
    (BALANCER, "GET", "/lbaas/loadbalancers/{id}/status"),
    (BALANCER, "POST", "/lbaas/loadbalancers"),
    (BALANCER, "PUT", "/lbaas/loadbalancers/{id}"),
    (BALANCER, "PUT", "/lbaas/loadbalancers/{id}/failover"),
    (BALANCER, "DELETE", "/lbaas/loadbalancers/{id}"),
    (BALANCER, "GET", "/lbaas/listeners"),
    (BALANCER, "GET", "/lbaas/listeners/{id}"),
    (BALANCER, "POST", "/lbaas/listeners"),
    (BALANCER, "PUT", "/lbaas/listeners/{id}"),
    (BALANCER, "DELETE", "/lbaas/listeners/{id}"),
    (BALANCER, "GET", "/lbaas/pools"),
    (BALANCER, "GET", "/lbaas/pools/{id}"),
    (BALANCER, "POST", "/lbaas/pools"),
    (BALANCER, "PUT", "/lbaas/pools/{id}"),
    (BALANCER, "DELETE", "/lbaas/pools/{id}"),
    (BALANCER, "GET", "/lbaas/pools/{id}/members"),
    (BALANCER, "POST", "/lbaas/pools/{id}/members"),
    (BALANCER, "PUT", "/lbaas/pools/{id}/members"),
    (BALANCER, "PUT", "/lbaas/pools/{id}/members/{member}"),
    (BALANCER, "DELETE", "/lbaas/pools/{id}/members/{member}"),
    (BALANCER, "GET", "/lbaas/healthmonitors"),
    (BALANCER, "GET", "/lbaas/healthmonitors/{id}"),
    (BALANCER, "POST", "/lbaas/healthmonitors"),
    (BALANCER, "PUT", "/lbaas/healthmonitors/{id}"),
    (BALANCER, "DELETE", "/lbaas/healthmonitors/{id}"),
    (KEYS, "GET", "/secrets/{id}"),
    (KEYS, "GET", "/containers/{id}"),
];

/// Requests of the controller of the Cinder CSI driver.
const OF_DRIVER: &[Request] = &[
    (COMPUTE, "GET", "/servers/detail"),
    (COMPUTE, "GET", "/servers/{id}"),
    (COMPUTE, "POST", "/servers/{id}/os-volume_attachments"),
    (
        COMPUTE,
        "DELETE",
        "/servers/{id}/os-volume_attachments/{volume}",
    ),
    (VOLUME, "GET", "/volumes/detail"),
    (VOLUME, "GET", "/volumes/{id}"),
    (VOLUME, "POST", "/volumes"),
    (VOLUME, "POST", "/volumes/{id}/action"),
    (VOLUME, "POST", "/volumes/{id}/metadata"),
    (VOLUME, "DELETE", "/volumes/{id}"),
    (VOLUME, "GET", "/snapshots/detail"),
    (VOLUME, "GET", "/snapshots/{id}"),
    (VOLUME, "POST", "/snapshots"),
    (VOLUME, "DELETE", "/snapshots/{id}"),
    (VOLUME, "GET", "/backups/detail"),
    (VOLUME, "GET", "/backups/{id}"),
    (VOLUME, "POST", "/backups"),
    (VOLUME, "DELETE", "/backups/{id}"),
    (VOLUME, "GET", "/groups/detail"),
    (VOLUME, "POST", "/groups"),
    (VOLUME, "PUT", "/groups/{id}"),
    (VOLUME, "POST", "/groups/{id}/action"),
    (VOLUME, "GET", "/group_snapshots/detail"),
    (VOLUME, "POST", "/group_snapshots"),
    (VOLUME, "DELETE", "/group_snapshots/{id}"),
    (VOLUME, "GET", "/group_types"),
    (VOLUME, "GET", "/attachments"),
    (VOLUME, "DELETE", "/attachments/{id}"),
    (VOLUME, "GET", "/messages"),
    (VOLUME, "GET", "/os-availability-zone"),
    (VOLUME, "GET", "/os-quota-sets/{project}"),
    (VOLUME, "GET", "/types"),
    (VOLUME, "GET", "/types/{id}"),
];

const fn table(program: Program) -> &'static [Request] {
    match program {
        Program::CloudControllerManager => OF_MANAGER,
        Program::CinderCsi => OF_DRIVER,
    }
}

/// Services of the requests of `program`.
#[must_use]
pub fn services(program: Program) -> BTreeSet<Service> {
    let requests = table(program).iter();
    requests.map(|(service, _, _)| *service).collect()
}

/// A list of each service that `program` reads, to try a credential.
pub fn lists(program: Program) -> impl Iterator<Item = (Service, &'static str)> {
    services(program).into_iter().filter_map(move |service| {
        let mut requests = table(program).iter();
        let is_list = |(_, method, route): &&Request| *method == "GET" && !route.contains('{');
        let found = requests.find(|it| it.0 == service && is_list(it));
        found.map(|(_, _, route)| (service, *route))
    })
}

/// Access rules for the requests of `program` to services at these [`Place`]s.
///
/// A service compares the path as its own web server passes it on, with or without a prefix of the URL in the catalog
/// (`/compute/v2.1` or `/v2.1`): where there is one, each rule is there for both.
#[must_use]
pub fn rules(program: Program, places: &[Place]) -> Vec<AccessRule> {
    let mut rules = Vec::new();
    for (service, method, route) in table(program) {
        for place in places.iter().filter(|place| place.service == *service) {
            let path = format!("{}{}", place.path, star(route));
            let paths = [Some(path.clone()), without_prefix(&path)];
            for kind in &place.types {
                rules.extend(paths.iter().flatten().map(|path| AccessRule {
                    service: kind.clone(),
                    method: (*method).to_owned(),
                    path: path.clone(),
                }));
            }
        }
    }
    rules
}

/// A route with `*` for each segment in braces: Keystone keeps rules by their text.
fn star(route: &str) -> String {
    let segments = route.split('/').map(|segment| match segment {
        it if it.starts_with('{') => "*",
        it => it,
    });
    segments.collect::<Vec<_>>().join("/")
}

/// The path from its version on, if something is before it.
fn without_prefix(path: &str) -> Option<String> {
    let is_version = |segment: &str| {
        let rest = segment.strip_prefix('v');
        rest.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
    };
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let at = segments.iter().position(|segment| is_version(segment))?;
    (at > 0).then(|| format!("/{}", segments.get(at..).unwrap_or_default().join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(service: Service, types: &[&str], path: &str) -> Place {
        Place {
            service,
            types: types.iter().map(|kind| (*kind).to_owned()).collect(),
            path: path.to_owned(),
        }
    }

    fn has(rules: &[AccessRule], service: &str, method: &str, path: &str) -> bool {
        let same =
            |it: &AccessRule| it.service == service && it.method == method && it.path == path;
        rules.iter().any(same)
    }

    #[test]
    fn rules_are_for_the_paths_in_the_catalog_with_and_without_a_prefix() {
        let places = [
            place(COMPUTE, &["compute"], "/compute/v2.1"),
            place(NETWORK, &["network"], "/v2.0"),
        ];
        let rules = rules(Program::CloudControllerManager, &places);
        for path in ["/compute/v2.1/servers/*", "/v2.1/servers/*"] {
            assert!(has(&rules, "compute", "GET", path), "{path}");
        }
        assert!(has(&rules, "network", "POST", "/v2.0/floatingips"));
        assert!(
            !rules
                .iter()
                .any(|it| it.service == "compute" && it.method != "GET")
        );
        assert!(!rules.iter().any(|it| it.service == "load-balancer"));
    }

    #[test]
    fn rules_for_volumes_are_for_each_type_in_the_catalog_and_for_one_project() {
        let types = ["volumev3", "block-storage"];
        let rules = rules(Program::CinderCsi, &[place(VOLUME, &types, "/v3/p1")]);
        for kind in types {
            assert!(has(&rules, kind, "DELETE", "/v3/p1/volumes/*"));
        }
        assert!(!rules.iter().any(|it| it.path.contains('{')));
    }

    #[test]
    fn no_rule_is_wider_than_one_segment_and_none_is_there_twice() {
        for program in [Program::CloudControllerManager, Program::CinderCsi] {
            let requests: BTreeSet<_> = table(program).iter().collect();
            assert_eq!(requests.len(), table(program).len());
            assert!(table(program).iter().all(|it| !it.2.contains('*')));
        }
    }

    #[test]
    fn a_credential_can_be_tried_with_a_list_of_each_service() {
        let lists: Vec<_> = lists(Program::CloudControllerManager).collect();
        let tried: Vec<_> = lists.iter().map(|(service, _)| *service).collect();
        assert_eq!(tried, [COMPUTE, NETWORK, BALANCER]);
        let lists: Vec<_> = self::lists(Program::CinderCsi).collect();
        assert_eq!(
            lists,
            [(COMPUTE, "/servers/detail"), (VOLUME, "/volumes/detail")]
        );
    }
}
