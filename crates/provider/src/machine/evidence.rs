//! Evidence of the identity of an [`OpenStackMachine`]: its server and ports.

use api::infra::v1beta2::OpenStackMachine;
use kube::ResourceExt as _;
use openstack::View;

use super::desired::port_name;
use super::facts::ports;
use super::observed::References;
use crate::evidence::Evidence;
use crate::identity::Mark;

impl Evidence {
    /// [`Evidence`] for an [`OpenStackMachine`]: its server, by the id in status or providerID, and the ports in status
    /// or of the server.
    pub(crate) fn of_machine(object: &OpenStackMachine, view: &View) -> Self {
        let mut evidence = Self::default();
        let known = References::from_object(object);
        let name = object.name_any();
        let of_machine = |mark: &Mark| mark.machine.is_some() && !mark.is_of_bastion();
        if let Some(id) = known.server() {
            evidence.references.push(format!("server {id}"));
            let server = view.servers.get(id).filter(|server| server.name == name);
            let mark = server.and_then(|server| Mark::in_tags(&server.tags));
            evidence.marks.extend(mark.filter(of_machine));
            let ports = view.ports.of_parent(id).iter();
            let ports = ports.filter(|_| server.is_some());
            let marks = ports.filter_map(|port| Mark::in_description(&port.description));
            evidence.marks.extend(marks.filter(of_machine));
        }
        let ports = ports(&object.spec);
        let names: Vec<_> = ports
            .iter()
            .enumerate()
            .map(|(index, opts)| port_name(&name, index, opts))
            .collect();
        for id in &known.ports {
            evidence.references.push(format!("port {id}"));
            let port = view.ports.get(id).filter(|port| names.contains(&port.name));
            let mark = port.and_then(|port| Mark::in_description(&port.description));
            evidence.marks.extend(mark.filter(of_machine));
        }
        evidence
    }
}
