//! Flags of `rollout`.

use std::str::FromStr;

use clap::{Args, Subcommand};
use status::snapshot::Kind;

use super::values::duration;
use super::{ConnectArgs, OutputArg};

/// Action on the rollout of a MachineDeployment or a KubeadmControlPlane.
#[derive(Debug, Subcommand)]
pub(crate) enum Rollout {
    /// Replace all machines, as the rollout strategy of the resource allows.
    Restart(RolloutArgs),
    /// Pause the replacement of machines until `rollout resume`.
    Pause(RolloutArgs),
    /// Resume a rollout after `rollout pause`.
    Resume(RolloutArgs),
    /// Roll a MachineDeployment back to an earlier revision, kept until its last machine is replaced.
    Undo(RolloutUndo),
    /// Show the progress of rollouts until they are done.
    ///
    /// The exit status is 1 if a rollout is paused, or not done after --timeout.
    Status(RolloutStatus),
    /// List the revisions of a MachineDeployment for `rollout undo`.
    History(RolloutHistory),
}

#[derive(Debug, Args)]
pub(crate) struct RolloutArgs {
    /// Resources, such as machinedeployment/demo-md-0 or kubeadmcontrolplane/demo-control-plane.
    #[arg(required = true, value_name = "RESOURCE/NAME")]
    pub(crate) resources: Vec<Resource>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutUndo {
    /// MachineDeployment, such as machinedeployment/demo-md-0.
    #[arg(value_name = "RESOURCE/NAME")]
    pub(crate) resource: Resource,
    /// Revision to roll back to [default: the one before the current one].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) to_revision: Option<i64>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutStatus {
    /// Resources, such as machinedeployment/demo-md-0 or kubeadmcontrolplane/demo-control-plane.
    #[arg(required = true, value_name = "RESOURCE/NAME")]
    pub(crate) resources: Vec<Resource>,
    /// Keep running until the rollouts are done.
    #[arg(short, long, value_name = "true|false", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, hide_possible_values = true)]
    pub(crate) watch: bool,
    /// Timeout, such as 10m [default: none].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<std::time::Duration>,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutHistory {
    /// MachineDeployment, such as machinedeployment/demo-md-0.
    #[arg(value_name = "RESOURCE/NAME")]
    pub(crate) resource: Resource,
    /// Show the template of this revision alone.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) revision: Option<i64>,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Resource with a rollout of machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) kind: Kind,
    pub(crate) name: String,
}

impl FromStr for Resource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "machinedeployment/NAME or kubeadmcontrolplane/NAME";
        let (kind, name) = text
            .split_once('/')
            .filter(|(_, name)| !name.is_empty() && !name.contains('/'))
            .ok_or_else(|| format!("it has to be {FORMS}"))?;
        let resource = kind.to_ascii_lowercase();
        let plain = resource.split_once('.').map_or(&*resource, |(it, _)| it);
        let kind = match plain {
            "machinedeployment" | "machinedeployments" | "md" => Kind::MachineDeployment,
            "kubeadmcontrolplane" | "kubeadmcontrolplanes" | "kcp" => Kind::KubeadmControlPlane,
            _ => return Err(format!("{kind} has no roll-outs: {FORMS}")),
        };
        Ok(Self {
            kind,
            name: name.to_owned(),
        })
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_have_the_names_that_kubectl_knows() {
        for (text, expected) in [
            ("machinedeployment/a", "MachineDeployment a"),
            ("MachineDeployments/a", "MachineDeployment a"),
            (
                "machinedeployments.cluster.x-k8s.io/a",
                "MachineDeployment a",
            ),
            ("md/a", "MachineDeployment a"),
            ("kcp/a", "KubeadmControlPlane a"),
            ("kubeadmcontrolplane/a", "KubeadmControlPlane a"),
        ] {
            assert_eq!(text.parse::<Resource>().unwrap().to_string(), expected);
        }
        for text in ["", "a", "md/", "/a", "md/a/b", "machineset/a", "cluster/a"] {
            let error = text.parse::<Resource>().unwrap_err();
            assert!(error.contains("kubeadmcontrolplane/NAME"), "{error}");
        }
    }
}
