//! Subnets of failure domains: networks of the machines' ports in a cluster whose availability zones have subnets of
//! their own.

use std::collections::BTreeSet;

use api::infra::v1beta2::{FailureDomainSubnets, OpenStackClusterSpec};
use openstack::View;
use openstack::network::FixedIp;

use crate::family::Family;
use crate::resolve::{self, NotFound};

/// The field of an OpenStackCluster.
const FIELD: &str = "failureDomainSubnets";

/// Ids of the subnets of all failure domains, in the network of the cluster.
///
/// # Errors
/// First missing subnet, with its field.
pub(crate) fn all(
    spec: &OpenStackClusterSpec,
    view: &View,
    network: Option<&str>,
) -> Result<Vec<String>, NotFound> {
    let mut found = BTreeSet::new();
    for (index, entry) in spec.failure_domain_subnets.iter().enumerate() {
        let Some(network) = network else {
            let text = format!(
                "{FIELD}: the cluster has no network: give network, in which these subnets are"
            );
            return Err(text.into());
        };
        let subnets = of_entry(entry, view, network);
        let subnets = subnets.map_err(|why| why.in_field(&format!("{FIELD}[{index}]")))?;
        found.extend(subnets);
    }
    Ok(found.into_iter().collect())
}

/// Addresses of a new port in a zone (`az1`, or `az1:host` of administrators); `None` for a cluster whose failure
/// domains have no subnets, and for a zone without an entry if `subnets` in the spec decides.
///
/// # Errors
/// A missing subnet, or a zone without subnets.
pub(crate) fn of_zone(
    spec: &OpenStackClusterSpec,
    view: &View,
    network: &str,
    zone: Option<&str>,
) -> Result<Option<Vec<FixedIp>>, NotFound> {
    let all = &spec.failure_domain_subnets;
    let name = zone.and_then(|zone| zone.split(':').next());
    let entry = all
        .iter()
        .find(|entry| Some(entry.failure_domain.as_str()) == name);
    let Some(entry) = entry else {
        return match all.is_empty() || !spec.subnets.is_empty() || spec.primary_subnet.is_some() {
            true => Ok(None),
            false => Err(without_subnets(name, all)),
        };
    };
    let field = format!("{FIELD} of the OpenStackCluster, {}", entry.failure_domain);
    let found = of_entry(entry, view, network).map_err(|why| why.in_field(&field))?;
    let on = |subnet_id| FixedIp {
        subnet_id,
        ip_address: String::new(),
    };
    Ok(Some(found.into_iter().map(on).collect()))
}

/// Message for a zone without subnets: Neutron would choose any of the subnets, even another zone's.
fn without_subnets(zone: Option<&str>, all: &[FailureDomainSubnets]) -> NotFound {
    let there_are = resolve::names(all.iter().map(|entry| entry.failure_domain.as_str()));
    let whose = match zone {
        Some(zone) => format!("failure domain {zone} has"),
        None => "the machine has no failure domain, and with it".to_owned(),
    };
    let text = format!(
        "{whose} no subnets in {FIELD} of the OpenStackCluster, which has those of {there_are}: add them there, or give \
         subnets for machines of other failure domains"
    );
    text.into()
}

fn of_entry(
    entry: &FailureDomainSubnets,
    view: &View,
    network: &str,
) -> Result<Vec<String>, NotFound> {
    let mut families = BTreeSet::new();
    let mut ids = Vec::new();
    for (index, param) in entry.subnets.iter().enumerate() {
        let field = format!("subnets[{index}]");
        let found = resolve::subnet(view, param, Some(network));
        let found = found.map_err(|why| why.in_field(&field))?;
        if !families.insert(Family::from_text(&found.cidr)) {
            let text = format!(
                "subnet {} is of the same family as the one before: give one of IPv4 and one of IPv6",
                found.id
            );
            return Err(NotFound::from(text).in_field(&field));
        }
        ids.push(found.id.clone());
    }
    Ok(ids)
}

#[cfg(test)]
mod tests;
