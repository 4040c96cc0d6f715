//! Shape of the tree of a cluster: the shape of clusterctl's tree, for any providers.

use serde_json::Value;

use super::{Branch, branch};
use crate::snapshot::reference::Role;
use crate::snapshot::{Item, Kind, Snapshot};

/// Parts of a cluster to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Machines in the same state share a line.
    pub grouping: bool,
    /// MachineSets of MachineDeployments.
    pub machine_sets: bool,
    /// ClusterResourceSets that have been applied.
    pub resource_sets: bool,
    /// Templates of the machines.
    pub templates: bool,
    /// Infrastructure and bootstrap objects.
    pub parts: Parts,
}

/// Choice of the infrastructure and bootstrap objects below machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// No such object.
    #[default]
    None,
    /// Objects that fail for a reason other than the reason of their machine.
    Telling,
    /// All such objects.
    All,
}

/// Tree of `cluster`, with the [`Selection`] of its objects.
pub fn of_cluster(snapshot: &Snapshot, cluster: &Item, selection: Selection) -> Branch {
    let shape = Shape {
        snapshot,
        selection,
    };
    let mut root = shape.branch(cluster, "");
    let machines: Vec<&Item> = snapshot.belonging(cluster, Kind::Machine).collect();
    if let Some(infrastructure) = snapshot.infrastructure(cluster) {
        root.children
            .push(shape.branch(infrastructure, "ClusterInfrastructure - "));
    }
    let mut creators: Vec<&Item> = Vec::new();
    if let Some(control_plane) = snapshot.control_plane(cluster) {
        let mut node = shape.branch(control_plane, "ControlPlane - ");
        node.children = shape.below(control_plane, &machines);
        root.children.push(node);
        creators.push(control_plane);
    }
    let workers = shape.workers(cluster, &machines, &mut creators);
    root.children.extend(group("Workers", workers));
    if selection.resource_sets {
        let sets = shape.resource_sets(cluster);
        root.children.extend(group("ClusterResourceSets", sets));
    }
    root
}

/// [`Branch`] for several objects; none for no objects.
fn group(name: &str, children: Vec<Branch>) -> Option<Branch> {
    (!children.is_empty()).then(|| Branch {
        name: name.to_owned(),
        children,
        ..Branch::default()
    })
}

struct Shape<'a> {
    snapshot: &'a Snapshot,
    selection: Selection,
}

impl<'a> Shape<'a> {
    fn branch(&self, item: &Item, prefix: &str) -> Branch {
        branch(self.snapshot, item, prefix)
    }

    /// MachineDeployments, MachinePools, standalone MachineSets, and standalone Machines.
    fn workers(
        &self,
        cluster: &'a Item,
        machines: &[&'a Item],
        creators: &mut Vec<&'a Item>,
    ) -> Vec<Branch> {
        let snapshot = self.snapshot;
        let sets: Vec<&Item> = snapshot.belonging(cluster, Kind::MachineSet).collect();
        let mut workers = Vec::new();
        let deployments: Vec<&Item> = snapshot
            .belonging(cluster, Kind::MachineDeployment)
            .collect();
        for deployment in &deployments {
            let of_deployment: Vec<&Item> = sets
                .iter()
                .filter(|set| set.is_owned_by(deployment))
                .copied()
                .collect();
            workers.push(self.deployment(deployment, &of_deployment, machines));
            creators.extend(of_deployment);
        }
        let pools = snapshot.belonging(cluster, Kind::Other);
        for pool in pools.filter(|item| item.kind_name() == "MachinePool") {
            let mut node = self.branch(pool, "");
            node.children = self.below(pool, machines);
            workers.push(node);
            creators.push(pool);
        }
        let alone = |set: &&&Item| !deployments.iter().any(|it| set.is_owned_by(it));
        for set in sets.iter().filter(alone) {
            let mut node = self.branch(set, "");
            node.children = self.below(set, machines);
            workers.push(node);
            creators.push(set);
        }
        let others: Vec<&Item> = machines
            .iter()
            .filter(|machine| !creators.iter().any(|it| machine.is_owned_by(it)))
            .copied()
            .collect();
        workers.extend(group("Other", self.machines(&others)));
        workers
    }

    fn deployment(&self, deployment: &Item, sets: &[&Item], machines: &[&Item]) -> Branch {
        let mut node = self.branch(deployment, "");
        node.children = self.templates(deployment);
        if self.selection.machine_sets {
            for set in sets {
                let mut below = self.branch(set, "");
                below.children = self.machines(&owned(set, machines));
                node.children.push(below);
            }
        } else {
            let of_sets: Vec<&Item> = machines
                .iter()
                .filter(|machine| sets.iter().any(|set| machine.is_owned_by(set)))
                .copied()
                .collect();
            node.children.extend(self.machines(&of_sets));
        }
        node
    }

    /// Templates and machines of an object with a machine template.
    fn below(&self, creator: &Item, machines: &[&Item]) -> Vec<Branch> {
        let mut children = self.templates(creator);
        children.extend(self.machines(&owned(creator, machines)));
        children
    }

    fn templates(&self, creator: &Item) -> Vec<Branch> {
        let roles = [
            (
                Role::InfrastructureTemplate,
                "MachineInfrastructureTemplate - ",
            ),
            (Role::BootstrapTemplate, "BootstrapConfigTemplate - "),
        ];
        let selected = roles.into_iter().filter(|_| self.selection.templates);
        selected
            .filter_map(|(role, prefix)| {
                let template = self.snapshot.referred(creator, role)?;
                Some(self.branch(template, prefix))
            })
            .collect()
    }

    /// Machines once seen as Nodes are combined if state and cause are equal; machines that never were Nodes, and
    /// machines with objects below, have separate lines.
    fn machines(&self, machines: &[&Item]) -> Vec<Branch> {
        let mut out: Vec<(Branch, Vec<&str>)> = Vec::new();
        for machine in machines {
            let mut node = self.branch(machine, "");
            node.children = self.parts(machine, &node);
            let alike = |known: &Branch| {
                known.was_ready
                    && node.was_ready
                    && known.children.is_empty()
                    && node.children.is_empty()
                    && (&known.status, &known.reason, &known.message)
                        == (&node.status, &node.reason, &node.message)
            };
            let shared = out
                .iter_mut()
                .find(|(known, _)| self.selection.grouping && alike(known));
            match shared {
                Some((known, names)) => {
                    names.push(machine.name());
                    known.since = known.since.clone().max(node.since);
                }
                None => out.push((node, vec![machine.name()])),
            }
        }
        out.into_iter()
            .map(|(node, names)| combined(node, &names))
            .collect()
    }

    /// The infrastructure and the bootstrap configuration of a machine.
    fn parts(&self, machine: &Item, node: &Branch) -> Vec<Branch> {
        let roles = [
            (Role::Infrastructure, "MachineInfrastructure - "),
            (Role::Bootstrap, "BootstrapConfig - "),
        ];
        let tells = |part: &Branch| match self.selection.parts {
            Parts::None => false,
            Parts::Telling => part.failing && part.message != node.message,
            Parts::All => true,
        };
        roles
            .into_iter()
            .filter_map(|(role, prefix)| {
                let part = self.snapshot.referred(machine, role)?;
                Some(self.branch(part, prefix))
            })
            .filter(tells)
            .collect()
    }

    /// ClusterResourceSets whose manifests the cluster has, or will have.
    fn resource_sets(&self, cluster: &Item) -> Vec<Branch> {
        let in_namespace = |item: &&Item| item.namespace() == cluster.namespace();
        let others = || self.snapshot.of_kind(Kind::Other).filter(in_namespace);
        let binding = others().find(|item| {
            item.kind_name() == "ClusterResourceSetBinding" && item.name() == cluster.name()
        });
        let bindings = binding.and_then(|it| it.field("/spec/bindings").as_array());
        let names = bindings.into_iter().flatten();
        let names: Vec<&Value> = names.map(|it| &it["clusterResourceSetName"]).collect();
        others()
            .filter(|item| item.kind_name() == "ClusterResourceSet")
            .filter(|item| names.iter().any(|name| *name == item.name()))
            .map(|item| self.branch(item, ""))
            .collect()
    }
}

fn owned<'a>(owner: &Item, machines: &[&'a Item]) -> Vec<&'a Item> {
    let owned = machines.iter().filter(|machine| machine.is_owned_by(owner));
    owned.copied().collect()
}

fn combined(node: Branch, names: &[&str]) -> Branch {
    if names.len() == 1 {
        return node;
    }
    Branch {
        name: format!("{} Machines...", names.len()),
        message: match node.message.is_empty() {
            true => format!("See {}", shortened(names)),
            false => format!("{} (see {})", node.message, shortened(names)),
        },
        ..node
    }
}

fn shortened(names: &[&str]) -> String {
    match names {
        [a, b] => format!("{a}, {b}"),
        [a, b, ..] => format!("{a}, {b}, ..."),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests;
