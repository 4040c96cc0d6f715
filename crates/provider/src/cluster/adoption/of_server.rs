//! Servers with their ports and volumes, of machines and of a bastion. Pure.

use api::infra::v1alpha1::OpenStackServer;
use api::infra::v1beta2::{OpenStackMachine, OpenStackMachineSpec, StorageType};
use kube::ResourceExt;
use openstack::network::Port;

use super::Objects;
use super::found::{By, Expected, Search, Side, What};
use crate::identity::Mark;
use crate::machine::desired::port_name;
use crate::machine::facts::ports;
use crate::machine::observed::References;
use crate::names::Names;

/// Server created by the Go provider.
pub(super) struct OfServer<'a> {
    /// Name.
    pub(super) name: String,
    pub(super) spec: &'a OpenStackMachineSpec,
    /// Id of the server and ids of its ports, with the kind and name of the object that has these ids.
    pub(super) server: Option<(String, String)>,
    pub(super) ports: Vec<(String, String)>,
    /// Description of the ports.
    pub(super) description: String,
}

/// The resources of a machine.
pub(super) fn machine(
    search: &mut Search<'_>,
    objects: &Objects<'_>,
    machine: &OpenStackMachine,
    mark: Mark,
    names: &Names,
) {
    let name = machine.name_any();
    let side = Side {
        object: format!("OpenStackMachine/{name}"),
        mark,
    };
    if machine.spec.floating_ip_pool_ref.is_some() {
        search.conflicts.push(format!(
            "{}: floatingIPPoolRef: taking over a machine with an address of a pool is not built",
            side.object
        ));
    }
    let of_cluster = &objects.infra.spec.identity_ref;
    let of_machine = machine.spec.identity_ref.as_ref();
    if of_machine.is_some_and(|it| it != of_cluster) {
        search.conflicts.push(format!(
            "{}: identityRef: taking over a machine with other credentials than its cluster is not built",
            side.object
        ));
    }
    let known = References::from_object(machine);
    let by = side.object.clone();
    let server = known.server().map(|id| (id.to_owned(), by.clone()));
    let mut of_server = OfServer {
        spec: &machine.spec,
        server,
        ports: known.ports.into_iter().map(|id| (id, by.clone())).collect(),
        description: names.port_description(),
        name,
    };
    of_server.add_recorded(objects.servers);
    all(search, &side, &of_server);
}

impl OfServer<'_> {
    /// Adds the ids in the status of the [`OpenStackServer`] with the name.
    pub(super) fn add_recorded(&mut self, servers: &[OpenStackServer]) {
        let mut servers = servers.iter();
        let Some(object) = servers.find(|object| object.name_any() == self.name) else {
            return;
        };
        let by = format!("OpenStackServer/{}", self.name);
        let Some(status) = &object.status else {
            return;
        };
        let id = status.instance_id.as_ref().filter(|id| !id.is_empty());
        if let (None, Some(id)) = (&self.server, id) {
            self.server = Some((id.clone(), by.clone()));
        }
        let created = status.resources.iter().flat_map(|it| &it.ports);
        for port in created {
            if !self.ports.iter().any(|(known, _)| *known == port.id) {
                self.ports.push((port.id.clone(), by.clone()));
            }
        }
    }

    fn port_names(&self) -> Vec<String> {
        let ports = ports(self.spec);
        let named = ports.iter().enumerate();
        named
            .map(|(index, opts)| port_name(&self.name, index, opts))
            .collect()
    }

    /// Names of the volumes, with the description of each.
    fn volumes(&self) -> Vec<(String, String)> {
        let name = &self.name;
        let root = self.spec.root_volume.iter();
        let root = root.map(|_| (format!("{name}-root"), format!("Root volume for {name}")));
        let others = self.spec.additional_block_devices.iter();
        let others = others.filter(|device| device.storage.type_ == StorageType::Volume);
        let others = others.map(|device| {
            let text = format!("Additional block device for {name}");
            (format!("{name}-{}", device.name), text)
        });
        root.chain(others).collect()
    }
}

/// Takes a server with its ports and volumes: these first, since the server identifies them.
pub(super) fn all(search: &mut Search<'_>, side: &Side, of: &OfServer<'_>) {
    let view = search.view;
    let names = of.port_names();
    let Some((id, by)) = &of.server else {
        recorded_ports(search, side, of, &names, None);
        search.stray(What::Server, side, view.servers.named(&of.name));
        for name in &names {
            search.stray(What::Port, side, view.ports.named(name));
        }
        return;
    };
    let server = view.servers.get(id);
    recorded_ports(search, side, of, &names, Some(id));
    let Some(server) = server else {
        search.notes.push(format!(
            "server {id} of {} is gone: nothing of it is taken over but its ports",
            side.object
        ));
        return;
    };
    // Its name first: of another server nothing is to be said.
    if server.name == of.name {
        attached(search, side, of, &names, id);
        volumes(search, side, of, id);
    }
    let expected = Expected {
        what: What::Server,
        id,
        by: By::Status(by.clone()),
        names: vec![of.name.clone()],
        description: String::new(),
    };
    search.tagged(side, expected, Some(&**server));
}

/// Takes the ports with ids in a status.
fn recorded_ports(
    search: &mut Search<'_>,
    side: &Side,
    of: &OfServer<'_>,
    names: &[String],
    server: Option<&str>,
) {
    for (id, by) in &of.ports {
        let Some(port) = search.view.ports.get(id) else {
            search
                .notes
                .push(format!("port {id} of {} is gone", side.object));
            continue;
        };
        let at = port.device_id.as_str();
        if !at.is_empty() && Some(at) != server {
            search.conflicts.push(format!(
                "port {id}, which the status of {by} names, is at {at}, and not at the server of {}",
                side.object
            ));
            continue;
        }
        port_of(search, side, of, names, port, By::Status(by.clone()));
    }
}

/// Takes the ports attached to the server with a name of its ports, without an id in a status.
fn attached(search: &mut Search<'_>, side: &Side, of: &OfServer<'_>, names: &[String], id: &str) {
    for port in search.view.ports.of_parent(id) {
        if names.contains(&port.name) {
            port_of(search, side, of, names, port, By::Server(id.to_owned()));
        }
    }
}

fn port_of(
    search: &mut Search<'_>,
    side: &Side,
    of: &OfServer<'_>,
    names: &[String],
    port: &Port,
    by: By,
) {
    let expected = Expected {
        what: What::Port,
        id: &port.id,
        by,
        names: names.to_vec(),
        description: of.description.clone(),
    };
    search.described(side, expected, Some(port));
}

/// Takes the volumes attached to the server with a name of its volumes.
fn volumes(search: &mut Search<'_>, side: &Side, of: &OfServer<'_>, id: &str) {
    for (name, description) in of.volumes() {
        let at = search.view.volumes.of_parent(id).iter();
        let found: Vec<_> = at.filter(|volume| volume.name == name).collect();
        if found.is_empty() {
            search.notes.push(format!(
                "{} has no volume {name} at its server {id}",
                side.object
            ));
        }
        for volume in found {
            let expected = Expected {
                what: What::Volume,
                id: &volume.id,
                by: By::Server(id.to_owned()),
                names: vec![name.clone()],
                description: description.clone(),
            };
            search.described(side, expected, Some(&**volume));
        }
    }
}
