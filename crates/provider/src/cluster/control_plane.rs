//! Control plane machines that serve the API.

use std::collections::BTreeSet;

use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use kube::ResourceExt;
use kube::api::ListParams;
use openstack::network::{FixedIp, Port};
use operator::client::Api;

use super::desired::ControlPlaneMachine;
use super::facts::EndpointNetwork;
use super::observed::Observed;
use super::openstack_machines;
use crate::context::{self, Context, Error, is_deleting, namespace};
use crate::identity::{Identity, MACHINE_ID, Mark};
use crate::machine::observed::{Observed as OfMachine, References};

/// [`ControlPlaneMachine`]s with a running server, sorted by name. A Machine that is being drained still serves the
/// API; it is left out only once its OpenStackMachine is being deleted, too.
pub(super) async fn control_plane(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: &Cluster,
    observed: &Observed,
    place: &EndpointNetwork,
) -> Result<Vec<ControlPlaneMachine>, Error> {
    let list = control_plane_of(&cluster.name_any());
    let machines = Api::<Machine>::namespaced(ctx.client.clone(), &namespace(object));
    let machines = machines
        .list_metadata(&list)
        .await
        .map_err(Error::kubernetes("listing control plane machines"))?;
    let machines: Vec<_> = machines.iter().map(ResourceExt::name_any).collect();
    let mut found: Vec<_> = openstack_machines(ctx, object, &cluster.name_any())
        .await?
        .iter()
        .filter(|machine| !is_deleting(*machine))
        .filter(|machine| {
            context::owner(*machine, "Machine")
                .is_some_and(|owner| machines.iter().any(|name| name == owner))
        })
        .filter_map(|machine| running(machine, observed, place))
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    // A copy of a machine leads to the same server.
    let mut seen = BTreeSet::new();
    found.retain(|machine| seen.insert(machine.port_id.clone()));
    Ok(found)
}

/// Selects the control plane Machines of one Cluster.
fn control_plane_of(cluster: &str) -> ListParams {
    let (of_cluster, of_control_plane) = (CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL);
    // One selector: a second call of `labels` would replace the first.
    ListParams::default().labels(&format!("{of_cluster}={cluster},{of_control_plane}"))
}

/// Address of a machine on the cluster's network, if its server is running.
pub(crate) fn running(
    machine: &OpenStackMachine,
    observed: &Observed,
    place: &EndpointNetwork,
) -> Option<ControlPlaneMachine> {
    let mark = Mark::machine(observed.cluster, Identity::for_object(machine, MACHINE_ID)?);
    let of_machine = OfMachine::new(
        observed.view.clone(),
        mark,
        References::from_object(machine),
    );
    let server = of_machine.server()?;
    if matches!(server.status.as_str(), "BUILD" | "ERROR") || server.is_deleting() {
        return None;
    }
    let mut ports = of_machine.ports.clone();
    ports.sort_by(|a, b| a.name.cmp(&b.name));
    let (port, address) = ports
        .iter()
        .find_map(|port| Some((port, address(port, place)?)))?;
    Some(ControlPlaneMachine {
        name: machine.name_any(),
        address: address.ip_address.clone(),
        port_id: port.id.clone(),
        subnet_id: address.subnet_id.clone(),
        zone: server.availability_zone.clone(),
    })
}

/// Address of a [`Port`] on the cluster's network: on the primary subnet, or else on the subnet of its failure domain,
/// or else the first IPv4 address. For a cluster without network, every port qualifies.
pub(super) fn address<'p>(port: &'p Port, place: &EndpointNetwork) -> Option<&'p FixedIp> {
    let elsewhere = |network: &String| *network != port.network_id;
    if place.network.as_ref().is_some_and(elsewhere) {
        return None;
    }
    let primary = |ip: &&FixedIp| place.subnet.as_ref() == Some(&ip.subnet_id);
    let of_ipv4 = |ip: &&FixedIp| !ip.ip_address.contains(':');
    let of_zone = |ip: &&FixedIp| place.zone_subnets.contains(&ip.subnet_id);
    let ips = &port.fixed_ips;
    ips.iter()
        .find(primary)
        .or_else(|| ips.iter().find(of_zone))
        .or_else(|| ips.iter().find(of_ipv4))
}

#[cfg(test)]
mod tests;
