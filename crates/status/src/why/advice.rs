//! Next step for a cause.

mod reasons;
mod words;

use api::conditions::Reason;
use kube::ResourceExt;

use super::chain::{Chain, End, Finding};
use crate::readiness::cause::{has_paused_spec, passes};
use crate::snapshot::{Item, Kind, Snapshot};

/// Form of commands for the same API server.
pub struct Commands<'a> {
    /// This program.
    pub program: &'a str,
    /// The flags of ferrostack, each preceded by a blank.
    pub flags: &'a str,
    /// The flags of kubectl, in the same way.
    pub kubectl: &'a str,
}

impl Commands<'_> {
    fn kubectl(&self, namespace: &str, rest: &str) -> String {
        format!("kubectl{} -n {namespace} {rest}", self.kubectl)
    }
}

/// Next step.
pub(super) fn next(
    snapshot: &Snapshot,
    chain: &Chain<'_>,
    finding: &Finding,
    commands: &Commands<'_>,
) -> String {
    let Some(last) = chain.last() else {
        return String::new();
    };
    let case = Case {
        snapshot,
        last,
        finding,
        commands,
        namespace: last.namespace(),
    };
    match &chain.end {
        End::Paused => case.unpause(),
        End::Missing(reference) => format!(
            "create {}, or correct the reference of {}; if the kind is unknown, its provider is not installed",
            reference.label(),
            last.label()
        ),
        End::Itself if finding.reason == "NoStatus" => format!(
            "see whether the controllers run: `{program} status`, or the log of `{program} manager`",
            program = commands.program
        ),
        End::Itself if last.is_deleting() => case.of_deletion(),
        End::Itself => case.of_condition(),
    }
}

struct Case<'a> {
    snapshot: &'a Snapshot,
    last: &'a Item,
    finding: &'a Finding,
    commands: &'a Commands<'a>,
    namespace: &'a str,
}

impl Case<'_> {
    fn unpause(&self) -> String {
        let (kind, name) = (self.last.kind_name().to_lowercase(), self.last.name());
        let rest = match has_paused_spec(self.last) {
            true => {
                format!("patch {kind} {name} --type merge -p '{{\"spec\":{{\"paused\":false}}}}'")
            }
            false => format!("annotate {kind} {name} cluster.x-k8s.io/paused-"),
        };
        format!(
            "let it go on: {}",
            self.commands.kubectl(self.namespace, &rest)
        )
    }

    /// Next step by a condition. The reason of a condition of another provider may be unknown here.
    fn of_condition(&self) -> String {
        self.of_words()
            .or_else(|| self.of_reason())
            .unwrap_or_else(|| self.otherwise())
    }

    fn of_deletion(&self) -> String {
        let detail = self.detail();
        if detail.contains("disruption budget") || detail.contains("evict") {
            return "see which PodDisruptionBudget of the workload cluster keeps the Pods; a timeout is set by \
                    spec.deletion.nodeDrainTimeoutSeconds of the Machine"
                .to_owned();
        }
        if detail.to_lowercase().contains("load balancer") && detail.contains("Service") {
            return "delete what the Service left in the cloud by the commands that the condition names: the cluster's API server, \
                    where the Service could be deleted, is gone. The network is deleted after it"
                .to_owned();
        }
        if self.finding.reason == Reason::IdentityShared
            || detail.contains("several objects have it")
        {
            return self.of_copies();
        }
        if detail.starts_with("its finalizers are") {
            return format!(
                "each finalizer is removed by its program; see whether these run: `{program} status`, or the log of `{program} manager`",
                program = self.commands.program
            );
        }
        self.of_reason().unwrap_or_else(|| self.waiting())
    }

    /// Next step for two objects with one identity, of which neither acts until the user names the copy.
    fn of_copies(&self) -> String {
        let (kind, name) = (self.last.kind_name().to_lowercase(), self.last.name());
        let delete = format!("delete {kind} {name} --wait=false");
        let release = format!(
            "patch {kind} {name} --type merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"
        );
        format!(
            "neither of the two objects acts until one is gone. Decide which one is the copy; deleting it and removing its finalizer touches nothing in the cloud. If it is {}: {}; then {}",
            self.last.label(),
            self.commands.kubectl(self.namespace, &delete),
            self.commands.kubectl(self.namespace, &release)
        )
    }

    fn otherwise(&self) -> String {
        match !self.finding.failing && passes(self.detail()) {
            true => self.waiting(),
            false => format!(
                "see its events: {}",
                self.kubectl(&format!(
                    "describe {} {}",
                    self.last.kind_name().to_lowercase(),
                    self.last.name()
                ))
            ),
        }
    }

    fn waiting(&self) -> String {
        format!(
            "nothing, it goes on by itself; to look on: {} describe cluster{} -n {} {} --watch",
            self.commands.program,
            self.commands.flags,
            self.namespace,
            self.cluster()
        )
    }

    /// Message of the condition, in one line.
    fn detail(&self) -> &str {
        self.finding.detail.as_deref().unwrap_or_default()
    }

    fn kubectl(&self, rest: &str) -> String {
        self.commands.kubectl(self.namespace, rest)
    }

    /// Command to show all conditions of the last object.
    fn show_conditions(&self) -> String {
        self.show_conditions_of(&self.last.label())
    }

    /// Command to show the conditions of a kind, or of one object of the kind.
    fn show_conditions_of(&self, selected: &str) -> String {
        format!(
            "{} describe cluster{} -n {} {} --show-conditions {selected}",
            self.commands.program,
            self.commands.flags,
            self.namespace,
            self.cluster()
        )
    }

    fn cluster(&self) -> &str {
        self.snapshot
            .cluster_of(self.last)
            .map_or("NAME", Item::name)
    }

    /// Machine of the last object.
    fn machine(&self) -> Option<&Item> {
        match self.last.kind {
            Kind::Machine => Some(self.last),
            _ => self.snapshot.machine_of(self.last),
        }
    }

    /// Object whose template is to be changed: the creator of such Machines.
    fn creator(&self) -> String {
        let creator = || {
            let machine = self.machine()?;
            let owner = machine.object.owner_references().first()?;
            let set = self
                .snapshot
                .items
                .iter()
                .find(|item| machine.is_owned_by(item));
            let above = set.and_then(|set| set.object.owner_references().first());
            let owner = above
                .filter(|above| above.kind == "MachineDeployment")
                .unwrap_or(owner);
            Some(format!("{}/{}", owner.kind, owner.name))
        };
        creator().unwrap_or_else(|| "whatever creates the Machine".to_owned())
    }

    /// Way to change a spec with a wrong name.
    fn in_spec(&self) -> String {
        match self.last.kind {
            Kind::OpenStackCluster | Kind::Cluster => {
                format!("in the spec of {}", self.last.label())
            }
            _ => format!("in a new template for {}", self.creator()),
        }
    }

    /// Way to replace the Machine: its owner creates another one, or the user has to.
    fn replacement(&self) -> String {
        let Some(machine) = self.machine() else {
            return format!("delete {} and create it again", self.last.label());
        };
        let delete = self.kubectl(&format!("delete machine {}", machine.name()));
        // A Machine that nothing creates belongs to its Cluster.
        let owners = machine.object.owner_references();
        match owners.iter().any(|owner| owner.kind != "Cluster") {
            true => format!("replace the machine: {delete}"),
            false => {
                format!("delete the machine ({delete}), and create it again: nothing else does")
            }
        }
    }

    fn machine_name(&self) -> &str {
        self.machine().map_or("NAME", Item::name)
    }

    /// Server of the Machine, as named in OpenStack.
    fn server(&self) -> String {
        let id = self.machine().and_then(|machine| {
            let id = machine.field("/spec/providerID").as_str()?;
            Some(id.rsplit('/').next()?.to_owned())
        });
        id.or_else(|| Some(self.machine()?.name().to_owned()))
            .unwrap_or_else(|| "SERVER".to_owned())
    }
}

#[cfg(test)]
mod tests;
