//! Hypervisors with guests: reserved resources of a compute node, and its networks.

use serde::Deserialize;

use super::{Compute, Datapath, Driver, Fake, Network, Parameters, name};
use crate::release::Release;

/// Longest name of an interface in Linux, in bytes.
const INTERFACE: usize = 15;
/// Longest name of a physical network on such nodes: the name of its bridge is `br-` and the name.
const PHYSICAL: usize = INTERFACE - "br-".len();

/// Hypervisors of libvirt and QEMU, one on each compute node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Libvirt {
    /// Processors of each node reserved for other programs than guests.
    pub reserved_cpus: u32,
    /// Memory of each node reserved for other programs than guests, in MiB.
    pub reserved_memory_mib: u32,
    /// Processor seen by guests.
    pub cpu_mode: CpuMode,
    /// Models of QEMU, the best first, for `Custom`.
    pub cpu_models: Vec<String>,
}

impl Default for Libvirt {
    fn default() -> Self {
        Self {
            reserved_cpus: 0,
            reserved_memory_mib: 2048,
            cpu_mode: CpuMode::Default,
            cpu_models: Vec::new(),
        }
    }
}

/// Processor seen by guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum CpuMode {
    /// With KVM the node's processor, as a model of QEMU with flags; without KVM QEMU's default.
    Default,
    /// The node's processor, as a model of QEMU with flags.
    HostModel,
    /// The node's processor unchanged, with KVM alone.
    HostPassthrough,
    /// The first of the models supported by the node.
    Custom,
}

impl Parameters {
    /// Settings of hypervisors with guests; `None` with another driver.
    pub(crate) fn libvirt(&self) -> Option<&Libvirt> {
        let compute = self.compute.as_ref()?;
        (compute.driver == Driver::Libvirt).then_some(&compute.libvirt)
    }

    /// First field in conflict with the driver of the hypervisors, and the reason.
    pub(super) fn wrong_of_computes(&self) -> Option<(String, &'static str)> {
        let reject = |path: &str, problem| Some((path.to_owned(), problem));
        match (&self.compute, self.libvirt()) {
            (Some(compute), Some(libvirt)) => {
                if self.release != Release::Gazpacho {
                    let problem = "Libvirt needs release 2026.1: the images of other releases have no libvirt";
                    return reject("compute.driver", problem);
                }
                if compute.fake != Fake::default() {
                    return reject("compute.fake", "it is for the driver Fake");
                }
                if self.nodes.compute.is_empty() {
                    let problem = "Libvirt needs a label of the nodes that run guests, such as openstack-compute-node: enabled";
                    return reject("nodes.compute", problem);
                }
                libvirt.wrong().or_else(|| self.network.wrong_on_nodes())
            }
            (compute, _) => {
                let is_set = |it: &Compute| it.libvirt != Libvirt::default();
                if compute.as_ref().is_some_and(is_set) {
                    return reject("compute.libvirt", "it is for the driver Libvirt");
                }
                self.network.wrong_without_nodes()
            }
        }
    }
}

impl Libvirt {
    fn wrong(&self) -> Option<(String, &'static str)> {
        let custom = self.cpu_mode == CpuMode::Custom;
        for (index, model) in self.cpu_models.iter().enumerate() {
            if !name(model) {
                let path = format!("compute.libvirt.cpuModels[{index}]");
                return Some((path, super::NAME));
            }
        }
        let problem = match (custom, self.cpu_models.is_empty()) {
            (true, true) => "the mode Custom needs a model, such as Nehalem",
            (false, false) => "they are for the mode Custom",
            _ => return None,
        };
        Some(("compute.libvirt.cpuModels".to_owned(), problem))
    }
}

impl Network {
    /// First field with a value that a node with guests cannot have.
    fn wrong_on_nodes(&self) -> Option<(String, &'static str)> {
        for (index, network) in self.physical.iter().enumerate() {
            let path = |field| format!("network.physical[{index}].{field}");
            if network.name.len() > PHYSICAL {
                let problem = "with Libvirt it has at most 12 characters: the bridge of each node is `br-` and the name";
                return Some((path("name"), problem));
            }
            if network.name == "int" {
                let problem = "with Libvirt it cannot be `int`: br-int is the bridge of OVN, which has the ports of all servers";
                return Some((path("name"), problem));
            }
            let Some(interface) = &network.interface else {
                continue;
            };
            if !name(interface) || interface.len() > INTERFACE {
                let problem = "it has to be the name of an interface, such as eth1";
                return Some((path("interface"), problem));
            }
            let mut earlier = self.physical.iter().take(index);
            if earlier.any(|it| it.interface.as_ref() == Some(interface)) {
                return Some((path("interface"), "another physical network has it"));
            }
        }
        None
    }

    /// First field that only nodes with guests have.
    fn wrong_without_nodes(&self) -> Option<(String, &'static str)> {
        let problem = "it is for compute.driver: Libvirt; without, no packet flows";
        if self.datapath != Datapath::Auto {
            return Some(("network.datapath".to_owned(), problem));
        }
        let mut networks = self.physical.iter();
        let index = networks.position(|it| it.interface.is_some())?;
        Some((format!("network.physical[{index}].interface"), problem))
    }
}

#[cfg(test)]
mod tests;
