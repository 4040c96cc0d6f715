//! Formats of addresses and ports, and relations between fields.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use super::{subnets, zones};
use crate::change::FieldError;
use crate::infra::v1alpha1::OpenStackFloatingIPPoolSpec;
use crate::infra::v1beta2::{
    ApiServer, Bastion, IdentityRef, LoadBalancer, ManagedGroup, ManagedSecurityGroups,
    OpenStackClusterSpec, OpenStackMachineSpec, PortOpts, SecurityGroupRule,
};

pub(super) type Errors = Vec<FieldError>;

/// Nova's limit for the length of a tag, in characters.
const TAG_LENGTH: usize = 60;
/// Nova's limit for the tags of a server, less two tags of our mark.
const TAGS: usize = 48;

/// Attributes of ports in Neutron, up to a colon, not to be set by `valueSpecs`.
const OF_PORTS: [&str; 18] = [
    "admin_state_up",
    "allowed_address_pairs",
    "binding",
    "description",
    "device_id",
    "device_owner",
    "fixed_ips",
    "id",
    "mac_address",
    "name",
    "network_id",
    "port_security_enabled",
    "project_id",
    "propagate_uplink_status",
    "security_groups",
    "tags",
    "tenant_id",
    "trusted",
];

/// Validates an [`OpenStackClusterSpec`] at `path`.
pub(super) fn cluster(spec: &OpenStackClusterSpec, path: &str, errors: &mut Errors) {
    tags(&spec.tags, path, errors);
    subnets::managed(&spec.managed_subnets, path, errors);
    subnets::of_failure_domains(spec, path, errors);
    zones::balancers(spec, path, errors);
    if let Some(api_server) = &spec.api_server {
        endpoint(api_server, &format!("{path}.apiServer"), errors);
    }
    for (index, ip) in spec
        .managed_router
        .iter()
        .flat_map(|r| &r.external_ips)
        .enumerate()
    {
        let path = format!("{path}.managedRouter.externalIPs[{index}].fixedIP");
        address(ip.fixed_ip.as_deref(), &path, errors);
    }
    if let Some(groups) = &spec.managed_security_groups {
        security_groups(groups, &format!("{path}.managedSecurityGroups"), errors);
    }
    if let Some(bastion) = &spec.bastion {
        self::bastion(bastion, spec, &format!("{path}.bastion"), errors);
    }
}

fn bastion(bastion: &Bastion, cluster: &OpenStackClusterSpec, path: &str, errors: &mut Errors) {
    let of_api = cluster
        .api_server
        .as_ref()
        .and_then(|it| it.floating_ip.as_ref());
    if let Some(address) = bastion.floating_ip.as_ref().filter(|it| of_api == Some(it)) {
        let why = format!("{address} is the floating IP of the API server");
        errors.push(FieldError::new(format!("{path}.floatingIP"), why));
    }
    let Some(spec) = &bastion.spec else {
        return;
    };
    let path = format!("{path}.spec");
    if spec.provider_id.is_some() {
        let why = "is set by the controller and cannot be given";
        errors.push(FieldError::new(format!("{path}.providerID"), why));
    }
    if spec.floating_ip_pool_ref.is_some() && bastion.floating_ip.is_some() {
        let why = "bastion.floatingIP is given: a bastion has one floating IP";
        errors.push(FieldError::new(format!("{path}.floatingIPPoolRef"), why));
    }
    let other = |identity: &&IdentityRef| **identity != cluster.identity_ref;
    if spec.identity_ref.as_ref().is_some_and(|it| other(&it)) {
        let why = "a bastion is created with the credentials of the cluster: leave it out";
        errors.push(FieldError::new(format!("{path}.identityRef"), why));
    }
    machine(spec, &path, errors);
}

/// Rejects rules of an OpenStackCluster for the group of a disabled bastion. In a template, a variable may enable the
/// bastion.
pub(super) fn groups_that_exist(spec: &OpenStackClusterSpec, path: &str, errors: &mut Errors) {
    let is_enabled = spec.bastion.as_ref().is_some_and(|bastion| bastion.enabled);
    let Some(groups) = spec
        .managed_security_groups
        .as_ref()
        .filter(|_| !is_enabled)
    else {
        return;
    };
    for (list, rules) in rules_of(groups) {
        for (index, rule) in rules.iter().enumerate() {
            if rule.remote_managed_groups.contains(&ManagedGroup::Bastion) {
                let path =
                    format!("{path}.managedSecurityGroups.{list}[{index}].remoteManagedGroups");
                let why = "names the group of the bastion, which is not enabled";
                errors.push(FieldError::new(path, why));
            }
        }
    }
}

/// Validates tags of servers, from machine and cluster.
fn tags(all: &[String], path: &str, errors: &mut Errors) {
    for (index, tag) in all.iter().enumerate() {
        let length = tag.chars().count();
        if !(1..=TAG_LENGTH).contains(&length) || tag.contains(['/', ',']) {
            let why = format!(
                "`{tag}` is no tag of a server: these have 1 to {TAG_LENGTH} characters, without `/` and `,`"
            );
            errors.push(FieldError::new(format!("{path}.tags[{index}]"), why));
        }
    }
    if all.len() > TAGS {
        let why = format!("a server has {TAGS} tags of the spec at most");
        errors.push(FieldError::new(format!("{path}.tags"), why));
    }
}

/// Validates an [`OpenStackMachineSpec`] at `path`.
pub(super) fn machine(spec: &OpenStackMachineSpec, path: &str, errors: &mut Errors) {
    tags(&spec.tags, path, errors);
    let is_open = |port: &PortOpts| port.fields.enable_port_security == Some(false);
    if !spec.security_groups.is_empty() && !spec.ports.is_empty() && spec.ports.iter().all(is_open)
    {
        let why = "every port has enablePortSecurity: false, with which it is in no group";
        errors.push(FieldError::new(format!("{path}.securityGroups"), why));
    }
    for (index, device) in spec.additional_block_devices.iter().enumerate() {
        if device.name == "root" && spec.root_volume.is_some() {
            let path = format!("{path}.additionalBlockDevices[{index}].name");
            errors.push(FieldError::new(path, "root is the name of the root volume"));
        }
    }
    let mut suffixes = BTreeSet::new();
    for (index, port) in spec.ports.iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        if !suffixes.insert(
            port.name_suffix
                .clone()
                .unwrap_or_else(|| index.to_string()),
        ) {
            let why = "another port of this machine has the same suffix (that of a port without \
                       one is its index)";
            errors.push(FieldError::new(format!("{path}.nameSuffix"), why));
        }
        machine_port(port, &path, errors);
    }
}

/// Validates an [`OpenStackFloatingIPPoolSpec`] at `path`.
pub(super) fn pool(spec: &OpenStackFloatingIPPoolSpec, path: &str, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for (index, text) in spec.pre_allocated_floating_ips.iter().enumerate() {
        let why = match text.parse::<Ipv4Addr>() {
            Err(_) => format!("`{text}` is not an IPv4 address, as every floating IP has one"),
            Ok(address) if !known.insert(address) => format!("{text} is in the list twice"),
            Ok(_) => continue,
        };
        let path = format!("{path}.preAllocatedFloatingIPs[{index}]");
        errors.push(FieldError::new(path, why));
    }
    if spec.max_ips.is_some_and(|most| most < 0) {
        errors.push(FieldError::new(
            format!("{path}.maxIPs"),
            "must be 0 or greater",
        ));
    }
}

fn machine_port(port: &PortOpts, path: &str, errors: &mut Errors) {
    if port.fields.enable_port_security == Some(false) && !port.security_groups.is_empty() {
        let why = "a port with enablePortSecurity: false cannot have security groups";
        errors.push(FieldError::new(format!("{path}.securityGroups"), why));
    }
    let mut keys = BTreeSet::new();
    for (index, spec) in port.fields.value_specs.iter().enumerate() {
        let (path, key) = (format!("{path}.valueSpecs[{index}].key"), spec.key.as_str());
        let name = key.split(':').next().unwrap_or_default();
        if OF_PORTS.contains(&name) {
            let why = format!("`{key}` is set by the provider, or by a field of its own");
            errors.push(FieldError::new(path, why));
        } else if !keys.insert(key) {
            let why = format!("`{key}` is in the list twice");
            errors.push(FieldError::new(path, why));
        }
    }
    for (index, ip) in port.fixed_ips.iter().enumerate() {
        let path = format!("{path}.fixedIPs[{index}].ipAddress");
        address(ip.ip_address.as_deref(), &path, errors);
    }
    for (index, pair) in port.fields.allowed_address_pairs.iter().enumerate() {
        let path = format!("{path}.allowedAddressPairs[{index}].ipAddress");
        address_or_cidr(&pair.ip_address, &path, errors);
    }
}

fn endpoint(api_server: &ApiServer, path: &str, errors: &mut Errors) {
    address(
        api_server.fixed_ip.as_deref(),
        &format!("{path}.fixedIP"),
        errors,
    );
    address(
        api_server.floating_ip.as_deref(),
        &format!("{path}.floatingIP"),
        errors,
    );
    if let Some(balancer) = &api_server.managed_load_balancer {
        let port = api_server.port.unwrap_or(6443);
        load_balancer(
            balancer,
            port,
            &format!("{path}.managedLoadBalancer"),
            errors,
        );
    }
}

fn load_balancer(balancer: &LoadBalancer, api_port: i32, path: &str, errors: &mut Errors) {
    for (index, port) in balancer.additional_ports.iter().enumerate() {
        let path = format!("{path}.additionalPorts[{index}]");
        if !(1..=65535).contains(port) {
            errors.push(FieldError::new(path, "must be between 1 and 65535"));
        } else if *port == api_port {
            errors.push(FieldError::new(
                path,
                format!("{port} is the port of the API server"),
            ));
        }
    }
    for (index, cidr) in balancer.allowed_cidrs.iter().enumerate() {
        address_or_cidr(cidr, &format!("{path}.allowedCIDRs[{index}]"), errors);
    }
}

fn security_groups(groups: &ManagedSecurityGroups, path: &str, errors: &mut Errors) {
    for (list, rules) in rules_of(groups) {
        for (index, rule) in rules.iter().enumerate() {
            security_group_rule(rule, &format!("{path}.{list}[{index}]"), errors);
        }
    }
    for (index, rule) in groups.default_rules.iter().enumerate() {
        for (at, text) in rule.cidrs.iter().enumerate() {
            let path = format!("{path}.defaultRules[{index}].cidrs[{at}]");
            cidr(text, &path, errors);
        }
    }
}

/// Lists of [`SecurityGroupRule`]s, with the names of their fields.
fn rules_of(groups: &ManagedSecurityGroups) -> [(&'static str, &[SecurityGroupRule]); 3] {
    [
        (
            "clusterNodesSecurityGroupRules",
            &groups.cluster_nodes_security_group_rules,
        ),
        (
            "controlPlaneNodesSecurityGroupRules",
            &groups.control_plane_nodes_security_group_rules,
        ),
        (
            "workerNodesSecurityGroupRules",
            &groups.worker_nodes_security_group_rules,
        ),
    ]
}

fn security_group_rule(rule: &SecurityGroupRule, path: &str, errors: &mut Errors) {
    let remotes = [
        !rule.remote_managed_groups.is_empty(),
        rule.remote_group_id.is_some(),
        rule.remote_ip_prefix.is_some(),
    ];
    if remotes.into_iter().filter(|given| *given).count() > 1 {
        let why = "only one of remoteManagedGroups, remoteGroupID and remoteIPPrefix can be given";
        errors.push(FieldError::new(path, why));
    }
    if let Some(prefix) = &rule.remote_ip_prefix {
        cidr(prefix, &format!("{path}.remoteIPPrefix"), errors);
    }
    if let (Some(min), Some(max)) = (rule.port_range_min, rule.port_range_max)
        && min > max
    {
        let why = format!("is greater than portRangeMax, {max}");
        errors.push(FieldError::new(format!("{path}.portRangeMin"), why));
    }
}

pub(super) fn address(text: Option<&str>, path: &str, errors: &mut Errors) -> Option<IpAddr> {
    let text = text?;
    match text.parse() {
        Ok(ip) => Some(ip),
        Err(_) => {
            errors.push(FieldError::new(
                path,
                format!("`{text}` is not an IP address"),
            ));
            None
        }
    }
}

pub(super) fn cidr(text: &str, path: &str, errors: &mut Errors) -> Option<IpNet> {
    match text.parse::<IpNet>() {
        Ok(net) => Some(net),
        Err(_) => {
            let why = format!("`{text}` is not a CIDR such as 10.6.0.0/24");
            errors.push(FieldError::new(path, why));
            None
        }
    }
}

fn address_or_cidr(text: &str, path: &str, errors: &mut Errors) {
    if text.parse::<IpAddr>().is_err() && text.parse::<IpNet>().is_err() {
        let why = format!("`{text}` is neither an IP address nor a CIDR");
        errors.push(FieldError::new(path, why));
    }
}
