//! Resolves the references of a machine's spec.

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{
    ManagedGroup, NetworkParam, OpenStackCluster, OpenStackMachineSpec, PortOpts,
    SecurityGroupParam, SubnetParam,
};
use kube::ResourceExt;
use openstack::network::FixedIp;
use openstack::{Kind, View};

use crate::identity::Mark;
use crate::placement;
use crate::problem::Problem;
use crate::resolve::{self, NotFound};
use crate::zones;

/// Ids of the resources referred to in a machine's spec, in the cloud and in the cluster.
#[derive(Clone, Debug)]
pub struct Facts {
    /// [`Mark`] of the machine.
    pub mark: Mark,
    /// The name of the Cluster.
    pub cluster_name: String,
    /// The availability zone of the server.
    pub failure_domain: Option<String>,
    /// The image.
    pub image: String,
    /// The flavor.
    pub flavor: String,
    /// The server group.
    pub server_group: Option<String>,
    /// [`PortFacts`] of each port: network, addresses and security groups.
    pub ports: Vec<PortFacts>,
    /// True if Neutron supports tags.
    pub tagging: bool,
    /// True if Neutron has the attribute for trusted virtual functions.
    pub trusted_attribute: bool,
}

/// The resolved references of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFacts {
    /// The network.
    pub network: String,
    /// The addresses.
    pub fixed_ips: Vec<FixedIp>,
    /// The security groups; the default of the project when absent.
    pub security_groups: Option<Vec<String>>,
    /// True for the parent of a trunk.
    pub trunk: bool,
    /// True for addresses of the machine's failure domain.
    pub is_of_zone: bool,
}

/// [`PortOpts`] in the spec of a machine, or else one on the cluster's network.
pub fn ports(spec: &OpenStackMachineSpec) -> Vec<PortOpts> {
    if spec.ports.is_empty() {
        vec![PortOpts::default()]
    } else {
        spec.ports.clone()
    }
}

/// Resolves the references of `spec` into [`Facts`], of a machine of `cluster` or of a server without one.
///
/// # Errors
/// First reference to a resource that is missing or ambiguous.
pub fn facts(
    spec: &OpenStackMachineSpec,
    cluster: Option<&OpenStackCluster>,
    mark: Mark,
    scope: &Scope,
    view: &View,
) -> Result<Facts, Problem> {
    let dependency = |field: &'static str| {
        move |why: NotFound| {
            let why = why.in_field(field);
            why.problem(Type::InstanceReady, Reason::DependencyFailed)
        }
    };
    reject_foreign_tags(spec, cluster, mark)?;
    zone(scope, view)?;
    let server_group = match (&spec.server_group, &scope.server_group) {
        (Some(param), _) => {
            let found = resolve::server_group(view, param).map(|group| group.id.clone());
            Some(found.map_err(dependency("serverGroup"))?)
        }
        (None, Some(name)) => {
            let missing = || NotFound::among(Kind::ServerGroups, format!("there is no {name} yet"));
            let found = placement::find(view, name).map(|group| group.id.clone());
            let found = found.ok_or_else(missing);
            Some(found.map_err(dependency("the server group of the role"))?)
        }
        (None, None) => None,
    };
    let flavor = resolve::flavor(view, &spec.flavor, &scope.project);
    let image = resolve::image(view, &spec.image, &scope.project);
    let mut found = Vec::new();
    for (index, port) in ports(spec).iter().enumerate() {
        found.push(port_facts(index, port, spec, cluster, scope, view)?);
    }
    Ok(Facts {
        mark,
        cluster_name: scope.cluster_name.clone(),
        failure_domain: scope.failure_domain.clone(),
        image: image.map_err(dependency("image"))?.id.clone(),
        flavor: flavor.map_err(dependency(scope.flavor_field))?.id.clone(),
        server_group,
        ports: found,
        tagging: view.has_extension("standard-attr-tag"),
        trusted_attribute: view.has_extension("port-trusted-vif"),
    })
}

/// Rejects tags that would make the server look like another machine's.
fn reject_foreign_tags(
    spec: &OpenStackMachineSpec,
    cluster: Option<&OpenStackCluster>,
    mark: Mark,
) -> Result<(), Problem> {
    let of_machine = ("tags".to_owned(), &spec.tags);
    let of_cluster =
        |cluster: &OpenStackCluster| format!("tags of OpenStackCluster {}", cluster.name_any());
    let of_cluster = cluster.map(|cluster| (of_cluster(cluster), &cluster.spec.tags));
    let of_ports = spec.ports.iter().enumerate();
    let of_ports = of_ports.map(|(index, port)| (format!("ports[{index}].tags"), &port.tags));
    let all = [of_machine].into_iter().chain(of_cluster);
    for (field, tags) in all.chain(of_ports) {
        if let Some(tag) = mark.foreign_tag(tags) {
            let text = resolve::foreign_tag(&field, tag);
            return Err(Problem::new(
                Type::InstanceReady,
                Reason::InvalidMachineSpec,
                text,
            ));
        }
    }
    Ok(())
}

/// Rejects a failure domain that is not an availability zone. Without a list of zones, Nova decides.
fn zone(scope: &Scope, view: &View) -> Result<(), Problem> {
    let Some(wanted) = &scope.failure_domain else {
        return Ok(());
    };
    // Administrators may add a host: `nova:host1`.
    let name = wanted.split(':').next().unwrap_or_default();
    let zones: Vec<_> = view
        .zones
        .iter()
        .filter(|zone| zone.state.available)
        .collect();
    if zones.is_empty() || zones.iter().any(|zone| zone.name == name) {
        return Ok(());
    }
    let there_are = resolve::names(zones.iter().map(|zone| zone.name.as_str()));
    let field = scope.zone_field;
    let message = format!("{field} `{wanted}` is not a zone; there are: {there_are}");
    let reason = Reason::InvalidMachineSpec;
    Err(NotFound::among(Kind::Zones, message).problem(Type::InstanceReady, reason))
}

/// Input of the resolution besides spec and cloud.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The name of the Cluster.
    pub cluster_name: String,
    /// [`ManagedGroup`] of the ports.
    pub group: ManagedGroup,
    /// Name of the managed server group for a machine without one in its spec.
    pub server_group: Option<String>,
    /// The availability zone.
    pub failure_domain: Option<String>,
    /// Field with the availability zone, for error messages.
    pub zone_field: &'static str,
    /// Field with the flavor, for error messages.
    pub flavor_field: &'static str,
    /// The project, for error messages.
    pub project: String,
}

fn port_facts(
    index: usize,
    port: &PortOpts,
    spec: &OpenStackMachineSpec,
    cluster: Option<&OpenStackCluster>,
    scope: &Scope,
    view: &View,
) -> Result<PortFacts, Problem> {
    let field = |name: &str| format!("ports[{index}].{name}");
    let missing = |name: String| {
        move |why: NotFound| {
            let why = why.in_field(&name);
            why.problem(Type::InstanceReady, Reason::DependencyFailed)
        }
    };
    let trunk = has_trunk(port, spec);
    if trunk && !view.has_extension("trunk") {
        let text = format!("{}: this cloud has no trunks", field("trunk"));
        let missing = NotFound::among(Kind::Extensions, text);
        return Err(missing.problem(Type::InstanceReady, Reason::InvalidMachineSpec));
    }
    let ((network, fixed_ips), is_of_zone) =
        match place(port, view).map_err(missing(field("network")))? {
            Some(network) => {
                let ips = addresses(port, view, &network).map_err(missing(field("fixedIPs")))?;
                ((network, ips), false)
            }
            None => {
                let wrong =
                    |why: NotFound| why.problem(Type::InstanceReady, Reason::InvalidMachineSpec);
                let (cluster, network) = cluster_network(cluster).map_err(wrong)?;
                // Addresses in the spec of the port replace the default of one per subnet.
                let wanted = addresses(port, view, &network).map_err(missing(field("fixedIPs")))?;
                match wanted.is_empty() {
                    false => ((network, wanted), false),
                    true => in_cluster(cluster, network, scope, view).map_err(wrong)?,
                }
            }
        };
    let secure = port.fields.enable_port_security != Some(false);
    let mut security_groups = Vec::new();
    if secure {
        let resolved = |params: &[SecurityGroupParam], name: String| {
            groups(params, view).map_err(missing(name))
        };
        security_groups = resolved(&port.security_groups, field("securityGroups"))?;
        if security_groups.is_empty() {
            security_groups.extend(managed_group(cluster, scope.group));
        }
        for id in resolved(&spec.security_groups, "securityGroups".to_owned())? {
            if !security_groups.contains(&id) {
                security_groups.push(id);
            }
        }
    }
    let security_groups = (!secure || !security_groups.is_empty()).then_some(security_groups);
    Ok(PortFacts {
        network,
        fixed_ips,
        security_groups,
        trunk,
        is_of_zone,
    })
}

/// True for the parent of a trunk: by the port's own setting, or else by the setting for all ports of its machine.
pub fn has_trunk(port: &PortOpts, spec: &OpenStackMachineSpec) -> bool {
    port.trunk.or(spec.trunk) == Some(true)
}

/// The network of a port, selected directly or by the subnet of its first address.
fn place(port: &PortOpts, view: &View) -> Result<Option<String>, NotFound> {
    let by_network = |param: &NetworkParam| {
        resolve::network(view, param, |_| true).map(|network| network.id.clone())
    };
    let by_subnet = |param: &SubnetParam| {
        resolve::subnet(view, param, None).map(|subnet| subnet.network_id.clone())
    };
    match (
        &port.network,
        port.fixed_ips.iter().find_map(|ip| ip.subnet.as_ref()),
    ) {
        (Some(param), _) => by_network(param).map(Some),
        (None, Some(param)) => by_subnet(param).map(Some),
        (None, None) => Ok(None),
    }
}

fn addresses(port: &PortOpts, view: &View, network: &str) -> Result<Vec<FixedIp>, NotFound> {
    let wanted = port.fixed_ips.iter();
    wanted
        .map(|ip| {
            let subnet = match &ip.subnet {
                Some(param) => resolve::subnet(view, param, Some(network))?.id.clone(),
                None => String::new(),
            };
            let ip_address = ip.ip_address.clone().unwrap_or_default();
            Ok(FixedIp {
                subnet_id: subnet,
                ip_address,
            })
        })
        .collect()
}

/// The cluster and its network.
fn cluster_network(
    cluster: Option<&OpenStackCluster>,
) -> Result<(&OpenStackCluster, String), NotFound> {
    let none = || "the cluster has no network: give network or fixedIPs for every port".to_owned();
    let cluster = cluster.ok_or_else(none)?;
    let network = cluster.status.as_ref();
    let network = network.and_then(|status| status.network.as_ref());
    let network = network.ok_or_else(none)?;
    Ok((cluster, network.id.clone()))
}

/// Network of the cluster with the addresses of a port there, and true for addresses of a failure domain.
fn in_cluster(
    cluster: &OpenStackCluster,
    network: String,
    scope: &Scope,
    view: &View,
) -> Result<((String, Vec<FixedIp>), bool), NotFound> {
    let zone = scope.failure_domain.as_deref();
    Ok(match zones::of_zone(&cluster.spec, view, &network, zone)? {
        Some(ips) => ((network, ips), true),
        None => {
            let ips = of_cluster(cluster, view, &network)?;
            ((network, ips), false)
        }
    })
}

/// Address on the primary subnet, or else on each subnet if the spec selects subnets.
fn of_cluster(
    cluster: &OpenStackCluster,
    view: &View,
    network: &str,
) -> Result<Vec<FixedIp>, NotFound> {
    let spec = &cluster.spec;
    let on = |subnet: &str| FixedIp {
        subnet_id: subnet.to_owned(),
        ip_address: String::new(),
    };
    let known = cluster.status.as_ref();
    let known = known.and_then(|status| status.network.as_ref());
    Ok(match &spec.primary_subnet {
        Some(param) => vec![on(&resolve::subnet(view, param, Some(network))?.id)],
        None if spec.subnets.is_empty() => Vec::new(),
        None => {
            let subnets = known.iter().flat_map(|network| &network.subnets);
            subnets.map(|subnet| on(&subnet.id)).collect()
        }
    })
}

fn groups(params: &[SecurityGroupParam], view: &View) -> Result<Vec<String>, NotFound> {
    let mut ids: Vec<String> = Vec::new();
    for param in params {
        for group in resolve::security_groups(view, param)? {
            if !ids.contains(&group.id) {
                ids.push(group.id.clone());
            }
        }
    }
    Ok(ids)
}

fn managed_group(cluster: Option<&OpenStackCluster>, group: ManagedGroup) -> Option<String> {
    let status = cluster?.status.as_ref()?;
    let group = match group {
        ManagedGroup::Bastion => status.bastion_security_group.as_ref(),
        ManagedGroup::ControlPlane => status.control_plane_security_group.as_ref(),
        ManagedGroup::Worker => status.worker_security_group.as_ref(),
    };
    group.map(|group| group.id.clone())
}

#[cfg(test)]
mod tests;
