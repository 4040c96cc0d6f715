//! What to do about a KubeadmConfig now: a pure function of what is known.

use api::bootstrap::v1beta2::KubeadmConfig;

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
    /// The spec asks for init only.
    pub(super) init_only: bool,
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
            init_only: is_init_only(config),
        }
    }
}

fn is_init_only(config: &KubeadmConfig) -> bool {
    config.spec.init_configuration.is_some() && config.spec.join_configuration.is_none()
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
    match (facts.initialized, facts.control_plane) {
        // An init machine whose cluster came up meanwhile: kubeadm init ran elsewhere, or its data
        // was lost; only data for a join can help, and the spec has none.
        (true, true) if facts.init_only => Plan::Init,
        (_, _) if !facts.endpoint => Plan::Wait(Wait::Endpoint),
        (true, control_plane) => Plan::Join { control_plane },
        (false, true) => Plan::Init,
        (false, false) => Plan::Wait(Wait::ControlPlane),
    }
}

#[cfg(test)]
mod tests;
