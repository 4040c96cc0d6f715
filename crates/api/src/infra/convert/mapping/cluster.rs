//! Clusters and their templates.

use super::machine::same;
use super::{conditions_down, conditions_up, one, provisioned, ready, two};

impl From<one::OpenStackClusterSpec> for two::OpenStackClusterSpec {
    fn from(old: one::OpenStackClusterSpec) -> Self {
        let network = two::ManagedNetwork {
            mtu: old.network_mtu,
            enable_port_security: old.disable_port_security.map(|disabled| !disabled),
        };
        let api_server = two::ApiServer {
            port: old.api_server_port,
            fixed_ip: old.api_server_fixed_ip,
            floating_ip: old.api_server_floating_ip,
            enable_floating_ip: old.disable_api_server_floating_ip.map(|disabled| !disabled),
            managed_load_balancer: old.api_server_load_balancer,
        };
        let external_ips = old.external_router_ips;
        same!(old => two::OpenStackClusterSpec {
            managed_subnets, network, subnets, primary_subnet, router, external_network, tags,
            control_plane_endpoint, control_plane_availability_zones,
            control_plane_omit_availability_zone, identity_ref,
        }
            managed_network: (network != two::ManagedNetwork::default()).then_some(network),
            managed_router: (!external_ips.is_empty()).then_some(two::ManagedRouter { external_ips }),
            enable_external_network: old.disable_external_network.map(|disabled| !disabled),
            api_server: (api_server != two::ApiServer::default()).then_some(api_server),
            managed_security_groups: old.managed_security_groups.map(Into::into),
            bastion: old.bastion.map(Into::into))
    }
}

impl From<two::OpenStackClusterSpec> for one::OpenStackClusterSpec {
    fn from(new: two::OpenStackClusterSpec) -> Self {
        let network = new.managed_network.unwrap_or_default();
        let api_server = new.api_server.unwrap_or_default();
        same!(new => one::OpenStackClusterSpec {
            managed_subnets, network, subnets, primary_subnet, router, external_network, tags,
            control_plane_endpoint, control_plane_availability_zones,
            control_plane_omit_availability_zone, identity_ref,
        }
            network_mtu: network.mtu,
            disable_port_security: network.enable_port_security.map(|enabled| !enabled),
            external_router_ips: new.managed_router.map(|r| r.external_ips).unwrap_or_default(),
            disable_external_network: new.enable_external_network.map(|enabled| !enabled),
            api_server_load_balancer: api_server.managed_load_balancer,
            disable_api_server_floating_ip: api_server.enable_floating_ip.map(|enabled| !enabled),
            api_server_floating_ip: api_server.floating_ip,
            api_server_fixed_ip: api_server.fixed_ip,
            api_server_port: api_server.port,
            managed_security_groups: new.managed_security_groups.map(Into::into),
            bastion: new.bastion.map(Into::into))
    }
}

impl From<one::ManagedSecurityGroups> for two::ManagedSecurityGroups {
    fn from(old: one::ManagedSecurityGroups) -> Self {
        same!(old => two::ManagedSecurityGroups {
            control_plane_nodes_security_group_rules, worker_nodes_security_group_rules,
            allow_all_in_cluster_traffic,
        } cluster_nodes_security_group_rules: old.all_nodes_security_group_rules)
    }
}

impl From<two::ManagedSecurityGroups> for one::ManagedSecurityGroups {
    fn from(new: two::ManagedSecurityGroups) -> Self {
        same!(new => one::ManagedSecurityGroups {
            control_plane_nodes_security_group_rules, worker_nodes_security_group_rules,
            allow_all_in_cluster_traffic,
        } all_nodes_security_group_rules: new.cluster_nodes_security_group_rules)
    }
}

impl From<one::Bastion> for two::Bastion {
    fn from(old: one::Bastion) -> Self {
        same!(old => two::Bastion { enabled, availability_zone, floating_ip }
            spec: old.spec.map(Into::into))
    }
}

impl From<two::Bastion> for one::Bastion {
    fn from(new: two::Bastion) -> Self {
        same!(new => one::Bastion { enabled, availability_zone, floating_ip }
            spec: new.spec.map(Into::into))
    }
}

impl From<one::BastionStatus> for two::BastionStatus {
    fn from(old: one::BastionStatus) -> Self {
        same!(old => two::BastionStatus {
            id, name, ssh_key_name, state, ip, floating_ip, resources,
        } resolved: old.resolved.map(Into::into))
    }
}

impl From<two::BastionStatus> for one::BastionStatus {
    fn from(new: two::BastionStatus) -> Self {
        same!(new => one::BastionStatus {
            id, name, ssh_key_name, state, ip, floating_ip, resources,
        } resolved: new.resolved.map(Into::into))
    }
}

impl From<one::OpenStackClusterStatus> for two::OpenStackClusterStatus {
    fn from(old: one::OpenStackClusterStatus) -> Self {
        let failure_domains = old
            .failure_domains
            .into_iter()
            .map(|(name, zone)| {
                same!(zone => two::FailureDomain { control_plane, attributes }
                name: name)
            })
            .collect();
        same!(old => two::OpenStackClusterStatus {
            network, external_network, router, control_plane_security_group,
            worker_security_group, bastion_security_group,
        }
            conditions: conditions_up(old.conditions),
            initialization: provisioned(old.initialization, old.ready),
            api_server_managed_load_balancer: old.api_server_load_balancer,
            failure_domains: failure_domains,
            bastion: old.bastion.map(Into::into))
    }
}

impl From<two::OpenStackClusterStatus> for one::OpenStackClusterStatus {
    fn from(new: two::OpenStackClusterStatus) -> Self {
        let ready = ready(&new.conditions, new.initialization.as_ref());
        let failure_domains = new
            .failure_domains
            .into_iter()
            .map(|zone| {
                let name = zone.name;
                (
                    name,
                    same!(zone => one::FailureDomain { control_plane, attributes }),
                )
            })
            .collect();
        same!(new => one::OpenStackClusterStatus {
            initialization, network, external_network, router, control_plane_security_group,
            worker_security_group, bastion_security_group,
        }
            conditions: conditions_down(new.conditions),
            ready: ready,
            api_server_load_balancer: new.api_server_managed_load_balancer,
            failure_domains: failure_domains,
            bastion: new.bastion.map(Into::into),
            failure_reason: None,
            failure_message: None)
    }
}

impl From<one::OpenStackClusterTemplateSpec> for two::OpenStackClusterTemplateSpec {
    fn from(old: one::OpenStackClusterTemplateSpec) -> Self {
        let spec = old.template.spec.into();
        Self {
            template: two::OpenStackClusterTemplateResource {
                metadata: None,
                spec,
            },
        }
    }
}

impl From<two::OpenStackClusterTemplateSpec> for one::OpenStackClusterTemplateSpec {
    fn from(new: two::OpenStackClusterTemplateSpec) -> Self {
        // Metadata has no place here; it lives on in the stash.
        let spec = new.template.spec.into();
        Self {
            template: one::OpenStackClusterTemplateResource { spec },
        }
    }
}
