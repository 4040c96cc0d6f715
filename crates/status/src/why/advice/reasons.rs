//! Next step by the reason of a condition. Every reason given by a controller of this program has a next step.

use api::conditions::Reason;

use super::Case;
use super::words::list;
use crate::readiness::cause::{blocked_set, lost_quorum, passes};
use crate::snapshot::{Item, Kind};
use crate::why::chain::UNREACHED;

/// Reasons of states that end by themselves.
pub(super) const PASSING: [Reason; 29] = [
    Reason::CannotBeRemediated,
    Reason::ClusterUpgrading,
    Reason::Creating,
    Reason::Deleting,
    Reason::DeletingLostMachines,
    Reason::DeletingNode,
    Reason::DeletionCompleted,
    Reason::InPlaceUpdating,
    Reason::InstanceNotReady,
    Reason::MachineDeleting,
    Reason::MachineDeploymentsCreatePending,
    Reason::Provisioning,
    Reason::Remediating,
    Reason::RollingOut,
    Reason::ScalingDown,
    Reason::ScalingUp,
    Reason::WaitingForBootstrapData,
    Reason::WaitingForBootstrapDeletion,
    Reason::WaitingForCloud,
    Reason::WaitingForClusterInfrastructure,
    Reason::WaitingForControlPlaneDeletion,
    Reason::WaitingForDeletion,
    Reason::WaitingForEtcd,
    Reason::WaitingForInfrastructureDeletion,
    Reason::WaitingForMachineDeletion,
    Reason::WaitingForMinReadySeconds,
    Reason::WaitingForServicesAndVolumes,
    Reason::WaitingForWorkersDeletion,
    Reason::WaitingForWorkloadCluster,
];

/// Reasons that only sum up other conditions, or other objects, in a bad state.
pub(super) const SUMS: [Reason; 14] = [
    Reason::AvailableUnknown,
    Reason::HealthUnknown,
    Reason::NotAvailable,
    Reason::NotHealthy,
    Reason::NotInitialized,
    Reason::NotReady,
    Reason::NotSet,
    Reason::NotUpToDate,
    Reason::ReadyUnknown,
    Reason::RefVersionsNotUpToDate,
    Reason::RollingOutUnknown,
    Reason::ScalingDownUnknown,
    Reason::ScalingUpUnknown,
    Reason::UpToDateUnknown,
];

/// Preflight checks of MachineSets, each with words that identify its messages where its name is missing.
const CHECKS: [(&str, &str); 4] = [
    ("ControlPlaneIsStable", "which is being upgraded"),
    ("KubernetesVersionSkew", "is newer than that of"),
    ("KubernetesVersionSkew", "is too old for"),
    ("KubeadmVersionSkew", "joins only a control plane"),
];

/// Name of the preflight check in a message.
fn preflight_check(message: &str) -> Option<&'static str> {
    let named = CHECKS.iter().find(|(name, _)| message.contains(name));
    let known = named.or_else(|| CHECKS.iter().find(|(_, words)| message.contains(words)));
    known.map(|(name, _)| *name)
}

impl Case<'_> {
    /// Next step by the reason; `None` for a reason of another provider.
    pub(super) fn of_reason(&self) -> Option<String> {
        if let Some(step) = self.of_preflight_check() {
            return Some(step);
        }
        if self.finding.reason == UNREACHED {
            return Some(Self::of_unreached());
        }
        let reason = Reason::parse(&self.finding.reason)?;
        let passing = PASSING.contains(&reason).then(|| self.passing());
        passing
            .or_else(|| self.of_spec(reason))
            .or_else(|| self.of_cloud(reason))
            .or_else(|| self.of_server(reason))
            .or_else(|| self.of_node(reason))
            .or_else(|| self.of_health_check(reason))
            .or_else(|| self.of_deletion_step(reason))
            .or_else(|| self.of_control_plane(reason))
            .or_else(|| self.of_topology(reason))
            .or_else(|| SUMS.contains(&reason).then(|| self.of_sum()))
    }

    /// Next step for a state that ends by itself, unless blocked.
    fn passing(&self) -> String {
        match self.finding.failing {
            true => format!(
                "it goes on when what its message names is mended; all of its conditions: {}",
                self.show_conditions()
            ),
            false => self.waiting(),
        }
    }

    /// Next step for a MachineSet that neither creates nor replaces machines while a preflight check fails.
    fn of_preflight_check(&self) -> Option<String> {
        if ![Kind::MachineDeployment, Kind::MachineSet, Kind::Machine].contains(&self.last.kind) {
            return None;
        }
        let name = preflight_check(self.detail()).filter(|_| self.finding.failing)?;
        let set = match self.last.kind {
            Kind::MachineSet => self.last.name(),
            _ => blocked_set(self.snapshot, self.last).map_or("NAME", Item::name),
        };
        let rest = format!(
            "annotate machineset {set} machineset.cluster.x-k8s.io/skip-preflight-checks={name}"
        );
        Some(format!(
            "the preflight check {name} of the MachineSet fails: change the version, or upgrade the control plane first. To go on without the check: {}",
            self.kubectl(&rest)
        ))
    }

    fn of_spec(&self, reason: Reason) -> Option<String> {
        let label = self.last.label();
        Some(match reason {
            Reason::InvalidMachineSpec => format!(
                "make a template without the mistake, and name it in {}",
                self.creator()
            ),
            Reason::InvalidClusterSpec => format!("correct the spec of {label}"),
            Reason::DependencyFailed => {
                let see = list(self.detail()).map(|command| format!(" (what there is: {command})"));
                format!(
                    "create in the cloud what is missing{}, or name another {}",
                    see.unwrap_or_default(),
                    self.in_spec()
                )
            }
            Reason::IdentityShared => self.of_copies(),
            Reason::IdentityUnknown => format!(
                "see the annotations of {label}: without its identity nothing of it is touched"
            ),
            Reason::AdoptionRefused => format!(
                "`{program} adopt cluster NAME --dry-run` lists the resources with their evidence: make clear what contradicts, and the provider looks again",
                program = self.commands.program
            ),
            Reason::WaitingForOwner => format!(
                "nothing is done for {label} before a Cluster or Machine that refers to it is its owner: create that object, or correct its reference"
            ),
            Reason::DoesNotExist => {
                "create what does not exist, or correct the reference to it".to_owned()
            }
            Reason::Deleted => format!(
                "it was deleted while {label} needs it, and is not created again: {}",
                self.replacement()
            ),
            Reason::InternalError => format!(
                "a request of a controller failed, and is repeated by itself; if that lasts, see the log of `{program} up` or `{program} manager`",
                program = self.commands.program
            ),
            _ => return None,
        })
    }

    fn of_cloud(&self, reason: Reason) -> Option<String> {
        let label = self.last.label();
        let again = "it is then tried again by itself";
        let of_network = |command: &str| {
            format!(
                "see what the cloud says to it (openstack {command}), and correct that or the spec of {label}; {again}"
            )
        };
        Some(match reason {
            Reason::OpenStackAuthenticationFailed => format!(
                "correct the credentials in the Secret that spec.identityRef of {label} names, or see whether the cloud answers"
            ),
            Reason::OpenStackError => format!(
                "see whether the service of the cloud that it names answers: openstack catalog list; {again}"
            ),
            Reason::NetworkCreateFailed => of_network("network list"),
            Reason::SubnetCreateFailed => of_network("subnet list"),
            Reason::RouterCreateFailed => of_network("router list"),
            Reason::SecurityGroupCreateFailed => of_network("security group list"),
            Reason::APIEndpointConfigFailed => {
                of_network("loadbalancer list; openstack floating ip list")
            }
            Reason::FloatingIPError => format!(
                "name a floating IP of the project that nothing uses in spec.apiServerFloatingIP of {label}, or none (openstack floating ip list); {again}"
            ),
            Reason::MaxIPsReached => format!(
                "raise spec.maxIPs of the OpenStackFloatingIPPool, or delete IPAddressClaims that nobody needs: {}",
                self.kubectl("get ipaddressclaims")
            ),
            Reason::UnableToFindNetwork => format!(
                "name a network in spec.floatingIPNetwork of the OpenStackFloatingIPPool (openstack network list --external); {again}"
            ),
            Reason::WaitingForIPAMProvider => format!(
                "see whether the pool that the claim names exists, and whether the program that answers its claims runs: {}",
                self.kubectl("get ipaddressclaims -o yaml")
            ),
            Reason::LoadBalancerMemberError => format!(
                "see the load balancer of the API server (openstack loadbalancer status show ID); {again} once it is ACTIVE"
            ),
            Reason::PortCreateFailed | Reason::PortUpdateFailed => format!(
                "see what Neutron refuses, and correct that in the cloud or {}; {again}",
                self.in_spec()
            ),
            Reason::VolumeCreateFailed => format!(
                "see what Cinder refuses (openstack volume list), and correct that in the cloud or {}; {again}",
                self.in_spec()
            ),
            _ => return None,
        })
    }

    fn of_server(&self, reason: Reason) -> Option<String> {
        Some(match reason {
            Reason::InstanceCreateFailed => format!(
                "see what Nova refuses, and correct that in the cloud, after which it is tried again by itself, or {}",
                self.in_spec()
            ),
            Reason::InstanceDeleteFailed => format!(
                "see what Nova says to it: openstack server show {}; the deletion is repeated by itself",
                self.server()
            ),
            Reason::InstanceRetried => "nothing: another server follows by itself, where two annotations say (ferrostack docs retries); free some room in the cloud".to_owned(),
            Reason::InstanceStateError
            | Reason::InstanceDeleted
            | Reason::InstanceNotFound
            | Reason::NodeDeleted => self.replacement(),
            Reason::BootstrapFailed => format!(
                "see the console of the server: openstack console log show {}",
                self.server()
            ),
            _ => return None,
        })
    }

    fn of_unreached() -> String {
        "have a floating IP (spec.apiServer.enableFloatingIP and spec.enableExternalNetwork of the OpenStackCluster; in v1beta1 disableAPIServerFloatingIP \
         and disableExternalNetwork), or run the manager where it reaches that network; a cluster on the simulated cloud is reached by floating IPs alone"
            .to_owned()
    }

    fn of_node(&self, reason: Reason) -> Option<String> {
        let kubeconfig = || {
            format!(
                "{} get kubeconfig{} -n {} {}",
                self.commands.program,
                self.commands.flags,
                self.namespace,
                self.cluster()
            )
        };
        Some(match reason {
            Reason::NodeDoesNotExist if passes(self.detail()) && !self.waits_for_its_node() => {
                self.waiting()
            }
            Reason::NodeDoesNotExist => format!(
                "a machine joins some minutes after its server has started. If it does not, see the console of the server: openstack console log show {}; and whether {}",
                self.server(),
                self.cloud_controller_manager()
            ),
            Reason::ConnectionDown
            | Reason::InspectionFailed
            | Reason::NodeInspectionFailed
            | Reason::ProbeFailed => {
                format!(
                    "see whether the API server of the workload cluster answers: {}",
                    kubeconfig()
                )
            }
            Reason::NodeNotReady
            | Reason::NodeNotHealthy
            | Reason::NodeHealthUnknown
            | Reason::NodeReadyUnknown => {
                format!(
                    "see the kubelet of the Node: kubectl describe node, with the kubeconfig of {}; if it does not come back, {}",
                    kubeconfig(),
                    self.replacement()
                )
            }
            Reason::Failed => format!(
                "see the log of the Pod in the namespace kube-system, with the kubeconfig of {}",
                kubeconfig()
            ),
            _ => return None,
        })
    }

    /// True if the message is about the Machine's own Node, and not about a step before.
    fn waits_for_its_node(&self) -> bool {
        self.detail().to_lowercase().contains("node to join")
    }

    /// Next step by the finding of a health check, and by the obstacle to the replacement.
    fn of_health_check(&self, reason: Reason) -> Option<String> {
        let detail = self.detail();
        Some(match reason {
            Reason::HasRemediateAnnotation
            | Reason::NodeStartupTimeout
            | Reason::UnhealthyMachine
            | Reason::UnhealthyNode => format!(
                "its MachineHealthCheck decides when it is replaced, and says in its condition RemediationAllowed why it is not: {}",
                self.kubectl("get machinehealthcheck -o yaml")
            ),
            Reason::TooManyUnhealthy => {
                "mend machines until as few are unhealthy as spec.remediation.triggerIf of the MachineHealthCheck allows, or change that"
                    .to_owned()
            }
            Reason::WaitingForRemediation => self.waiting(),
            Reason::RemediationDeferred if passes(detail) => self.waiting(),
            Reason::RemediationDeferred if detail.contains("only control plane machine") => format!(
                "repair its server (openstack console log show {}), or have more control plane machines first: {}",
                self.server(),
                self.kubectl(&format!("scale {} --replicas 3", self.creator().to_lowercase()))
            ),
            Reason::RemediationDeferred if detail.contains("maxRetry") => format!(
                "find out why its replacements fail, too; then delete it: {}",
                self.kubectl(&format!("delete machine {}", self.machine_name()))
            ),
            Reason::RemediationDeferred => format!(
                "mend what its message names, after which it is replaced by itself; the state of the others: {}",
                self.show_conditions_of("Machine")
            ),
            Reason::RemediationTemplateNotFound | Reason::RemediationRequestCreationFailed => {
                "create what spec.remediation.templateRef of the MachineHealthCheck names, or remove the field: the owner of the machine then replaces it"
                    .to_owned()
            }
            _ => return None,
        })
    }

    fn of_deletion_step(&self, reason: Reason) -> Option<String> {
        let of_hook = |prefix: &str| {
            format!(
                "whoever has set the hook has to remove its annotation. If that program is gone: {} {prefix}.delete.hook.machine.cluster.x-k8s.io/NAME-",
                self.kubectl(&format!("annotate machine {}", self.machine_name()))
            )
        };
        Some(match reason {
            Reason::WaitingForPreDrainHook => of_hook("pre-drain"),
            Reason::WaitingForPreTerminateHook => of_hook("pre-terminate"),
            Reason::InPlaceUpdateFailed => format!(
                "{} replaces the machine; with ferrostack.dev/in-place-update: Prefer its owner does so by itself",
                self.kubectl(&format!("delete machine {}", self.machine_name()))
            ),
            Reason::DrainingNode => "see which Pods do not leave the Node; a timeout is set by spec.deletion.nodeDrainTimeoutSeconds of the Machine, and \
                 a MachineDrainRule leaves Pods out"
                .to_owned(),
            Reason::WaitingForVolumeDetach => "see the VolumeAttachments of the workload cluster and the log of its CSI driver; a timeout is set by \
                 spec.deletion.nodeVolumeDetachTimeoutSeconds of the Machine"
                .to_owned(),
            _ => return None,
        })
    }

    fn of_control_plane(&self, reason: Reason) -> Option<String> {
        match reason {
            Reason::QuorumLost | Reason::SurvivorNotNamed | Reason::SurvivorRefused => {
                self.of_recovery()
            }
            Reason::Blocked => Some(format!(
                "mend what its message names: until then no control plane machine is created or deleted. The state of all: {}",
                self.show_conditions_of("Machine")
            )),
            _ => None,
        }
    }

    fn of_topology(&self, reason: Reason) -> Option<String> {
        let cluster = self.cluster();
        Some(match reason {
            Reason::ReconcileFailed => format!(
                "correct spec.topology of Cluster/{cluster}, its ClusterClass or the template that the message names; what a change would do: {} topology plan",
                self.commands.program
            ),
            Reason::ClusterClassNotReconciled | Reason::VariableDiscoveryFailed => format!(
                "see the conditions of the ClusterClass that spec.topology.classRef names: {}",
                self.kubectl("get clusterclass -o yaml")
            ),
            Reason::MachineDeploymentsUpgradeDeferred => format!(
                "the upgrade is deferred by the annotation topology.cluster.x-k8s.io/defer-upgrade in spec.topology.workers: remove it there: {}",
                self.kubectl(&format!("edit cluster {cluster}"))
            ),
            Reason::NotApplied | Reason::WrongSecretType => {
                "correct the ConfigMap or Secret that the ClusterResourceSet names; it is then applied by itself"
                    .to_owned()
            }
            _ => return None,
        })
    }

    /// Next step at the end of a chain, for a condition that only sums up others.
    fn of_sum(&self) -> String {
        match passes(self.detail()) {
            true => self.waiting(),
            false => format!(
                "mend what its message names; all of its conditions: {}",
                self.show_conditions()
            ),
        }
    }

    /// Steps in the condition of a control plane whose etcd has lost its quorum.
    fn of_recovery(&self) -> Option<String> {
        let found = lost_quorum(self.last)?;
        let step = |line: &str| {
            let (number, step) = line.split_once(". ")?;
            number.parse::<u8>().ok()?;
            Some(step.replace("kubectl annotate", &self.kubectl("annotate")))
        };
        let steps: Vec<String> = found.message.lines().filter_map(step).collect();
        let when = match Reason::parse(&self.finding.reason) {
            Some(Reason::QuorumLost) => "if the lost machines are gone for good, ",
            _ => "",
        };
        Some(format!("{when}{}", steps.join("; then ")))
    }
}
