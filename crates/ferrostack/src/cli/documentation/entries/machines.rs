//! Commands that replace machines.

use super::{Entry, entry};

pub(super) const ENTRIES: [Entry; 9] = [
    entry(
        "rollout",
        "rollouts.md",
        &[(
            "Replace the machines of a MachineDeployment",
            "ferrostack rollout restart machinedeployment/demo-md-0",
        )],
    ),
    entry(
        "rollout restart",
        "rollouts.md",
        &[(
            "Replace all machines of a cluster",
            "ferrostack rollout restart kubeadmcontrolplane/demo-control-plane machinedeployment/demo-md-0",
        )],
    ),
    entry(
        "rollout pause",
        "rollouts.md",
        &[(
            "Stop replacing machines",
            "ferrostack rollout pause machinedeployment/demo-md-0",
        )],
    ),
    entry(
        "rollout resume",
        "rollouts.md",
        &[(
            "Resume replacing machines",
            "ferrostack rollout resume machinedeployment/demo-md-0",
        )],
    ),
    entry(
        "rollout undo",
        "rollouts.md",
        &[
            (
                "Roll back to the previous revision",
                "ferrostack rollout undo machinedeployment/demo-md-0",
            ),
            (
                "Roll back to an earlier revision",
                "ferrostack rollout undo machinedeployment/demo-md-0 --to-revision 3",
            ),
        ],
    ),
    entry(
        "rollout status",
        "rollouts.md",
        &[(
            "Wait until the machines of a MachineDeployment are replaced",
            "ferrostack rollout status machinedeployment/demo-md-0 --timeout 20m",
        )],
    ),
    entry(
        "rollout history",
        "rollouts.md",
        &[
            (
                "List the revisions that can be gone back to",
                "ferrostack rollout history machinedeployment/demo-md-0",
            ),
            (
                "Show the template of one of them",
                "ferrostack rollout history machinedeployment/demo-md-0 --revision 1",
            ),
        ],
    ),
    entry(
        "topology",
        "clusterclass.md",
        &[(
            "Show what a changed class would change",
            "ferrostack topology plan -f class.yaml",
        )],
    ),
    entry(
        "topology plan",
        "clusterclass.md",
        &[
            (
                "Show what a changed class would change",
                "ferrostack topology plan -f class.yaml",
            ),
            (
                "Show the changes of one cluster, for a script",
                "ferrostack topology plan -f class.yaml --cluster team -o json",
            ),
        ],
    ),
];
