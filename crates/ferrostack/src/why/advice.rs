//! The next thing to do about a cause.

use kube::ResourceExt;

use super::chain::{Chain, End, Finding};
use crate::readiness::cause::lost_quorum;
use crate::snapshot::{Item, Kind, Snapshot};

/// How commands are written that reach the same API server.
pub(super) struct Commands<'a> {
    pub(super) program: &'a str,
    /// The flags of ferrostack, each preceded by a blank.
    pub(super) flags: &'a str,
    /// The flags of kubectl, in the same way.
    pub(super) kubectl: &'a str,
}

impl Commands<'_> {
    fn kubectl(&self, namespace: &str, rest: &str) -> String {
        format!("kubectl{} -n {namespace} {rest}", self.kubectl)
    }
}

/// What to do next.
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
        End::Itself => case
            .of_words()
            .or_else(|| case.of_reason())
            .unwrap_or_else(|| case.otherwise()),
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
        let rest = match self.last.kind {
            Kind::Cluster if self.last.field("/spec/paused") == true => format!(
                "patch cluster {} --type merge -p '{{\"spec\":{{\"paused\":false}}}}'",
                self.last.name()
            ),
            _ => format!(
                "annotate {} {} cluster.x-k8s.io/paused-",
                self.last.kind_name().to_lowercase(),
                self.last.name()
            ),
        };
        format!(
            "let it go on: {}",
            self.commands.kubectl(self.namespace, &rest)
        )
    }

    fn of_deletion(&self) -> String {
        let detail = self.finding.detail.as_deref().unwrap_or_default();
        if detail.contains("disruption budget") || detail.contains("evict") {
            return "see which PodDisruptionBudget of the workload cluster keeps the Pods; a timeout is set by \
                    spec.deletion.nodeDrainTimeoutSeconds of the Machine"
                .to_owned();
        }
        if detail.to_lowercase().contains("load balancer") && detail.contains("Service") {
            return "delete that Service in the workload cluster, whose cloud controller manager deletes its load balancer; if the \
                    workload cluster is gone, delete it in the cloud: openstack loadbalancer delete --cascade NAME. The network \
                    is deleted after it"
                .to_owned();
        }
        if self.finding.reason == "IdentityShared" || detail.contains("several objects have it") {
            return self.of_copies();
        }
        self.waiting()
    }

    /// Of two objects with one identity neither acts, and a person says which one is the copy.
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

    /// What the words of the cloud ask for.
    fn of_words(&self) -> Option<String> {
        let detail = self.finding.detail.as_deref().unwrap_or_default();
        let lower = detail.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if has(&["quota"]) {
            return Some(
                "raise the quota of the project (`openstack quota set`), or free some of it; it is then tried again by itself"
                    .to_owned(),
            );
        }
        if has(&["no valid host", "not enough hosts"]) {
            return Some(format!(
                "choose a smaller flavor or another availability zone, or make room on the hypervisors; then replace the machine: {}",
                self.delete_machine()?
            ));
        }
        if has(&["cni", "network plugin"]) {
            return Some(
                "install a network plugin (CNI) in the workload cluster; a ClusterResourceSet does it for every cluster"
                    .to_owned(),
            );
        }
        if has(&["uninitialized", "cloud provider", "providerid"]) {
            return Some(format!(
                "see whether a cloud controller manager runs in the workload cluster: {} generate cloud-controller-manager prints one, and up --cloud NAME --install-ccm installs it",
                self.commands.program
            ));
        }
        None
    }

    /// What the reason of the condition asks for.
    fn of_reason(&self) -> Option<String> {
        let label = self.last.label();
        match self.finding.reason.as_str() {
            "OpenStackAuthenticationFailed" => Some(format!(
                "correct the credentials in the Secret that spec.identityRef of {label} names, or see whether the cloud answers"
            )),
            "InvalidMachineSpec" | "NotImplemented" => Some(format!(
                "make a template without the mistake, and name it in {}",
                self.creator()
            )),
            "InvalidClusterSpec" => Some(format!("correct the spec of {label}")),
            "DependencyFailed" => Some(format!(
                "create in the cloud what is missing, or name another in a new template for {}",
                self.creator()
            )),
            "IdentityShared" => Some(self.of_copies()),
            "OpenStackError" => Some(
                "see whether the service of the cloud that it names answers: openstack catalog list; it is then tried again by itself"
                    .to_owned(),
            ),
            "IdentityUnknown" => Some(format!(
                "see the annotations of {label}: without its identity nothing of it is touched"
            )),
            "InstanceStateError" | "InstanceDeleted" | "InstanceNotFound" | "NodeDeleted" => {
                Some(format!("replace the machine: {}", self.delete_machine()?))
            }
            "QuorumLost" | "SurvivorNotNamed" | "SurvivorRefused" => self.of_recovery(),
            "BootstrapFailed" | "NodeDoesNotExist" => {
                let server = self.server();
                Some(format!(
                    "see the console of the server: openstack console log show {server}"
                ))
            }
            "ConnectionDown" | "NodeInspectionFailed" => Some(format!(
                "see whether the API server of the workload cluster answers: {} get kubeconfig{} -n {} {}",
                self.commands.program,
                self.commands.flags,
                self.namespace,
                self.cluster()
            )),
            reason if reason.starts_with("Node") && self.finding.failing => Some(format!(
                "see the kubelet of the Node, or replace the machine: {}",
                self.delete_machine()?
            )),
            _ => None,
        }
    }

    /// The steps in the condition of a control plane whose etcd has lost its quorum.
    fn of_recovery(&self) -> Option<String> {
        let found = lost_quorum(self.last)?;
        let step = |line: &str| {
            let (number, step) = line.split_once(". ")?;
            number.parse::<u8>().ok()?;
            Some(step.replace(
                "kubectl annotate",
                &self.commands.kubectl(self.namespace, "annotate"),
            ))
        };
        let steps: Vec<String> = found.message.lines().filter_map(step).collect();
        let when = match self.finding.reason.as_str() {
            "QuorumLost" => "if the lost machines are gone for good, ",
            _ => "",
        };
        Some(format!("{when}{}", steps.join("; then ")))
    }

    fn otherwise(&self) -> String {
        match self.finding.failing {
            true => format!(
                "see its events: {}",
                self.commands.kubectl(
                    self.namespace,
                    &format!(
                        "describe {} {}",
                        self.last.kind_name().to_lowercase(),
                        self.last.name()
                    )
                )
            ),
            false => self.waiting(),
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

    fn cluster(&self) -> &str {
        self.snapshot
            .cluster_of(self.last)
            .map_or("NAME", Item::name)
    }

    /// The Machine of the last object.
    fn machine(&self) -> Option<&Item> {
        match self.last.kind {
            Kind::Machine => Some(self.last),
            _ => self.snapshot.machine_of(self.last),
        }
    }

    /// What creates such Machines: the object whose template is changed.
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

    /// The command that replaces the Machine, if something creates another one.
    fn delete_machine(&self) -> Option<String> {
        let machine = self.machine()?;
        let rest = format!("delete machine {}", machine.name());
        (!machine.object.owner_references().is_empty())
            .then(|| self.commands.kubectl(self.namespace, &rest))
    }

    /// The server of the Machine, as OpenStack knows it.
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::readiness::cause::tests::{condition, of_demo};

    fn next_for(reason: &str, message: &str) -> String {
        let status = |conditions: serde_json::Value| json!({"status": {"conditions": conditions}});
        let mut machine = json!({"spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
            "kind": "OpenStackMachine", "name": "m"}, "providerID": "openstack:///4f1e"}});
        machine["status"] = status(json!([condition(
            "InfrastructureReady",
            "False",
            reason,
            message
        )]))["status"]
            .clone();
        let snapshot = Snapshot::from(vec![
            of_demo(Kind::Cluster, "demo", "", json!({})),
            of_demo(Kind::MachineSet, "set", "md", json!({})),
            of_demo(Kind::Machine, "m", "set", machine),
            of_demo(
                Kind::OpenStackMachine,
                "m",
                "m",
                status(json!([
                    condition("InstanceReady", "False", reason, message),
                    condition("Ready", "False", reason, message)
                ])),
            ),
        ]);
        let chain = Chain::of(&snapshot, &snapshot.items[3]).unwrap();
        let commands = Commands {
            program: "ferrostack",
            flags: " --data-dir d",
            kubectl: " --kubeconfig d/kubeconfig",
        };
        next(&snapshot, &chain, &chain.finding(), &commands)
    }

    #[test]
    fn the_next_step_follows_from_the_words_of_the_cloud_and_the_reason() {
        let delete = "kubectl --kubeconfig d/kubeconfig -n default delete machine m";
        for (reason, message, expected) in [
            (
                "InstanceCreateFailed",
                "Quota exceeded for instances",
                "raise the quota",
            ),
            ("InstanceStateError", "No valid host was found.", delete),
            (
                "InstanceDeleted",
                "server x was deleted by somebody else",
                delete,
            ),
            (
                "BootstrapFailed",
                "kubeadm: x",
                "openstack console log show 4f1e",
            ),
            ("InvalidMachineSpec", "spec.ports: x", "name it in X/set"),
            (
                "OpenStackAuthenticationFailed",
                "401",
                "correct the credentials",
            ),
            ("OpenStackError", "503", "openstack catalog list"),
            (
                "IdentityShared",
                "OpenStackMachine a/m and OpenStackMachine b/m have the same identity",
                "patch openstackmachine m --type merge -p '{\"metadata\":{\"finalizers\":null}}'",
            ),
            ("SomethingFailed", "x", "describe openstackmachine m"),
            (
                "Creating",
                "creating server x",
                "describe cluster --data-dir d -n default demo --watch",
            ),
        ] {
            let advice = next_for(reason, message);
            assert!(advice.contains(expected), "{reason}: {advice}");
        }
    }
}
