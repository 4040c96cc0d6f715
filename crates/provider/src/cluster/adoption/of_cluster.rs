//! Network, router, security groups, load balancer, floating IPs and bastion of a cluster. Pure.

use api::infra::v1beta2::{BastionStatus, ManagedGroup, OpenStackClusterStatus};
use kube::ResourceExt;
use openstack::network::FloatingIp;

use super::Objects;
use super::found::{By, Expected, Search, Side, What};
use super::of_server::{self, OfServer};
use crate::cluster::bastion;
use crate::cluster::desired::{balancer_spec, bastion_spec, wants_floating_ip};
use crate::identity::{Identity, Mark};
use crate::names::{GROUP_DESCRIPTION, Names};

/// Resources of a cluster: ids in its own status come last.
pub(super) fn all(
    search: &mut Search<'_>,
    objects: &Objects<'_>,
    cluster: Identity,
    names: &Names,
) {
    let infra = objects.infra;
    let of = OfCluster {
        objects,
        side: Side {
            object: format!("OpenStackCluster/{}", infra.name_any()),
            mark: Mark::cluster(cluster),
        },
        names,
        status: infra.status.clone().unwrap_or_default(),
    };
    of.bastion(search, bastion::mark(infra, cluster));
    of.subnets(search);
    of.floating_ip(search);
    of.network(search);
    of.groups(search);
    of.balancer(search);
}

struct OfCluster<'a> {
    objects: &'a Objects<'a>,
    side: Side,
    names: &'a Names,
    status: OpenStackClusterStatus,
}

impl OfCluster<'_> {
    fn expected<'i>(&self, what: What, id: &'i str, name: String) -> Expected<'i> {
        Expected {
            what,
            id,
            by: By::Status(self.side.object.clone()),
            names: vec![name],
            description: self.names.description(),
        }
    }

    fn has_network(&self) -> bool {
        !self.objects.infra.spec.managed_subnets.is_empty()
    }

    fn subnets(&self, search: &mut Search<'_>) {
        if !self.has_network() {
            return;
        }
        let network = self.status.network.as_ref();
        for subnet in network.iter().flat_map(|network| &network.subnets) {
            let item = search.view.subnets.get(&subnet.id);
            let inside = |id: &String| network.is_some_and(|network| network.id == *id);
            if let Some(item) = item.filter(|item| !inside(&item.network_id)) {
                search.conflicts.push(format!(
                    "subnet {}, which the status of {} names, is in network {}, which is not that of the cluster",
                    item.id, self.side.object, item.network_id
                ));
                continue;
            }
            let expected = self.expected(What::Subnet, &subnet.id, self.names.network());
            search.described(&self.side, expected, item.map(AsRef::as_ref));
        }
        search.stray(
            What::Subnet,
            &self.side,
            search.view.subnets.named(&self.names.network()),
        );
    }

    fn network(&self, search: &mut Search<'_>) {
        if !self.has_network() {
            return;
        }
        let (view, name) = (search.view, self.names.network());
        let known = self
            .status
            .network
            .as_ref()
            .map(|network| network.id.as_str());
        match known.filter(|id| !id.is_empty()) {
            Some(id) => {
                let expected = self.expected(What::Network, id, name);
                search.described(
                    &self.side,
                    expected,
                    view.networks.get(id).map(AsRef::as_ref),
                );
            }
            None => search.stray(What::Network, &self.side, view.networks.named(&name)),
        }
        if self.objects.infra.spec.router.is_some() {
            return;
        }
        let name = self.names.network();
        let known = self.status.router.as_ref().map(|router| router.id.as_str());
        match known.filter(|id| !id.is_empty()) {
            Some(id) => {
                let expected = self.expected(What::Router, id, name);
                search.described(
                    &self.side,
                    expected,
                    view.routers.get(id).map(AsRef::as_ref),
                );
            }
            None => search.stray(What::Router, &self.side, view.routers.named(&name)),
        }
    }

    fn groups(&self, search: &mut Search<'_>) {
        let (view, status) = (search.view, &self.status);
        let groups = [
            (
                ManagedGroup::ControlPlane,
                &status.control_plane_security_group,
            ),
            (ManagedGroup::Worker, &status.worker_security_group),
            (ManagedGroup::Bastion, &status.bastion_security_group),
        ];
        for (role, known) in groups {
            let name = self.names.group(role);
            match known.as_ref().filter(|group| !group.id.is_empty()) {
                Some(group) => {
                    let expected = Expected {
                        description: GROUP_DESCRIPTION.to_owned(),
                        ..self.expected(What::SecurityGroup, &group.id, name)
                    };
                    let item = view.security_groups.get(&group.id);
                    search.described(&self.side, expected, item.map(AsRef::as_ref));
                }
                None => search.stray(
                    What::SecurityGroup,
                    &self.side,
                    view.security_groups.named(&name),
                ),
            }
        }
    }

    fn balancer(&self, search: &mut Search<'_>) {
        let (view, name) = (search.view, self.names.balancer());
        if balancer_spec(&self.objects.infra.spec).is_none() {
            return;
        }
        let known = self.status.api_server_managed_load_balancer.as_ref();
        match known.filter(|balancer| !balancer.id.is_empty()) {
            Some(balancer) => {
                let expected = self.expected(What::LoadBalancer, &balancer.id, name);
                let item = view.load_balancers.get(&balancer.id);
                search.described(&self.side, expected, item.map(AsRef::as_ref));
            }
            None => search.stray(
                What::LoadBalancer,
                &self.side,
                view.load_balancers.named(&name),
            ),
        }
    }

    /// Takes the floating IP of the API server, unless the spec names the address: then the user keeps it.
    fn floating_ip(&self, search: &mut Search<'_>) {
        let spec = &self.objects.infra.spec;
        let balanced = balancer_spec(spec).is_some();
        let balancer = self.status.api_server_managed_load_balancer.as_ref();
        let of_balancer = balancer.and_then(|balancer| balancer.ip.clone());
        let host = spec
            .control_plane_endpoint
            .as_ref()
            .and_then(|it| it.host.clone());
        let address = of_balancer.filter(|ip| balanced && !ip.is_empty()).or(host);
        let Some(address) = address.filter(|_| wants_floating_ip(spec)) else {
            return;
        };
        let given = spec
            .api_server
            .as_ref()
            .and_then(|it| it.floating_ip.as_ref());
        if given == Some(&address) {
            search.notes.push(format!(
                "floating IP {address} is the one that apiServer.floatingIP names: it stays its user's"
            ));
            return;
        }
        match search.view.floating_ips.named(&address).first() {
            Some(ip) if self.is_ours(ip, self.side.mark) => {
                self.take_ip(search, ip, self.side.mark);
            }
            Some(_) if balanced => search.conflicts.push(format!(
                "floating IP {address} of {} has another description than cluster-api-provider-openstack gives, so that \
                 another one would take its place: set apiServer.floatingIP to it, and it stays its user's",
                self.side.object
            )),
            None if balanced => search.conflicts.push(format!(
                "floating IP {address} of {} does not exist in the project",
                self.side.object
            )),
            _ => search.notes.push(format!(
                "{address}, the address of the API server, is no floating IP of cluster-api-provider-openstack: it stays"
            )),
        }
    }

    /// True for a [`FloatingIp`] created for this cluster by the Go provider, marked or not.
    fn is_ours(&self, ip: &FloatingIp, mark: Mark) -> bool {
        let text = self.names.description();
        ip.description == text || ip.description == mark.description(&text)
    }

    fn take_ip(&self, search: &mut Search<'_>, ip: &FloatingIp, mark: Mark) {
        let expected = self.expected(What::FloatingIp, &ip.id, ip.floating_ip_address.clone());
        let side = Side {
            mark,
            ..self.side.clone()
        };
        search.described(&side, expected, Some(ip));
    }

    fn bastion(&self, search: &mut Search<'_>, mark: Mark) {
        let status = self.status.bastion.clone().unwrap_or_default();
        let known = status.id.clone().filter(|id| !id.is_empty());
        let Some((given, spec)) = bastion_spec(&self.objects.infra.spec) else {
            if let Some(id) = known {
                search.conflicts.push(format!(
                    "server {id}, the bastion of {}, is there, and the spec has none: let \
                     cluster-api-provider-openstack remove it",
                    self.side.object
                ));
            }
            return;
        };
        let side = Side {
            mark,
            ..self.side.clone()
        };
        let mut of_server = OfServer {
            name: self.names.bastion(),
            spec,
            server: known.map(|id| (id, self.side.object.clone())),
            ports: Vec::new(),
            description: self.names.port_description(),
        };
        of_server.add_recorded(self.objects.servers);
        if spec.floating_ip_pool_ref.is_some() {
            search.conflicts.push(format!(
                "{}: bastion.spec.floatingIPPoolRef: taking over a bastion with an address of a pool is not built",
                self.side.object
            ));
        }
        self.bastion_ip(search, &status, given.floating_ip.as_ref(), mark);
        of_server::all(search, &side, &of_server);
    }

    fn bastion_ip(
        &self,
        search: &mut Search<'_>,
        status: &BastionStatus,
        given: Option<&String>,
        mark: Mark,
    ) {
        let Some(address) = status.floating_ip.as_ref().filter(|ip| !ip.is_empty()) else {
            return;
        };
        if given == Some(address) {
            search.notes.push(format!(
                "floating IP {address} is the one that bastion.floatingIP names: it stays its user's"
            ));
            return;
        }
        match search.view.floating_ips.named(address).first() {
            Some(ip) if self.is_ours(ip, mark) => self.take_ip(search, ip, mark),
            _ => search.conflicts.push(format!(
                "floating IP {address}, the bastion's in the status of {}, is not one of \
                 cluster-api-provider-openstack: set bastion.floatingIP to it, and it stays its user's",
                self.side.object
            )),
        }
    }
}
