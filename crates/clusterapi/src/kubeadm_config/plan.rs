//! What to do about a KubeadmConfig now: a pure function of what is known.

use api::bootstrap::v1beta2::KubeadmConfig;
use api::core::v1beta2::Cluster;

use super::{Subject, status};

/// What the plan depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Cluster or object is paused.
    pub(super) paused: bool,
    /// Our status says that the data exists.
    pub(super) has_data: bool,
    /// The Machine knows a data Secret (ours from before a move, or somebody else's).
    pub(super) machine_has_data: bool,
    /// The Machine's Node is known.
    pub(super) has_node: bool,
    /// It is a control plane machine.
    pub(super) control_plane: bool,
    /// The Cluster's infrastructure is provisioned.
    pub(super) infrastructure: bool,
    /// The Cluster's control plane is initialized.
    pub(super) initialized: bool,
    /// The Cluster's endpoint is known.
    pub(super) endpoint: bool,
    /// The spec is one for joining: such a machine never initializes a cluster.
    pub(super) joins_only: bool,
}

impl Facts {
    pub(super) fn of(subject: &Subject) -> Self {
        let Subject {
            config,
            machine,
            cluster,
            ..
        } = subject;
        let annotations = config.metadata.annotations.as_ref();
        let paused = annotations.is_some_and(|a| a.contains_key(api::names::PAUSED_ANNOTATION));
        Self {
            paused: cluster.is_paused() || paused,
            has_data: status::has_data(config),
            machine_has_data: machine.spec.bootstrap.data_secret_name.is_some(),
            has_node: machine.node_name().is_some(),
            control_plane: machine.is_control_plane(),
            infrastructure: cluster.infrastructure_provisioned(),
            initialized: cluster.control_plane_initialized(),
            endpoint: cluster.endpoint().is_some(),
            joins_only: joins_only(config, cluster),
        }
    }
}

/// Whether a config is for joining. Where a control plane object decides which machine is the first, it is
/// one with a join configuration and no init configuration; machines that people create by hand may
/// be initialized by a cluster configuration alone, as upstream does it.
fn joins_only(config: &KubeadmConfig, cluster: &Cluster) -> bool {
    let spec = &config.spec;
    let is_join = spec.join_configuration.is_some() && spec.init_configuration.is_none();
    is_join && (spec.cluster_configuration.is_none() || cluster.spec.control_plane_ref.is_some())
}

/// What is waited for; each is a change of the Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Network, load balancer and so on.
    Infrastructure,
    /// The first machine's API server.
    ControlPlane,
    /// The address of the API server.
    Endpoint,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing: somebody wants it left alone.
    Paused,
    /// Nothing yet.
    Wait(Wait),
    /// Say in status what the Machine already knows.
    Restore,
    /// Nothing any more.
    Done,
    /// Keep the join token alive.
    Refresh,
    /// Write the data of the first machine.
    Init,
    /// Write the data of any other machine.
    Join {
        /// Whether it becomes a control plane machine.
        control_plane: bool,
    },
}

/// The plan.
pub(super) fn decide(facts: &Facts) -> Plan {
    if facts.paused {
        return Plan::Paused;
    }
    if facts.has_data {
        return if facts.has_node {
            Plan::Done
        } else {
            Plan::Refresh
        };
    }
    if facts.machine_has_data {
        return Plan::Restore;
    }
    if !facts.infrastructure {
        return Plan::Wait(Wait::Infrastructure);
    }
    if !facts.endpoint {
        return Plan::Wait(Wait::Endpoint);
    }
    match (facts.initialized, facts.control_plane) {
        // Whatever the spec asks for: a second `kubeadm init` would found a second cluster, with an etcd
        // of its own, behind the same endpoint.
        (true, control_plane) => Plan::Join { control_plane },
        (false, true) if !facts.joins_only => Plan::Init,
        (false, _) => Plan::Wait(Wait::ControlPlane),
    }
}

#[cfg(test)]
mod tests;
